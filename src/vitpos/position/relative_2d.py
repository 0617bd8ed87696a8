"""Learned bias per head and two-dimensional offset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import torch
from torch import Tensor

from vitpos.position.additive import normal_tables
from vitpos.position.base import Geometry, Position, Transfer
from vitpos.position.checks import require_choice
from vitpos.position.grid import prefixed_index
from vitpos.position.once import OncePerPass
from vitpos.position.resampling import resample, resampling_matrices

Layers = Literal["separate", "shared"]


class Relative2D(Position):
    """Add B[h, dy, dx] to the logits, a learned table of (2H-1)(2W-1) offsets per head (Swin, BEiT).

    With prefix tokens three more entries serve prefix to patch, patch to prefix and prefix to prefix, as BEiT has them
    for CLS; registers share them. At another size the table of offsets is resampled by `transfer.table`, which keeps
    its centre at offset zero; the three entries stay.

    Args:
        geometry: the network served.
        layers: `separate` gives each layer a table, `shared` one table to all.
        std: standard deviation of the normal initialisation; BEiT starts from 0.

    Raises:
        ValueError: an unknown choice, or a negative `std`.
    """

    label = "2-D relative bias"
    source = "Liu et al. 2021 (Swin), Bao et al. 2021 (BEiT)"
    family = "bias"
    injection = "bias"
    honours = frozenset({"table"})
    index: Tensor
    row_matrix: Tensor | None
    column_matrix: Tensor | None

    def __init__(self, geometry: Geometry, *, layers: Layers = "separate", std: float = 0.02) -> None:
        super().__init__(geometry)
        require_choice("layers", layers, get_args(Layers))
        self.layers = layers
        self.offsets = 2 * geometry.grid[0] - 1, 2 * geometry.grid[1] - 1
        shape = self.offsets[0] * self.offsets[1] + (3 if geometry.prefix else 0), geometry.heads
        copies = geometry.depth if layers == "separate" else 1
        self.tables = normal_tables(copies, shape, std)
        self._once = OncePerPass(geometry.depth)
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Row of the table for every pair of tokens, and the resampling matrices of the offsets."""
        offsets = 2 * self.grid[0] - 1, 2 * self.grid[1] - 1
        return {
            "index": prefixed_index(self.grid, self.geometry.prefix).flatten(),
            **resampling_matrices(offsets, self.offsets, self.transfer.table),
        }

    def bias(self, q: Tensor, k: Tensor, layer: int) -> Tensor:
        """Look up the layer's or the shared table, (1, K, T, T)."""
        if self.layers == "separate":
            return self._look_up(self.tables[layer], q.dtype)
        return self._once(layer, lambda: self._look_up(self.tables[0], q.dtype))

    def _look_up(self, table: Tensor, dtype: torch.dtype) -> Tensor:
        if self.row_matrix is not None or self.column_matrix is not None:
            entries = self.offsets[0] * self.offsets[1]
            offsets = resample(table[:entries].reshape(*self.offsets, -1), self.row_matrix, self.column_matrix)
            table = torch.cat((offsets.flatten(0, 1), table[entries:].to(offsets.dtype)))
        tokens = self.geometry.prefix + self.grid[0] * self.grid[1]
        return table.to(dtype).T.index_select(1, self.index).view(1, -1, tokens, tokens)
