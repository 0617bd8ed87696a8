"""Hydra's sweeper of this project: expand, skip what is finished, run the rest, say what happened."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from hydra.utils import instantiate
from omegaconf import DictConfig

from vitpos.sweep.jobs import Job, make_job
from vitpos.sweep.overview import run_jobs
from vitpos.sweep.plan import show_plan

# A sweep has one launcher, one experiment and one folder; these decide about the sweep and cannot differ inside it.
NOT_SWEPT = ("experiment", "launcher", "experiment_name", "output_dir", "plan", "fail_fast")


class ResumableSweeper(Sweeper):
    """Runs the product of all swept settings through `launcher`.

    Args:
        params: inner sweep of an experiment, `{setting: "a,b,c"}`; the command line wins over it.
    """

    config: DictConfig

    def __init__(self, params: dict[str, str | int | float]) -> None:
        self.params = params

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra hands over."""
        self.context, self.config = hydra_context, config

    def sweep(self, arguments: list[str]) -> None:
        """Run all jobs, or list them with `plan=true`; exits with 1 when one failed."""
        jobs = self.jobs(arguments)
        if self.config.plan:
            show_plan(jobs, self.config.launcher)
            return
        launcher = instantiate(self.config.launcher)
        if not run_jobs(jobs, launcher, fail_fast=bool(self.config.fail_fast), report=self.config.report):
            sys.exit(1)

    def jobs(self, arguments: Sequence[str]) -> list[Job]:
        """Compose every job, seeds outermost, so that an interrupted sweep has whole seeds.

        Raises:
            ValueError: a setting that cannot be swept, or a sweep that is not a list of values.
        """
        parser = OverridesParser.create(config_loader=self.context.config_loader)
        texts = [f"{key}={value}" for key, value in self.params.items()] + list(arguments)
        choices: dict[str, list[str]] = {}
        for override in parser.parse_overrides(texts):
            key = override.get_key_element()
            if not override.is_sweep_override():
                choices[key] = [f"{key}={override.get_value_element_as_str()}"]
                continue
            if key in NOT_SWEPT:
                raise ValueError(f"{key} cannot be swept: run one sweep per value")
            if not override.is_discrete_sweep():
                raise ValueError(f"{override.input_line}: give the values as a list, a choice or a range")
            choices[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
        order = sorted(choices, key=lambda key: key != "seed")
        combinations = itertools.product(*(choices[key] for key in order))
        return list({job.name: job for job in map(self._job, combinations)}.values())

    def _job(self, overrides: tuple[str, ...]) -> Job:
        composed = self.context.config_loader.load_sweep_config(self.config, list(overrides))
        with _as_current(composed):
            return make_job(composed, overrides)


@contextlib.contextmanager
def _as_current(composed: DictConfig) -> Iterator[None]:
    """Make a composed config the one that `${hydra:...}` refers to."""
    state = HydraConfig.instance()
    before = state.cfg
    state.set_config(composed)
    try:
        yield
    finally:
        state.cfg = before
