"""Rotary embedding with learned two-dimensional frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import get_args

import torch
from torch import Tensor, nn

from vitpos.position.base import Geometry, Position, Transfer
from vitpos.position.checks import require, require_choice, require_head_width
from vitpos.position.grid import frequency_ladder, ntk_factors, pad_prefix, patch_coordinates
from vitpos.position.rotation import Pairing, rotate_both


class RopeMixed(Position):
    """Rotate pair i by fx_i x + fy_i y radians, with fx, fy learned per layer and head (Heo et al. 2024).

    They start as E/4 magnitudes theta^(-k / (E/4)) in two orthogonal directions, turned by one random angle per layer
    and head. Query and key share them, so scores depend on the offset only. Prefix tokens are not rotated.

    Args:
        geometry: the network served.
        theta: base of the initial wavelengths.
        pairing: channels of a pair, `interleaved` (2i, 2i+1) or `half` (i, i + E/2).

    Raises:
        ValueError: a head width that 4 does not divide, a `theta` below 1, or an unknown choice.
    """

    label = "RoPE mixed"
    source = "Heo et al. 2024 (rope-vit)"
    family = "rotary"
    injection = "rotate"
    honours = frozenset({"coordinates", "ntk"})
    position: Tensor
    stretch: Tensor

    def __init__(self, geometry: Geometry, *, theta: float = 10.0, pairing: Pairing = "interleaved") -> None:
        super().__init__(geometry)
        require_head_width(geometry, 4, "pairs in two orthogonal directions")
        require(theta >= 1, f"theta={theta}: must be at least 1")
        require_choice("pairing", pairing, get_args(Pairing))
        self.pairing = pairing
        magnitude = frequency_ladder(geometry.head_dim // 4, theta).float()  # E/4
        angle = torch.rand(geometry.depth, geometry.heads, 1) * 2 * pi  # L K 1
        magnitude = magnitude.to(angle.device)
        directions = (angle, angle + pi / 2)
        self.frequencies = nn.Parameter(
            torch.stack(
                (
                    torch.cat([magnitude * turn.cos() for turn in directions], dim=-1),
                    torch.cat([magnitude * turn.sin() for turn in directions], dim=-1),
                )
            )
        )  # 2 L K E/2, x then y
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Compute coordinates (2, T, 1), x then y and zero for the prefix, and the frequencies' factors (2, 1, E/2)."""
        mode, trained = self.transfer.coordinates, self.geometry.grid
        position = pad_prefix(patch_coordinates(self.grid, trained, mode), self.geometry.prefix)  # T 2
        count = self.geometry.head_dim // 4
        stretch = [ntk_factors(count, self.grid[axis], trained[axis], mode).repeat(2) for axis in (1, 0)]
        return {"position": position.T.flip(0).float()[..., None], "stretch": torch.stack(stretch).float()[:, None]}

    def rotate(self, q: Tensor, k: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate by the layer's own angles, computed in float32."""
        frequencies = self.frequencies[:, layer].float() * self.stretch  # 2 K E/2
        phase = self.position[0] * frequencies[0][:, None] + self.position[1] * frequencies[1][:, None]  # K T E/2
        return rotate_both(q, k, phase, self.pairing)
