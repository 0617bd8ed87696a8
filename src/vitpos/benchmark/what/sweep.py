"""A sweep in parallel beside the same runs one after the other in one process. Takes as long as both."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from vitpos.benchmark.networks import position_names
from vitpos.benchmark.runs import compose_jobs
from vitpos.benchmark.settings import Settings
from vitpos.benchmark.table import Table
from vitpos.sweep.execute import execute
from vitpos.sweep.joblib_pool import JoblibPool
from vitpos.sweep.jobs import Job

EPOCHS = 30
MODULES = ("none", "learned_1d", "learned_2d", "sincos_1d", "sincos_2d", "rope_axial", "rope_mixed", "relative_1d")


def measure(settings: Settings) -> list[Table]:
    """Return wall seconds of both and their ratio.

    Raises:
        ValueError: a job failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        modules = position_names(settings.modules or MODULES)
        seeds = range(-(-settings.runs // len(modules)))
        swept = {"position": ",".join(modules), "seed": ",".join(map(str, seeds))}
        epochs = settings.epochs or EPOCHS
        base = [f"data={settings.data[-1]}", f"model={settings.model}", f"trainer.max_epochs={epochs}", "logger=none"]

        def jobs(name: str) -> Sequence[Job]:
            return compose_jobs([f"output_dir={Path(folder) / name}", *base], swept)[: settings.runs]

        started = time.perf_counter()
        parallel = [outcome.status for outcome in JoblibPool(settings.jobs, 1).run(jobs("parallel"))]
        between = time.perf_counter()
        single = [execute(job.config, threads=1).status for job in jobs("single")]
        ended = time.perf_counter()
    if {*parallel, *single} != {"finished"}:
        raise ValueError(f"what=sweep: jobs ended as {sorted({*parallel, *single})}")
    row = {
        "name": f"{len(parallel)} runs, {settings.jobs} at once",
        "baseline": "one process",
        "ratio": (between - started) / (ended - between),
        "sweep_seconds": between - started,
        "single_seconds": ended - between,
    }
    return [Table("sweep", "A sweep beside its runs one after the other", [row], "Wall time, one thread per run.")]
