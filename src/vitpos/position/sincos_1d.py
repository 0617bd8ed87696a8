"""Fixed sinusoids of the raster index."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from vitpos.position.additive import Additive, Injection
from vitpos.position.base import Geometry, Transfer
from vitpos.position.checks import require
from vitpos.position.grid import axis_coordinates, frequency_ladder, ntk_factors, pad_prefix


class SinCos1D(Additive):
    """Sinusoids over the raster index t (Vaswani et al. 2017), nothing learned.

    E[t, 2i] = sin(t w_i), E[t, 2i+1] = cos(t w_i), w_i = theta^(-2i / D), i = 0 .. D/2 - 1, angles in radians. Prefix
    tokens get zero. `rescale` squeezes the sequence of patches onto the trained length.

    Args:
        geometry: the network served.
        inject: see `Additive`; `every` and `shared` coincide, since nothing is learned.
        theta: base of the wavelengths.

    Raises:
        ValueError: an odd `dim`, or a `theta` not above 1.
    """

    label = "1-D sin-cos"
    source = "Vaswani et al. 2017"
    honours = frozenset({"coordinates", "ntk"})
    table: Tensor

    def __init__(self, geometry: Geometry, *, inject: Injection = "stem", theta: float = 10000.0) -> None:
        super().__init__(geometry, inject)
        require(geometry.dim % 2 == 0, f"dim={geometry.dim}: must be even, a sine and a cosine per frequency")
        require(theta > 1, f"theta={theta}: must be above 1")
        self.theta = theta
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Compute the table (T, D)."""
        size, trained, pairs = self.grid[0] * self.grid[1], self.geometry.patches, self.geometry.dim // 2
        mode = self.transfer.coordinates
        frequencies = frequency_ladder(pairs, self.theta) * ntk_factors(pairs, size, trained, mode)
        phase = axis_coordinates(size, trained, mode)[:, None] * frequencies  # N D/2
        table = torch.stack((phase.sin(), phase.cos()), dim=-1).flatten(1).float()  # N D
        return {"table": pad_prefix(table, self.geometry.prefix)}

    def code(self, copy: int) -> Tensor:
        """Return the fixed table."""
        return self.table
