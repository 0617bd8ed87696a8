"""A figure with the numbers behind it, and how it becomes bytes: the same numbers, the same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitpos.report.columns import Field

# Drawn in these colours, which HTML replaces by its theme's.
INK, GRID, BAND, PAPER = "#1f2328", "#d0d4d9", "#e3ecf5", "#ffffff"
# Okabe and Ito (2008), without the yellow that white paper swallows and the black that is ink.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
LINES = ("-", "--", ":", "-.")
DPI = 150

STYLE: dict[str, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "axes.titlelocation": "left",
}


@dataclass(frozen=True)
class Picture:
    """A figure of the report.

    Attributes:
        name: file name without its ending.
        title: what it shows, one line.
        caption: how to read it.
        draw: builds the figure.
        numbers: the numbers drawn, one mapping per row, in fractions.
        alternative: what a reader who can't see it should know.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]
    numbers: Sequence[dict[str, Field]] = field(default_factory=list)
    alternative: str = ""


def render(picture: Picture) -> dict[str, bytes]:
    """Draw a figure once and return its files by ending: `svg` and `png` for papers, `html` to put into a page.

    The HTML form has text as text, and stands on whatever the page is. None of them carries a date, a version or a
    random identifier.
    """
    with mpl.style.context(["default", STYLE]):
        figure = picture.draw()
        # Arrange once; every saving would do it again.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        files = {}
        for ending in ("svg", "png", "html"):
            text = "none" if ending == "html" else "path"
            with mpl.rc_context({"svg.hashsalt": picture.name, "svg.fonttype": text}):
                buffer = io.BytesIO()
                figure.savefig(
                    buffer,
                    format="png" if ending == "png" else "svg",
                    dpi=DPI,
                    transparent=ending == "html",
                    metadata={"Software": None} if ending == "png" else {"Date": None, "Creator": None},
                )
                files[ending] = buffer.getvalue()
        figure.clear()
    return files


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, that arranges itself."""
    return Figure(figsize=(width, height), layout="constrained")


def looks(arms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return arm -> colour, marker and line, all distinct, the same in every figure of a section."""
    return {
        arm: {
            "color": COLOURS[place % len(COLOURS)],
            "marker": MARKERS[(place + place // len(COLOURS)) % len(MARKERS)],
            "linestyle": LINES[place // len(COLOURS) % len(LINES)],
        }
        for place, arm in enumerate(arms)
    }


def keep_to_percent(limits: tuple[float, float]) -> tuple[float, float]:
    """Return the limits of an accuracy axis without what no accuracy can be; wide intervals of few seeds are cut."""
    return max(limits[0], 0.0), min(limits[1], 100.0)


def name_rows(axes: Axes, arms: Sequence[str]) -> None:
    """Put arms on the vertical axis, first on top."""
    axes.set_yticks(range(len(arms)), list(arms))
    axes.set_ylim(len(arms) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
