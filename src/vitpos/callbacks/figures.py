"""Draw a run's position module at chosen epochs, and its history at the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytorch_lightning as pl
from pytorch_lightning.loggers import WandbLogger

from vitpos.evaluation.portrait import FIGURE, READING, Drawing, draw_panels, draw_position
from vitpos.evaluation.similarity import EXPLANATION, MEANING, nothing_to_draw
from vitpos.training.task import ClassificationTask

log = logging.getLogger(__name__)


class PositionFigures(pl.Callback):
    """Write `figures/` of a run folder, and send the same images to Weights & Biases under `figures/...`.

    `similarity.png` (or `kernel.png`, for modules that act inside attention) shows the weights after the last epoch,
    `similarity_epoch005.png` those after five, `similarity_history.png` all drawn epochs as a strip. Each comes as PNG,
    SVG and .npz. Only rank 0 draws, from its own weights, without the global random stream, so training goes on as if
    nothing had been drawn. A module that tells no two patches apart gets no figure but a line in the log.

    Args:
        folder: the run folder.
        epochs: completed epochs to draw at; 0 is before training.

    Raises:
        ValueError: an epoch below 0.
    """

    def __init__(self, folder: Path, epochs: Sequence[int]) -> None:
        self.folder = folder / "figures"
        self.epochs = sorted({int(epoch) for epoch in epochs})
        if self.epochs and self.epochs[0] < 0:
            raise ValueError(f"callbacks.figures.epochs={self.epochs}: epochs count from 0 (before training)")

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Draw the initial weights, unless an earlier session of the run has."""
        if 0 in self.epochs and trainer.current_epoch == 0:
            self._draw(trainer, pl_module, 0, "_epoch000")

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Draw a chosen epoch; the last one is left to `on_train_end`."""
        done = trainer.current_epoch + 1
        if done in self.epochs and done != trainer.max_epochs:
            self._draw(trainer, pl_module, done, f"_epoch{done:03d}")

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Draw the final weights and the strip over epochs."""
        self._draw(trainer, pl_module, trainer.current_epoch, "")

    def _draw(self, trainer: pl.Trainer, module: pl.LightningModule, epoch: int, suffix: str) -> None:
        if not trainer.is_global_zero:
            return
        assert isinstance(module, ClassificationTask)
        position, settings = module.model.position, module.settings
        caption = (
            f"{position.label}, injection {position.injection}; seed {module.seed}; {epoch} of {trainer.max_epochs} "
            f"epochs; learning rate {settings.lr:g}, weight decay {settings.weight_decay:g}."
        )
        try:
            drawings = draw_position(position, caption)
            if not suffix:
                drawings |= self._history(position.label, epoch, caption, drawings)
            for name, drawing in drawings.items():
                picture = drawing.save(self.folder / f"{name}{suffix}")[0]
                self._send(trainer, name, picture, caption)
        except Exception:
            # A night of training is worth more than a picture of it.
            log.exception("figures of epoch %d could not be drawn; training goes on", epoch)
            return
        if not drawings:
            log.info("%s", nothing_to_draw(position))

    def _history(self, label: str, epoch: int, caption: str, final: dict[str, Drawing]) -> dict[str, Drawing]:
        """Return the strip of each kind of map over the epochs drawn, from the numbers stored beside the figures."""
        strips: dict[str, Drawing] = {}
        for kind, name in FIGURE.items():
            if name not in final:
                continue
            panels, where = [], str(np.asarray(final[name].arrays["names"])[0])
            for drawn in self.epochs:
                path = self.folder / f"{name}_epoch{drawn:03d}.npz"
                if drawn < epoch and path.exists():
                    with np.load(path) as stored:
                        panels.append((f"epoch {drawn}", stored["tiles"][0]))
            panels.append((f"epoch {epoch}", np.asarray(final[name].arrays["tiles"])[0]))
            if len(panels) > 1:
                names, tiles = zip(*panels, strict=True)
                title = f"{label}: {MEANING[kind]} over training, {where}"
                about = f"{READING} {EXPLANATION[kind]} {caption}"
                strips[f"{name}_history"] = draw_panels(kind, names, np.stack(tiles), title, about, per_row=len(names))
        return strips

    @staticmethod
    def _send(trainer: pl.Trainer, name: str, picture: Path, caption: str) -> None:
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                # Lightning logs this number as `trainer/global_step`, the x-axis; W&B's own step is never passed.
                step = trainer.global_step
                logger.log_image(f"figures/{name}", [str(picture)], step=step, caption=[caption])
