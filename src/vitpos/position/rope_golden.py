"""Rotary embedding whose frequencies point in evenly spread directions."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, sqrt
from typing import get_args

import torch
from torch import Tensor

from vitpos.position.base import Geometry, Position, Transfer
from vitpos.position.checks import require, require_choice, require_head_width
from vitpos.position.grid import frequency_ladder, normalised_coordinates, pad_prefix, spread
from vitpos.position.rotation import Pairing, rotate_pairs


class RopeGolden(Position):
    """Rotate pair j of head h by f_j (x cos a_i + y sin a_i) radians, i = h E/2 + j ("golden gate" RoPE, Xiong 2025).

    The angles a_i = i pi (1 - sqrt 5) / 2 never repeat and cover all directions evenly; the frequencies f_j run
    log-spaced from `min_frequency` to `max_frequency`, both included. Coordinates are patch centres in [-1, 1] at every
    size, so `transfer.coordinates` has no effect. Prefix tokens are not rotated.

    Args:
        geometry: the network served.
        min_frequency: radians of the slowest pair per half image.
        max_frequency: radians of the fastest pair per half image.
        pairing: channels of a pair, `half` (i, i + E/2) or `interleaved` (2i, 2i+1).

    Raises:
        ValueError: an odd head width, frequencies not 0 < min <= max, or an unknown choice.
    """

    label = "RoPE golden"
    source = "Xiong 2025"
    family = "rotary"
    injection = "rotate"
    cos: Tensor
    sin: Tensor

    def __init__(
        self,
        geometry: Geometry,
        *,
        min_frequency: float = 1.0,
        max_frequency: float = 100.0,
        pairing: Pairing = "half",
    ) -> None:
        super().__init__(geometry)
        require_head_width(geometry, 2, "channels turn in pairs")
        rule = "need 0 < min <= max"
        require(
            0 < min_frequency <= max_frequency, f"min_frequency={min_frequency}, max_frequency={max_frequency}: {rule}"
        )
        require_choice("pairing", pairing, get_args(Pairing))
        self.min_frequency, self.max_frequency, self.pairing = min_frequency, max_frequency, pairing
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Compute cosines and sines (K, T, E/2)."""
        heads, pairs = self.geometry.heads, self.geometry.head_dim // 2
        rising = self.min_frequency * frequency_ladder(pairs, self.min_frequency / self.max_frequency, endpoint=True)
        angle = torch.arange(heads * pairs, dtype=torch.float64, device="cpu") * (pi * (1 - sqrt(5)) / 2)
        direction = torch.stack((angle.sin(), angle.cos()))  # 2 K*E/2, y then x
        position = spread(*(normalised_coordinates(size) for size in self.grid))  # N 2
        phase = (position @ direction).reshape(-1, heads, pairs).transpose(0, 1) * rising  # K N E/2
        phase = pad_prefix(phase, self.geometry.prefix)
        return {"cos": phase.cos().float(), "sin": phase.sin().float()}

    def rotate(self, q: Tensor, k: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate by the same angles in every layer."""
        return rotate_pairs(q, self.cos, self.sin, self.pairing), rotate_pairs(k, self.cos, self.sin, self.pairing)
