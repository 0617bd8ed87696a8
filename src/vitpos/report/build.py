"""From an experiment folder to its report, all from one command and byte for byte reproducible."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from vitpos.record import write_text_atomic
from vitpos.report.analysis import analyse
from vitpos.report.columns import LEADING, table_fields, write_csv
from vitpos.report.flags import Flag, study_flags
from vitpos.report.grouping import make_sections, name_arms
from vitpos.report.latex import to_latex
from vitpos.report.markdown import flags_to_markdown, to_markdown
from vitpos.report.rows import Analysis
from vitpos.report.section_flags import section_flags
from vitpos.report.selection import can_select
from vitpos.report.study import Study, load_study
from vitpos.report.table import Table, build_table
from vitpos.report.terminal import print_table
from vitpos.report.transfer import Point, transfer_fields, transfer_points
from vitpos.report.wording import caption, summary

REFERENCE = "learned_1d"
MARGIN = 0.5
TRANSFER_LEADING = ("position", "height", "width", "protocol", "n", "top1_mean", "top1_ci95")


@dataclass(frozen=True)
class SectionView:
    """A section ready to be shown.

    Attributes:
        analysis: its numbers.
        flags: remarks on it.
        table: its table with caption.
        summary: two sentences.
    """

    analysis: Analysis
    flags: list[Flag]
    table: Table
    summary: str


@dataclass(frozen=True)
class Report:
    """A study ready to be shown.

    Attributes:
        study: the runs.
        margin: tie band in percentage points.
        flags: remarks on the whole study.
        sections: one view per section.
        points: accuracies at other image sizes.
    """

    study: Study
    margin: float
    flags: list[Flag]
    sections: list[SectionView]
    points: list[Point]


def make_report(experiment: Path, reference: str = REFERENCE, margin: float = MARGIN) -> Report:
    """Analyse an experiment folder.

    Args:
        experiment: `outputs/<experiment>`.
        reference: arm that the others are compared with.
        margin: half-width of the tie band in percentage points; 0 switches ties off.

    Raises:
        RecordError: no such folder.
        ValueError: a negative margin.
    """
    if not 0 <= margin < 100:
        raise ValueError(f"margin={margin}: must be a number of percentage points from 0 to 100")
    study = load_study(experiment)
    arms = name_arms(study.runs)
    sections = make_sections(study.runs, arms, split_all=not can_select(study.runs))
    analyses = [analyse(section, reference, margin / 100) for section in sections]
    views = [
        SectionView(analysis, section_flags(analysis), build_table(analysis, caption(analysis)), summary(analysis))
        for analysis in analyses
    ]
    flags = study_flags(study, reference, analyses)
    return Report(study, margin, flags, views, transfer_points(study, analyses))


def write_report(report: Report) -> Path:
    """Write all files of a report and return its folder, `<experiment>/report`."""
    folder = report.study.folder / "report"
    folder.mkdir(exist_ok=True)
    for name, text in files(report).items():
        write_text_atomic(folder / name, text)
    return folder


def build_report(experiment: Path, reference: str = REFERENCE, margin: float = MARGIN) -> Path:
    """Analyse an experiment folder, write its report, and return the report's folder; see `make_report`."""
    return write_report(make_report(experiment, reference, margin))


def files(report: Report) -> dict[str, str]:
    """Return the text files of a report by name."""
    analyses = [view.analysis for view in report.sections]
    return {
        "table.csv": write_csv(table_fields(analyses), LEADING),
        "table.md": _markdown(report),
        "table.tex": "\n".join(
            to_latex(view.table, [*report.flags, *view.flags], view.analysis.section.slug or report.study.name)
            for view in report.sections
        ),
        "transfer.csv": write_csv(transfer_fields(report.points), TRANSFER_LEADING),
    }


def print_report(report: Report, console: Console) -> None:
    """Print the tables, summaries and remarks of a report."""
    for view in report.sections:
        print_table(view.table, console)
        console.print(f"\n{view.summary}", markup=False, highlight=False)
        for flag in view.flags:
            console.print(f"{flag.kind}: {flag.text}", style="yellow" if flag.serious else "dim", markup=False)
    for flag in report.flags:
        console.print(f"{flag.kind}: {flag.text}", style="yellow" if flag.serious else "dim", markup=False)


def _markdown(report: Report) -> str:
    parts = [f"# {report.study.name}\n"]
    if not report.sections:
        parts.append("No run has finished or failed yet.\n")
    for view in report.sections:
        parts += [
            f"## {view.table.title}\n",
            f"{view.summary}\n",
            to_markdown(view.table),
            flags_to_markdown(view.flags),
        ]
    if report.flags:
        parts += ["## Remarks\n", flags_to_markdown(report.flags)]
    return "\n".join(part for part in parts if part)
