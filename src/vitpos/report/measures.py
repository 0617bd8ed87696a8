"""Further metrics and the cost of an arm, over its runs."""

from __future__ import annotations

from statistics import fmean

from vitpos.report.formats import natural
from vitpos.report.statistics import Summary, summarise
from vitpos.report.study import Run

_COST = ("flops_per_image", "train_seconds", "train_images_per_second", "peak_memory_mib")


def metrics_of(runs: list[Run]) -> dict[str, Summary]:
    """Summarise every further metric that all runs have; standard deviations over draws are none."""
    names = sorted({name for run in runs for name in run.record.metrics} - {"test/top1"}, key=natural)
    found = {}
    for name in names:
        values = [value for run in runs if (value := run.metric(name)) is not None]
        if len(values) == len(runs) and not name.endswith("_sd") and (summary := summarise(values)):
            found[name] = summary
    return found


def cost_of(runs: list[Run]) -> dict[str, float | None]:
    """Return parameters of the first run, and means over the runs of what was measured; None where one run lacks it."""
    costs = [run.record.cost for run in runs if run.record.cost is not None]
    if not costs:
        return {}
    found: dict[str, float | None] = {
        "parameters": costs[0].parameters,
        "position_parameters": costs[0].position_parameters,
    }
    for name in _COST:
        found[name] = _mean([getattr(cost, name) for cost in costs])
    found["step_ms"] = _mean([_step_ms(run) for run in runs])
    return found


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _step_ms(run: Run) -> float | None:
    """Return milliseconds per training step: as measured, else the batch size over the throughput."""
    cost, batch = run.record.cost, (run.record.data.model_extra or {}).get("batch_size")
    if cost is None:
        return None
    measured = (cost.model_extra or {}).get("step_ms")
    if isinstance(measured, int | float):
        return float(measured)
    if cost.train_images_per_second and isinstance(batch, int):
        return 1000 * batch / cost.train_images_per_second
    return None
