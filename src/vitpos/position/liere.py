"""Rotary embedding by learned rotations in many dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Literal

import torch
from torch import Tensor, nn

from vitpos.position.base import Geometry, Position, Transfer
from vitpos.position.checks import require
from vitpos.position.exponential import rotation_exponential
from vitpos.position.grid import patch_coordinates

AT_ONCE = 2**22  # numbers in the rotations of some patches; off CPUs their exponential takes ten times the memory


class LieRE(Position):
    """Turn q and k by R(x, y) = exp(x A + y B) with learned skew-symmetric A and B (Ostmeier et al. 2024).

    Each layer and head has its own; with smaller blocks they are block-diagonal, which is cheaper and published as
    LieRE8. Coordinates are in units of the trained extent. A and B do not commute, so scores depend on more than the
    offset. Prefix tokens are not rotated.

    Args:
        geometry: the network served.
        block_size: channels per block; `full` is the head width.
        scale: generators start uniform in (0, scale).

    Raises:
        ValueError: a block size below 2 or that does not divide the head width, or a negative `scale`.
    """

    label = "LieRE"
    source = "Ostmeier et al. 2024"
    family = "rotary"
    injection = "rotate"
    honours = frozenset({"coordinates"})
    position: Tensor
    upper: Tensor

    def __init__(
        self, geometry: Geometry, *, block_size: int | Literal["full"] = "full", scale: float = 2 * pi
    ) -> None:
        super().__init__(geometry)
        width = geometry.head_dim
        self.block = width if block_size == "full" else block_size
        require(
            isinstance(self.block, int) and self.block >= 2 and width % self.block == 0,
            f"block_size={block_size}: must be full or at least 2 and divide the head width {width} "
            f"(dim={geometry.dim}, heads={geometry.heads})",
        )
        require(scale >= 0, f"scale={scale}: must not be negative")
        entries = self.block * (self.block - 1) // 2
        shape = 2, geometry.depth, geometry.heads, width // self.block, entries
        self.generators = nn.Parameter(torch.rand(shape) * scale)  # x then y
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Compute coordinates (N, 2), x then y, and where the entries above the diagonal go (entries,)."""
        trained = torch.tensor(self.geometry.grid, device="cpu")
        position = patch_coordinates(self.grid, self.geometry.grid, self.transfer.coordinates) / trained
        row, column = torch.triu_indices(self.block, self.block, 1, device="cpu")
        return {"position": position.flip(1).float(), "upper": row * self.block + column}

    def rotations(self, layer: int, first: int = 0, last: int | None = None) -> Tensor:
        """Return the layer's rotations of patches first .. last - 1, (K, n, E / block, block, block), in float32."""
        with torch.autocast(self.position.device.type, enabled=False):
            entries = self.generators[:, layer].float()  # 2 K blocks entries
            flat = entries.new_zeros(*entries.shape[:-1], self.block**2).index_copy(-1, self.upper, entries)
            upper = flat.reshape(*entries.shape[:-1], self.block, self.block)
            skew = (upper - upper.mT)[:, :, None]  # 2 K 1 blocks block block
            x, y = self.position[first:last].T[..., None, None, None]  # n 1 1 1
            return rotation_exponential(x * skew[0] + y * skew[1])

    def rotate(self, q: Tensor, k: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate the patches of queries and keys, as many at a time as `AT_ONCE` lets."""
        prefix, blocks = self.geometry.prefix, q.shape[-1] // self.block
        given = [x for x in (q, k) if x.shape[-2] > prefix]  # a query of prefix tokens alone has nothing to turn
        patches = [torch.unflatten(x[:, :, prefix:], -1, (blocks, self.block)).permute(1, 2, 3, 0, 4) for x in given]
        rows = torch.cat(patches, dim=3)  # K N blocks 2B block
        step = max(1, AT_ONCE // (self.geometry.heads * q.shape[-1] * self.block))
        pieces = [
            rows[:, first : first + step] @ self.rotations(layer, first, first + step).to(q.dtype).mT
            for first in range(0, rows.shape[1], step)
        ]
        whole = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=1)
        turned = whole.permute(3, 0, 1, 2, 4).flatten(3).chunk(len(given))  # B K N E each
        *turned_q, turned_k = [torch.cat((x[:, :, :prefix], own), dim=2) for x, own in zip(given, turned, strict=True)]
        return turned_q[0] if turned_q else q, turned_k
