"""Positions by a convolution over the grid of patches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitpos.position.base import Geometry, Position
from vitpos.position.checks import require


class PEG(Position):
    """x <- x + DWConv(x on its grid), a depth-wise convolution with zero padding (CPVT, Chu et al. 2021).

    The zeros beyond the border tell where the border is. It acts on the output of one layer and at any size as it is;
    prefix tokens bypass it.

    Args:
        geometry: the network served.
        after: layer (0 .. L-2) on whose output it acts.
        kernel: side of the convolution in patches.

    Raises:
        ValueError: `after` without a layer behind it, or an even `kernel`.
    """

    label = "PEG"
    source = "Chu et al. 2021 (CPVT)"
    family = "convolutional"

    def __init__(self, geometry: Geometry, *, after: int = 0, kernel: int = 3) -> None:
        super().__init__(geometry)
        require(
            0 <= after < geometry.depth - 1,
            f"after={after}: must be a layer with another one behind it, 0 .. {geometry.depth - 2}",
        )
        require(kernel > 0 and kernel % 2 == 1, f"kernel={kernel}: must be odd, to keep the grid")
        self.after = after
        self.conv = nn.Conv2d(geometry.dim, geometry.dim, kernel, padding=kernel // 2, groups=geometry.dim)

    @property
    def injection(self) -> str:
        """The output of one layer."""
        return f"after layer {self.after}"

    def before_layer(self, x: Tensor, layer: int) -> Tensor:
        """Convolve the patches that enter the layer behind `after`."""
        if layer != self.after + 1:
            return x
        prefix = self.geometry.prefix
        image = x[:, prefix:].transpose(1, 2).reshape(len(x), -1, *self.grid)  # B D H W
        patches = x[:, prefix:] + self.conv(image).flatten(2).transpose(1, 2)  # B N D
        return torch.cat((x[:, :prefix], patches.to(x.dtype)), dim=1) if prefix else patches.to(x.dtype)
