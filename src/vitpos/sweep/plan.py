"""What a sweep would do, before it costs anything: jobs, their state, an estimate; creates nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vitpos.sweep.estimate import Estimator
from vitpos.sweep.jobs import Job, divide_overrides, state_of
from vitpos.sweep.launcher import Launcher
from vitpos.sweep.overview import duration


def show_plan(jobs: Sequence[Job], launcher: Launcher, estimator: Estimator) -> bool:
    """Print every job with its state and overrides, then counts, what cannot be built, and the time the rest will take.

    Returns:
        Whether every job can be built.
    """
    if not jobs:
        print("no jobs")
        return True
    states = {job.name: state_of(job.folder) for job in jobs}
    waiting = [job for job in jobs if states[job.name] != "finished"]
    estimator.ask(waiting, finished=[job for job in jobs if states[job.name] == "finished"])
    width = max(len(job.name) for job in jobs)
    shared, own = divide_overrides(jobs)
    print(" ".join([f"{len(jobs)} jobs into {jobs[0].folder.parent}", *(["with", *shared] if shared else [])]))
    for job in jobs:
        print(f"{states[job.name]:<11} {job.name:<{width}}  {own[job.name]}")
    counts = Counter(states.values())
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())), flush=True)
    errors = estimator.errors(waiting)
    for job in waiting:
        if job.name in errors:
            print(f"cannot be built: {job.name}  {own[job.name]}\n    {errors[job.name]}")
    if waiting and not errors:
        at_once = launcher.at_once(waiting)
        seconds, source = estimator.seconds(waiting)
        time = "no estimate" if seconds is None else f"about {duration(seconds / at_once)}"
        print(f"{time}: {len(waiting)} jobs, {at_once} at once ({source})")
    return not errors
