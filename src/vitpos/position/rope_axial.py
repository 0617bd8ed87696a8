"""Axial rotary embedding: half the channels turn with x, half with y."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import torch
from torch import Tensor

from vitpos.position.base import Geometry, Position, Transfer
from vitpos.position.checks import require, require_choice, require_head_width
from vitpos.position.grid import (
    frequency_ladder,
    normalised_coordinates,
    ntk_factors,
    pad_prefix,
    patch_coordinates,
    spread,
)
from vitpos.position.rotation import Pairing, rotate_pairs

Order = Literal["xy", "ij"]
RopeCoordinates = Literal["integer", "normalised"]


class RopeAxial(Position):
    """Rotate channel pair k of each axis by c f_k radians, f_k = max_frequency theta^(-k / (E/4)), k = 0 .. E/4 - 1.

    The score of a query and a key then depends on their offset only. Published settings: the defaults are rope-vit's;
    EVA-02 and timm have theta=10000, order=ij. Prefix tokens are not rotated.

    Args:
        geometry: the network served.
        theta: base of the wavelengths.
        max_frequency: radians of the fastest pair per unit of coordinate.
        coordinates: `integer` counts patches from `offset`; `normalised` maps patch centres to [-1, 1] at every size,
            so `transfer.coordinates` has no effect.
        offset: added to integer coordinates.
        order: `xy` gives the first pairs to the columns, `ij` to the rows.
        pairing: channels of a pair, `interleaved` (2i, 2i+1) or `half` (i, i + E/2).

    Raises:
        ValueError: a head width that 4 does not divide, a `theta` below 1, or an unknown choice.
    """

    label = "RoPE axial"
    source = "Su et al. 2021, Heo et al. 2024 (rope-vit)"
    family = "rotary"
    injection = "rotate"
    honours = frozenset({"coordinates", "ntk"})
    cos: Tensor
    sin: Tensor

    def __init__(
        self,
        geometry: Geometry,
        *,
        theta: float = 100.0,
        max_frequency: float = 1.0,
        coordinates: RopeCoordinates = "integer",
        offset: float = 0.0,
        order: Order = "xy",
        pairing: Pairing = "interleaved",
    ) -> None:
        super().__init__(geometry)
        require_head_width(geometry, 4, "a pair of channels for each of two axes")
        require(theta >= 1, f"theta={theta}: must be at least 1")
        require_choice("coordinates", coordinates, get_args(RopeCoordinates))
        require_choice("order", order, get_args(Order))
        require_choice("pairing", pairing, get_args(Pairing))
        self.theta, self.max_frequency, self.coordinates, self.offset = theta, max_frequency, coordinates, offset
        self.order, self.pairing = order, pairing
        if coordinates == "normalised":
            self.honours = frozenset()
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Compute cosines and sines (T, E/2)."""
        integer, mode = self.coordinates == "integer", self.transfer.coordinates
        trained, count = self.geometry.grid, self.geometry.head_dim // 4
        if integer:
            position = patch_coordinates(self.grid, trained, mode) + self.offset  # N 2, y then x
        else:
            position = spread(*map(normalised_coordinates, self.grid))
        phases = []
        for axis in (1, 0) if self.order == "xy" else (0, 1):
            ladder = self.max_frequency * frequency_ladder(count, self.theta)
            if integer:
                ladder = ladder * ntk_factors(count, self.grid[axis], trained[axis], mode)
            phases.append(position[:, axis, None] * ladder)  # N E/4
        phase = pad_prefix(torch.cat(phases, dim=-1), self.geometry.prefix)  # T E/2
        return {"cos": phase.cos().float(), "sin": phase.sin().float()}

    def rotate(self, q: Tensor, k: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate by the same angles in every layer and head."""
        return rotate_pairs(q, self.cos, self.sin, self.pairing), rotate_pairs(k, self.cos, self.sin, self.pairing)
