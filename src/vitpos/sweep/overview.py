"""What a sweep says while it runs and when it ends; readable in a terminal and in a log file."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vitpos.record import RESULT_FILE
from vitpos.sweep.execute import LOG_FILE, Outcome
from vitpos.sweep.jobs import Job, state_of
from vitpos.sweep.launchers import Launcher

log = logging.getLogger("vitpos")


def run_jobs(jobs: Sequence[Job], launcher: Launcher, fail_fast: bool, report: Any) -> bool:
    """Run what is not finished, print one line per job, then failures and the report.

    Args:
        jobs: all jobs of the sweep, finished ones included.
        launcher: runs jobs, yields outcomes in the order in which they end.
        fail_fast: stop starting jobs after the first failure.
        report: settings of the report: `reference`, `margin`.

    Returns:
        Whether every job is finished.
    """
    started = time.perf_counter()
    todo = []
    for job in jobs:
        if state_of(job.folder) == "finished":
            print(f"skipped   {job.name}  finished before", flush=True)
        else:
            todo.append(job)
    by_name = {job.name: job for job in jobs}
    outcomes: list[Outcome] = []
    running = launcher(todo) if todo else iter(())
    for outcome in running:
        outcomes.append(outcome)
        print(_line(outcome, outcomes, len(todo), time.perf_counter() - started), flush=True)
        if outcome.status == "failed" and fail_fast:
            running.close()  # type: ignore[attr-defined]
            break
    counts = Counter(outcome.status for outcome in outcomes)
    finished = len(jobs) - len(todo) + counts["finished"] + counts["skipped"]
    seconds = time.perf_counter() - started
    print(f"\n{finished} of {len(jobs)} jobs finished, {counts['failed']} failed, in {_duration(seconds)}")
    for outcome in outcomes:
        if outcome.status == "failed":
            print(f"failed    {outcome.folder.name}  {' '.join(by_name[outcome.folder.name].overrides)}")
            print(f"          {outcome.error}")
            print(f"          traceback: {_traceback_place(outcome.folder)}")
        elif outcome.status == "busy":
            print(f"busy      {outcome.folder.name}  is being run by another process; run again to wait for its result")
    _report(jobs, report)
    return finished == len(jobs)


def _line(outcome: Outcome, outcomes: Sequence[Outcome], total: int, elapsed: float) -> str:
    done = len(outcomes)
    left = elapsed / done * (total - done)
    accuracy = f"  test top-1 {outcome.top1:.2%}" if outcome.top1 is not None else ""
    failed = sum(item.status == "failed" for item in outcomes)
    count = f"[{done:>{len(str(total))}}/{total}]"
    head = f"{count} {outcome.status:<8} {outcome.folder.name}{accuracy}  {outcome.seconds:.1f} s"
    tail = f"  (failed {failed}, about {_duration(left)} left)" if done < total else f"  (failed {failed})"
    return head + tail + (f"\n        {outcome.error}" if outcome.error else "")


def _traceback_place(folder: Path) -> Path:
    return folder / (RESULT_FILE if (folder / RESULT_FILE).exists() else LOG_FILE)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _report(jobs: Sequence[Job], settings: Any) -> None:
    """Build the report of the sweep's experiment; a report that cannot be built does not hide the runs."""
    from vitpos.report import build_report

    folder = jobs[0].folder.parent
    if not any(job.folder.joinpath(RESULT_FILE).exists() for job in jobs):
        return
    try:
        build_report(folder, reference=settings.reference, margin=settings.margin)
    except ValueError as error:
        print(f"no report: {error}")
