"""The look that all figures share: sizes, colour-blind-safe colours, captions. Needs matplotlib and NumPy only.

Figures are built from `matplotlib.figure.Figure` without pyplot, so nothing global is left open and no display is
needed.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
from cycler import cycler
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

SEQUENTIAL = "viridis"  # luminance rises monotonically: readable in grey print and with colour-vision deficiency
DIVERGING = "RdBu_r"  # signed quantities about zero; red against blue, never red against green
UNDEFINED = "0.6"  # grey of values that do not exist, such as the cosine of a zero vector

# Okabe and Ito (2008): eight colours told apart under every common colour-vision deficiency.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")

STYLE: dict[Any, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "figure.titlesize": 9.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.1,
    "axes.prop_cycle": cycler(color=list(PALETTE)),
}

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def styled(draw: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run a drawing function under `STYLE`, leaving the caller's matplotlib settings as they were."""

    @functools.wraps(draw)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with mpl.rc_context(STYLE):
            return draw(*args, **kwargs)

    return wrapped


def new_figure(width: float, height: float, title: str = "", caption: str = "", gap: float = 0.08) -> Figure:
    """Return an empty figure.

    Args:
        width: inches, caption included.
        height: inches without the caption, which adds its own lines.
        title: one short line on top.
        caption: what a reader must know to judge the picture; wrapped below it.
        gap: inches between axes side by side, labels apart.
    """
    lines = textwrap.wrap(caption, int(width * 19))
    figure = Figure(figsize=(width, height + 0.13 * len(lines) + 0.1 * bool(lines)), layout="constrained")
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(h_pad=0.06, w_pad=gap / 2)  # inches; the default lets a caption touch the label above it
    if title:
        figure.suptitle("\n".join(textwrap.wrap(title, int(width * 15))))
    if lines:
        figure.supxlabel("\n".join(lines), fontsize=7.0, x=0.02, ha="left", linespacing=1.25)
    return figure
