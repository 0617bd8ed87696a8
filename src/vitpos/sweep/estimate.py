"""How long jobs will take, and which cannot be built: from finished siblings, else from a helper process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from statistics import median
from types import TracebackType
from typing import Any, Self

from joblib.externals.loky import ProcessPoolExecutor

from vitpos.record import read_record
from vitpos.sweep.jobs import Job
from vitpos.sweep.process import die_with_parent

# Parts of a config on which it depends whether a job can be built; jobs that differ in others share one look.
BUILDING = ("position", "model", "data", "optim", "callbacks", "fewshot", "logger")


@dataclass(frozen=True)
class Finding:
    """What the helper found of one job; defined here, so that receiving it does not import what the helper needs.

    Attributes:
        error: why it cannot be built; empty if it can.
        seconds: estimated training time; None if not asked for, or if the data set is not on this machine yet.
    """

    error: str = ""
    seconds: float | None = None


class Estimator:
    """Asks a helper process about jobs. PyTorch takes seconds to import, so the helper starts before jobs are known.

    Time per job is the median of finished siblings: same model, data, epochs and processes, and the same position
    module where one has finished. Without a sibling, a few steps are measured.
    """

    def __init__(self) -> None:
        threads = os.environ.get("OMP_NUM_THREADS", "1")
        self._pool = ProcessPoolExecutor(max_workers=1, initializer=die_with_parent, env={"OMP_NUM_THREADS": threads})
        self._siblings: dict[str, list[float]] = {}
        self._asked: dict[str, Future[Finding]] = {}
        self._measured: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Start the helper."""
        self._pool.submit(_warm_up)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the helper, whatever it is doing."""
        self._pool.shutdown(wait=True, kill_workers=True)

    def ask(self, waiting: Sequence[Job], finished: Sequence[Job]) -> None:
        """Start to find out about the jobs that wait; finished ones answer for their siblings."""
        for job in finished:
            cost = _seconds(job)
            for kind in (_kind(job.config), _arm(job.config)):
                self._siblings.setdefault(kind, []).extend([cost] if cost else [])
        for job in waiting:
            arm, kind = _building(job.config), _kind(job.config)
            if arm not in self._asked:
                measure = kind not in self._siblings and kind not in self._measured
                if measure:
                    self._measured[kind] = arm
                self._asked[arm] = self._pool.submit(_probe, job.config, measure)

    def errors(self, waiting: Sequence[Job]) -> dict[str, str]:
        """Return why jobs cannot be built, by name; waits for the helper."""
        found = {arm: future.result().error for arm, future in self._asked.items()}
        return {job.name: error for job in waiting if (error := found[_building(job.config)])}

    def seconds(self, waiting: Sequence[Job]) -> tuple[float | None, str]:
        """Return the time of all jobs one after the other, and where it is from; None if it cannot be known."""
        total, runs = 0.0, 0
        for job in waiting:
            arm, kind = _arm(job.config), _kind(job.config)
            siblings = self._siblings.get(arm) or self._siblings.get(kind)
            if siblings:
                total += median(siblings)
                runs = max(runs, len(siblings))
                continue
            measured = self._asked[self._measured[kind]].result().seconds if kind in self._measured else None
            if measured is None:
                return None, "the data set is not on this machine yet"
            total += measured
        return total, f"from {runs} finished runs" if runs else "training alone, from a few steps measured now"


def _warm_up() -> None:
    from vitpos.sweep.probe import warm_up

    warm_up()


def _probe(config: dict[str, Any], measure: bool) -> Finding:
    from vitpos.sweep.probe import probe

    return probe(config, measure)


def _building(config: Mapping[str, Any]) -> str:
    return repr([config[key] for key in BUILDING] + [config["trainer"]["devices"]])


def _kind(config: Mapping[str, Any]) -> str:
    """Return what decides how long a job takes, the position module apart."""
    keys = ("model", "data")
    return repr([config[key] for key in keys] + [config["trainer"]["max_epochs"], config["trainer"]["devices"]])


def _arm(config: Mapping[str, Any]) -> str:
    return _kind(config) + repr(config["position"])


def _seconds(job: Job) -> float | None:
    record = read_record(job.folder)
    if record.cost is None or record.cost.train_seconds is None:
        return None
    return record.cost.train_seconds + float(record.diagnostics.get("evaluation_seconds") or 0.0)
