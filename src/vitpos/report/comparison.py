"""Several experiments side by side: rows are arms, columns data sets; average ranks with their critical difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vitpos.report.columns import Field
from vitpos.report.figures import Picture, draw_ranks
from vitpos.report.formats import DASH, p_equals, percent, plural, with_interval
from vitpos.report.rows import Analysis
from vitpos.report.statistics import Ranking, rank_arms
from vitpos.report.table import Cell, Column, Table
from vitpos.report.view import Report

_FEW = 5  # data sets below which the rank test can hardly separate anything


@dataclass(frozen=True)
class Comparison:
    """Experiments compared.

    Attributes:
        names: names of the experiments.
        command: the command that rebuilds it.
        table: accuracy per arm and data set, and the average rank.
        fields: the same as rows of a CSV file, one per arm and data set.
        picture: average ranks; None with fewer than two data sets or arms in common.
        summary: what can be said, in two sentences.
    """

    names: tuple[str, ...]
    command: str
    table: Table
    fields: list[dict[str, Field]]
    picture: Picture | None
    summary: str


def compare_reports(reports: Sequence[Report]) -> Comparison:
    """Compare experiments across data sets.

    Every section (data set and network) of every experiment is a column. Average ranks are over the arms that all
    columns have; the others show a dash there.
    """
    columns = [(report.study.name, view.analysis) for report in reports for view in report.sections]
    titles = _titles(columns)
    arms = list(dict.fromkeys(row.arm for _, analysis in columns for row in analysis.rows))
    common = [arm for arm in arms if all(_mean(analysis, arm) is not None for _, analysis in columns)]
    ranking = None
    if len(columns) > 1 and len(common) > 1:
        ranking = rank_arms([[_mean(analysis, arm) or 0.0 for arm in common] for _, analysis in columns])
    ranks = dict(zip(common, ranking.ranks, strict=True)) if ranking else {}
    heads = [Column("Position", "Position module.", numeric=False)]
    heads += [Column(f"{title} (%)", "Mean test top-1 ± 95 % t-interval over seeds.") for title in titles]
    heads += [Column("Average rank", "Over the data sets; 1 is the highest accuracy.")]
    rows = [
        [
            Cell(arm, arm),
            *(_cell(analysis, arm) for _, analysis in columns),
            Cell(f"{ranks[arm]:.2f}" if arm in ranks else DASH, ranks.get(arm)),
        ]
        for arm in arms
    ]
    names = tuple(report.study.name for report in reports)
    return Comparison(
        names=names,
        command=f"python scripts/report.py experiments=[{','.join(names)}] {reports[0].settings}",
        table=Table("Comparison across data sets", _caption(ranking, len(columns)), heads, rows, arms),
        fields=[_fields(name, analysis, arm, ranks) for name, analysis in columns for arm in arms],
        picture=draw_ranks(common, ranking, len(columns)) if ranking else None,
        summary=_summary(common, ranking, len(columns)),
    )


def _titles(columns: Sequence[tuple[str, Analysis]]) -> list[str]:
    """Return the title of each column, with the experiment's name where titles alone are not unique."""
    titles = [analysis.section.title for _, analysis in columns]
    return [
        title if titles.count(title) == 1 else f"{name}: {title}"
        for title, (name, _) in zip(titles, columns, strict=True)
    ]


def _mean(analysis: Analysis, arm: str) -> float | None:
    row = analysis.row(arm)
    return row.accuracy.mean if row and row.accuracy else None


def _cell(analysis: Analysis, arm: str) -> Cell:
    row = analysis.row(arm)
    if row is None or row.accuracy is None:
        return Cell(DASH)
    return Cell(with_interval(percent(row.accuracy.mean), row.accuracy.ci95), row.accuracy.mean, strong=row.best)


def _fields(name: str, analysis: Analysis, arm: str, ranks: dict[str, float]) -> dict[str, Field]:
    row = analysis.row(arm)
    accuracy, comparison = (row.accuracy, row.comparison) if row else (None, None)
    return {
        "position": arm,
        "experiment": name,
        "section": analysis.section.title,
        "n": accuracy.n if accuracy else 0,
        "test_top1_mean": accuracy.mean if accuracy else None,
        "test_top1_ci95": accuracy.ci95 if accuracy else None,
        "delta_mean": comparison.mean if comparison else None,
        "delta_ci95": comparison.ci95 if comparison else None,
        "verdict": comparison.verdict if comparison else None,
        "average_rank": ranks.get(arm),
    }


def _caption(ranking: Ranking | None, sets: int) -> str:
    text = (
        "Test top-1 in percent, mean ± half-width of the 95 % t-interval over training seeds. Bold: no other arm of "
        "that column is shown to be better (paired t-tests of all pairs, Holm, 5 %); ties are all bold. —: not run."
    )
    if ranking is None:
        return f"{text} No average rank: fewer than two data sets, or fewer than two arms that all of them have."
    friedman = ""
    if ranking.friedman_p is not None:
        friedman = f" (Friedman test, Iman and Davenport's F: p {p_equals(ranking.friedman_p)})"
    few = f" With only {plural(sets, 'data set')} this test separates little." if sets < _FEW else ""
    distance = f"{ranking.critical_difference:.2f}"
    return (
        f"{text} Average ranks over the {plural(sets, 'data set')}, of the arms that all have{friedman}; two arms are "
        f"told apart if they differ by more than the critical difference of {distance} (Nemenyi, 5 %).{few}"
    )


def _summary(arms: Sequence[str], ranking: Ranking | None, sets: int) -> str:
    if ranking is None:
        return f"{plural(sets, 'data set')} compared. Nothing can be ranked across them."
    order = sorted(zip(ranking.ranks, arms, strict=True))
    apart = [
        f"{better} above {worse} ({high - low:.2f})"
        for place, (low, better) in enumerate(order)
        for high, worse in order[place + 1 :]
        if high - low > ranking.critical_difference
    ]
    first = f"{plural(len(arms), 'arm')} are ranked over {plural(sets, 'data set')}."
    if not apart:
        return (
            f"{first} No two arms are further apart than the critical difference of {ranking.critical_difference:.2f}."
        )
    return f"{first} Told apart by their average rank: {', '.join(apart)}."
