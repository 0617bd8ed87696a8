"""Accuracy against image size, one panel per protocol, the trained size marked."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vitpos.report.columns import Field
from vitpos.report.figures.picture import GRID, INK, Picture, keep_to_percent, looks, new_figure
from vitpos.report.protocols import Protocol, belongs, choose_panels, heading
from vitpos.report.transfer import Point


def draw_curves(points: Sequence[Point], arms: Sequence[str]) -> Picture | None:
    """Return the resolution curves of one section's points, None without any size besides one.

    A panel holds the arms that honour its factors, and those that don't react to them. With many protocols the panels
    are those that differ from the default in one factor at most; `transfer.csv` has all.
    """
    points = [point for point in points if point.accuracy]
    if len({point.size for point in points}) < 2:
        return None
    panels = choose_panels(point.protocol for point in points)
    return Picture(
        name="resolution",
        title="Accuracy at other image sizes",
        caption=(
            "Mean test top-1 ± 95 % t-interval over seeds (shaded), every seed's network evaluated at all sizes; the "
            "dashed line marks the trained size. Hollow: rectangles, at the square root of their area. One panel per "
            "protocol; arms that a factor does not concern are drawn in each of its panels."
        ),
        draw=lambda: _draw(points, arms, panels),
        numbers=[_numbers(point) for point in points],
        alternative="The same numbers as in the table of image sizes.",
    )


def _draw(points: Sequence[Point], arms: Sequence[str], panels: Sequence[Protocol]) -> Figure:
    tuned = [point for point in points if point.protocol.fine_tuned]
    total = len(panels) + bool(tuned)
    columns = min(total, 3)
    lines = -(-total // columns)
    shown = [arm for arm in arms if any(point.arm == arm for point in points)]
    figure = new_figure(7.2, 2.6 * lines + 0.17 * (-(-len(shown) // 4)))
    axes = list(figure.subplots(lines, columns, sharey=True, squeeze=False).flat)
    look = looks(arms)
    handles = {}
    for place in range(total):
        is_tuned = place == len(panels)
        chosen = tuned if is_tuned else [point for point in points if belongs(point.protocol, panels[place])]
        for arm in shown:
            own = [point for point in chosen if point.arm == arm]
            if own:
                handles[arm] = _curve(axes[place], own, look[arm])
        for side in sorted({_side(point.trained) for point in chosen}):
            axes[place].axvline(side, color=INK, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
        axes[place].set_title("fine-tuned at that size" if is_tuned else heading(panels[place]))
        axes[place].grid(color=GRID)
        axes[place].set_ylim(keep_to_percent(axes[place].get_ylim()))
    for panel in axes[total:]:
        panel.set_visible(False)
    for panel in axes[max(total - columns, 0) : total]:
        panel.set_xlabel("image side (px)")
    figure.supylabel("test top-1 (%)", fontsize=8.5)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return figure


def _curve(axes: Axes, points: Sequence[Point], look: dict[str, str]) -> Line2D:
    """Draw one arm in one panel: squares as a curve, rectangles as hollow marks."""
    squares = sorted((point for point in points if point.size[0] == point.size[1]), key=lambda point: point.size)
    x = [_side(point.size) for point in squares]
    y = [100 * point.accuracy.mean for point in squares if point.accuracy]
    width = [100 * (point.accuracy.ci95 or 0) for point in squares if point.accuracy]
    axes.fill_between(
        x,
        [mean - half for mean, half in zip(y, width, strict=True)],
        [mean + half for mean, half in zip(y, width, strict=True)],
        color=look["color"],
        alpha=0.15,
        linewidth=0,
    )
    (line,) = axes.plot(
        x, y, color=look["color"], linestyle=look["linestyle"], marker=look["marker"], markersize=3.5, zorder=3
    )
    for point in points:
        if point.size[0] != point.size[1] and point.accuracy:
            axes.plot(
                _side(point.size),
                100 * point.accuracy.mean,
                color=look["color"],
                marker=look["marker"],
                markersize=4,
                markerfacecolor="none",
                linestyle="",
            )
    return line


def _side(size: tuple[int, int]) -> float:
    return math.sqrt(size[0] * size[1])


def _numbers(point: Point) -> dict[str, Field]:
    accuracy = point.accuracy
    assert accuracy is not None
    return {
        "position": point.arm,
        "height": point.size[0],
        "width": point.size[1],
        "protocol": point.protocol.text,
        "n": accuracy.n,
        "top1_mean": accuracy.mean,
        "top1_ci95": accuracy.ci95,
    }
