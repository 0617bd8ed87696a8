"""How the jobs of a sweep are spread over a machine or a cluster; the distributed engines are libraries."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from vitpos.sweep.execute import Outcome, die_with_parent, execute, ranks_of
from vitpos.sweep.jobs import Job

Launcher = Callable[[Sequence[Job]], Iterator[Outcome]]
MAX_CRASHES = 2  # a job that takes its worker down twice has failed; once may have been its neighbour's fault

_slot: FileLock | None = None  # the GPUs this worker process owns, for as long as it lives


def visible_gpus() -> list[str]:
    """Return the ids of the GPUs this process may use, without starting CUDA (workers must pin before they do)."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name for name in given.split(",") if name.strip()]
    import torch

    return [str(index) for index in range(torch.cuda.device_count())]  # asks NVML, creates no context


def slots(gpus: Sequence[str], ranks: int) -> list[list[str]]:
    """Return disjoint GPU sets of `ranks` devices each."""
    return [list(gpus[start : start + ranks]) for start in range(0, len(gpus) - ranks + 1, ranks)]


def joblib_pool(jobs_list: Sequence[Job], *, jobs: int = 0) -> Iterator[Outcome]:
    """Run jobs in parallel worker processes of this machine; results come in the order in which jobs end.

    A worker keeps its GPU set and serves several jobs, so that libraries are imported once. When a worker is killed (no
    memory, a crash in native code), the pool is started again and unfinished jobs go on from their checkpoints.

    Args:
        jobs_list: what to run.
        jobs: jobs at once; 0 takes one per GPU set, or one per core without a GPU.

    Raises:
        ValueError: more ranks asked for than the machine has GPUs.
    """
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    waiting = {job.name: job for job in jobs_list}
    crashes: dict[str, int] = dict.fromkeys(waiting, 0)
    at_once, threads, places = plan_slots(jobs_list, jobs)
    while waiting:
        pool = Parallel(n_jobs=at_once, batch_size=1, pre_dispatch=at_once, return_as="generator_unordered")
        try:
            with parallel_config(backend="loky", inner_max_num_threads=threads):
                for outcome in pool(delayed(in_worker)(job.config, threads, places) for job in list(waiting.values())):
                    del waiting[outcome.folder.name]
                    yield outcome
        except TerminatedWorkerError as error:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True, kill_workers=True)
            first_line = str(error).splitlines()[0]
            for name in itertools.islice(list(waiting), at_once):  # dispatched in order: these were under way
                crashes[name] += 1
                if crashes[name] >= MAX_CRASHES:
                    job = waiting.pop(name)
                    yield Outcome(job.folder, "failed", error=f"worker process died: {first_line}")


def plan_slots(jobs_list: Sequence[Job], jobs: int) -> tuple[int, int, list[list[str]]]:
    """Return (jobs at once, CPU threads per job, GPU sets) for this machine.

    Raises:
        ValueError: more ranks asked for than the machine has GPUs.
    """
    cores = len(os.sched_getaffinity(0))
    ranks = max((ranks_of(job.config) for job in jobs_list), default=1)
    on_cpu = all(job.config["trainer"]["accelerator"] == "cpu" for job in jobs_list)
    gpus = [] if on_cpu else visible_gpus()
    if gpus and len(gpus) < ranks:
        raise ValueError(f"trainer.devices={ranks}: this machine offers {len(gpus)} GPU(s)")
    places = slots(gpus, ranks) if gpus else []
    at_once = min(jobs or len(places) or max(1, cores // ranks), max(1, len(jobs_list)))
    if places:
        at_once = min(at_once, len(places))
    workers = max((int(job.config["data"].get("num_workers", 0)) for job in jobs_list), default=0)
    return at_once, max(1, cores // at_once - workers * ranks), places


def in_worker(config: dict[str, Any], threads: int, places: list[list[str]]) -> Outcome:
    """Run one job in a pool's worker, on the GPUs that this worker owns."""
    global _slot  # noqa: PLW0603  a process owns its GPUs for life, across jobs
    if _slot is None and places:
        _slot = claim(Path(config["output_dir"]) / ".devices", places)
    die_with_parent()
    return execute(config, threads)


def claim(folder: Path, places: Sequence[Sequence[str]]) -> FileLock:
    """Take a GPU set that no living process of this output folder's sweeps holds, and show this process only that one.

    Raises:
        RuntimeError: all sets are taken.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for place in places:
        lock = FileLock(folder / f"{'-'.join(place)}.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(place)
        return lock
    raise RuntimeError(f"all GPU sets are in use: {[','.join(place) for place in places]}")
