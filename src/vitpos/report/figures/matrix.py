"""Arms x sections as one matrix: what each module reaches on each data set or task of a study."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from vitpos.report.figures.picture import Picture, new_figure
from vitpos.report.rows import Analysis

DARK = 55.0  # below this accuracy in percent the colour is dark and its number light


def draw_matrix(analyses: Sequence[Analysis]) -> Picture | None:
    """Return the matrix of mean test top-1, None for a study of one section."""
    columns = _names(analyses)
    means = [{row.arm: row.accuracy.mean for row in analysis.rows if row.accuracy} for analysis in analyses]
    arms = list(dict.fromkeys(row.arm for analysis in analyses for row in analysis.rows))
    if len(analyses) < 2 or not any(means):
        return None
    numbers = [
        {"position": arm, **{name: column.get(arm) for name, column in zip(columns, means, strict=True)}}
        for arm in arms
    ]
    values = np.array([[column.get(arm, np.nan) for column in means] for arm in arms], dtype=float)
    return Picture(
        name="matrix",
        title="Mean test top-1, arm by section",
        caption=(
            "Percent, mean over seeds; a dash where no run finished. Compare within a column: columns differ in data. "
            "Intervals and tests stand in the section of each column."
        ),
        draw=lambda: _draw(100 * values, arms, columns),
        numbers=numbers,
        alternative="; ".join(
            f"{arm} on {name}: {100 * column[arm]:.1f} %"
            for arm in arms
            for name, column in zip(columns, means, strict=True)
            if arm in column
        ),
    )


def _names(analyses: Sequence[Analysis]) -> list[str]:
    """Return the data set of each section, or its whole title where that does not tell sections apart."""
    names = [analysis.section.runs[0].record.data.name for analysis in analyses]
    return names if len(set(names)) == len(names) else [analysis.section.title for analysis in analyses]


def _draw(values: np.ndarray, arms: Sequence[str], columns: Sequence[str]) -> Figure:
    figure = new_figure(2.2 + 1.1 * len(columns), 1.2 + 0.36 * len(arms))
    axes = figure.subplots()
    image = axes.imshow(values, vmin=0, vmax=100, cmap="viridis", aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        text = "–" if np.isnan(value) else f"{value:.1f}"
        light = not np.isnan(value) and value < DARK
        axes.text(column, row, text, ha="center", va="center", color="white" if light else "black")
    axes.set_yticks(range(len(arms)), arms)
    axes.set_xticks(range(len(columns)), columns, rotation=20, ha="right")
    figure.colorbar(image, ax=axes, label="test top-1 (%)")
    return figure
