"""Resampling of learned tables as products with fixed matrices.

Letters: H W extents of the trained table, H' W' those wanted, D width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vitpos.position.base import Grid, TableResampling


def resampling_matrix(size: int, trained: int, operator: TableResampling) -> Tensor | None:
    """Return the matrix that resamples an axis of a learned table, by applying the operator to an identity.

    All four operators are linear and separable, so a table (H, W, D) at another size is rows @ table @ columns^T:
    exact, differentiable and deterministic on every device.

    Returns:
        float32, shape (size, trained), or None where nothing changes.
    """
    if size == trained:
        return None
    # As the rows of one image: PyTorch's antialiased kernel is wrong for images one pixel wide with several channels.
    identity = torch.eye(trained, dtype=torch.float32, device="cpu")[None, None]  # 1 1 trained trained
    mode, corners, antialias = {
        "bicubic_antialias": ("bicubic", False, True),
        "bicubic": ("bicubic", False, False),
        "bilinear": ("bilinear", False, False),
        "linear_corners": ("bilinear", True, False),
    }[operator]
    weights = F.interpolate(identity, size=(trained, size), mode=mode, align_corners=corners, antialias=antialias)
    return weights[0, 0].T.contiguous()


def resampling_matrices(grid: Grid, trained: Grid, operator: TableResampling) -> dict[str, Tensor | None]:
    """Return `row_matrix` and `column_matrix` of a table over a grid, see `resampling_matrix`."""
    return {
        "row_matrix": resampling_matrix(grid[0], trained[0], operator),
        "column_matrix": resampling_matrix(grid[1], trained[1], operator),
    }


def resample(table: Tensor, rows: Tensor | None, columns: Tensor | None = None) -> Tensor:
    """Resample a table (H, W, D) by matrices for rows (H', H) and columns (W', W); None leaves an axis alone.

    The products run in float32 whatever the autocast state; with nothing to do the table itself is returned.

    Returns:
        shape (H', W', D), float32 if anything was resampled.
    """
    if rows is None and columns is None:
        return table
    with torch.autocast(table.device.type, enabled=False):
        table = table.float()
        if rows is not None:
            table = (rows.float() @ table.flatten(1)).reshape(len(rows), *table.shape[1:])  # H' W D
        if columns is not None:
            table = columns.float() @ table  # H' W' D
    return table
