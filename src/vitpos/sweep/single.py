"""One run from the command line: the same job as in a sweep, with its log on the screen."""

from __future__ import annotations

import sys

from omegaconf import DictConfig

from vitpos.sweep.estimate import Estimator
from vitpos.sweep.execute import execute
from vitpos.sweep.helper import HelperError
from vitpos.sweep.jobs import make_job
from vitpos.sweep.launcher import build_launcher
from vitpos.sweep.places import share_machine
from vitpos.sweep.plan import show_plan
from vitpos.sweep.process import LOG_FILE


def run_single(config: DictConfig, overrides: tuple[str, ...]) -> None:
    """Run one job in this process, or show it with `plan=true`; exits with 1 when it failed or cannot be built."""
    try:
        job = make_job(config, overrides)
        share = share_machine([job])
        if config.plan:
            with Estimator() as estimator:
                sys.exit(not show_plan([job], build_launcher(config.launcher), estimator))
    except (ValueError, HelperError) as error:  # mostly a setting of the user's; Hydra would show a traceback
        sys.exit(str(error))
    print(f"run folder  {job.folder}", flush=True)
    try:
        outcome = execute(share.config(job), share.threads)
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command continues from here")
    if outcome.status == "finished":
        print(f"finished    test top-1 {outcome.top1:.2%} in {outcome.seconds:.1f} s")
    elif outcome.status == "skipped":
        print("finished before; delete the run folder to train it again")
        print(f"other sizes, protocols or few-shot: python scripts/evaluate.py run={job.folder} transfer.sizes=[…]")
    elif outcome.status == "busy":
        sys.exit("another process is training this run")
    else:
        log = job.folder / LOG_FILE
        sys.exit(f"failed      {outcome.error}" + (f"\n            log: {log}" if log.exists() else ""))
