"""The Vision Transformer's default: one learned vector per token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import torch
from torch import Tensor

from vitpos.position.additive import Additive, Injection, normal_tables
from vitpos.position.base import Geometry, Transfer
from vitpos.position.checks import require_choice
from vitpos.position.grid import pad_prefix
from vitpos.position.resampling import resample, resampling_matrices

PrefixRows = Literal["learned", "zero"]


class Learned1D(Additive):
    """Learned table over the raster index, z_t += E[t], E of shape (T, D) (Dosovitskiy et al. 2020, Eq. 1).

    At another size the rows of the patches, seen as an image of the trained grid, are resampled by `transfer.table`;
    the rows of the prefix never change.

    Args:
        geometry: the network served.
        inject: see `Additive`.
        prefix: `learned` gives CLS and registers rows of their own, in front; `zero` leaves them without a position.
        std: standard deviation of the normal initialisation.

    Raises:
        ValueError: an unknown `prefix`, or a negative `std`.
    """

    label = "1-D learned"
    source = "Dosovitskiy et al. 2020, Eq. 1"
    honours = frozenset({"table"})
    row_matrix: Tensor | None
    column_matrix: Tensor | None

    def __init__(
        self, geometry: Geometry, *, inject: Injection = "stem", prefix: PrefixRows = "learned", std: float = 0.02
    ) -> None:
        super().__init__(geometry, inject)
        require_choice("prefix", prefix, get_args(PrefixRows))
        self.prefix_rows = geometry.prefix if prefix == "learned" else 0
        shape = self.prefix_rows + geometry.patches, geometry.dim
        self.tables = normal_tables(self.copies, shape, std)
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Resampling matrices of the two axes."""
        return resampling_matrices(self.grid, self.geometry.grid, self.transfer.table)

    def code(self, copy: int) -> Tensor:
        """Return the stored table at the trained grid, resampled patches behind the stored prefix rows elsewhere."""
        table: Tensor = self.tables[copy]
        if self.grid != self.geometry.grid:
            patches = table[self.prefix_rows :].reshape(*self.geometry.grid, -1)  # H W D
            patches = resample(patches, self.row_matrix, self.column_matrix).flatten(0, 1)  # N' D
            table = torch.cat((table[: self.prefix_rows].to(patches.dtype), patches))
        return pad_prefix(table, self.geometry.prefix - self.prefix_rows)
