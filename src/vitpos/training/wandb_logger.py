"""Lightning's W&B logger for runs that matter more than their tracking."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from pytorch_lightning.loggers import WandbLogger
from pytorch_lightning.utilities import rank_zero_only

from vitpos.training.tracking import TolerantRun


@final
class TolerantWandbLogger(WandbLogger):
    """Logs through a `TolerantRun`.

    Args:
        run: opened W&B run.
        folder: where it keeps its files.

    Attributes:
        tracked: the run.
    """

    def __init__(self, run: Any, folder: Path) -> None:
        super().__init__(experiment=run, save_dir=str(folder))
        self.tracked = TolerantRun(run)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log metrics under Lightning's step, which W&B's own step has nothing to do with."""
        self.tracked.attempt(lambda _: super(TolerantWandbLogger, self).log_metrics(metrics, step))

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace) -> None:
        """Log settings."""
        self.tracked.attempt(lambda _: super(TolerantWandbLogger, self).log_hyperparams(params))
