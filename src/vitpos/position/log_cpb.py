"""Swin-V2's bias: a small network of log-spaced offsets."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

import torch
from torch import Tensor, nn

from vitpos.position.base import Geometry, Position, Transfer
from vitpos.position.checks import require
from vitpos.position.grid import prefixed_index, relative_offsets, spread


class LogCPB(Position):
    """Add 16 sigmoid(MLP(u)) to the logits, u the log-spaced offset (Swin-V2, Liu et al. 2022), one MLP per layer.

    u = sign(c) log2(1 + |c|) / log2(8), c = 8 (dy / (H-1), dx / (W-1)) with the trained H and W; MLP 2 -> hidden -> K
    with ReLU, biased in its first map only. Pairs with a prefix token get 16 sigmoid(0) = 8, what an MLP that knows
    nothing gives to every pair: with zero they would be pushed out of the softmax. `rescale` maps another size onto the
    trained extent. Swin-V2's cosine attention is not part of this module: all arms share one attention.

    Args:
        geometry: the network served.
        hidden: width of the hidden layer.

    Raises:
        ValueError: `hidden` below 1.
    """

    label = "log-CPB"
    source = "Liu et al. 2022 (Swin-V2)"
    family = "bias"
    injection = "bias"
    honours = frozenset({"coordinates"})
    index: Tensor
    offsets: Tensor

    def __init__(self, geometry: Geometry, *, hidden: int = 512) -> None:
        super().__init__(geometry)
        require(hidden >= 1, f"hidden={hidden}: must be at least 1")

        def mlp() -> nn.Sequential:
            return nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, geometry.heads, bias=False))

        self.mlps = nn.ModuleList(mlp() for _ in range(geometry.depth))
        for parameter in self.mlps.parameters():
            (nn.init.normal_(parameter, std=0.02) if parameter.ndim > 1 else nn.init.zeros_(parameter))
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Row of the table for every pair of tokens, and the log-spaced offsets, dy then dx."""
        scaled = spread(
            *(
                relative_offsets(size, trained, self.transfer.coordinates) * (8 / max(trained - 1, 1))
                for size, trained in zip(self.grid, self.geometry.grid, strict=True)
            )
        )
        offsets = scaled.sign() * torch.log2(1 + scaled.abs()) / log2(8)
        return {"index": prefixed_index(self.grid, self.geometry.prefix).flatten(), "offsets": offsets.float()}

    def bias(self, q: Tensor, k: Tensor, layer: int) -> Tensor:
        """Evaluate the layer's network in float32 at every offset, then look it up, (1, K, T, T)."""
        mlp = self.mlps[layer]
        with torch.autocast(self.offsets.device.type, enabled=False):
            table: Tensor = 16 * mlp(self.offsets.to(next(mlp.parameters()).dtype)).float().sigmoid()  # offsets K
        if self.geometry.prefix:
            table = torch.cat((table, table.new_full((3, table.shape[1]), 8.0)))
        tokens = self.geometry.prefix + self.grid[0] * self.grid[1]
        return table.to(q.dtype).T.index_select(1, self.index).view(1, -1, tokens, tokens)
