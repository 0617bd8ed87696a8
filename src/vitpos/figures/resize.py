"""A quantity of every patch before and after the grid changed, and their difference.

Letters: H W grid before, h w grid after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vitpos.figures.style import DIVERGING, new_figure, styled
from vitpos.figures.tiles import Scale


class Resized(NamedTuple):
    """A row: name, map before (H, W), map after (h, w), and the one before stretched to (h, w)."""

    name: str
    before: ArrayLike
    after: ArrayLike
    stretched: ArrayLike


@styled
def resize_figure(rows: Sequence[Resized], label: str, *, title: str = "", caption: str = "") -> Figure:
    """Draw before, after and after minus stretched before; each row has its own colour range, named in its bars.

    Raises:
        ValueError: no row.
    """
    if not rows:
        raise ValueError("rows=[]: there is nothing to draw")
    figure = new_figure(6.5, 1.75 * len(rows) + 0.4, title, caption)
    grid = figure.subplots(len(rows), 3, squeeze=False)
    for axes, row in zip(grid, rows, strict=True):
        scale = Scale.of([row.before, row.after], label)
        change = np.asarray(row.after, dtype=float) - np.asarray(row.stretched, dtype=float)
        limit = max(float(np.abs(change).max()), 1e-12)
        colours = [scale.mappable, scale.mappable, ScalarMappable(Normalize(-limit, limit), DIVERGING)]
        for axis, values, mappable in zip(axes, (row.before, row.after, change), colours, strict=True):
            axis.imshow(np.asarray(values, dtype=float), norm=mappable.norm, cmap=mappable.cmap)
            axis.tick_params(length=2)
        axes[0].set_ylabel(f"{row.name}\npatch row")
        figure.colorbar(colours[1], ax=axes[:2], label=label, aspect=12)
        figure.colorbar(colours[2], ax=axes[2], label="change", aspect=12)
    for axis, name, values in zip(grid[0], ("before", "after", "change"), rows[0][1:], strict=True):
        axis.set_title(f"{name} ({np.shape(values)[0]}x{np.shape(values)[1]})")
    for axis in grid[-1]:
        axis.set_xlabel("patch column")
    return figure
