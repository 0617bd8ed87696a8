"""From an experiment folder to its report, all from one command and byte for byte reproducible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from vitpos.record import write_bytes_atomic, write_text_atomic
from vitpos.report.analysis import analyse
from vitpos.report.columns import LEADING, table_fields, write_csv
from vitpos.report.comparison import Comparison, compare_reports
from vitpos.report.figures import Picture, draw_cost, draw_curves, draw_forest, draw_matrix, draw_seeds, render
from vitpos.report.flags import study_flags
from vitpos.report.grouping import make_sections, name_arms
from vitpos.report.html import render_comparison, render_page
from vitpos.report.latex import to_latex
from vitpos.report.markdown import markdown_report, to_markdown
from vitpos.report.rows import Analysis
from vitpos.report.section_flags import section_flags
from vitpos.report.selection import can_select
from vitpos.report.study import load_study
from vitpos.report.table import build_table
from vitpos.report.table8 import table8
from vitpos.report.terminal import print_table
from vitpos.report.transfer import Point, transfer_fields, transfer_points
from vitpos.report.transfer_table import transfer_table
from vitpos.report.view import Report, SectionView, TransferView
from vitpos.report.wording import caption, summary

REFERENCE = "learned_1d"
MARGIN = 0.5
SOMETIMES = {"table8.md", "table8.tex"}  # files that not every study has
TRANSFER_LEADING = ("position", "height", "width", "protocol", "n", "top1_mean", "top1_ci95")


def make_report(experiment: str | Path, reference: str = REFERENCE, margin: float = MARGIN) -> Report:
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
    study = load_study(Path(experiment))
    arms = name_arms(study.runs)
    sections = make_sections(study.runs, arms, split_all=not can_select(study.runs))
    analyses = [analyse(section, reference, margin / 100) for section in sections]
    points = transfer_points(study, analyses)
    return Report(
        study=study,
        settings=f"reference={reference} margin={margin:g}",
        flags=study_flags(study, reference, analyses),
        sections=[_section(analysis) for analysis in analyses],
        points=points,
        transfers=_transfers(points),
        matrix=draw_matrix(analyses),
        table8=next((found for analysis in analyses if (found := table8(analysis, points))), None),
    )


def write_report(report: Report) -> Path:
    """Write all files of a report and return its folder, `<experiment>/report`."""
    folder = report.study.folder / "report"
    drawings = _draw(report.pictures, folder / "figures")
    texts = files(report)
    for name, text in texts.items():
        write_text_atomic(folder / name, text)
    for name in SOMETIMES - texts.keys():
        (folder / name).unlink(missing_ok=True)
    write_text_atomic(folder / "report.html", render_page(report, drawings))
    return folder


def build_report(experiment: str | Path, reference: str = REFERENCE, margin: float = MARGIN) -> Path:
    """Analyse an experiment folder, write its report, and return the report's folder; see `make_report`."""
    return write_report(make_report(experiment, reference, margin))


def write_comparison(reports: Sequence[Report], output_dir: Path) -> tuple[Comparison, Path]:
    """Write several experiments side by side into `output_dir/comparison/<A>+<B>`, and return them with that folder."""
    comparison = compare_reports(reports)
    folder = output_dir / "comparison" / "+".join(comparison.names)
    drawings = _draw([comparison.picture] if comparison.picture else [], folder / "figures")
    title = f"# Comparison of {', '.join(comparison.names)}"
    texts = {
        "comparison.csv": write_csv(comparison.fields),
        "comparison.md": f"{title}\n\n{comparison.summary}\n\n{to_markdown(comparison.table)}",
        "comparison.tex": to_latex(comparison.table, [], "comparison"),
        "comparison.html": render_comparison(comparison, reports, drawings),
    }
    for name, text in texts.items():
        write_text_atomic(folder / name, text)
    return comparison, folder


def _draw(pictures: Sequence[Picture], folder: Path) -> dict[str, bytes]:
    """Draw pictures into a folder, with their numbers, and return what a page embeds of them."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings = {}
    for picture in pictures:
        forms = render(picture)
        drawings[picture.name] = forms.pop("html")
        for ending, content in forms.items():
            write_bytes_atomic(folder / f"{picture.name}.{ending}", content)
        write_text_atomic(folder / f"{picture.name}.csv", write_csv(picture.numbers))
    # Figures of an earlier report that this one does not have would be taken for its own.
    for path in folder.iterdir():
        if path.is_file() and path.stem not in drawings:
            path.unlink()
    return drawings


def files(report: Report) -> dict[str, str]:
    """Return the tables of a report as text, by file name."""
    analyses = [view.analysis for view in report.sections]
    latex = [
        to_latex(view.table, [*report.flags, *view.flags], view.analysis.section.slug or report.study.name)
        for view in report.sections
    ]
    found = {
        "table.csv": write_csv(table_fields(analyses), LEADING),
        "table.md": markdown_report(report),
        "table.tex": "\n".join(latex),
        "transfer.csv": write_csv(transfer_fields(report.points), TRANSFER_LEADING),
    }
    if report.table8:
        found["table8.md"] = f"# {report.table8.title}\n\n{to_markdown(report.table8)}"
        found["table8.tex"] = to_latex(report.table8, [], "table8")
    return found


def print_report(report: Report, console: Console) -> None:
    """Print the tables, summaries and remarks of a report."""
    for view in report.sections:
        print_table(view.table, console)
        console.print(f"\n{view.summary}", markup=False, highlight=False)
        for flag in view.flags:
            console.print(f"{flag.kind}: {flag.text}", style="yellow" if flag.serious else "dim", markup=False)
    for flag in report.flags:
        console.print(f"{flag.kind}: {flag.text}", style="yellow" if flag.serious else "dim", markup=False)


def _section(analysis: Analysis) -> SectionView:
    slug = f"-{analysis.section.slug}" if analysis.section.slug else ""
    pictures = [found for draw in (draw_forest, draw_seeds, draw_cost) if (found := draw(analysis))]
    return SectionView(
        analysis=analysis,
        flags=section_flags(analysis),
        table=build_table(analysis, caption(analysis)),
        summary=summary(analysis),
        pictures=[replace(picture, name=picture.name + slug) for picture in pictures],
    )


def _transfers(points: Sequence[Point]) -> list[TransferView]:
    """Return one view per section that networks were trained in."""
    by_section: dict[str, list[Point]] = {}
    for point in points:
        by_section.setdefault(point.section, []).append(point)
    views = []
    for place, (title, own) in enumerate(by_section.items()):
        table = transfer_table(title, own)
        picture = draw_curves(own, list(dict.fromkeys(point.arm for point in own)))
        if picture and place:
            picture = replace(picture, name=f"{picture.name}-{place + 1}")
        if table:
            views.append(TransferView(table, picture))
    return views
