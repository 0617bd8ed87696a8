"""Factorised learned positions: a row table plus a column table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import torch
from torch import Tensor

from vitpos.position.additive import Additive, Injection, normal_tables
from vitpos.position.base import Geometry, Transfer
from vitpos.position.checks import require_choice
from vitpos.position.grid import pad_prefix
from vitpos.position.resampling import resample, resampling_matrix

TableCoordinates = Literal["fractional", "absolute"]


class Learned2DAdd(Additive):
    """Learned tables of the full width, z_(y,x) += X[x] + Y[y] (NaViT, Dehghani et al. 2023).

    X has W rows and Y has H rows of D; prefix tokens get zero.

    Args:
        geometry: the network served.
        inject: see `Additive`.
        coordinates: `fractional` reads the tables at p / side, so at another size they are resampled by
            `transfer.table`; `absolute` reads row p itself, which ends at the trained number of rows and columns.
        std: standard deviation of the normal initialisation.

    Raises:
        ValueError: a negative `std`, an unknown choice, or (from `resize`) an axis beyond an absolute table.
    """

    label = "2-D learned (X+Y)"
    source = "Dehghani et al. 2023 (NaViT)"
    honours = frozenset({"table"})
    row_matrix: Tensor | None
    column_matrix: Tensor | None

    def __init__(
        self,
        geometry: Geometry,
        *,
        inject: Injection = "stem",
        coordinates: TableCoordinates = "fractional",
        std: float = 0.02,
    ) -> None:
        super().__init__(geometry, inject)
        require_choice("coordinates", coordinates, get_args(TableCoordinates))
        self.coordinates = coordinates
        if coordinates == "absolute":
            self.honours = frozenset()
        height, width = geometry.grid
        self.columns = normal_tables(self.copies, (width, geometry.dim), std)
        self.rows = normal_tables(self.copies, (height, geometry.dim), std)
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Matrices that read the two axes."""
        matrices = []
        for axis, (size, trained) in enumerate(zip(self.grid, self.geometry.grid, strict=True)):
            if self.coordinates == "fractional":
                matrices.append(resampling_matrix(size, trained, self.transfer.table))
            elif size <= trained:
                matrices.append(None if size == trained else torch.eye(trained, device="cpu")[:size])
            else:
                raise ValueError(
                    f"coordinates='absolute': the table ends at {trained} {('rows', 'columns')[axis]}, "
                    f"{size} were asked for; train with coordinates=fractional"
                )
        return {"row_matrix": matrices[0], "column_matrix": matrices[1]}

    def code(self, copy: int) -> Tensor:
        """Look up both axes and add."""
        x = resample(self.columns[copy][:, None], self.column_matrix).transpose(0, 1)  # 1 W D
        y = resample(self.rows[copy][:, None], self.row_matrix)  # H 1 D
        return pad_prefix((x + y).flatten(0, 1), self.geometry.prefix)  # T D
