"""Panels of tiles: a grid of small maps in one image.

Letters: R C rows and columns of tiles, h w rows and columns of one tile, H W grid of patches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from vitpos.figures.style import SEQUENTIAL, UNDEFINED, new_figure, styled

MAX_TICKS = 8
PAGE = 7.0  # inches of text width, so that fonts keep their size in print
MAX_TILE = 0.55  # inches of one tile, large enough to see it
OVERSAMPLING = 4  # pixels per value: drawn smaller, gaps between tiles still come out equally wide


class Panel(NamedTuple):
    """One panel: a title above tiles of shape (R, C, h, w)."""

    title: str
    tiles: ArrayLike


@dataclass(frozen=True)
class Scale:
    """How numbers become colours, the same for every tile of a figure.

    Attributes:
        label: what the numbers are, with unit, beside the colour bar.
        low: value of the darkest colour.
        high: value of the brightest colour.
        colours: a matplotlib colour map.
    """

    label: str
    low: float
    high: float
    colours: str = SEQUENTIAL

    @classmethod
    def of(cls, values: Sequence[ArrayLike], label: str, colours: str = SEQUENTIAL) -> Scale:
        """Return the scale from the smallest to the largest finite value of all arrays."""
        flat = np.concatenate([np.asarray(value, dtype=float).ravel() for value in values])
        flat = flat[np.isfinite(flat)]
        low, high = (float(flat.min()), float(flat.max())) if flat.size else (0.0, 1.0)
        return cls(label, low, high if high > low else low + 1.0, colours)

    @property
    def mappable(self) -> ScalarMappable:
        """The scale as matplotlib wants it."""
        return ScalarMappable(Normalize(self.low, self.high), mpl.colormaps[self.colours])


COSINE = Scale("cosine similarity", -1.0, 1.0)


def mosaic(tiles: ArrayLike, scale: Scale) -> NDArray[np.uint8]:
    """Return one image (rows, columns, 4) of tiles (R, C, h, w), white between the tiles, grey where undefined."""
    values = np.asarray(tiles, dtype=float)
    rows, columns, height, width = values.shape
    gap = max(1, min(height, width) // 10)
    colours = scale.mappable.to_rgba(values.reshape(rows, -1), bytes=True).reshape(*values.shape, 4)
    colours[~np.isfinite(values)] = np.multiply(to_rgba(UNDEFINED), 255).astype(np.uint8)
    image = np.full((rows, height + gap, columns, width + gap, 4), 255, dtype=np.uint8)
    image[:, :height, :, :width] = colours.transpose(0, 2, 1, 3, 4)  # R h C w 4
    return image.reshape(rows * (height + gap), columns * (width + gap), 4)[:-gap, :-gap]


def _ticks(count: int) -> NDArray[np.int64]:
    """Return at most `MAX_TICKS` evenly spaced indices of `count`, the first among them."""
    return np.arange(0, count, -(-count // MAX_TICKS))


def draw_tiles(axes: Axes, panel: Panel, scale: Scale, rows: str, columns: str) -> None:
    """Draw one panel into `axes` with the indices of its tiles along both sides."""
    count = np.shape(panel.tiles)[:2]
    image = mosaic(panel.tiles, scale).repeat(OVERSAMPLING, 0).repeat(OVERSAMPLING, 1)
    # In units of tiles, so that tick i is the middle of tile i whatever a tile's size.
    extent = (-0.5, count[1] - 0.5, count[0] - 0.5, -0.5)
    axes.imshow(image, interpolation="antialiased", extent=extent, aspect="auto")
    axes.set_box_aspect(image.shape[0] / image.shape[1])
    axes.set(title=panel.title, xlabel=columns, ylabel=rows, xticks=_ticks(count[1]), yticks=_ticks(count[0]))
    axes.tick_params(length=2)
    axes.spines[:].set_visible(False)


@styled
def panels_figure(
    panels: Sequence[Panel],
    scale: Scale = COSINE,
    *,
    title: str = "",
    caption: str = "",
    per_row: int = 0,
    rows: str | Sequence[str] = "patch row",
    columns: str = "patch column",
) -> Figure:
    """Draw panels of tiles side by side under one colour range.

    Tile (r, c) of a panel is the map (h, w) of what position (r, c) has to do with every position; this is the centre
    of Figure 7 of Dosovitskiy et al. 2020.

    Args:
        panels: titles and tiles (R, C, h, w), all of one shape.
        scale: colours of all panels.
        title: headline of the figure.
        caption: line below the figure.
        per_row: panels side by side; 0 chooses by their number.
        rows: what the rows of tiles are, or the name of each row.
        columns: what the columns of tiles are.

    Raises:
        ValueError: no panel, or a panel that is not of four dimensions.
    """
    if not panels:
        raise ValueError("panels=[]: there is nothing to draw")
    for panel in panels:
        if np.ndim(panel.tiles) != 4:
            raise ValueError(f"panel {panel.title!r}: {np.ndim(panel.tiles)} dimensions instead of (R, C, h, w)")
    across = min(per_row or (2 if len(panels) in (2, 4) else 3), len(panels))
    down = -(-len(panels) // across)
    shape = np.shape(panels[0].tiles)
    ratio = shape[0] * shape[2] / (shape[1] * shape[3])  # height of a panel over its width
    gap = max(0.16, 1 / shape[1])  # inches between panels, more than between their tiles
    width = min(max(1.4, MAX_TILE * shape[1]), (PAGE - 1.0) / across - gap, PAGE / ratio)
    size = max(across * (width + gap) + 1.0, 3.6), down * (width * ratio + 0.4) + 0.4
    figure = new_figure(*size, title, caption, gap=gap)
    grid = figure.subplots(down, across, squeeze=False)
    for index, axes in enumerate(grid.flat):
        if index >= len(panels):
            axes.set_axis_off()
            continue
        draw_tiles(axes, panels[index], scale, rows if isinstance(rows, str) else "", columns)
        if not isinstance(rows, str):
            axes.set_yticks(range(len(rows)), rows)
        axes.label_outer()  # panels share their axes: labels once per side
        if index + across >= len(panels):
            axes.set_xlabel(columns)
            axes.tick_params(labelbottom=True)
    bar = min(1.0, 2.4 / (down * width * ratio))
    figure.colorbar(scale.mappable, ax=grid, label=scale.label, shrink=bar, aspect=20, pad=0.02)
    return figure
