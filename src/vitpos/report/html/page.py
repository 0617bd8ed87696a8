"""Render reports as self-contained HTML pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from vitpos.report.comparison import Comparison
from vitpos.report.figures import Picture
from vitpos.report.html import context
from vitpos.report.html.runs import describe_runs
from vitpos.report.html.svg import inline_svg
from vitpos.report.rows import Analysis
from vitpos.report.view import Report, SectionView, TransferView

TEMPLATES = Path(__file__).parents[1] / "templates"


def render_page(report: Report, drawings: Mapping[str, bytes]) -> str:
    """Return the page.

    Args:
        report: what to show.
        drawings: name of a picture -> its HTML form, see `figures.render`.
    """
    study = report.study
    analyses = [view.analysis for view in report.sections]
    runs = context.run_rows(study, analyses)
    values = {
        "title": f"{study.name}: what the position module buys",
        "name": study.name,
        "flags": context.by_seriousness(report.flags),
        "sections": [_section(view, place, drawings) for place, view in enumerate(report.sections)],
        "matrix": _picture(report.matrix, drawings) if report.matrix else None,
        "table8": report.table8,
        "transfers": [_transfer(view, place, drawings) for place, view in enumerate(report.transfers)],
        "runs": runs,
        "statuses": sorted({run["status"].split(",")[0] for run in runs}),
        "failures": context.failures(study),
        "environment": context.environment(study) if study.runs else [],
        "command": report.command,
        "run_data": _embedded(describe_runs(study.runs, analyses)),
    }
    return _render("report.html.j2", values)


def render_comparison(comparison: Comparison, reports: Sequence[Report], drawings: Mapping[str, bytes]) -> str:
    """Return the page of several experiments side by side; see `render_page`."""
    values = {
        "title": f"Comparison of {', '.join(comparison.names)}",
        "summary": comparison.summary,
        "table": comparison.table,
        "figure": _picture(comparison.picture, drawings) if comparison.picture else None,
        "experiments": [
            {
                "name": report.study.name,
                "summaries": [view.summary for view in report.sections],
                "flags": context.by_seriousness(
                    [*report.flags, *(flag for view in report.sections for flag in view.flags)]
                ),
            }
            for report in reports
        ],
        "command": comparison.command,
        "run_data": Markup('{"common":{},"runs":{}}'),
    }
    return _render("comparison.html.j2", values)


def _render(template: str, values: Mapping[str, Any]) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    shared = {"css": _source("report.css"), "js": _source("report.js")}
    return environment.get_template(template).render(shared | dict(values)) + "\n"


def _section(view: SectionView, place: int, drawings: Mapping[str, bytes]) -> dict[str, Any]:
    analysis = view.analysis
    verdicts = [_verdict(analysis, arm) for arm in view.table.keys]
    confounded = any(row.confounded_by for row in analysis.rows)
    return {
        "id": f"section{place + 1}",
        "title": view.table.title,
        "summary": view.summary,
        "flags": context.by_seriousness(view.flags),
        "table": view.table,
        "row_verdicts": verdicts,
        "verdicts": sorted(set(verdicts)),
        "pictures": [_picture(picture, drawings) for picture in view.pictures],
        "tests": context.tests_table(analysis),
        "settings": context.arm_settings(analysis),
        "confounded": confounded,
        "settings_text": _settings_text(analysis),
    }


def _settings_text(analysis: Analysis) -> str:
    """Say whether the arms differ in the position module only."""
    if analysis.section.confounders:
        names = ", ".join(analysis.section.confounders)
        return f"Besides the position module the arms differ in {names}; see the remarks."
    if any(run.settings is None for run in analysis.section.runs):
        return "Not every run has a stored config, so it can't be shown that the arms differ in position only."
    tuned = f" and, tuned per arm, in {', '.join(analysis.section.tuned)}" if analysis.section.tuned else ""
    return f"The arms differ in the position module{tuned} and in nothing else that can change a result."


def _verdict(analysis: Analysis, arm: str) -> str:
    row = analysis.row(arm)
    if row is None or row.comparison is None:
        return "reference" if arm == analysis.reference else "none"
    return row.comparison.verdict


def _transfer(view: TransferView, place: int, drawings: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "id": f"sizes{place + 1}",
        "title": view.table.title,
        "table": view.table,
        "picture": _picture(view.picture, drawings) if view.picture else None,
    }


def _picture(picture: Picture, drawings: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "id": picture.name,
        "title": picture.title,
        "caption": picture.caption,
        "svg": inline_svg(drawings[picture.name], f"svg-{picture.name}", picture.title, picture.alternative),
        "numbers": context.numbers_table(picture),
    }


def _source(name: str) -> Markup:
    return Markup((TEMPLATES / name).read_text(encoding="utf-8").rstrip())


def _embedded(data: Any) -> Markup:
    """Return JSON that can't end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
