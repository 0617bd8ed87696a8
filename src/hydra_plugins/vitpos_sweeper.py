"""Hydra's sweeper of this project: expand, skip what is finished, run the rest, say what happened."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from vitpos.sweep.estimate import Estimator
from vitpos.sweep.expand import expand
from vitpos.sweep.helper import HelperError
from vitpos.sweep.jobs import Job
from vitpos.sweep.launcher import build_launcher
from vitpos.sweep.overview import run_jobs
from vitpos.sweep.plan import show_plan


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
        """Run all jobs, or list them with `plan=true`; exits with 1 when one failed or cannot be built."""
        try:
            launcher = build_launcher(self.config.launcher)
            if self.config.plan:
                with Estimator() as estimator:
                    fine = show_plan(self._jobs(arguments), launcher, estimator)
            else:
                fail_fast = bool(self.config.fail_fast)
                fine = run_jobs(list(self._jobs(arguments)), launcher, fail_fast=fail_fast, report=self.config.report)
        except (ValueError, HelperError) as error:  # mostly a setting of the user's; Hydra would show a traceback
            sys.exit(str(error))
        except BrokenPipeError:  # the reader of our lines has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except KeyboardInterrupt:
            sys.exit("interrupted; the same command continues from here")
        if not fine:
            sys.exit(1)

    def _jobs(self, arguments: list[str]) -> Iterator[Job]:
        return expand(self.context.config_loader, self.config, self.params, arguments)
