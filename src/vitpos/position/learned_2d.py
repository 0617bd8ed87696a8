"""The 2-D row of the Vision Transformer's ablation: an X and a Y table, concatenated."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from vitpos.position.additive import Additive, Injection, normal_tables
from vitpos.position.base import Geometry, Transfer
from vitpos.position.checks import require
from vitpos.position.grid import pad_prefix
from vitpos.position.resampling import resample, resampling_matrices


class Learned2D(Additive):
    """Learned tables of half the width each, z_(y,x) += [X[x] ; Y[y]] (Dosovitskiy et al. 2020, Appendix D.4).

    X has W rows and Y has H rows of D/2; prefix tokens get zero. At another size each table is resampled along its one
    axis by `transfer.table`.

    Args:
        geometry: the network served.
        inject: see `Additive`.
        std: standard deviation of the normal initialisation.

    Raises:
        ValueError: an odd `dim`, or a negative `std`.
    """

    label = "2-D learned (X||Y)"
    source = "Dosovitskiy et al. 2020, D.4"
    honours = frozenset({"table"})
    row_matrix: Tensor | None
    column_matrix: Tensor | None

    def __init__(self, geometry: Geometry, *, inject: Injection = "stem", std: float = 0.02) -> None:
        super().__init__(geometry, inject)
        require(geometry.dim % 2 == 0, f"dim={geometry.dim}: must be even, half for X and half for Y")
        height, width = geometry.grid
        self.columns = normal_tables(self.copies, (width, geometry.dim // 2), std)
        self.rows = normal_tables(self.copies, (height, geometry.dim // 2), std)
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Resampling matrices of the two axes."""
        return resampling_matrices(self.grid, self.geometry.grid, self.transfer.table)

    def code(self, copy: int) -> Tensor:
        """Look up both axes and concatenate: the first half of the channels depends on x, the second on y."""
        height, width = self.grid
        x = resample(self.columns[copy][:, None], self.column_matrix)  # W 1 D/2
        y = resample(self.rows[copy][:, None], self.row_matrix)  # H 1 D/2
        x, y = x.transpose(0, 1).expand(height, width, -1), y.expand(height, width, -1)
        if x.dtype != y.dtype:  # a half-precision table whose other axis was resampled in float32
            x, y = x.float(), y.float()
        return pad_prefix(torch.cat((x, y), dim=-1).flatten(0, 1), self.geometry.prefix)  # T D
