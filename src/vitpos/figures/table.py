"""A table of positions drawn in five ways: image, curves, two similarities, and a sinusoid beside it.

Letters: T positions, D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike, NDArray

from vitpos.figures.style import DIVERGING, PALETTE, new_figure, styled
from vitpos.figures.tiles import COSINE

CURVES = (3, 4)
LINES = ("-", ":", "--", "-.")


def symmetric_limit(table: ArrayLike) -> float:
    """Return the colour limit for a signed table: the 99th percentile of |value|, to one significant digit upwards.

    A few outlying dimensions, as language models have, must not wash out all others.
    """
    limit = float(np.percentile(np.abs(np.asarray(table, dtype=float)), 99))
    if limit == 0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(limit))
    return float(np.ceil(np.round(limit / unit, 9)) * unit)


def choose_dimensions(dims: int, seed: int) -> NDArray[np.int64]:
    """Return up to 12 of `dims` dimensions in rising order, the same for the same seed."""
    count = min(CURVES[0] * CURVES[1], dims)
    return np.sort(np.random.default_rng(seed).choice(dims, count, replace=False))


@styled
def table_figure(table: ArrayLike, limit: float, *, title: str = "", caption: str = "") -> Figure:
    """Draw the whole table (T, D) as an image, dimension against position, colours from -limit to limit."""
    figure = new_figure(6.0, 3.6, title, caption)
    axes = figure.subplots()
    image = _draw_table(axes, np.asarray(table, dtype=float), limit)
    figure.colorbar(image, ax=axes, label="value", extend="both", aspect=28)
    return figure


@styled
def curves_figure(table: ArrayLike, dimensions: ArrayLike, *, title: str = "", caption: str = "") -> Figure:
    """Draw chosen dimensions of a table (T, D) as curves over position, each with its zero line, under one range."""
    values, chosen = np.asarray(table, dtype=float), np.asarray(dimensions)
    figure = new_figure(6.5, 4.0, title, caption)
    grid = figure.subplots(*CURVES, sharex=True, sharey=True)
    for index, axes in enumerate(grid.flat):
        if index >= len(chosen):
            axes.set_axis_off()
            continue
        axes.axhline(0, color="0.6", lw=0.6)
        axes.plot(values[:, chosen[index]], lw=0.8)
        axes.set_title(f"dimension {chosen[index]}", pad=2)
        axes.spines[["top", "right"]].set_visible(False)
    limit = symmetric_limit(values[:, chosen])
    grid[0, 0].set_ylim(-1.1 * limit, 1.1 * limit)
    for axes in grid[-1]:
        axes.set_xlabel("position")
    for axes in grid[:, 0]:
        axes.set_ylabel("value")
    return figure


@styled
def similarities_figure(
    positions: ArrayLike, dimensions: ArrayLike, *, title: str = "", caption: str = "", step: tuple[int, int] = (1, 1)
) -> Figure:
    """Draw cosine similarity over positions (T, T) and across dimensions (D, D) side by side under one range [-1, 1].

    Args:
        positions: similarity of all pairs of positions.
        dimensions: similarity of all pairs of dimensions.
        title: headline of the figure.
        caption: line below the figure.
        step: every how many positions and dimensions an entry stands for, where a large table was thinned.
    """
    figure = new_figure(6.5, 3.0, title, caption)
    grid = figure.subplots(1, 2)
    for axes, values, name, every in zip(grid, (positions, dimensions), ("position", "dimension"), step, strict=True):
        matrix = np.asarray(values, dtype=float)
        extent = (-0.5, every * len(matrix) - 0.5, every * len(matrix) - 0.5, -0.5)
        axes.imshow(matrix, vmin=COSINE.low, vmax=COSINE.high, cmap=COSINE.colours, extent=extent)
        over = "over positions" if name == "position" else "across dimensions"
        axes.set(xlabel=name, ylabel=name, title=f"{over} ({every * len(matrix)} x {every * len(matrix)})")
    figure.colorbar(COSINE.mappable, ax=grid, label=COSINE.label, aspect=24)
    return figure


@styled
def marked_rows_figure(
    table: ArrayLike, marked: Sequence[int], limit: float, *, strands: int = 1, title: str = "", caption: str = ""
) -> Figure:
    """Draw a table (T, D) as an image with a few positions marked, and those rows as curves beside it.

    Args:
        table: values.
        marked: positions to mark.
        limit: colours run from -limit to limit.
        strands: draw every so many-th dimension as a curve of its own: 2 for dimensions that alternate sine and cosine.
        title: headline of the figure.
        caption: line below the figure.
    """
    values = np.asarray(table, dtype=float)
    figure = new_figure(6.5, 3.4, title, caption)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    image = _draw_table(left, values, limit)
    figure.colorbar(image, ax=left, label="value", aspect=28)
    for number, row in enumerate(marked):
        colour = PALETTE[number % len(PALETTE)]
        left.axvline(row, color=colour, lw=1.4)
        # One band per row, so that curves of the same range do not cover each other.
        offset = -2.4 * limit * number
        right.axhline(offset, color="0.7", lw=0.5)
        for strand in range(strands):
            dims = np.arange(strand, values.shape[1], strands)
            right.plot(dims, values[row, dims] + offset, color=colour, lw=0.8, ls=LINES[strand % len(LINES)])
    right.set_yticks([-2.4 * limit * number for number in range(len(marked))], [str(row) for row in marked])
    right.set(xlabel="dimension", ylabel="position", title="marked rows")
    right.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_table(axes: Axes, table: NDArray[np.float64], limit: float) -> AxesImage:
    """Draw dimensions upwards against positions to the right."""
    image = axes.imshow(table.T, aspect="auto", origin="lower", vmin=-limit, vmax=limit, cmap=DIVERGING)
    axes.set(xlabel="position", ylabel="dimension")
    return image
