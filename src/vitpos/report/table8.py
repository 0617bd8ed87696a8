"""The paper's Table 8 with ours beside it: rows by what is encoded, columns by where it is injected."""

from __future__ import annotations

from collections.abc import Iterable

from vitpos.report.formats import DASH, percent, plural, span, with_interval
from vitpos.report.paper import COLUMNS, READING, TABLE8, PaperCell
from vitpos.report.rows import Analysis, Row
from vitpos.report.statistics import Summary
from vitpos.report.table import Cell, Column, Table
from vitpos.report.transfer import Point

SHOT = "fewshot/5"
_LEAST = 2  # cells of the paper that a study must have to be laid out like it


def table8(analysis: Analysis, points: Iterable[Point]) -> Table | None:
    """Lay out a section like the paper's table; None if it has fewer than two of its cells.

    Beside each cell of the paper, its 5-shot number, stand our 5-shot accuracy, our test top-1 and, where there are
    fine-tuned runs, theirs.

    Args:
        analysis: a section whose arms are named after `conf/position`.
        points: accuracies at other sizes; fine-tuned ones are used.
    """
    rows = {row.arm: row for row in analysis.rows if row.accuracy}
    present = [cell for cell in TABLE8 if cell.position in rows]
    if len(present) < _LEAST:
        return None
    tuned = [point for point in points if point.protocol.fine_tuned and point.accuracy]
    columns = [Column("", "What is encoded.", numeric=False)]
    for place in COLUMNS:
        columns += [
            Column(f"{place}: paper", "The paper's 5-shot number, percent."),
            Column(f"{place}: ours, 5-shot", "Ours, percent, mean ± 95 % t-interval over seeds."),
            Column(f"{place}: ours, top-1", "Test top-1 of the same networks."),
        ]
        if tuned:
            columns.append(Column(f"{place}: ours, fine-tuned", "Test top-1 after fine-tuning at another size."))
    names = list(dict.fromkeys(cell.row for cell in TABLE8))
    laid_out = []
    for name in names:
        line = [Cell(name, name)]
        for cell in (cell for cell in TABLE8 if cell.row == name):
            row = rows.get(cell.position)
            shot = row.metrics.get(SHOT) if row else None
            line += [_paper_cell(cell), _cell(cell, shot), _cell(cell, row.accuracy if row else None)]
            if tuned:
                line.append(_tuned_cell(cell.position, tuned))
        laid_out.append(line)
    return Table(
        f"Table 8 of the paper beside {analysis.section.title}", _caption(analysis, rows), columns, laid_out, names
    )


def _caption(analysis: Analysis, rows: dict[str, Row]) -> str:
    runs = [run for row in rows.values() for run in row.runs]
    epochs = span(run.record.epochs for run in runs if run.record.epochs is not None)
    seeds = {len(row.runs) for row in rows.values()}
    many = plural(next(iter(seeds)), "seed") if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)} seeds"
    return (
        f"Ours: {analysis.section.title}, trained from scratch for {epochs or 'unknown'} epochs, {many} per cell; "
        "percent, ± the half-width of the 95 % t-interval of the mean over training seeds. What differs from the "
        "paper: the data, the network, the schedule, and the images that the 5-shot classifier is fitted and judged "
        "on. What is the same: the design of the table, and the few-shot evaluator (ridge regression on frozen "
        "features). Compare differences between cells, not the numbers. N/A: no such cell in the paper; — not run "
        f"here. {READING}"
    )


def _paper_cell(cell: PaperCell) -> Cell:
    return Cell("N/A") if cell.accuracy is None else Cell(f"{100 * cell.accuracy:.2f}", cell.accuracy)


def _cell(cell: PaperCell, summary: Summary | None) -> Cell:
    if not cell.position:
        return Cell("")
    return Cell(with_interval(percent(summary.mean), summary.ci95), summary.mean) if summary else Cell(DASH)


def _tuned_cell(position: str, points: list[Point]) -> Cell:
    own = [point for point in points if point.arm == position and point.accuracy]
    texts = [
        f"{with_interval(percent(point.accuracy.mean), point.accuracy.ci95)} at {point.size[0]} x {point.size[1]} px"
        for point in own
        if point.accuracy
    ]
    return Cell("; ".join(texts) or DASH)
