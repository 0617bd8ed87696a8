"""Pure maths of grids of patches: coordinates, frequencies, relative index maps.

Tensors in, tensors out, on the CPU; float64 inside, so that a module rounds once. Letters as in `base.py`; `trained` is
the extent of an axis at training size, `size` its extent now.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vitpos.position.base import Coordinates, Grid

_CPU = torch.device("cpu")


def axis_coordinates(size: int, trained: int, coordinates: Coordinates) -> Tensor:
    """Coordinates of the patches along one axis, in units of the trained patch spacing.

    `extrapolate` and `ntk` count 0 .. size-1. `rescale` maps patch centres onto the trained extent,
    (i + 1/2) trained / size - 1/2, so both ends of the image keep their place; it is the identity at the trained size.

    Returns:
        float64, shape (size,).
    """
    index = torch.arange(size, dtype=torch.float64, device=_CPU)
    return (index + 0.5) * (trained / size) - 0.5 if coordinates == "rescale" else index


def normalised_coordinates(size: int, extent: float | None = None) -> Tensor:
    """Patch centres mapped to [-1, 1]: 2 (i + 1/2) / extent - 1, `extent` being the axis' own size unless given.

    Returns:
        float64, shape (size,).
    """
    index = torch.arange(size, dtype=torch.float64, device=_CPU)
    return 2 * (index + 0.5) / (extent or size) - 1


def spread(rows: Tensor, columns: Tensor) -> Tensor:
    """Combine coordinates of rows (H,) and columns (W,) to (y, x) pairs of patches in raster order.

    Returns:
        shape (N, 2).
    """
    y, x = torch.meshgrid(rows, columns, indexing="ij")  # H W
    return torch.stack((y, x), dim=-1).flatten(0, 1)


def patch_coordinates(grid: Grid, trained: Grid, coordinates: Coordinates) -> Tensor:
    """(y, x) of all patches in raster order, in units of the trained patch spacing, see `axis_coordinates`.

    Returns:
        float64, shape (N, 2).
    """
    rows, columns = (axis_coordinates(size, old, coordinates) for size, old in zip(grid, trained, strict=True))
    return spread(rows, columns)


def frequency_ladder(count: int, theta: float, endpoint: bool = False) -> Tensor:
    """Geometric frequencies theta^(-k / count), k = 0 .. count-1; with `endpoint` theta^(-k / (count - 1)).

    Returns:
        float64, shape (count,).
    """
    steps = torch.arange(count, dtype=torch.float64, device=_CPU)
    return theta ** (-steps / max(count - 1 if endpoint else count, 1))


def ntk_factors(count: int, size: int, trained: int, coordinates: Coordinates) -> Tensor:
    """Factors on a ladder of frequencies: ones, unless the protocol is `ntk`.

    theta' = theta s^(d / (d - 2)) for d = 2 count channels and the stretch s = size / trained means that frequency k is
    multiplied by s^(-k / (count - 1)): the fastest stays, the slowest is interpolated. This form needs no theta, so it
    serves learned frequencies too.

    Returns:
        float64, shape (count,).
    """
    if coordinates != "ntk" or count < 2:
        return torch.ones(count, dtype=torch.float64, device=_CPU)
    steps = torch.arange(count, dtype=torch.float64, device=_CPU)
    return (size / trained) ** (-steps / (count - 1))


def relative_index(grid: Grid) -> Tensor:
    """Row of every (query, key) pair in a flattened table of offsets (2H-1, 2W-1), offset = query - key.

    Returns:
        int64, shape (N, N), values (dy + H - 1) (2W - 1) + dx + W - 1.
    """
    height, width = grid
    y = torch.arange(height, device=_CPU).repeat_interleave(width)  # N
    x = torch.arange(width, device=_CPU).repeat(height)  # N
    dy, dx = y[:, None] - y[None, :], x[:, None] - x[None, :]  # N N
    return (dy + height - 1) * (2 * width - 1) + dx + width - 1


def prefixed_index(grid: Grid, prefix: int) -> Tensor:
    """Extend `relative_index` to prefix tokens by three further rows of the table, alike for CLS and registers.

    Row M = (2H-1)(2W-1) serves a prefix query on a patch, M + 1 a patch on a prefix token, M + 2 two prefix tokens.

    Returns:
        int64, shape (T, T).
    """
    entries = (2 * grid[0] - 1) * (2 * grid[1] - 1)
    index = F.pad(relative_index(grid), (prefix, 0, prefix, 0), value=entries + 2)
    index[:prefix, prefix:] = entries
    index[prefix:, :prefix] = entries + 1
    return index


def relative_offsets(size: int, trained: int, coordinates: Coordinates) -> Tensor:
    """Offsets -(size-1) .. size-1 along one axis in units of the trained patch spacing, see `axis_coordinates`.

    Returns:
        float64, shape (2 size - 1,).
    """
    positions = axis_coordinates(size, trained, coordinates)
    forward = positions - positions[0]
    return torch.cat((-forward.flip(0)[:-1], forward))


def alibi_slopes(heads: int) -> Tensor:
    """Slopes m_h = 2^(-8 h / heads), h = 1 .. heads, for a power of two (Press et al. 2022).

    Otherwise those of the next lower power of two, then every second slope of the next higher one.

    Returns:
        float64, shape (heads,).
    """
    lower = 2 ** (heads.bit_length() - 1)

    def geometric(count: int) -> Tensor:
        return 2.0 ** (-8.0 / count * torch.arange(1, count + 1, dtype=torch.float64, device=_CPU))

    return torch.cat((geometric(lower), geometric(2 * lower)[::2][: heads - lower]))


def pad_prefix(table: Tensor, prefix: int, dims: int = 1) -> Tensor:
    """Put `prefix` zeros in front of the patches, in (..., N, D) or, with dims=2, on both axes of (..., N, N)."""
    if prefix == 0:
        return table
    return F.pad(table, (prefix, 0, prefix, 0) if dims == 2 else (0, 0, prefix, 0))
