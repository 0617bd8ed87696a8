"""What a sweep says while it runs and when it ends; readable in a terminal and in a log file."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from vitpos.record import RESULT_FILE
from vitpos.sweep.execute import Outcome
from vitpos.sweep.jobs import Job, divide_overrides, is_locked, state_of
from vitpos.sweep.launcher import Launcher
from vitpos.sweep.process import LOG_FILE
from vitpos.sweep.study import Study, publish_study, track

POLL_SECONDS = 1.0


@dataclass
class Overview:
    """Counts and prints.

    Attributes:
        total: jobs that were not finished at the start.
        at_once: how many run at once.
        outcomes: of the jobs that have ended, busy ones apart.
    """

    total: int
    at_once: int
    outcomes: list[Outcome] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return time.perf_counter() - self.started

    @property
    def left(self) -> float:
        """Estimated seconds until the last job ends: rounds of jobs at once, each as long as the mean job so far."""
        times = [outcome.seconds for outcome in self.outcomes if outcome.seconds] or [0.0]
        rounds = math.ceil((self.total - len(self.outcomes)) / max(1, self.at_once))
        return rounds * sum(times) / len(times)

    def add(self, outcome: Outcome) -> None:
        """Take in one outcome and print its line."""
        self.outcomes.append(outcome)
        done, counts = len(self.outcomes), Counter(item.status for item in self.outcomes)
        place = f"[{done:>{len(str(self.total))}}/{self.total}]"
        accuracy = f"  test top-1 {outcome.top1:.2%}" if outcome.top1 is not None else ""
        state = [f"failed {counts['failed']}"] if counts["failed"] else []
        if done < self.total:
            state += [f"running {min(self.at_once, self.total - done)}", f"about {duration(self.left)} left"]
        tail = f"  ({', '.join(state)})" if state else ""
        print(f"{place} {outcome.status:<8} {outcome.folder.name}{accuracy}  {outcome.seconds:.1f} s{tail}", flush=True)
        if outcome.error:
            print(f"{'':>{len(place)}} {outcome.error}", flush=True)


def run_jobs(jobs: Sequence[Job], launcher: Launcher, fail_fast: bool, report: Any) -> bool:
    """Run what is not finished, print one line per job, then failures and the report.

    A job that another process runs is waited for; when that process dies, the job is continued here.

    Args:
        jobs: all jobs of the sweep, finished ones included.
        launcher: runs jobs.
        fail_fast: stop the sweep at its first failure.
        report: settings of the report: `reference`, `margin`.

    Returns:
        Whether every job is finished.
    """
    if not jobs:
        print("no jobs")
        return True
    todo = []
    for job in jobs:
        if state_of(job.folder) == "finished":
            print(f"skipped   {job.name}  finished before")
        else:
            todo.append(job)
    overview = Overview(len(todo), launcher.at_once(todo) if todo else 0)
    if todo:
        line = track(todo[0].config)
        print(f"{len(todo)} of {len(jobs)} jobs to run, {overview.at_once} at once{line}", flush=True)
        _run(todo, len(jobs), launcher, overview, fail_fast)
    failed = [outcome for outcome in overview.outcomes if outcome.status == "failed"]
    finished = len(jobs) - len(todo) + len(overview.outcomes) - len(failed)
    print(f"\n{finished} of {len(jobs)} jobs finished, {len(failed)} failed, in {duration(overview.seconds)}")
    _, own = divide_overrides(jobs)
    for outcome in failed:
        print(f"failed    {outcome.folder.name}  {own[outcome.folder.name]}")
        print(f"          {outcome.error}")
        places = [place for name in (LOG_FILE, RESULT_FILE) if (place := outcome.folder / name).exists()]
        if places:
            print(f"          traceback: {places[0]}")
    publish_study(Study(jobs, report), send=bool(todo))
    return finished == len(jobs)


def _run(todo: Sequence[Job], study: int, launcher: Launcher, overview: Overview, fail_fast: bool) -> None:
    """Run jobs until all have ended, here or in the processes that hold them."""
    by_name, said = {job.name: job for job in todo}, set()
    while todo:
        busy: list[Job] = []
        running = launcher.run(todo, study)
        for outcome in running:
            if outcome.status == "busy":
                busy.append(by_name[outcome.folder.name])
                if outcome.folder not in said:
                    print(f"waiting   {outcome.folder.name}  another process runs it", flush=True)
                said.add(outcome.folder)
                continue
            overview.add(outcome)
            if outcome.status == "failed" and fail_fast:
                if isinstance(running, Generator):
                    running.close()
                return
        todo = _wait_for(busy, overview)


def _wait_for(busy: list[Job], overview: Overview) -> list[Job]:
    """Wait until other processes have let go of jobs; return those that they left unfinished."""
    left: list[Job] = []
    while busy and not left:
        time.sleep(POLL_SECONDS)
        for job in [job for job in busy if not is_locked(job.folder)]:
            busy.remove(job)
            if state_of(job.folder) == "finished":
                overview.add(Outcome(job.folder, "skipped"))
            else:
                left.append(job)
    return left + busy


def duration(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
