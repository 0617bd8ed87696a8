"""Learnable Fourier features of the coordinates, mixed by a small network."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from vitpos.position.additive import Additive, Injection
from vitpos.position.base import Geometry, Transfer
from vitpos.position.checks import require
from vitpos.position.grid import pad_prefix, patch_coordinates


class _Code(nn.Module):
    """MLP([cos(p W^T) ; sin(p W^T)] / sqrt(F)) for positions p (N, 2)."""

    def __init__(self, dim: int, features: int, hidden: int, gamma: float) -> None:
        super().__init__()
        self.frequencies = nn.Parameter(torch.randn(features // 2, 2) / gamma)
        self.mlp = nn.Sequential(nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, position: Tensor) -> Tensor:
        frequencies = self.frequencies.float()
        phase = position[:, :1] * frequencies[:, 0] + position[:, 1:] * frequencies[:, 1]  # N F/2
        features = torch.cat((phase.cos(), phase.sin()), dim=-1) * (2 * len(frequencies)) ** -0.5
        out: Tensor = self.mlp(features.to(self.mlp[0].weight.dtype))
        return out


class Fourier(Additive):
    """Learnable Fourier features (Li et al. 2021): cosines and sines of learned projections, then an MLP with GELU.

    E = MLP([cos(p W^T) ; sin(p W^T)] / sqrt(F)), W ~ N(0, gamma^-2), p = (x, y) counted in patches, and an MLP
    F -> hidden -> D. Prefix tokens get zero. `rescale` maps another size onto the trained extent.

    Args:
        geometry: the network served.
        inject: see `Additive`; `every` learns one W and MLP per layer.
        features: width F of the Fourier features.
        hidden: width of the hidden layer.
        gamma: distance in patches over which the initial features decorrelate.

    Raises:
        ValueError: odd or non-positive `features`, `hidden` below 1, `gamma` not above 0.
    """

    label = "Learnable Fourier"
    source = "Li et al. 2021"
    honours = frozenset({"coordinates"})
    position: Tensor

    def __init__(
        self,
        geometry: Geometry,
        *,
        inject: Injection = "stem",
        features: int = 128,
        hidden: int = 32,
        gamma: float = 1.0,
    ) -> None:
        super().__init__(geometry, inject)
        require(features > 0 and features % 2 == 0, f"features={features}: must be even, a cosine and a sine each")
        require(hidden >= 1, f"hidden={hidden}: must be at least 1")
        require(gamma > 0, f"gamma={gamma}: must be above 0")
        self.codes = nn.ModuleList(_Code(geometry.dim, features, hidden, gamma) for _ in range(self.copies))
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Compute the coordinates (N, 2), x then y."""
        position = patch_coordinates(self.grid, self.geometry.grid, self.transfer.coordinates)
        return {"position": position.flip(1).float()}

    def code(self, copy: int) -> Tensor:
        """Evaluate the features in float32 at the current coordinates."""
        with torch.autocast(self.position.device.type, enabled=False):
            return pad_prefix(self.codes[copy](self.position), self.geometry.prefix)  # T D
