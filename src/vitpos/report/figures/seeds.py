"""Test accuracy of every arm, each seed a dot."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from vitpos.report.columns import Field
from vitpos.report.figures.picture import GRID, INK, Picture, keep_to_percent, looks, name_rows, new_figure
from vitpos.report.rows import Analysis, Row


def draw_seeds(analysis: Analysis) -> Picture | None:
    """Return the dot plot of a section, None without a finished run."""
    rows = [row for row in analysis.rows if row.accuracy]
    if not rows:
        return None
    return Picture(
        name="seeds",
        title="Test top-1, every seed",
        caption=(
            "Every dot is one training seed; the bar is the mean with its 95 % t-interval over seeds. Overlapping "
            "intervals are no test: arms share their seeds, so differences are judged in the forest plot."
        ),
        draw=lambda: _draw(rows, [row.arm for row in analysis.rows]),
        numbers=[_numbers(row) for row in rows],
        alternative="; ".join(f"{row.arm}: {100 * row.accuracy.mean:.2f} %" for row in rows if row.accuracy),
    )


def _draw(rows: Sequence[Row], arms: Sequence[str]) -> Figure:
    figure = new_figure(7.2, 0.7 + 0.36 * len(rows))
    axes = figure.subplots()
    look = looks(arms)
    axes.grid(axis="x", color=GRID)
    name_rows(axes, [row.arm for row in rows])
    for place, row in enumerate(rows):
        accuracy, colour = row.accuracy, look[row.arm]["color"]
        if accuracy is None:
            continue
        values = [100 * run.accuracy for run in row.runs if run.accuracy is not None]
        axes.scatter(values, _stacked(values, place + 0.12), s=11, color=colour, linewidths=0, zorder=3)
        mean = 100 * accuracy.mean
        if accuracy.ci95 is not None:
            width = 100 * accuracy.ci95
            axes.plot([mean - width, mean + width], [place - 0.1] * 2, color=INK, linewidth=1.4, zorder=2)
        axes.plot([mean, mean], [place - 0.28, place + 0.08], color=INK, linewidth=1.4, zorder=2)
    axes.set_xlim(keep_to_percent(axes.get_xlim()))
    axes.set_xlabel("test top-1 (%)")
    return figure


def _stacked(values: Sequence[float], top: float) -> list[float]:
    """Return a height for every dot, equal values below each other: on a small test set many seeds agree."""
    return [top + 0.13 * min(values[:place].count(value), 3) for place, value in enumerate(values)]


def _numbers(row: Row) -> dict[str, Field]:
    accuracy = row.accuracy
    assert accuracy is not None
    return {
        "position": row.arm,
        "n": accuracy.n,
        "test_top1_mean": accuracy.mean,
        "test_top1_ci95": accuracy.ci95,
        **{f"seed_{run.seed}": run.accuracy for run in row.runs},
    }
