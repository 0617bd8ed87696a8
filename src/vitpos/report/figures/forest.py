"""Forest plot: difference of every arm to the reference, with its interval and the tie band."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vitpos.report.columns import Field
from vitpos.report.figures.picture import BAND, COLOURS, GRID, INK, Picture, name_rows, new_figure
from vitpos.report.formats import significant
from vitpos.report.rows import Analysis, Row
from vitpos.report.verdict import BETTER, NOT_RESOLVED, TIED, WORSE

_COLOUR = {BETTER: COLOURS[2], WORSE: COLOURS[1], TIED: COLOURS[0], NOT_RESOLVED: INK}
_MARK = {BETTER: ">", WORSE: "<", TIED: "D", NOT_RESOLVED: "o"}
# Arms further out than this many times the range of the others get a panel of their own.
_FAR = 3.0


def draw_forest(analysis: Analysis) -> Picture | None:
    """Return the forest plot of a section, None without a comparison."""
    rows = [row for row in analysis.rows if row.comparison]
    if not rows:
        return None
    margin = significant(100 * analysis.margin)
    caption = (
        f"Mean difference in test top-1 to {analysis.reference}, paired by seed, with its 95 % t-interval; small dots "
        f"are the single seeds. Band: differences within ±{margin} point count as tied. Shape and colour: verdict."
    )
    return Picture(
        name="forest",
        title=f"Difference to {analysis.reference}",
        caption=caption,
        draw=lambda: _draw(rows, analysis),
        numbers=[_numbers(row) for row in rows],
        alternative="; ".join(f"{row.arm}: {row.comparison.verdict}" for row in rows if row.comparison),
    )


def _draw(rows: Sequence[Row], analysis: Analysis) -> Figure:
    near = _near(rows, analysis.margin)
    panels = 1 if near is None else 2
    figure = new_figure(7.2, 0.9 + 0.32 * len(rows))
    axes = figure.subplots(1, panels, sharey=True, squeeze=False, width_ratios=[1] if panels == 1 else [2, 3])[0]
    for place, panel in enumerate(axes):
        limit = near if place == 1 else None
        _panel(panel, rows, analysis.margin, limit)
        if panels == 2:
            panel.set_title("all arms" if place == 0 else "near the reference")
    figure.supxlabel(f"difference to {analysis.reference} (points of test top-1)", fontsize=8.5)
    _legend(figure, rows)
    return figure


def _panel(axes: Axes, rows: Sequence[Row], margin: float, limit: float | None) -> None:
    if margin > 0:
        axes.axvspan(-100 * margin, 100 * margin, color=BAND, linewidth=0, zorder=0)
    axes.axvline(0, color=INK, linewidth=0.7, zorder=1)
    axes.grid(axis="x", color=GRID)
    name_rows(axes, [row.arm for row in rows])
    if limit is not None:
        axes.set_xlim(-limit, limit)
    for place, row in enumerate(rows):
        comparison = row.comparison
        if comparison is None:
            continue
        mean, colour = 100 * comparison.mean, _COLOUR[comparison.verdict]
        if limit is not None and abs(mean) > limit:
            side = 1 if mean > 0 else -1
            axes.annotate(
                f"{mean:+.1f}".replace("-", "−"),
                (side * limit * 0.99, place),
                color=colour,
                va="center",
                ha="right" if side > 0 else "left",
            )
            continue
        seeds = [100 * value for _, value in comparison.differences]
        axes.scatter(seeds, [place + 0.22] * len(seeds), s=5, color=colour, alpha=0.55, linewidths=0, zorder=2)
        if comparison.ci95 is not None:
            width = 100 * comparison.ci95
            axes.plot([mean - width, mean + width], [place, place], color=colour, linewidth=1.6, zorder=3)
        axes.plot(mean, place, marker=_MARK[comparison.verdict], color=colour, markersize=5.5, zorder=4)


def _near(rows: Sequence[Row], margin: float) -> float | None:
    """Return the half-range of a panel for the arms near the reference, or None if one panel shows all arms well."""
    reach = sorted(
        100
        * max([abs(row.comparison.mean) + (row.comparison.ci95 or 0), *(abs(d) for _, d in row.comparison.differences)])
        for row in rows
        if row.comparison
    )
    floor = 200 * margin
    # The far arms are those after the first big step in reach.
    for place in range(len(reach) - 1):
        near = max(reach[place], floor)
        if reach[place + 1] > _FAR * near:
            return 1.15 * near
    return None


def _legend(figure: Figure, rows: Sequence[Row]) -> None:
    found = [verdict for verdict in _MARK if any(row.comparison and row.comparison.verdict == verdict for row in rows)]
    handles = [
        Line2D([], [], marker=_MARK[verdict], color=_COLOUR[verdict], linestyle="", label=verdict) for verdict in found
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))


def _numbers(row: Row) -> dict[str, Field]:
    comparison = row.comparison
    assert comparison is not None
    return {
        "position": row.arm,
        "seeds": comparison.n,
        "delta_mean": comparison.mean,
        "delta_ci95": comparison.ci95,
        "p_holm": comparison.p_holm,
        "p_equivalence": comparison.p_equivalence,
        "verdict": comparison.verdict,
        **{f"seed_{seed}": value for seed, value in comparison.differences},
    }
