"""Accuracy of one network against image size, one line per protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vitpos.figures.style import PALETTE, new_figure, styled

FACTORS = ("table", "coordinates", "temperature")
SILENT = ("not_applicable", "off")
DEFAULT = ("bicubic_antialias", "extrapolate", "off")

Row = Mapping[str, Any]
Protocol = tuple[str, ...]


@styled
def draw_resolution(
    rows: Sequence[Row], trained: tuple[int, int], label: str
) -> tuple[Figure, dict[str, ArrayLike]] | None:
    """Draw the transfer rows of one run; None with fewer than two sizes that have an accuracy.

    With many protocols, those are drawn that differ in one factor at most from the one nearest to the default.

    Args:
        rows: as records hold them: height, width, table, coordinates, temperature, top1 (a fraction or None).
        trained: (height, width) the network was trained at, in pixels.
        label: what the network is called.

    Returns:
        The figure, and the numbers drawn.
    """
    drawn = [row for row in rows if row["top1"] is not None]
    if len({_size(row) for row in drawn}) < 2:
        return None
    protocols = sorted(
        {_protocol(row) for row in drawn}, key=lambda protocol: (_differences(protocol, DEFAULT), protocol)
    )
    shown = [protocol for protocol in protocols if _differences(protocol, protocols[0]) <= 1]
    drawn = [row for row in drawn if _protocol(row) in shown]
    caption = (
        "Test top-1 of one network at each image size. The dashed line marks the trained size. Hollow: rectangles, at "
        "the square root of their area."
    )
    if len(shown) < len(protocols):
        caption += " Protocols that differ from the first in more than one factor are not drawn."
    missing = sorted({f"{row['height']}x{row['width']} ({row['status']})" for row in rows if row["top1"] is None})
    if missing:
        caption += f" Without an accuracy: {', '.join(missing)}."
    figure = new_figure(4.6, 3.0, f"{label}: accuracy at other image sizes", caption)
    axes = figure.subplots()
    for protocol, color in zip(shown, PALETTE, strict=False):
        _curve(axes, [row for row in drawn if _protocol(row) == protocol], color, _words(protocol))
    axes.axvline(math.sqrt(trained[0] * trained[1]), color="0.35", linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
    axes.set_xlabel("image side (px)")
    axes.set_ylabel("test top-1 (%)")
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    if len(shown) > 1:
        axes.legend(frameon=False)
    arrays: dict[str, ArrayLike] = {key: [row[key] for row in drawn] for key in ("height", "width", *FACTORS, "top1")}
    return figure, arrays


def _curve(axes: Axes, rows: Sequence[Row], color: str, label: str) -> None:
    squares = sorted((row for row in rows if row["height"] == row["width"]), key=_size)
    others = [row for row in rows if row["height"] != row["width"]]
    mark = {"color": color, "marker": "o", "markersize": 3.5}
    axes.plot([_side(row) for row in squares], [100 * row["top1"] for row in squares], label=label, **mark)  # type: ignore[arg-type]
    hollow = {**mark, "markerfacecolor": "none", "linestyle": ""}
    axes.plot([_side(row) for row in others], [100 * row["top1"] for row in others], **hollow)  # type: ignore[arg-type]


def _words(protocol: Protocol) -> str:
    return ", ".join(value for value in protocol if value not in SILENT) or "zero-shot"


def _differences(one: Protocol, other: Protocol) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def _protocol(row: Row) -> Protocol:
    return tuple(row[factor] for factor in FACTORS)


def _size(row: Row) -> tuple[int, int]:
    return row["height"], row["width"]


def _side(row: Row) -> float:
    return math.sqrt(row["height"] * row["width"])
