"""An experiment folder as the report sees it: runs with their records, configs and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from vitpos.record import CONFIG_FILE, Problem, Record, read_record, read_records
from vitpos.report.settings import NOT, flatten, is_condition, read_settings


@dataclass(frozen=True)
class Run:
    """One run: its record, and the settings it was trained with.

    Attributes:
        record: what the run says of itself.
        folder: where it lies.
        settings: its resolved config, flat; None if none is stored.
        conditions: dotted setting -> value, as text, of everything but position and seed that can change the result.
    """

    record: Record
    folder: Path
    settings: Mapping[str, str] | None
    conditions: Mapping[str, str]

    @property
    def name(self) -> str:
        """Name of the run and of its folder."""
        return self.record.run

    @property
    def seed(self) -> int:
        """Training seed."""
        return self.record.seed

    @cached_property
    def numbers(self) -> dict[str, str]:
        """The position module's own numbers, flat."""
        return flatten(self.record.position.model_extra or {})

    @property
    def accuracy(self) -> float | None:
        """Test top-1; None for a failed run and for a number that is not finite."""
        return self.metric("test/top1")

    def metric(self, name: str) -> float | None:
        """Return a metric of a finished run, None where it has no such finite number."""
        return self.record.metrics.get(name) if self.record.status == "finished" else None


@dataclass(frozen=True)
class Study:
    """All runs of an experiment, and the folders that are none.

    Attributes:
        name: name of the experiment folder.
        folder: the experiment folder.
        runs: finished and failed runs, by name.
        problems: folders without a believable record.
        parents: run name -> record of the runs that fine-tuned runs started from, where they were found.
    """

    name: str
    folder: Path
    runs: list[Run]
    problems: list[Problem]
    parents: dict[str, Run] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, Run]:
        """Runs by name."""
        return {run.name: run for run in self.runs}

    @property
    def finished(self) -> list[Run]:
        """Runs that finished."""
        return [run for run in self.runs if run.record.status == "finished"]

    @property
    def failed(self) -> list[Run]:
        """Runs that failed."""
        return [run for run in self.runs if run.record.status == "failed"]


def load_study(folder: Path) -> Study:
    """Read every run of an experiment folder, and the parents of its fine-tuned runs from the folders beside it.

    Raises:
        RecordError: the folder does not exist.
    """
    records, problems = read_records(folder)
    runs = [_load_run(record, folder / record.run, problems) for record in records]
    wanted = {run.record.parent.name for run in runs if run.record.parent} - {run.name for run in runs}
    parents = {run.name: run for run in runs}
    for name in sorted(wanted):
        for place in sorted(folder.parent.glob(f"*/{name}")):
            try:
                parents[name] = _load_run(read_record(place), place, problems)
            except ValueError:
                continue
            break
    return Study(folder.name, folder, runs, problems, parents)


def _load_run(record: Record, folder: Path, problems: list[Problem]) -> Run:
    settings = None
    try:
        settings = read_settings(folder)
    except ValueError as error:
        problems.append(Problem(folder, "unreadable", f"{CONFIG_FILE}: {error}"))
    height, width = record.data.image_size
    parent = record.parent
    if settings is None:  # what the record itself repeats of them
        stored = flatten({"model": record.model.model_extra or {}, "data": record.data.model_extra or {}})
    else:
        stored = settings
    conditions = {key: value for key, value in stored.items() if is_condition(key)}
    # What every record says, in one spelling, whether or not the config is stored.
    conditions |= {
        "data_name": record.data.name,
        "model_name": record.model.name,
        "data.image_size": f"{height} x {width}",
        "fine-tuned from": f"{parent.image_size[0]} x {parent.image_size[1]} px" if parent else NOT,
    }
    return Run(record, folder, settings, conditions)
