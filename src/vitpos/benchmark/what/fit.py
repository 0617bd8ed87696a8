"""The whole fit of a run beside the bare loop of the same steps."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from hydra.utils import instantiate
from rich.progress import track

from vitpos.benchmark.clock import Clock
from vitpos.benchmark.pairs import compare
from vitpos.benchmark.runs import build, compose_jobs, limit, present
from vitpos.benchmark.settings import Settings
from vitpos.benchmark.table import Table
from vitpos.data.base import Batch
from vitpos.evaluation.inference import precision_context
from vitpos.record.folder import run_folder
from vitpos.training.fit import fit
from vitpos.training.optim import build_optimizer
from vitpos.training.tracking import close

STEPS = 600  # of a fit, about, where `epochs` says nothing
NOTE = (
    "fit: tracking, loading, augmentation, steps, validation with metrics, history, checkpoints; in the second row of "
    "a data set the default figures, too, whose cost does not depend on the length of a run. bare: forward, backward, "
    "clipping and AdamW of the same number of steps, and the forward passes of validation, on batches made before."
)


def measure(settings: Settings) -> list[Table]:
    """Return one row per data set."""
    os.environ["WANDB_MODE"] = "offline"  # a measurement is nobody's result
    names, missing = present(settings.data)
    rows = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variants = [(name, callbacks) for name in names for callbacks in ("none", "figures")]
        for name, callbacks in track(variants, description="fits", transient=True):
            base = ["logger=wandb", f"callbacks={callbacks}", f"data={name}", f"model={settings.model}"]
            base.append(f"output_dir={folder}/{callbacks}")
            config = compose_jobs([*base, *limit(name, settings.images)])[0].config
            data, _ = build(config)
            steps = len(data.train_dataloader())
            epochs = settings.epochs or max(1, round(STEPS / steps))
            _whole({**config, "trainer": {**config["trainer"], "max_epochs": 1}}, "warm")()
            config = {**config, "trainer": {**config["trainer"], "max_epochs": epochs}}
            clock = Clock(settings.place, settings.threads)
            found = compare(_whole(config, "fit"), _bare(config, epochs), settings.rounds, clock)
            rows.append(
                {
                    "name": name if callbacks == "none" else f"{name}, {callbacks}",
                    "baseline": "bare loop",
                    "ratio": found.ratio,
                    "min": min(found.ratios),
                    "max": max(found.ratios),
                    "rounds": settings.rounds,
                    "fit_seconds": sorted(found.seconds)[len(found.seconds) // 2],
                    "epochs": epochs,
                    "steps": epochs * steps,
                    "batch": data.batch_size,
                }
            )
    note = " ".join([NOTE, *missing])
    return [Table("fit", f"A whole fit of {settings.model} beside its bare loop", rows, note)] if rows else []


def _whole(config: dict[str, Any], label: str) -> Callable[[], None]:
    """Return what trains a run in a new folder each time."""
    numbers = count()

    def run() -> None:
        current = {**config, "experiment_name": f"{label}{next(numbers)}"}
        folder = run_folder(current)
        folder.mkdir(parents=True)
        data, task = build(current)
        tracking = instantiate(current["logger"], _convert_="all")
        opened = tracking.open(folder, name=folder.name, group=label, kind="train", tags=[], config=current)
        fit(current, Path(folder), task, data, tracking.logger(opened, folder))
        close(tracking.logger(opened, folder), failed=False)

    return run


def _bare(config: dict[str, Any], epochs: int) -> Callable[[], None]:
    """Return the loop over batches made before."""
    data, task = build(config)
    model, settings, precision = task.model, task.settings, "32-true"
    train, val = list(data.train_dataloader()), list(data.val_dataloader())
    optimizer = build_optimizer(model, settings)

    def step(batch: Batch) -> None:
        images, labels, _ = batch
        optimizer.zero_grad()
        with precision_context(images.device, precision):
            loss = F.cross_entropy(model(images), labels, label_smoothing=settings.label_smoothing)
        loss.backward()  # type: ignore[no-untyped-call]
        if settings.grad_clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.grad_clip)
        optimizer.step()

    def loop() -> None:
        for _ in range(epochs):
            model.train()
            for batch in train:
                step(batch)
            model.eval()
            with torch.no_grad(), precision_context(data.device, precision):
                for images, _labels, _index in val:
                    model(images)

    return loop
