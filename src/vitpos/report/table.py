"""The ablation table as cells, the same for Markdown, LaTeX, the terminal and HTML."""

from __future__ import annotations

from dataclasses import dataclass, field

from vitpos.report.formats import DASH, count, percent, points, significant, with_interval
from vitpos.report.rows import Analysis, Row
from vitpos.report.selection import describe
from vitpos.report.wording import verdict_text


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        heading: short heading.
        meaning: what it holds, one sentence.
        numeric: whether it is aligned and sorted as numbers.
    """

    heading: str
    meaning: str
    numeric: bool = True


@dataclass(frozen=True)
class Cell:
    """A cell: what is shown, and what it is sorted by.

    Attributes:
        text: what is shown.
        value: number or text to sort by; None sorts last.
        strong: whether it is marked as best.
    """

    text: str
    value: float | str | None = None
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """A table with its caption.

    Attributes:
        title: what it is about.
        caption: how to read it.
        columns: its columns.
        rows: cells, as many per row as columns.
        keys: one name per row.
    """

    title: str
    caption: str
    columns: list[Column]
    rows: list[list[Cell]]
    keys: list[str] = field(default_factory=list)


def build_table(analysis: Analysis, caption: str) -> Table:
    """Lay out the ablation table of a section. Columns without a single number are left out."""
    laid_out = [_cells(row, analysis) for row in analysis.rows]
    columns = list(laid_out[0]) if laid_out else []
    always = {"Position", "n", "Top-1 (%)"}
    kept = [
        column
        for column in columns
        if column.heading in always or any(cells[column].text not in (DASH, "") for cells in laid_out)
    ]
    rows = [[cells[column] for column in kept] for cells in laid_out]
    return Table(analysis.section.title, caption, kept, rows, [row.arm for row in analysis.rows])


def _cells(row: Row, analysis: Analysis) -> dict[Column, Cell]:
    accuracy, cost = row.accuracy, row.cost
    reference = row.arm == analysis.reference
    cells = {
        Column("Position", "Position module.", numeric=False): Cell(row.arm, row.arm),
        Column("n", "Seeds averaged over."): Cell(_seeds(row), len(row.runs)),
        Column("Top-1 (%)", "Mean test top-1 ± 95 % t-interval over seeds."): Cell(
            with_interval(percent(accuracy.mean), accuracy.ci95) if accuracy else DASH,
            accuracy.mean if accuracy else None,
            strong=row.best,
        ),
        Column("Δ (points)", f"Mean difference to {analysis.reference}, paired by seed, ± 95 % t-interval."): _delta(
            row
        ),
        Column("Verdict", f"Against {analysis.reference}.", numeric=False): Cell(
            "reference" if reference and analysis.reference else verdict_text(row) or DASH,
        ),
    }
    if analysis.section.tuned:
        cells |= _tuned_cells(row, analysis)
    sampling = row.sampling(analysis.test_images)
    cells |= {
        Column("Sampling ±", "95 % half-width of one network's accuracy from the finite test set, in points."): Cell(
            percent(sampling), sampling
        ),
        Column("Seeds min–max (%)", "Worst and best seed."): Cell(
            f"{percent(accuracy.low)}–{percent(accuracy.high)}" if accuracy and accuracy.n > 1 else DASH,
            accuracy.low if accuracy else None,
        ),
    }
    for name, heading in (("test/top5", "Top-5 (%)"), ("fewshot/5", "5-shot (%)")):
        summary = row.metrics.get(name)
        cells[Column(heading, f"{name}, mean ± 95 % t-interval over seeds.")] = Cell(
            with_interval(percent(summary.mean), summary.ci95) if summary else DASH, summary.mean if summary else None
        )
    flops = cost.get("flops_per_image")
    for heading, meaning, text, value in (
        ("Parameters", "All parameters.", count(cost.get("parameters")), cost.get("parameters")),
        (
            "PE parameters",
            "Of the position module.",
            count(cost.get("position_parameters")),
            cost.get("position_parameters"),
        ),
        ("MFLOPs", "Forward pass of one image, in millions.", significant(flops / 1e6 if flops else None), flops),
        ("Step (ms)", "Time of a training step.", significant(cost.get("step_ms")), cost.get("step_ms")),
        ("Memory (MiB)", "Peak while training.", significant(cost.get("peak_memory_mib")), cost.get("peak_memory_mib")),
    ):
        cells[Column(heading, meaning)] = Cell(text, value)
    return cells


def _tuned_cells(row: Row, analysis: Analysis) -> dict[Column, Cell]:
    tuned, comparison = row.tuned, row.tuned_comparison
    setting = describe(analysis.selection.tuned.get(row.arm, ()))
    verdict = "reference" if analysis.reference and row.arm == analysis.reference else DASH
    return {
        Column("Tuned top-1 (%)", "Under the arm's own best setting by validation."): Cell(
            with_interval(percent(tuned.mean), tuned.ci95) if tuned else DASH, tuned.mean if tuned else None
        ),
        Column("Tuned Δ (points)", "Difference to the reference under its own best setting."): Cell(
            with_interval(points(comparison.mean), comparison.ci95) if comparison else DASH,
            comparison.mean if comparison else None,
        ),
        Column("Tuned verdict", "As before.", numeric=False): Cell(comparison.verdict if comparison else verdict),
        Column("Tuned setting", "Chosen on validation data.", numeric=False): Cell(setting or DASH, setting or None),
    }


def _delta(row: Row) -> Cell:
    comparison = row.comparison
    if comparison is None:
        return Cell(DASH)
    return Cell(with_interval(points(comparison.mean), comparison.ci95), comparison.mean)


def _seeds(row: Row) -> str:
    return f"{len(row.runs)} ({len(row.failed)} failed)" if row.failed else str(len(row.runs))
