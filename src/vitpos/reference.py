"""Independent references in NumPy float64, straight from the formulas.

They share no code with `vitpos.position` and prefer plain loops to speed: tests hold every module against them, and a
reader may take them as the definition. Letters: B batch, H W grid, N patches, T tokens, D width, E head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Grid = tuple[int, int]


def add_position_embedding(patches: Array, pos_embed: Array) -> Array:
    """Add a table of positions to every image of a batch.

    Args:
        patches: tokens (B, N, D).
        pos_embed: table (1, N, D), broadcast over the batch only.

    Returns:
        The sum (B, N, D).

    Raises:
        ValueError: other shapes, named; nothing but the batch is ever broadcast.
        TypeError: another type than float64.
    """
    for name, array in (("patches", patches), ("pos_embed", pos_embed)):
        if array.dtype != np.float64:
            raise TypeError(f"{name} is {array.dtype}: must be float64")
        if array.ndim != 3:
            wanted = "(B, N, D)" if name == "patches" else "(1, N, D)"
            raise ValueError(f"{name} has shape {array.shape}: must be {wanted}")
    if pos_embed.shape[0] != 1:
        raise ValueError(f"pos_embed has shape {pos_embed.shape}: its first axis must be 1, not a batch")
    for axis, name in ((1, "positions"), (2, "width")):
        if pos_embed.shape[axis] != patches.shape[axis]:
            raise ValueError(
                f"pos_embed has {name} {pos_embed.shape[axis]}, patches have {patches.shape[axis]}: "
                f"shapes {pos_embed.shape} and {patches.shape}"
            )
    return patches + pos_embed


def sinusoids(positions: int | Array, dim: int, theta: float = 10000.0) -> Array:
    """Tabulate E[p, 2i] = sin(p / theta^(2i / D)) and E[p, 2i + 1] = cos of the same angle, i = 0 .. D/2 - 1.

    Args:
        positions: a number of positions 0, 1, ... or the positions themselves.
        dim: width D, even.
        theta: base of the wavelengths.

    Returns:
        Table (positions, D).

    Raises:
        ValueError: an odd or non-positive `dim`.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim={dim}: must be even and at least 2")
    p = np.arange(positions, dtype=np.float64) if isinstance(positions, int) else positions
    table = np.zeros((len(p), dim))
    for i in range(dim // 2):
        angle = p / theta ** (2 * i / dim)
        table[:, 2 * i], table[:, 2 * i + 1] = np.sin(angle), np.cos(angle)
    return table


def sinusoids_2d(grid: Grid, dim: int, theta: float = 10000.0, endpoint: bool = False) -> Array:
    """Tabulate [sin x, cos x, sin y, cos y] over a grid in raster order, D/4 frequencies theta^(-k / (D/4)) per axis.

    With `endpoint` the exponent is -k / (D/4 - 1).

    Returns:
        Table (N, D).
    """
    count = dim // 4
    table = []
    for y in range(grid[0]):
        for x in range(grid[1]):
            row = []
            for c in (x, y):
                for function in (np.sin, np.cos):
                    row += [function(c * theta ** (-k / (count - endpoint))) for k in range(count)]
            table.append(row)
    return np.array(table, dtype=np.float64)


def cosine_similarity(table: Array, across: Literal["positions", "dimensions"] = "positions") -> Array:
    """Compare all pairs of positions (T, T), or all pairs of dimensions (D, D), of a table (T, D) by their cosine.

    Raises:
        ValueError: not a matrix, or a vector of zeros, which has no direction.
    """
    if table.ndim != 2:
        raise ValueError(f"table has shape {table.shape}: must be (T, D)")
    rows = table if across == "positions" else table.T
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not norms.all():
        raise ValueError(f"{across[:-1]} {int(np.argmin(norms))} of the table is zero: it has no direction")
    unit = rows / norms
    return np.asarray(unit @ unit.T, dtype=np.float64)


def rotate(x: Array, angles: Array, pairing: Literal["interleaved", "half"] = "interleaved") -> Array:
    """Multiply the pairs of x (..., E), read as complex numbers, by exp(i angle), angles (..., E/2)."""
    half = x.shape[-1] // 2
    first = slice(0, None, 2) if pairing == "interleaved" else slice(0, half)
    second = slice(1, None, 2) if pairing == "interleaved" else slice(half, None)
    turned = (x[..., first] + 1j * x[..., second]) * np.exp(1j * angles)
    out = np.empty_like(x)
    out[..., first], out[..., second] = turned.real, turned.imag
    return out


def axial_angles(rows: Sequence[float], columns: Sequence[float], frequencies: Array, order: str = "xy") -> Array:
    """Angles (N, 2F) of axial rotation: x times each frequency (F,), then y times each; `ij` the reverse."""
    table = []
    for y in rows:
        for x in columns:
            first, second = (x, y) if order == "xy" else (y, x)
            table.append(np.concatenate((first * frequencies, second * frequencies)))
    return np.array(table)


def relative_scores(q: Array, table: Array) -> Array:
    """Shaw's extra logits q_i . r_(i-j) / sqrt(E) of queries (N, E) and offsets -(N-1) .. N-1 in `table` (2N-1, E)."""
    n, width = q.shape
    logits = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            logits[i, j] = q[i] @ table[i - j + n - 1] / np.sqrt(width)
    return logits


def relative_bias(table: Array, grid: Grid) -> Array:
    """Bias (N, N) of a table of offsets (2H-1, 2W-1): entry (i, j) is that of the offset from key j to query i."""
    height, width = grid
    bias = np.zeros((height * width, height * width))
    for i in range(height * width):
        for j in range(height * width):
            dy, dx = i // width - j // width, i % width - j % width
            bias[i, j] = table[dy + height - 1, dx + width - 1]
    return bias


def log_offsets(grid: Grid, trained: Grid) -> Array:
    """Swin-V2's log-spaced offsets (2H-1, 2W-1, 2): sign(c) log2(1 + |c|) / log2(8), c = 8 offset / (trained - 1)."""
    out = np.zeros((2 * grid[0] - 1, 2 * grid[1] - 1, 2))
    for dy in range(1 - grid[0], grid[0]):
        for dx in range(1 - grid[1], grid[1]):
            for axis, offset in enumerate((dy, dx)):
                c = 8 * offset / (trained[axis] - 1)
                out[dy + grid[0] - 1, dx + grid[1] - 1, axis] = np.sign(c) * np.log2(1 + abs(c)) / np.log2(8)
    return out


def alibi(grid: Grid, slope: float) -> Array:
    """Bias (N, N) of one head: minus slope times the Euclidean distance of two patches."""
    bias = np.zeros((grid[0] * grid[1],) * 2)
    for i in range(len(bias)):
        for j in range(len(bias)):
            bias[i, j] = -slope * np.hypot(i // grid[1] - j // grid[1], i % grid[1] - j % grid[1])
    return bias


def fourier_features(positions: Array, frequencies: Array) -> Array:
    """[cos(p W^T) ; sin(p W^T)] / sqrt(F) of positions (N, 2) for W (F/2, 2)."""
    phase = positions @ frequencies.T
    return np.asarray(np.concatenate((np.cos(phase), np.sin(phase)), axis=1) / np.sqrt(2 * len(frequencies)))


def skew(upper: Array, size: int) -> Array:
    """Skew-symmetric matrix (size, size) of the entries above its diagonal, row by row."""
    matrix = np.zeros((size, size))
    entry = iter(upper)
    for row in range(size):
        for column in range(row + 1, size):
            matrix[row, column] = next(entry)
            matrix[column, row] = -matrix[row, column]
    return matrix


def rotation_of(skew_matrix: Array) -> Array:
    """Exponential of a skew-symmetric matrix, through the eigenvalues of the Hermitian i A."""
    values, vectors = np.linalg.eigh(1j * skew_matrix)
    return np.asarray(((vectors * np.exp(-1j * values)) @ vectors.conj().T).real, dtype=np.float64)


def depthwise_convolution(image: Array, kernel: Array, bias: Array) -> Array:
    """Cross-correlate each channel of an image (D, H, W) with its kernel (D, k, k), zeros beyond the border."""
    _, height, width = image.shape
    reach = kernel.shape[-1] // 2
    padded = np.pad(image, ((0, 0), (reach, reach), (reach, reach)))
    out = np.zeros_like(image)
    for y in range(height):
        for x in range(width):
            window = padded[:, y : y + 2 * reach + 1, x : x + 2 * reach + 1]
            out[:, y, x] = (window * kernel).sum(axis=(1, 2)) + bias
    return out


def rescaled(size: int, trained: int) -> Array:
    """Coordinates (i + 1/2) trained / size - 1/2 of patch centres on an axis that had `trained` patches."""
    return np.array([(i + 0.5) * trained / size - 0.5 for i in range(size)])


def ntk_theta(theta: float, stretch: float, channels: int) -> float:
    """NTK-aware base theta s^(d / (d - 2)) of an axis with d rotating channels stretched s times."""
    return float(theta * stretch ** (channels / (channels - 2)))


def attention(q: Array, k: Array, v: Array, bias: Array | None = None) -> Array:
    """softmax(q k' / sqrt(E) + bias) v for one head, (T, E) each."""
    logits = q @ k.T / np.sqrt(q.shape[-1])
    if bias is not None:
        logits = logits + bias
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True) @ v, dtype=np.float64)
