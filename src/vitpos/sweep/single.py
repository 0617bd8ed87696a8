"""One run from the command line: the same job as in a sweep, with its log on the screen."""

from __future__ import annotations

import logging
import os
import sys

from omegaconf import DictConfig

from vitpos.sweep.execute import execute
from vitpos.sweep.jobs import make_job
from vitpos.sweep.plan import show_plan


def run_single(config: DictConfig, overrides: tuple[str, ...]) -> None:
    """Run one job in this process, or show it with `plan=true`; exits with 1 when it failed."""
    job = make_job(config, overrides)
    if config.plan:
        show_plan([job], config.launcher)
        return
    print(f"run folder  {job.folder}", flush=True)
    logging.getLogger("vitpos").setLevel(logging.INFO)
    outcome = execute(job.config, threads=int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0)))))
    if outcome.status == "finished":
        print(f"finished    test top-1 {outcome.top1:.2%} in {outcome.seconds:.1f} s")
    elif outcome.status == "skipped":
        print("finished before; delete the run folder to train it again")
    elif outcome.status == "busy":
        sys.exit("another process is training this run")
    else:
        sys.exit(f"failed      {outcome.error}\n            log: {job.folder / 'run.log'}")
