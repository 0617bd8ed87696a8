"""The relative row of the Vision Transformer's ablation: an extra attention of the query over offsets."""

from __future__ import annotations

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor

from vitpos.position.additive import normal_tables
from vitpos.position.base import Geometry, Position, Transfer
from vitpos.position.grid import pad_prefix
from vitpos.position.resampling import resample, resampling_matrix


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
    source = "Shaw et al. 2018, Dosovitskiy et al. 2020, D.4"
    family = "bias"
    injection = "bias"
    honours = frozenset({"table"})
    offset_matrix: Tensor | None

    def __init__(self, geometry: Geometry, *, std: float = 0.02) -> None:
        super().__init__(geometry)
        shape = 2 * geometry.patches - 1, geometry.head_dim
        self.tables = normal_tables(geometry.depth, shape, std)
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Resampling matrix of the offsets."""
        offsets = 2 * self.grid[0] * self.grid[1] - 1
        return {"offset_matrix": resampling_matrix(offsets, 2 * self.geometry.patches - 1, self.transfer.table)}

    def bias(self, q: Tensor, k: Tensor, layer: int) -> Tensor:
        """Score every query against the offsets it can meet, then shift its row so that column j holds offset i - j.

        The queries of one grid row share a window of N + W - 1 offsets, so the rows together cost half of scoring every
        query against all 2N - 1 offsets.
        """
        prefix, (height, width), heads = self.geometry.prefix, self.grid, self.geometry.heads
        patches = height * width
        trained: Tensor = self.tables[layer]
        if q.shape[-2] <= prefix:  # no patch asks; an empty sum keeps the table in the graph, as DDP wants
            return trained[:0].sum().to(q.dtype).expand(q.shape[-2], k.shape[-2])
        table = resample(trained[:, None], self.offset_matrix)[:, 0]  # 2N-1 E, offset -(N-1) first
        # Offsets fall along j. With a spare last row, each query's scores lie N+W-1 numbers behind the one's before, so
        # the shift is a view.
        falling = F.pad(table.flip(0), (0, 0, 0, 1)) * self.geometry.head_dim**-0.5  # 2N E
        windows = falling.to(q.dtype).unfold(0, patches + width, width).flip(0)  # H E N+W
        rows = q[:, :, prefix:].reshape(-1, heads, height, width, q.shape[-1]).permute(2, 0, 1, 3, 4)  # H B K W E
        scores = (rows.flatten(1, 3) @ windows).view(height, -1, heads, width * (patches + width))
        shifted = scores[..., width - 1 : -1].view(height, -1, heads, width, patches + width - 1)[..., :patches]
        return pad_prefix(shifted.permute(1, 2, 0, 3, 4).flatten(2, 3), prefix, dims=2)  # B K T T
