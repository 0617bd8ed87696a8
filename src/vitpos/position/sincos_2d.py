"""Fixed sinusoids of row and column, in every published channel order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import torch
from torch import Tensor

from vitpos.position.additive import Additive, Injection
from vitpos.position.base import Geometry, Transfer
from vitpos.position.checks import require, require_choice
from vitpos.position.grid import frequency_ladder, ntk_factors, pad_prefix, patch_coordinates

Order = Literal["xy", "ij"]
Grouping = Literal["axis", "function"]
SinCosCoordinates = Literal["integer", "fractional"]


class SinCos2D(Additive):
    """Sinusoids of x and y, D/4 frequencies w_k = theta^(-k / (D/4)) per axis, nothing learned.

    Published layouts: MAE is order=xy, grouping=axis; MoCo-v3 order=ij, grouping=axis; big_vision order=xy,
    grouping=axis, endpoint=true; timm order=ij, grouping=function. Prefix tokens get zero.

    Args:
        geometry: the network served.
        inject: see `Additive`; `every` and `shared` coincide, since nothing is learned.
        theta: base of the wavelengths.
        endpoint: divide the exponent by D/4 - 1, so that the slowest frequency is 1 / theta.
        order: `xy` puts the columns' channels first, `ij` the rows'.
        grouping: `axis` is sin a, cos a, sin b, cos b; `function` is sin a, sin b, cos a, cos b.
        coordinates: `integer` counts patches; `fractional` always rescales patch centres onto the trained extent, so
            the code depends on p / side only and `transfer.coordinates` has no effect.

    Raises:
        ValueError: a `dim` that 4 does not divide, a `theta` not above 1, or an unknown choice.
    """

    label = "2-D sin-cos"
    source = "Chen et al. 2021 (MoCo-v3), He et al. 2022 (MAE)"
    honours = frozenset({"coordinates", "ntk"})
    table: Tensor

    def __init__(
        self,
        geometry: Geometry,
        *,
        inject: Injection = "stem",
        theta: float = 10000.0,
        endpoint: bool = False,
        order: Order = "xy",
        grouping: Grouping = "axis",
        coordinates: SinCosCoordinates = "integer",
    ) -> None:
        super().__init__(geometry, inject)
        rule = "must be divisible by 4, a sine and a cosine of each of two axes"
        require(geometry.dim % 4 == 0, f"dim={geometry.dim}: {rule}")
        require(theta > 1, f"theta={theta}: must be above 1")
        require_choice("order", order, get_args(Order))
        require_choice("grouping", grouping, get_args(Grouping))
        require_choice("coordinates", coordinates, get_args(SinCosCoordinates))
        self.theta, self.endpoint, self.order, self.grouping = theta, endpoint, order, grouping
        self.coordinates = coordinates
        if coordinates == "fractional":
            self.honours = frozenset()
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Compute the table (T, D)."""
        mode = "rescale" if self.coordinates == "fractional" else self.transfer.coordinates
        count, phases = self.geometry.dim // 4, []
        position = patch_coordinates(self.grid, self.geometry.grid, mode)  # N 2, y then x
        for axis in (1, 0) if self.order == "xy" else (0, 1):
            stretch = ntk_factors(count, self.grid[axis], self.geometry.grid[axis], mode)
            phases.append(position[:, axis, None] * frequency_ladder(count, self.theta, self.endpoint) * stretch)
        phase = torch.stack(phases, dim=1)  # N 2 D/4
        parts = (phase.sin(), phase.cos())
        table = torch.stack(parts, dim=2 if self.grouping == "axis" else 1).flatten(1).float()  # N D
        return {"table": pad_prefix(table, self.geometry.prefix)}

    def code(self, copy: int) -> Tensor:
        """Return the fixed table."""
        return self.table
