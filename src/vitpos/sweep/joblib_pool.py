"""Jobs in worker processes of this machine, through joblib's process pool."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, final

from joblib.externals.loky import ProcessPoolExecutor

from vitpos.sweep import worker
from vitpos.sweep.execute import Outcome
from vitpos.sweep.jobs import Job
from vitpos.sweep.places import Share, share_machine

MAX_CRASHES = 2  # a job that takes its worker down twice has failed; once may have been the machine's fault


@final
class JoblibPool:
    """Keeps one worker process per job at once, each with its GPU set and its share of the cores.

    A worker serves many jobs, so that libraries are imported once. It is a pool of its own: when it is killed (no
    memory, a crash in native code), its neighbours go on, and its job is tried once more from its last checkpoint.

    Args:
        jobs: jobs at once; 0 takes one per GPU set, or one per core without a GPU.
        jobs_per_gpu: jobs that share a GPU set.

    Raises:
        ValueError: a number below what makes sense.
    """

    def __init__(self, jobs: int, jobs_per_gpu: int) -> None:
        for name, value, least in (("jobs", jobs, 0), ("jobs_per_gpu", jobs_per_gpu, 1)):
            if value < least:
                raise ValueError(f"launcher.{name}={value}: must be at least {least}")
        self.jobs, self.jobs_per_gpu = jobs, jobs_per_gpu

    def at_once(self, jobs: Sequence[Job]) -> int:
        """Return how many of the jobs will run at once."""
        return self._share(jobs).at_once

    def run(self, jobs: Sequence[Job], study: int = 0) -> Iterator[Outcome]:
        """Run the jobs and yield how each ended."""
        share, waiting, crashes = self._share(jobs, study), deque(jobs), Counter[str]()
        pools: list[ProcessPoolExecutor | None] = [None] * share.at_once
        running: dict[Future[Outcome], tuple[int, Job]] = {}

        def submit(slot: int, function: Any, job: Job, argument: Any) -> None:
            for pool in (pools[slot], None):  # a worker killed between two jobs is replaced
                pools[slot] = pool or _start_worker(job, share)
                try:
                    future = pools[slot].submit(function, share.config(job), argument)  # type: ignore[union-attr]
                except BrokenProcessPool:
                    _end(pools[slot])
                    continue
                running[future] = slot, job
                return
            raise RuntimeError("worker processes cannot be started")

        try:
            while waiting or running:
                busy = {slot for slot, _ in running.values()}
                for slot in range(share.at_once):
                    if waiting and slot not in busy:
                        submit(slot, worker.work, waiting.popleft(), share.threads)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    slot, job = running.pop(future)
                    try:
                        yield future.result()
                        continue
                    except BrokenProcessPool as error:
                        message = _reason(error)
                    _end(pools[slot])
                    pools[slot] = None
                    crashes[job.name] += 1
                    if crashes[job.name] < MAX_CRASHES:
                        waiting.appendleft(job)
                    elif crashes[job.name] == MAX_CRASHES:
                        submit(slot, worker.crashed, job, message)
                    else:
                        yield Outcome(job.folder, "failed", error=message)
        finally:
            for pool in pools:
                _end(pool, kill=bool(running))

    def _share(self, jobs: Sequence[Job], study: int = 0) -> Share:
        return share_machine(jobs, self.jobs, self.jobs_per_gpu, study)


def _reason(error: BrokenProcessPool) -> str:
    """Return what joblib knows of a worker's end, for example "worker process died: SIGKILL(-9)"."""
    codes = re.search(r"exit codes of the workers are \{(.*?)\}", str(error))
    return f"worker process died: {codes[1] if codes else str(error).strip().splitlines()[0]}"


def _start_worker(job: Job, share: Share) -> ProcessPoolExecutor:
    threads = str(share.threads)
    return ProcessPoolExecutor(
        max_workers=1,
        initializer=worker.start,
        initargs=(job.config["output_dir"], share.places),
        # Before the worker imports anything that starts threads.
        env={"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
    )


def _end(pool: ProcessPoolExecutor | None, kill: bool = False) -> None:
    if pool is not None:
        pool.shutdown(wait=True, kill_workers=kill)
