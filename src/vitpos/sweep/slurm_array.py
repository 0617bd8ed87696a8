"""Jobs as a Slurm array, one job per array task, through submitit."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

from vitpos.sweep import worker
from vitpos.sweep.execute import Outcome, record_crash
from vitpos.sweep.jobs import Job
from vitpos.sweep.launcher import import_engine
from vitpos.sweep.places import Share, divide_cores, most_ranks

FOLDER = ".slurm"  # in the experiment's folder; submitit's scripts and logs


@dataclass(frozen=True)
class Task:
    """What an array task runs; a task that is pre-empted, or out of time, is queued again and resumes its job.

    Attributes:
        function: runs a job.
        threads: CPU threads of each process of the job.
    """

    function: Callable[[dict[str, Any], int], Outcome]
    threads: int

    def __call__(self, config: dict[str, Any]) -> Outcome:
        """Run the job from wherever its last checkpoint stands."""
        return self.function(config, self.threads)

    def checkpoint(self, config: dict[str, Any]) -> Any:
        """Return what submitit queues again; the job's own checkpoint is that of its last epoch."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, config)


@final
class SlurmArray:
    """Submits jobs and waits for them; when the waiting process ends, the jobs go on, and a later sweep finds them.

    Args:
        cluster: `slurm`; `local` runs the tasks on this machine, `debug` in this process.
        parallel: array tasks at once.
        partition: of the cluster; empty for its default.
        minutes: time limit of a task; one that reaches it is queued again.
        cpus: per process of a job.
        gpus: per process of a job; 0 asks for none.
        memory_gb: per task; 0 asks for the cluster's default.
        options: further options of `sbatch`, such as `{account: mine, qos: low}`.

    Raises:
        ValueError: a number below what makes sense.
    """

    def __init__(
        self,
        cluster: Literal["slurm", "local", "debug"],
        parallel: int,
        partition: str,
        minutes: int,
        cpus: int,
        gpus: int,
        memory_gb: float,
        options: Mapping[str, Any],
    ) -> None:
        least = {"parallel": (parallel, 1), "minutes": (minutes, 1), "cpus": (cpus, 1), "gpus": (gpus, 0)}
        for name, (value, limit) in least.items():
            if value < limit:
                raise ValueError(f"launcher.{name}={value}: must be at least {limit}")
        self.cluster, self.parallel, self.partition = cluster, parallel, partition
        self.minutes, self.cpus, self.gpus = minutes, cpus, gpus
        self.memory_gb, self.options = memory_gb, dict(options)

    def at_once(self, jobs: Sequence[Job]) -> int:
        """Return how many of the jobs will run at once, if the cluster has room."""
        return max(1, min(self.parallel, len(jobs)))

    def run(self, jobs: Sequence[Job], study: int = 0) -> Iterator[Outcome]:
        """Submit the jobs and yield how each ended.

        Raises:
            ValueError: this machine cannot submit to Slurm.
        """
        ranks = most_ranks(jobs)
        share = Share(1, *divide_cores(jobs, self.cpus * ranks, on_gpu=self.gpus > 0))
        executor = self._executor(jobs[0], ranks)
        task = Task(worker.work, share.threads)
        waiting = dict(zip(executor.map_array(task, [share.config(job) for job in jobs]), jobs, strict=True))
        try:
            while waiting:
                for submitted in [submitted for submitted in waiting if submitted.done()]:
                    job = waiting.pop(submitted)
                    yield _outcome(submitted, job)
                if waiting:
                    time.sleep(5 if self.cluster == "slurm" else 0.2)
        finally:
            for submitted in waiting:
                with contextlib.suppress(Exception):
                    submitted.cancel()

    def _executor(self, job: Job, ranks: int) -> Any:
        submitit = import_engine("submitit", "slurm")
        try:
            executor = submitit.AutoExecutor(folder=job.folder.parent / FOLDER, cluster=self.cluster)
        except RuntimeError as error:
            raise ValueError(f"launcher.cluster={self.cluster}: {error}") from error
        settings: dict[str, Any] = {
            "name": str(job.config["experiment_name"]),
            "timeout_min": self.minutes,
            "nodes": 1,
            "tasks_per_node": 1,
            "cpus_per_task": self.cpus * ranks,
            "slurm_array_parallelism": self.parallel,
            "slurm_additional_parameters": self.options,
        }
        if self.gpus:
            settings["gpus_per_node"] = self.gpus * ranks
        if self.memory_gb:
            settings["mem_gb"] = self.memory_gb
        if self.partition:
            settings["slurm_partition"] = self.partition
        executor.update_parameters(**settings)
        return executor


def _outcome(submitted: Any, job: Job) -> Outcome:
    try:
        outcome: Outcome = submitted.result()
    except Exception as error:  # killed, out of memory, cancelled by somebody
        lines = [line for line in str(error).splitlines() if line.strip()]
        message = f"array task {submitted.job_id} died: {lines[-1] if lines else type(error).__name__}"
        return record_crash(job.config, message)
    return outcome
