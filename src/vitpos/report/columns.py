"""`table.csv`: every number of the table, in fractions, milliseconds, seconds and MiB."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from vitpos.report.rows import Analysis, Row
from vitpos.report.selection import describe
from vitpos.report.statistics import Summary
from vitpos.report.verdict import Comparison

Field = str | int | float | bool | None
REFERENCE = "reference"


def table_fields(analyses: Sequence[Analysis]) -> list[dict[str, Field]]:
    """Return one mapping per arm and section; the first ten columns are fixed."""
    return [_fields(row, analysis) for analysis in analyses for row in analysis.rows]


def write_csv(rows: Sequence[Mapping[str, Field]], first: Iterable[str] = ()) -> str:
    """Return rows as CSV; columns in the order of their first appearance, empty where a row has no such number.

    Args:
        rows: mappings of column to value.
        first: columns that are there even without rows.
    """
    columns = list(dict.fromkeys([*first, *(key for row in rows for key in row)]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([field_text(row.get(column)) for column in columns])
    return text.getvalue()


def field_text(value: Field) -> str:
    """Return a value as CSV text: floats with ten significant digits, the same on every machine."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


LEADING = (
    "position",
    "n",
    "test_top1_mean",
    "test_top1_ci95",
    "delta_mean",
    "delta_ci95",
    "verdict",
    "parameters",
    "position_parameters",
    "step_ms",
)


def _fields(row: Row, analysis: Analysis) -> dict[str, Field]:
    accuracy, comparison, images = row.accuracy, row.comparison, row.images
    position = row.runs[0].record.position if row.runs else None
    scores = {run.seed: run.accuracy for run in row.runs if run.accuracy is not None}
    is_reference = bool(analysis.reference) and row.arm == analysis.reference
    values: dict[str, Field] = {
        "position": row.arm,
        "n": len(row.runs),
        "test_top1_mean": accuracy.mean if accuracy else None,
        "test_top1_ci95": accuracy.ci95 if accuracy else None,
        **_difference(comparison, "delta"),
        "verdict": REFERENCE if is_reference else comparison.verdict if comparison else None,
        "parameters": _whole(row.cost.get("parameters")),
        "position_parameters": _whole(row.cost.get("position_parameters")),
        "step_ms": row.cost.get("step_ms"),
        "section": analysis.section.title,
        "label": position.label if position else None,
        "family": position.family if position else None,
        "injection": position.injection if position else None,
        "best": row.best,
        "confounded_by": "; ".join(row.confounded_by),
        "failed": len(row.failed),
        "missing": len(row.missing),
        "test_top1_sd": accuracy.sd if accuracy else None,
        "test_top1_min": accuracy.low if accuracy else None,
        "test_top1_max": accuracy.high if accuracy else None,
        "worst_seed": min(scores, key=lambda seed: scores[seed], default=None),
        "best_seed": max(scores, key=lambda seed: scores[seed], default=None),
        "test_images": analysis.test_images,
        "test_sampling_ci95": row.sampling(analysis.test_images),
        "delta_n": comparison.n if comparison else None,
        "p_t": comparison.p if comparison else None,
        "p_holm": comparison.p_holm if comparison else None,
        "p_sign_flip": comparison.p_flip if comparison else None,
        "p_equivalence": comparison.p_equivalence if comparison else None,
        "seeds_needed": comparison.seeds_needed if comparison else None,
        "images_only_arm_right": images.only_arm if images else None,
        "images_only_reference_right": images.only_reference if images else None,
        "p_mcnemar_median": images.mcnemar_median if images else None,
        "bootstrap_low": images.interval[0] if images and images.interval else None,
        "bootstrap_high": images.interval[1] if images and images.interval else None,
    }
    if analysis.section.tuned:
        values |= _tuned(row, analysis)
    for name in ("flops_per_image", "train_seconds", "train_images_per_second", "peak_memory_mib"):
        values[name] = row.cost.get(name)
    for name, summary in row.metrics.items():
        values |= _summary(summary, name.replace("/", "_"))
    return values


def _difference(comparison: Comparison | None, prefix: str) -> dict[str, Field]:
    return {
        f"{prefix}_mean": comparison.mean if comparison else None,
        f"{prefix}_ci95": comparison.ci95 if comparison else None,
    }


def _tuned(row: Row, analysis: Analysis) -> dict[str, Field]:
    comparison, shared = row.tuned_comparison, analysis.setting
    return {
        "shared_setting": describe(shared) if shared is not None else None,
        "tuned_setting": describe(analysis.selection.tuned.get(row.arm, ())),
        "tuned_n": len(row.tuned_runs),
        "tuned_top1_mean": row.tuned.mean if row.tuned else None,
        "tuned_top1_ci95": row.tuned.ci95 if row.tuned else None,
        **_difference(comparison, "tuned_delta"),
        "tuned_verdict": comparison.verdict if comparison else None,
    }


def _summary(summary: Summary, prefix: str) -> dict[str, Field]:
    return {f"{prefix}_mean": summary.mean, f"{prefix}_ci95": summary.ci95}


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
