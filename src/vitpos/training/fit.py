"""Train a network to the end of its schedule, from wherever its last checkpoint stands."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from hydra.utils import instantiate
from pytorch_lightning.callbacks import EMAWeightAveraging, ModelCheckpoint, RichProgressBar
from pytorch_lightning.loggers import Logger
from pytorch_lightning.plugins.environments import LightningEnvironment  # type: ignore[attr-defined]
from pytorch_lightning.strategies import DDPStrategy

from vitpos.callbacks.history import History
from vitpos.data.base import ImageData, Loader
from vitpos.training.allocator import keep_freed_memory
from vitpos.training.atomic import AtomicCheckpointIO
from vitpos.training.machine import pick_precision
from vitpos.training.task import ClassificationTask

CHECKPOINTS = "checkpoints"
# What it says of devices stands in the record; the rest are advertisements.
logging.getLogger("pytorch_lightning.utilities.rank_zero").setLevel(logging.WARNING)


def fit(
    config: Mapping[str, Any], folder: Path, task: ClassificationTask, data: ImageData, logger: Logger | None
) -> tuple[History, ModelCheckpoint, bool]:
    """Train `task`; afterwards `checkpoints/best.ckpt` holds the epoch with the highest validation top-1.

    Returns:
        The history, the callback that keeps the best checkpoint, and whether an earlier session was continued.

    Raises:
        RuntimeError: the last checkpoint cannot be read.
        NonFiniteLossError: the loss became NaN or infinite.
    """
    keep_freed_memory()
    history = History(folder)
    best, last = (
        ModelCheckpoint(
            dirpath=folder / CHECKPOINTS,
            filename=name,
            monitor=monitor,
            mode="max",
            save_on_train_epoch_end=True,  # after validation and the history, so that a resumed epoch is a whole one
            enable_version_counter=False,
        )
        # Two: Lightning's `save_last` saves only what is the best, so on a plateau a killed run would start far back.
        for name, monitor in (("best", "val/top1"), ("last", None))
    )
    callbacks = [history, best, last, *figure_callbacks(config, folder)]
    if task.settings.ema_decay:
        callbacks.append(EMAWeightAveraging(decay=task.settings.ema_decay))
    trainer = _trainer(config, folder, task, callbacks, logger)
    path = folder / CHECKPOINTS / "last.ckpt"
    resumed = path.exists()
    if resumed:
        check_readable(path)
    if config["trainer"]["compile"]:
        task.model.compile(dynamic=False)  # in place: checkpoints keep their names
    with warnings.catch_warnings():
        # Our loaders live on the training device and have no workers to add.
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        warnings.filterwarnings("ignore", message=".*LeafSpec.* is deprecated")  # between Lightning and PyTorch
        warnings.filterwarnings("ignore", message="It is recommended to use `self.log.*sync_dist")  # gathered already
        warnings.filterwarnings("ignore", message="Checkpoint directory .* exists and is not empty")
        warnings.filterwarnings("ignore", message="The number of training batches .* is smaller than the logging")
        trainer.fit(task, datamodule=Batches(data), ckpt_path=str(path) if resumed else None, weights_only=True)
    return history, best, resumed


class Batches(pl.LightningDataModule):
    """Hands the batches of a data set to a trainer, on its device and for its ranks.

    Data sets know nothing of Lightning, since whoever only looks at them should not have to import it.
    """

    def __init__(self, data: ImageData) -> None:
        super().__init__()
        self.data = data

    def setup(self, stage: str) -> None:
        """Take the trainer's device."""
        assert self.trainer is not None
        self.data.device = self.trainer.strategy.root_device

    def train_dataloader(self) -> Loader:
        """Return this rank's training batches."""
        return self.data.train_dataloader()

    def val_dataloader(self) -> Loader:
        """Return this rank's validation batches."""
        return self.data.val_dataloader()


def check_readable(path: Path) -> None:
    """Refuse a checkpoint that is damaged, by name.

    Raises:
        RuntimeError: truncated, or no checkpoint at all.
    """
    try:
        torch.load(path, map_location="meta", weights_only=True, mmap=True)
    except Exception as error:
        raise RuntimeError(
            f"{path} cannot be read ({type(error).__name__}); delete the run folder to start it over"
        ) from error


def figure_callbacks(config: Mapping[str, Any], folder: Path) -> list[pl.Callback]:
    """Return the callbacks of `conf/callbacks`, each built for this run's folder."""
    return [instantiate(settings)(folder=folder) for settings in config["callbacks"].values()]


def _trainer(
    config: Mapping[str, Any],
    folder: Path,
    task: ClassificationTask,
    callbacks: list[pl.Callback],
    logger: Logger | None,
) -> pl.Trainer:
    settings = config["trainer"]
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    progress = os.isatty(2) if settings["progress"] == "auto" else bool(settings["progress"])
    if progress:
        callbacks = [*callbacks, RichProgressBar()]
    strategy: Any = "auto"
    # One process, whatever a cluster's variables suggest.
    plugins: list[Any] = [AtomicCheckpointIO(), LightningEnvironment()]
    if ranks > 1:
        plugins = [AtomicCheckpointIO()]
        strategy = DDPStrategy(
            find_unused_parameters=False,
            broadcast_buffers=False,  # derived tables are equal on all ranks, and validation batches are uneven
            gradient_as_bucket_view=True,
            timeout=timedelta(minutes=settings["timeout_minutes"]),
        )
    return pl.Trainer(
        max_epochs=settings["max_epochs"],
        accelerator=settings["accelerator"],
        devices=settings["devices"],
        strategy=strategy,
        plugins=plugins,
        precision=pick_precision(settings["precision"], settings["accelerator"]),  # type: ignore[arg-type]
        accumulate_grad_batches=settings["accumulate"],
        gradient_clip_val=task.settings.grad_clip or None,
        deterministic=settings["deterministic"],
        logger=logger or False,
        callbacks=callbacks,
        default_root_dir=folder,
        enable_progress_bar=progress,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,  # our loaders share the images between ranks themselves
    )


def plain_spec(data: ImageData) -> dict[str, Any]:
    """Return the image spec as plain containers, as checkpoints hold it."""
    fields = asdict(data.spec)
    return {**fields, "image_size": list(fields["image_size"])}
