"""One row per epoch into `metrics.csv`, kept in the checkpoint so that a resumed run continues its own file."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities import rank_zero_only

from vitpos.record import METRICS_FILE, write_text_atomic


class History(pl.Callback):
    """Collects metrics, learning rate and training time of every epoch.

    Attributes:
        rows: one mapping per finished epoch: epoch, step, lr, train/seconds, train/images, train/loss and all `val/`
            metrics.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[dict[str, float]] = []
        self._started = self._seconds = 0.0
        self._images = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the rows, for the checkpoint."""
        return {"rows": self.rows}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the rows of a checkpoint; later ones in the file were never checkpointed and are dropped."""
        self.rows = list(state_dict["rows"])

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock of the epoch."""
        self._started, self._images = time.perf_counter(), 0

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count images."""
        self._images += len(batch[0]) * trainer.world_size

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop the clock: validation is not training time."""
        if pl_module.device.type == "cuda":
            torch.cuda.synchronize(pl_module.device)
        self._seconds = time.perf_counter() - self._started

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Add the epoch's row and write the file anew."""
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items() if name.startswith("val/")}
        self.rows.append(
            {
                "epoch": trainer.current_epoch,
                "step": trainer.global_step,
                "lr": trainer.optimizers[0].param_groups[0]["lr"],
                "train/seconds": self._seconds,
                "train/images": self._images,
                "train/loss": float(pl_module.train_loss.compute()),  # type: ignore[operator, union-attr]
                **metrics,
            }
        )
        self._write()

    @property
    def train_seconds(self) -> float:
        """Seconds spent on training steps, over all epochs and sessions of the run."""
        return sum(row["train/seconds"] for row in self.rows)

    @property
    def images_per_second(self) -> float | None:
        """Training throughput of the median epoch: the first one warms up, others may be disturbed."""
        rates = sorted(row["train/images"] / row["train/seconds"] for row in self.rows if row["train/seconds"] > 0)
        return rates[len(rates) // 2] if rates else None

    @rank_zero_only  # type: ignore[misc]
    def _write(self) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(self.rows[-1]), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_text_atomic(self.folder / METRICS_FILE, text.getvalue())
