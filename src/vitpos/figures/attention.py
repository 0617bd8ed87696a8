"""Attention distance per head and layer (Dosovitskiy et al. 2020, Figure 7 right).

Letters: L layers, K heads.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vitpos.figures.style import PALETTE, new_figure, styled


@styled
def distance_figure(
    distances: ArrayLike, uniform: float | None = None, *, title: str = "", caption: str = ""
) -> Figure:
    """Draw a dot per head over depth, joined by the mean over heads.

    Args:
        distances: (L, K) mean attention distance in pixels.
        uniform: the distance of a head that looks everywhere alike, drawn as a dashed line.
        title: headline of the figure.
        caption: line below the figure.

    Raises:
        ValueError: not of two dimensions.
    """
    values = np.asarray(distances, dtype=float)
    if values.ndim != 2:
        raise ValueError(f"distances of shape {values.shape}: must be (layers, heads)")
    layers = np.arange(len(values))
    figure = new_figure(3.8, 2.7, title, caption)
    axes = figure.subplots()
    axes.plot(np.repeat(layers, values.shape[1]), values.ravel(), "o", ms=3.5, mew=0, alpha=0.7, label="head")
    axes.plot(layers, values.mean(1), "-", color=PALETTE[1], label="mean over heads")
    if uniform is not None:
        axes.axhline(uniform, ls="--", lw=0.8, color="0.4", label="uniform attention")
    axes.set(xlabel="layer", ylabel="mean attention distance (px)", xticks=layers[:: -(-len(layers) // 12)])
    axes.set_ylim(bottom=0, top=1.28 * max(float(np.nanmax(values)), uniform or 0.0))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=3, loc="upper center", handlelength=1.5, columnspacing=1.2)
    return figure
