"""How a machine is shared by the jobs that run on it at once: cores and GPUs."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from vitpos.sweep.jobs import Job
from vitpos.sweep.ranks import ranks_of

Place = tuple[str, ...]  # ids of the GPUs that one job sees
DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA, WSL, AMD


@dataclass(frozen=True)
class Share:
    """What each of the jobs that run at once gets.

    Attributes:
        at_once: number of jobs.
        threads: CPU threads of each process of a job.
        workers: what `data.num_workers=auto` means, for each process of a job.
        places: GPU sets, one per job at once; none without GPUs.
    """

    at_once: int
    threads: int
    workers: int = 1
    places: tuple[Place, ...] = ()

    def config(self, job: Job) -> dict[str, Any]:
        """Return a job's config with loader workers counted; left to itself, a job takes all cores for them."""
        data = job.config["data"]
        if data.get("num_workers") != "auto":
            return job.config
        return {**job.config, "data": {**data, "num_workers": self.workers}}


def usable_cores() -> int:
    """Return how many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def visible_gpus() -> list[str]:
    """Return the ids of the GPUs this process may use, without starting CUDA (workers must pin before they do)."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name.strip() for name in given.split(",") if name.strip()]
    if sys.platform == "linux" and not any(Path(driver).exists() for driver in DRIVERS):
        return []  # no driver: spare the seconds that importing PyTorch takes
    import torch

    return [str(index) for index in range(torch.cuda.device_count())]  # asks NVML, creates no context


def gpu_sets(gpus: Sequence[str], ranks: int, per_set: int = 1) -> tuple[Place, ...]:
    """Return disjoint sets of `ranks` GPUs, each listed `per_set` times."""
    sets = [tuple(gpus[start : start + ranks]) for start in range(0, len(gpus) - ranks + 1, ranks)]
    return tuple(place for _ in range(per_set) for place in sets)


def share_machine(jobs: Sequence[Job], at_once: int = 0, per_gpu: int = 1, study: int = 0) -> Share:
    """Divide this machine among jobs.

    n jobs at once on c cores get c/n cores each, for the threads of their processes and their loader workers together.
    `OMP_NUM_THREADS` wins where it is set.

    Args:
        jobs: all that will run.
        at_once: jobs at once; 0 takes one per GPU set, or one per core (and process of a job) without a GPU.
        per_gpu: jobs that share a GPU set.
        study: number of jobs of the whole sweep, finished ones included. A last missing job gets the threads it would
            have had among them: more would sum in another order and change its result in the last digits.

    Raises:
        ValueError: more ranks asked for than the machine has GPUs.
    """
    cores = usable_cores()
    ranks = most_ranks(jobs)
    on_cpu = all(job.config["trainer"]["accelerator"] == "cpu" for job in jobs)
    gpus = [] if on_cpu else visible_gpus()
    if gpus and len(gpus) < ranks:
        raise ValueError(f"trainer.devices={ranks}: this machine offers {len(gpus)} GPU(s)")
    places = gpu_sets(gpus, ranks, per_gpu) if gpus else ()
    wanted = at_once or len(places) or max(1, cores // ranks)
    wanted = min(wanted, len(places) or wanted, max(1, study, len(jobs)))
    return Share(min(wanted, max(1, len(jobs))), *divide_cores(jobs, cores // wanted, on_gpu=bool(places)), places)


def most_ranks(jobs: Sequence[Job]) -> int:
    """Return the largest number of processes that a job asks for."""
    return max((ranks_of(job.config) for job in jobs), default=1)


def divide_cores(jobs: Sequence[Job], cores: int, on_gpu: bool) -> tuple[int, int]:
    """Return (CPU threads, loader workers meant by `auto`) of each process of a job that has `cores` cores."""
    each = max(1, cores // most_ranks(jobs))
    counts = [job.config["data"].get("num_workers", 0) for job in jobs]
    # A GPU's host thread only starts kernels; reading images is what needs the cores then.
    workers = max(1, each - 1 if on_gpu else each // 2)
    threads = max(1, each - max((workers if count == "auto" else int(count) for count in counts), default=0))
    given = os.environ.get("OMP_NUM_THREADS", "")
    return (int(given) if given.isdigit() and int(given) else threads), workers


def claim(folder: Path, places: Sequence[Place]) -> FileLock:
    """Take a GPU set that no living process of this output folder's sweeps holds, and show this process only that one.

    Waits while all are taken, by another sweep or by a worker that is about to end.

    Returns:
        The lock; the set is held as long as this object and its process live.
    """
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        for index, place in enumerate(places):
            name = "-".join((platform.node(), *place, str(list(places[:index]).count(place))))
            lock = FileLock(folder / f"{name.replace('/', '_')}.lock")
            try:
                lock.acquire(blocking=False)
            except Timeout:
                continue
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(place)
            return lock
        time.sleep(1)
