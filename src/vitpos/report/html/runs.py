"""What a page knows of every single run: config, curves, figure, command to repeat."""

from __future__ import annotations

import base64
import csv
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vitpos.record import METRICS_FILE
from vitpos.report.rows import Analysis
from vitpos.report.study import Run

CURVES = ("val/top1", "train/loss", "val/nll", "val/loss", "lr")
# Pictures of the position module, the most telling first.
FIGURES = ("similarity.png", "kernel.png", "response.png", "strength.png")
_POINTS = 40_000  # curve points in one page, over all runs
_FIGURE_BYTES = 8_000_000  # pictures in one page; beyond, their paths are named


def describe_runs(runs: Sequence[Run], analyses: Iterable[Analysis]) -> dict[str, Any]:
    """Return the data of the drill-down: settings that all runs share once, and per run what is its own.

    Test results of settings that were not chosen are left out: a tuned setting's test result is read once.
    """
    chosen = {run.name for a in analyses for row in a.rows for run in (*row.runs, *row.tuned_runs)}
    configs = {run.name: run.settings or {} for run in runs}
    common = _common(list(configs.values()))
    length = max(10, min(200, _POINTS // max(len(runs), 1)))
    figures = _figures(runs)
    return {
        "common": common,
        "runs": {
            run.name: {
                "config": {key: value for key, value in configs[run.name].items() if common.get(key) != value},
                "metrics": {
                    name: value
                    for name, value in run.record.metrics.items()
                    if run.name in chosen or not name.startswith(("test/", "fewshot/"))
                },
                "diagnostics": _scalars(run.record.diagnostics),
                "curves": read_curves(run, length),
                "figure": figures.get(run.name, ""),
                "command": command(run),
                "error": run.record.error.model_dump() if run.record.error else None,
            }
            for run in runs
        },
    }


def command(run: Run) -> str:
    """Return the command line that repeats a run."""
    return shlex.join(["python", "scripts/train.py", *run.record.overrides])


def read_curves(run: Run, length: int) -> dict[str, list[float | None]]:
    """Return the curves in `metrics.csv`, at most `length` points each, to four digits; empty without a file."""
    try:
        with (run.folder / METRICS_FILE).open(encoding="utf-8", newline="") as file:
            head, *rows = list(csv.reader(file)) or [[]]
    except (OSError, ValueError, csv.Error):
        return {}
    if not rows or "epoch" not in head:
        return {}
    step = -(-len(rows) // length)
    kept = rows[:-1:step] + rows[-1:]
    found = {}
    for name in ("epoch", *CURVES):
        if name in head:
            place = head.index(name)
            found[name] = [_number(row[place]) if place < len(row) else None for row in kept]
    return {name: values for name, values in found.items() if any(value is not None for value in values)}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _common(configs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the settings that all runs share, so that each run lists its own only."""
    if not configs:
        return {}
    first, *others = configs
    return {key: value for key, value in sorted(first.items()) if all(other.get(key) == value for other in others)}


def _scalars(diagnostics: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in sorted(diagnostics.items())
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _figures(runs: Sequence[Run]) -> dict[str, str]:
    """Return run name -> picture as a data address; one of every arm before a second of any."""
    found: dict[str, str] = {}
    left = _FIGURE_BYTES
    for run in sorted(runs, key=lambda run: (run.seed, run.name)):
        path = next((path for name in FIGURES if (path := run.folder / "figures" / name).is_file()), None)
        if path is None:
            continue
        content = path.read_bytes()
        if len(content) > left:
            continue
        left -= len(content)
        found[run.name] = "data:image/png;base64," + base64.b64encode(content).decode()
    return found
