"""What the page's template shows, as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from vitpos.report.figures import Picture
from vitpos.report.flags import Flag
from vitpos.report.formats import DASH, p_value, percent, points, span, with_interval
from vitpos.report.rows import Analysis, Row
from vitpos.report.settings import NOT
from vitpos.report.study import Study
from vitpos.report.table import Cell, Column, Table
from vitpos.report.verdict import NOT_RESOLVED


def tests_table(analysis: Analysis) -> Table | None:
    """Return the tests behind the verdicts; None without a comparison."""
    rows = [row for row in analysis.rows if row.comparison]
    if not rows:
        return None
    columns = [
        Column("Position", "Position module.", numeric=False),
        Column("Pairs", "Seeds that both arms have."),
        Column("Δ (points)", "Mean difference ± 95 % t-interval."),
        Column("p, paired t", "Two-sided."),
        Column("p, Holm", "Adjusted over the family; decides better and worse."),
        Column("p, sign flip", "Permutation test; at least 2 / 2^n, so never below 0.0625 with five seeds."),
        Column("p, equivalence", "Two one-sided tests; decides ties."),
        Column("McNemar p", "Median over seeds of the paired image-level test of two networks."),
        Column("Right/wrong images", "Images that only this arm got right, and only the reference, over all seeds."),
        Column("Bootstrap (points)", "95 % two-level bootstrap over seeds and images."),
        Column("Seeds needed", "To settle what is not resolved, at 80 % power."),
    ]
    return Table(
        "Tests behind the verdicts", "", columns, [_test_cells(row) for row in rows], [row.arm for row in rows]
    )


def _test_cells(row: Row) -> list[Cell]:
    comparison, images = row.comparison, row.images
    assert comparison is not None
    needed = comparison.seeds_needed
    open_ended = comparison.verdict == NOT_RESOLVED and comparison.n > 1 and needed is None
    cells = [
        Cell(row.arm, row.arm),
        Cell(str(comparison.n), comparison.n),
        Cell(with_interval(points(comparison.mean), comparison.ci95), comparison.mean),
        *(Cell(p_value(p), p) for p in (comparison.p, comparison.p_holm, comparison.p_flip, comparison.p_equivalence)),
    ]
    if images is None:
        cells += [Cell(DASH)] * 3
    else:
        low, high = images.interval or (None, None)
        interval = DASH if low is None else f"{points(low)} to {points(high)}"
        cells += [
            Cell(p_value(images.mcnemar_median), images.mcnemar_median),
            Cell(f"{images.only_arm} / {images.only_reference}", images.only_arm - images.only_reference),
            Cell(interval, low),
        ]
    return [*cells, Cell("over 10,000" if open_ended else str(needed) if needed else DASH, needed)]


def numbers_table(picture: Picture) -> Table:
    """Return the numbers behind a figure, accuracies in percent."""
    keys = list(dict.fromkeys(key for row in picture.numbers for key in row))
    columns = [Column(key.replace("_", " "), "", numeric=not _is_text(picture.numbers, key)) for key in keys]
    rows = [[_number_cell(key, row.get(key)) for key in keys] for row in picture.numbers]
    return Table(picture.title, "", columns, rows)


def arm_settings(analysis: Analysis) -> list[dict[str, Any]]:
    """Return, per arm, the position module's own numbers and whatever else differs from the reference."""
    found = []
    for row in analysis.rows:
        runs = row.runs or analysis.section.arms[row.arm]
        position = runs[0].record.position
        found.append(
            {
                "arm": row.arm,
                "label": position.label,
                "family": position.family,
                "injection": position.injection,
                "numbers": ", ".join(f"{key}={value}" for key, value in sorted(runs[0].numbers.items())),
                "others": ", ".join(f"{key}={runs[0].conditions.get(key, NOT)}" for key in row.confounded_by),
            }
        )
    return found


def run_rows(study: Study, analyses: Sequence[Analysis]) -> list[dict[str, Any]]:
    """Return one line per run, by arm and seed."""
    chosen = {run.name for a in analyses for row in a.rows for run in (*row.runs, *row.tuned_runs)}
    place = {run.name: (arm, a.section.title) for a in analyses for arm, runs in a.section.arms.items() for run in runs}
    lines = []
    for name, (arm, title) in place.items():
        run = study.by_name[name]
        shown = run.accuracy if name in chosen else None
        lines.append(
            {
                "name": name,
                "arm": arm,
                "section": title,
                "seed": run.seed,
                "status": run.record.status + (", resumed" if run.record.resumed else ""),
                "test": Cell(percent(shown) if name in chosen or run.accuracy is None else "not chosen", shown),
                "val": Cell(percent(run.metric("val/top1")), run.metric("val/top1")),
                "epoch": _whole_cell(run.record.best_epoch),
                "epochs": _whole_cell(run.record.epochs),
                "started": (run.record.started or DASH)[:16].replace("T", " "),
            }
        )
    return lines


def failures(study: Study) -> list[dict[str, str]]:
    """Return failed runs and folders without a record."""
    lines = [
        {
            "name": run.name,
            "kind": "failed",
            "message": f"{error.type}: {error.message}",
            "traceback": error.traceback,
            "overrides": " ".join(run.record.overrides),
        }
        for run in study.failed
        if (error := run.record.error)
    ]
    lines += [
        {
            "name": problem.folder.name,
            "kind": problem.kind,
            "message": problem.message.replace(f"{problem.folder}/", ""),
            "traceback": "",
            "overrides": "",
        }
        for problem in study.problems
    ]
    return lines


def environment(study: Study) -> list[tuple[str, str]]:
    """Return what the runs ran on: code, libraries, devices, time."""
    runs = study.runs
    lines = [("code", _counted(run.record.commit or "unknown" for run in runs))]
    names = sorted({name for run in runs for name in run.record.versions})
    lines += [(name, _counted(run.record.versions.get(name, "unknown") for run in runs)) for name in names]
    lines.append(("device", _counted(run.record.device or "unknown" for run in runs)))
    started = sorted(run.record.started for run in runs if run.record.started)
    if started:
        lines.append(("started", started[0] if started[0] == started[-1] else f"{started[0]} to {started[-1]}"))
    seconds = [run.record.cost.train_seconds for run in runs if run.record.cost and run.record.cost.train_seconds]
    if seconds:
        lines.append(("training time, all runs", f"{sum(seconds) / 3600:.2f} hours"))
    lines.append(("seeds", span(run.seed for run in runs)))
    return lines


def by_seriousness(flags: Sequence[Flag]) -> list[Flag]:
    """Order remarks, those that bear on the verdicts first."""
    return sorted(flags, key=lambda flag: not flag.serious)


def _counted(values: Any) -> str:
    counts = Counter(values)
    if len(counts) == 1:
        return str(next(iter(counts)))
    return ", ".join(f"{value} ({number} runs)" for value, number in sorted(counts.items()))


def _whole_cell(number: int | None) -> Cell:
    return Cell(DASH if number is None else str(number), number)


def _is_text(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    return any(isinstance(row.get(key), str) for row in rows)


def _number_cell(key: str, value: Any) -> Cell:
    if value is None:
        return Cell(DASH)
    if isinstance(value, str | bool):
        return Cell(str(value), str(value))
    if key.startswith("p_"):
        return Cell(p_value(value), value)
    fraction = key.startswith("seed_") or "top1" in key or key.startswith("delta_")
    if fraction:
        return Cell(points(value) if key == "delta_mean" else percent(value), value)
    return Cell(f"{value:,}" if isinstance(value, int) else f"{value:,.4g}", value)
