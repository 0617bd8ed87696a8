"""Jobs as Ray tasks: several GPUs in one machine, whole or in fractions, or a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, final

from vitpos.sweep import worker
from vitpos.sweep.execute import Outcome
from vitpos.sweep.jobs import Job
from vitpos.sweep.launcher import import_engine
from vitpos.sweep.places import Share, divide_cores, most_ranks, usable_cores, visible_gpus

RETRIES = 1  # a job that takes its worker down twice has failed; once may have been the machine's fault


@final
class RayTasks:
    """Lets Ray place jobs by the cores and GPUs they ask for, and pin them to those.

    On a cluster all machines need this project, and the output folder, at the same paths.

    Args:
        address: of a Ray cluster; empty starts Ray on this machine for the time of the sweep.
        gpus: per process of a job; a fraction lets jobs share a GPU; `auto` takes one where there are GPUs.
        cpus: per process of a job; 0 divides the cores by the GPUs, or takes one without GPUs.

    Raises:
        ValueError: a number below zero.
    """

    def __init__(self, address: str, gpus: float | Literal["auto"], cpus: int) -> None:
        for name, value in (("gpus", gpus), ("cpus", cpus)):
            if value != "auto" and float(value) < 0:
                raise ValueError(f"launcher.{name}={value}: must not be negative")
        self.address, self.gpus, self.cpus = address, gpus, cpus

    def at_once(self, jobs: Sequence[Job]) -> int:
        """Return how many of the jobs will run at once; asks the cluster if there is one."""
        cpus, gpus = self._needs(jobs, *self._resources())
        all_cpus, all_gpus = self._resources()
        places = min([int(all_cpus / cpus), *([int(all_gpus / gpus + 1e-6)] if gpus else [])])
        return max(1, min(places, len(jobs)))

    def run(self, jobs: Sequence[Job], study: int = 0) -> Iterator[Outcome]:
        """Run the jobs and yield how each ended."""
        ray = self._connect()
        try:
            cpus, gpus = self._needs(jobs, *self._resources())
            share = Share(1, *divide_cores(jobs, cpus, on_gpu=gpus > 0))
            task = ray.remote(_task).options(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)
            setup = (os.getcwd(), _environment(share.threads))  # noqa: PTH109  as text
            running = {task.remote(worker.work, *setup, share.config(job), share.threads): job for job in jobs}
            crashed: set[str] = set()
            while running:
                (done, *_), _ = ray.wait(list(running), num_returns=1)
                job = running.pop(done)
                try:
                    yield ray.get(done)
                    continue
                except ray.exceptions.RayError as error:
                    message = f"worker process died: {' '.join(str(error).split('.')[0].split())}"
                if job.name in crashed:
                    yield Outcome(job.folder, "failed", error=message)
                    continue
                crashed.add(job.name)
                running[task.remote(worker.crashed, *setup, share.config(job), message)] = job
        finally:
            ray.shutdown()

    def _connect(self) -> Any:
        """Return Ray's module, with a cluster to use."""
        ray = import_engine("ray", "ray")
        if ray.is_initialized():
            return ray
        # A tool that phones home from a machine without a network waits for it.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if self.address:
            ray.init(address=self.address, **quiet)
        else:
            cpus, gpus = usable_cores(), len(visible_gpus())
            ray.init(address="local", num_cpus=cpus, num_gpus=gpus, include_dashboard=False, **quiet)
        return ray

    def _resources(self) -> tuple[float, float]:
        """Return (CPU cores, GPUs) to share."""
        if not self.address:
            return float(usable_cores()), float(len(visible_gpus()))
        found = self._connect().cluster_resources()
        return found.get("CPU", 1.0), found.get("GPU", 0.0)

    def _needs(self, jobs: Sequence[Job], all_cpus: float, all_gpus: float) -> tuple[int, float]:
        """Return the (CPU cores, GPUs) that one job asks for.

        Raises:
            ValueError: more than there is, or a fraction of a GPU for a job of several processes.
        """
        ranks = most_ranks(jobs)
        on_cpu = all(job.config["trainer"]["accelerator"] == "cpu" for job in jobs)
        each = (0.0 if on_cpu or not all_gpus else 1.0) if self.gpus == "auto" else float(self.gpus)
        if ranks > 1 and each != int(each):
            raise ValueError(f"launcher.gpus={each:g} with trainer.devices={ranks}: processes of a job need whole GPUs")
        gpus = each * ranks
        cpus = self.cpus * ranks or (max(1, int(all_cpus * gpus / all_gpus)) if gpus and all_gpus else ranks)
        if cpus > all_cpus or gpus > all_gpus:
            raise ValueError(
                f"a job asks for {cpus} cores and {gpus:g} GPUs (launcher.cpus, launcher.gpus, trainer.devices); "
                f"there are {all_cpus:g} and {all_gpus:g}"
            )
        return cpus, gpus


def _environment(threads: int) -> dict[str, str]:
    """Return what a worker on another machine has to know of this process's environment."""
    ours = {name: value for name, value in os.environ.items() if name.startswith("WANDB_")}
    return ours | {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


def _task(
    function: Callable[..., Outcome], folder: str, environment: dict[str, str], config: dict[str, Any], argument: Any
) -> Outcome:
    os.environ.update(environment)
    if Path(folder).is_dir():
        os.chdir(folder)  # relative paths in a config mean what they mean to the user
    return function(config, argument)
