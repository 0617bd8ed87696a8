"""Accuracy against what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitpos.report.columns import Field
from vitpos.report.figures.picture import GRID, Picture, keep_to_percent, looks, new_figure
from vitpos.report.rows import Analysis, Row

_AXES = {
    "step_ms": ("time of a training step (ms)", 1.0),
    "flops_per_image": ("MFLOPs per image, forward", 1e-6),
    "position_parameters": ("parameters of the position module", 1.0),
    "peak_memory_mib": ("peak memory (MiB)", 1.0),
}


def draw_cost(analysis: Analysis) -> Picture | None:
    """Return accuracy against every cost that differs between arms, None if no cost does."""
    rows = [row for row in analysis.rows if row.accuracy]
    axes = [name for name in _AXES if len({row.cost.get(name) for row in rows} - {None}) > 1]
    if not axes:
        return None
    return Picture(
        name="cost",
        title="Accuracy against cost",
        caption=(
            "Mean test top-1 with its 95 % t-interval over seeds, small dots the single seeds, against the mean cost. "
            "Arms far below stand at the lower edge with their accuracy. Times are comparable only where runs had the "
            "machine to themselves."
        ),
        draw=lambda: _draw(rows, [row.arm for row in analysis.rows], axes),
        numbers=[_numbers(row, axes) for row in rows],
        alternative="The same numbers as in the table.",
    )


def _draw(rows: Sequence[Row], arms: Sequence[str], costs: Sequence[str]) -> Figure:
    columns = min(len(costs), 2)
    lines = -(-len(costs) // columns)
    legend = -(-len(rows) // 4)
    figure = new_figure(7.2, 2.5 * lines + 0.17 * legend)
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).flat
    look = looks(arms)
    low = _lowest(rows)
    for panel, name in zip(panels, costs, strict=False):
        label, scale = _AXES[name]
        for row in rows:
            cost = row.cost.get(name)
            if row.accuracy is None or cost is None:
                continue
            style = look[row.arm]
            if low is not None and 100 * row.accuracy.mean < low:
                _below(panel, cost * scale, row, low, style)
                continue
            seeds = [100 * run.accuracy for run in row.runs if run.accuracy is not None]
            panel.scatter([cost * scale] * len(seeds), seeds, s=5, color=style["color"], alpha=0.5, linewidths=0)
            panel.errorbar(
                cost * scale,
                100 * row.accuracy.mean,
                yerr=None if row.accuracy.ci95 is None else 100 * row.accuracy.ci95,
                color=style["color"],
                marker=style["marker"],
                markersize=5,
                linestyle="",
                elinewidth=1,
                label=row.arm,
            )
        panel.set_xlabel(label)
        panel.grid(color=GRID)
        panel.margins(x=0.1)
        panel.set_ylim(keep_to_percent(panel.get_ylim()))
        if low is not None:
            panel.set_ylim(bottom=low)
    for panel in list(panels)[len(costs) :]:
        panel.set_visible(False)
    figure.supylabel("test top-1 (%)", fontsize=8.5)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _lowest(rows: Sequence[Row]) -> float | None:
    """Return where the accuracy axis starts if a minority of arms is so far below that it would flatten the others."""
    means = sorted((100 * row.accuracy.mean, 100 * (row.accuracy.ci95 or 0)) for row in rows if row.accuracy)
    for place in range(1, (len(means) + 1) // 2):
        spread = means[-1][0] - means[place][0] + 2 * max(half for _, half in means[place:])
        if means[place][0] - means[place - 1][0] > 2 * spread:
            return means[place][0] - 0.6 * spread
    return None


def _below(panel: Axes, cost: float, row: Row, low: float, style: dict[str, Any]) -> None:
    """Mark an arm below the axis by its accuracy, at the edge."""
    assert row.accuracy is not None
    panel.plot(cost, low, color=style["color"], marker=style["marker"], markersize=5, linestyle="", clip_on=False)
    text = f"{100 * row.accuracy.mean:.1f} % ↓"
    panel.annotate(text, (cost, low), xytext=(0, 6), textcoords="offset points", color=style["color"], ha="center")
    panel.plot([], [], color=style["color"], marker=style["marker"], markersize=5, linestyle="", label=row.arm)


def _numbers(row: Row, costs: Sequence[str]) -> dict[str, Field]:
    accuracy = row.accuracy
    assert accuracy is not None
    return {
        "position": row.arm,
        "test_top1_mean": accuracy.mean,
        "test_top1_ci95": accuracy.ci95,
        **{name: row.cost.get(name) for name in costs},
    }
