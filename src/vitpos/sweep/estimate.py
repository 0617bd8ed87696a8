"""How long jobs will take, and which cannot be built: from finished siblings, else from a helper process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from statistics import median
from types import TracebackType
from typing import Any, Self

from vitpos.record import read_record
from vitpos.sweep.helper import HelperError, start_helper
from vitpos.sweep.jobs import Job

# Parts of a config on which it depends whether a job can be built; jobs that differ in others share one look.
BUILDING = ("position", "model", "data", "optim", "callbacks", "fewshot", "logger")


class Estimator:
    """Asks a helper process about jobs.

    Time per job is the median of finished siblings: same model, data, epochs and processes, and the same position
    module where one has finished. Without a sibling, a few steps are measured.
    """

    def __init__(self) -> None:
        self._helper = start_helper()
        self._errors: dict[str, Future[str]] = {}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the helper."""
        self._helper.end()
        start_helper.cache_clear()

    def check(self, job: Job) -> None:
        """Start to find out whether a job can be built."""
        if (building := _building(job.config)) not in self._errors:
            self._errors[building] = self._helper.ask("probe", job.config)

    def errors(self, jobs: Sequence[Job]) -> dict[str, str]:
        """Return why jobs that were given to `check` cannot be built, by name; waits for the helper.

        Raises:
            HelperError: it has ended.
        """
        return {job.name: error for job in jobs if (error := self._errors[_building(job.config)].result())}

    def seconds(self, waiting: Sequence[Job], finished: Sequence[Job]) -> tuple[float | None, str]:
        """Return the time of all waiting jobs one after the other, and where it is from; None if it cannot be known."""
        siblings: dict[str, list[float]] = {}
        for job in finished:
            if cost := _seconds(job):
                for kind in (_kind(job.config), _arm(job.config)):
                    siblings.setdefault(kind, []).append(cost)
        measured: dict[str, Future[float | None]] = {}
        for job in waiting:
            kind = _kind(job.config)
            if kind not in siblings and kind not in measured:
                measured[kind] = self._helper.ask("measure", job.config)
        total, runs = 0.0, 0
        for job in waiting:
            kind = _kind(job.config)
            if known := siblings.get(_arm(job.config)) or siblings.get(kind):
                total += median(known)
                runs = max(runs, len(known))
                continue
            try:
                seconds = measured[kind].result()
            except HelperError as error:
                return None, str(error)
            if seconds is None:
                return None, "the data set is not on this machine yet"
            total += seconds
        return total, f"from {runs} finished runs" if runs else "training alone, from a few steps measured now"


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
