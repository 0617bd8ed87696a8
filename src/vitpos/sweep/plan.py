"""What a sweep would do, before it costs anything: jobs, their state, an estimate; creates nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from vitpos.sweep.estimate import Estimator
from vitpos.sweep.jobs import Job, State, divide_overrides, state_of
from vitpos.sweep.launcher import Launcher
from vitpos.sweep.overview import duration


def show_plan(jobs: Iterable[Job], launcher: Launcher, estimator: Estimator) -> bool:
    """Print every job with its state and overrides, then counts, what cannot be built, and the time the rest will take.

    Args:
        jobs: looked at as they come, while later ones are still being composed.
        launcher: knows how many run at once.
        estimator: knows what can be built and how long it takes.

    Returns:
        Whether every job can be built.
    """
    listed, waiting, states = list[Job](), list[Job](), dict[str, State]()
    for job in jobs:
        listed.append(job)
        states[job.name] = state_of(job.folder)
        if states[job.name] != "finished":
            estimator.check(job)
            waiting.append(job)
    if not listed:
        print("no jobs")
        return True
    width = max(len(job.name) for job in listed)
    shared, own = divide_overrides(listed)
    print(" ".join([f"{len(listed)} jobs into {listed[0].folder.parent}", *(["with", *shared] if shared else [])]))
    for job in listed:
        print(f"{states[job.name]:<11} {job.name:<{width}}  {own[job.name]}")
    counts = Counter(states.values())
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())), flush=True)
    errors = estimator.errors(waiting)
    for job in waiting:
        if job.name in errors:
            print(f"cannot be built: {job.name}  {own[job.name]}\n    {errors[job.name]}")
    if waiting and not errors:
        at_once = launcher.at_once(waiting)
        seconds, source = estimator.seconds(waiting, [job for job in listed if states[job.name] == "finished"])
        time = "no estimate" if seconds is None else f"about {duration(seconds / at_once)}"
        print(f"{time}: {len(waiting)} jobs, {at_once} at once ({source})")
    return not errors
