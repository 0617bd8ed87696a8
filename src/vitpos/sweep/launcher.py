"""What a launcher is: it runs the jobs of a sweep somewhere, and the distributed engine is a library."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from vitpos.sweep.execute import Outcome
from vitpos.sweep.jobs import Job


class Launcher(Protocol):
    """Runs jobs in parallel; built from a file in `conf/launcher`."""

    def at_once(self, jobs: Sequence[Job]) -> int:
        """Return how many of the jobs will run at once."""

    def run(self, jobs: Sequence[Job], study: int = 0) -> Iterator[Outcome]:
        """Run the jobs and yield how each ended, in the order in which they end.

        `study` is the number of jobs of the whole sweep, finished ones included: what a job gets of a machine must not
        depend on how many are missing.

        Closing the iterator stops the jobs under way; they can be continued from their checkpoints.
        """


def build_launcher(settings: Mapping[str, Any]) -> Launcher:
    """Return the launcher of a config.

    Raises:
        ValueError: it cannot be built.
    """
    try:
        launcher: Launcher = instantiate(settings)
    except InstantiationException as error:
        raise ValueError(str(error.__cause__ or error)) from error
    return launcher


def import_engine(module: str, extra: str) -> Any:
    """Import a launcher's library.

    Raises:
        ValueError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(f"launcher={extra} needs {module}: pip install 'vitpos[{extra}]'") from error
