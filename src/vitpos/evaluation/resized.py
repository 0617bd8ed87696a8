"""What a position module becomes on another grid: before, after and their difference, in maps of the grid.

Letters: H W grid before, h w grid after, N = H*W, D width, K heads.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from vitpos.evaluation.kernel import attention_kernel
from vitpos.evaluation.portrait import Drawing
from vitpos.evaluation.similarity import added_tables, nothing_to_draw
from vitpos.figures.resize import Resized, resize_figure
from vitpos.position import Position, Transfer
from vitpos.position.base import Grid

COMPONENTS = 3
READING = "Change: after minus the map before, stretched bilinearly."


def draw_resize(position: Position, grid: Grid, transfer: Transfer, caption: str = "") -> Drawing:
    """Draw how a module follows the image to another grid; the module is left as it was.

    A table is shown by its leading principal components over patches (fixed before resizing), a module that acts inside
    attention by the kernel of layer 0 from the centre patch, averaged over heads. The difference is taken against the
    map before, stretched bilinearly to the new grid: zero where a module merely rescales.

    Args:
        position: the module at the grid to start from.
        grid: (rows, columns) to go to.
        transfer: the protocol.
        caption: where the module comes from.

    Raises:
        ValueError: the module tells no two patches apart.
    """
    own, own_transfer = position.grid, position.transfer
    before = _Views(position)
    position.resize(grid, transfer)
    try:
        after = _Views(position)
    finally:
        position.resize(own, own_transfer)
    rows = list(_rows(before, after))
    if not rows:
        raise ValueError(nothing_to_draw(position))
    factors = ("table", "coordinates")
    protocol = ", ".join(f"{name} {getattr(transfer, name)}" for name in factors if name in position.honours)
    figure = resize_figure(
        rows,
        "value",
        title=f"{position.label}: {own[0]}x{own[1]} to {grid[0]}x{grid[1]}",
        caption=f"Protocol: {protocol or 'no factor applies'}. {READING}{_norms(before, after)} {caption}",
    )
    arrays = {f"{part}_{index}": getattr(row, part) for index, row in enumerate(rows) for part in ("before", "after")}
    return Drawing(figure, {"names": [row.name for row in rows], **arrays})


class _Views:
    """The first table and the kernel of a module at its present grid, both without prefix tokens."""

    def __init__(self, position: Position) -> None:
        prefix, tables = position.geometry.prefix, added_tables(position)
        self.grid = position.grid
        self.where = tables[0][0] if tables else ""
        self.table = tables[0][1][prefix:].cpu() if tables else None  # N D
        kernel = attention_kernel(position, 0)[0].mean(0).cpu()  # N N
        centre = (self.grid[0] // 2) * self.grid[1] + self.grid[1] // 2
        self.kernel = kernel[centre].reshape(self.grid)  # H W


def _norms(before: _Views, after: _Views) -> str:
    """Say how resampling changed the length of a table's rows: averaging neighbours shrinks them."""
    if before.table is None or after.table is None:
        return ""
    ratio = after.table.norm(dim=1).mean() / before.table.norm(dim=1).mean()
    return f" Mean row norm after / before: {ratio:.2f}."


def _rows(before: _Views, after: _Views) -> Iterator[Resized]:
    if before.table is not None and after.table is not None:
        mean = before.table.mean(0)
        _, scale, axes = torch.linalg.svd(before.table - mean, full_matrices=False)
        share = scale.square() / scale.square().sum()
        for index in range(min(COMPONENTS, len(scale))):
            if share[index] > 1e-6:
                maps = [
                    ((table - mean) @ axes[index]).reshape(view.grid)
                    for view, table in ((before, before.table), (after, after.table))
                ]
                yield _stretch(f"{before.where}, component {index + 1} ({share[index]:.0%})", *maps)
    if before.kernel.max() - before.kernel.min() > 1e-5 * before.kernel.abs().max():
        yield _stretch("kernel of the centre", before.kernel, after.kernel)


def _stretch(name: str, before: Tensor, after: Tensor) -> Resized:
    stretched = F.interpolate(before[None, None], after.shape, mode="bilinear", align_corners=False)[0, 0]
    return Resized(name, before.numpy(), after.numpy(), stretched.numpy())
