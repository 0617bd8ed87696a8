"""The relative row of the Vision Transformer's ablation: an extra attention of the query over offsets."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitpos.position.base import Geometry, Position, Transfer, require
from vitpos.position.grid import pad_prefix, resample, resampling_matrix


class Relative1D(Position):
    """Add q . r_(t_q - t_k) / sqrt(E) to the logits, t being the raster index (Shaw et al. 2018, on keys).

    One table r of 2N - 1 offsets per layer, shared by its heads. Pairs with a CLS or register token get zero; the paper
    does not say. At another size the table is resampled along its one axis by `transfer.table`: a raster offset means
    something else at another width, so expect this method to transfer badly.

    Args:
        geometry: the network served.
        std: standard deviation of the normal initialisation.

    Raises:
        ValueError: a negative `std`.
    """

    label = "1-D relative"
    family = "bias"
    honours = frozenset({"table"})
    offset_matrix: Tensor | None

    def __init__(self, geometry: Geometry, *, std: float = 0.02) -> None:
        super().__init__(geometry)
        require(std >= 0, f"std={std}: must not be negative")
        shape = 2 * geometry.patches - 1, geometry.head_dim
        self.tables = nn.ParameterList(nn.init.normal_(torch.empty(shape), std=std) for _ in range(geometry.depth))
        self.resize(geometry.grid, Transfer())

    @property
    def injection(self) -> str:
        """Attention logits of every layer."""
        return "bias"

    def derive(self) -> Mapping[str, Tensor | None]:
        """Resampling matrix of the offsets."""
        offsets = 2 * self.grid[0] * self.grid[1] - 1
        return {"offset_matrix": resampling_matrix(offsets, 2 * self.geometry.patches - 1, self.transfer.table)}

    def bias(self, q: Tensor, k: Tensor, layer: int) -> Tensor:
        """Score every query against every offset, then shift row i so that column j holds offset i - j."""
        prefix, patches = self.geometry.prefix, self.grid[0] * self.grid[1]
        table = resample(self.tables[layer][:, None], self.offset_matrix)[:, 0]  # 2N-1 E, offset -(N-1) first
        # Offsets run downwards along j. With a spare last row, element (i, j) of the result lies 2N-1 numbers behind
        # element (i-1, j), so the shift is a view.
        table = F.pad(table.flip(0), (0, 0, 0, 1)) * self.geometry.head_dim**-0.5
        scores = q[:, :, prefix:] @ table.to(q.dtype).T  # B K N 2N
        shifted = scores.flatten(-2)[..., patches - 1 : -1].unflatten(-1, (patches, 2 * patches - 1))[..., :patches]
        return pad_prefix(shifted, prefix, dims=2)  # B K T T
