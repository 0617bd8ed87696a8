"""DINOv3's rotary embedding: normalised coordinates, periods, and coordinate augmentation."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, pi
from typing import Literal, get_args

import torch
from torch import Tensor

from vitpos.position.base import Geometry, Position, Transfer
from vitpos.position.checks import require, require_choice, require_head_width
from vitpos.position.grid import frequency_ladder, normalised_coordinates, pad_prefix, spread
from vitpos.position.rotation import rotate_pairs

Normalise = Literal["separate", "min", "max"]


class RopeDinoV3(Position):
    """Rotate pair k of each axis by 2 pi c / P_k radians (Simeoni et al. 2025).

    P_k = min_period (max_period / min_period)^(k / (E/4)), k = 0 .. E/4 - 1; the rows' pairs come first, and channels i
    and i + E/2 are a pair. Coordinates c are patch centres in [-1, 1] at every size, so `transfer.coordinates` has no
    effect. Prefix tokens are not rotated. While training, each forward pass draws c <- (c + shift) jitter rescale from
    the ordinary random stream, once for all layers and images.

    Args:
        geometry: the network served.
        min_period: period of the fastest pair, in units of half an image.
        max_period: where the periods end.
        endpoint: divide the exponent by E/4 - 1, so that the slowest pair has `max_period` itself.
        normalise: divide by each axis' own extent (`separate`), by the shorter (`min`) or by the longer one (`max`).
        shift: each axis is shifted by U(-shift, shift); 0 is none.
        jitter: each axis is scaled by a factor log-uniform in [1 / jitter, jitter]; 1 is none.
        rescale: both axes are scaled by one factor log-uniform in [1 / rescale, rescale]; 1 is none.

    Raises:
        ValueError: a head width that 4 does not divide, periods not 0 < min <= max, or augmentation out of range.
    """

    label = "RoPE DINOv3"
    source = "Simeoni et al. 2025 (DINOv3)"
    family = "rotary"
    injection = "rotate"
    cos: Tensor
    sin: Tensor
    position: Tensor
    ladder: Tensor

    def __init__(
        self,
        geometry: Geometry,
        *,
        min_period: float = 1.0,
        max_period: float = 100.0,
        endpoint: bool = False,
        normalise: Normalise = "separate",
        shift: float = 0.0,
        jitter: float = 1.0,
        rescale: float = 2.0,
    ) -> None:
        super().__init__(geometry)
        require_head_width(geometry, 4, "a pair of channels for each of two axes")
        require(0 < min_period <= max_period, f"min_period={min_period}, max_period={max_period}: need 0 < min <= max")
        require_choice("normalise", normalise, get_args(Normalise))
        require(shift >= 0, f"shift={shift}: must not be negative")
        require(jitter >= 1, f"jitter={jitter}: must be at least 1")
        require(rescale >= 1, f"rescale={rescale}: must be at least 1")
        self.min_period, self.max_period, self.endpoint, self.normalise = min_period, max_period, endpoint, normalise
        self.shift, self.jitter, self.rescale = shift, jitter, rescale
        self._drawn: tuple[Tensor, Tensor] | None = None
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Compute cosines and sines (T, E/2), and what augmentation needs: coordinates (N, 2) and 2 pi / P (E/4)."""
        extents = {"separate": self.grid, "min": (min(self.grid),) * 2, "max": (max(self.grid),) * 2}[self.normalise]
        axes = [normalised_coordinates(size, extent) for size, extent in zip(self.grid, extents, strict=True)]
        count, ratio = self.geometry.head_dim // 4, self.max_period / self.min_period
        ladder = 2 * pi / self.min_period * frequency_ladder(count, ratio, self.endpoint)
        position = spread(*axes)
        cos, sin = self._angles(position, ladder)
        return {"cos": cos.float(), "sin": sin.float(), "position": position.float(), "ladder": ladder.float()}

    def _angles(self, position: Tensor, ladder: Tensor) -> tuple[Tensor, Tensor]:
        phase = pad_prefix((position[:, :, None] * ladder).flatten(1), self.geometry.prefix)  # T E/2
        return phase.cos(), phase.sin()

    def embed(self, x: Tensor) -> Tensor:
        """Leave the tokens alone; while training, draw this pass' coordinates."""
        if self.training and (self.shift, self.jitter, self.rescale) != (0, 1, 1):
            position, device = self.position, self.position.device
            if self.shift != 0:
                position = position + self.shift * (2 * torch.rand(2, device=device) - 1)
            if self.jitter != 1:
                position = position * (log(self.jitter) * (2 * torch.rand(2, device=device) - 1)).exp()
            if self.rescale != 1:
                position = position * (log(self.rescale) * (2 * torch.rand(1, device=device) - 1)).exp()
            self._drawn = self._angles(position, self.ladder)
        else:
            self._drawn = None
        return x

    def rotate(self, q: Tensor, k: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate by the same angles in every layer and head."""
        cos, sin = (self.cos, self.sin) if self._drawn is None or not self.training else self._drawn
        return rotate_pairs(q, cos, sin, "half"), rotate_pairs(k, cos, sin, "half")
