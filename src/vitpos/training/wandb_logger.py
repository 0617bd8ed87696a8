"""Lightning's W&B logger for runs that matter more than their tracking."""

from __future__ import annotations

import contextlib
import logging
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any, final

import wandb
from pytorch_lightning.loggers import WandbLogger
from pytorch_lightning.utilities import rank_zero_only

from vitpos.training.tracking import FINISH_TIMEOUT, mark_unsent

log = logging.getLogger(__name__)


@final
class TolerantWandbLogger(WandbLogger):
    """Logs until W&B fails, says so once, and lets the run go on: records and figures lie on disk anyway.

    Attributes:
        lost: whether W&B has failed; nothing is sent to it any more.
    """

    lost = False

    def attempt(self, action: Callable[[Any], object]) -> None:
        """Do something with the W&B run, unless W&B has failed before or does so now."""
        if self.lost:
            return
        try:
            action(self.experiment)
        except Exception as error:  # whatever its service, its server or its disk may do
            self._lose(error)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log metrics under Lightning's step, which W&B's own step has nothing to do with."""
        self.attempt(lambda _: super(TolerantWandbLogger, self).log_metrics(metrics, step))

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace) -> None:
        """Log settings."""
        self.attempt(lambda _: super(TolerantWandbLogger, self).log_hyperparams(params))

    def close(self, failed: bool) -> None:
        """End the W&B run; what could not be sent in time is left to `make sync`."""
        started = time.monotonic()
        try:
            self.experiment.finish(exit_code=int(failed))
        except Exception as error:
            self._lose(error)
            # Its service is gone: forget it, so that the next run of this process gets a new one.
            with contextlib.suppress(Exception, SystemExit):
                wandb.teardown()
        if not self.experiment.offline and (self.lost or time.monotonic() - started >= FINISH_TIMEOUT):
            mark_unsent(self.experiment)
            log.warning("W&B has not received everything; `make sync` sends it again")

    def _lose(self, error: Exception) -> None:
        if not self.lost:
            reason = " ".join(str(error).split()) or type(error).__name__
            log.warning("W&B has failed (%s); the run goes on without it, its results are on disk", reason)
        self.lost = True
