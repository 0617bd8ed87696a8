"""What is measured and drawn once a network is trained: test metrics, other sizes, few-shot, diagnostics, figures."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from vitpos.data.base import ImageData
from vitpos.evaluation.diagnostics import diagnose
from vitpos.evaluation.fewshot import evaluate_fewshot, support_of
from vitpos.evaluation.portrait import Drawing, draw_attention
from vitpos.evaluation.predictions import predict
from vitpos.evaluation.protocol import protocols, sizes
from vitpos.evaluation.resized import draw_resize
from vitpos.evaluation.resolution import evaluate_transfer
from vitpos.figures.resolution import draw_resolution
from vitpos.models.vit import ViT, grid_of
from vitpos.record import PREDICTIONS_FILE, Record, TransferRow
from vitpos.training import machine

log = logging.getLogger(__name__)


def check(config: Mapping[str, Any], model: ViT, data: ImageData) -> dict[str, Any]:
    """Refuse before training what could not be evaluated after it; returns the few-shot settings that are possible.

    Shots that merely come with the data set are left out where `data.limit_train` leaves too few images for them.

    Raises:
        ValueError: sizes, a protocol or few-shot settings that cannot be evaluated.
    """
    sizes(config["transfer"], model.patch_size)
    protocols(config["transfer"], model.position.honours)
    settings = dict(config["fewshot"])
    if settings["shots"] == config["data"]["shots"]:
        possible = []
        for shots in settings["shots"]:
            try:
                support_of(data, {**settings, "shots": [shots]})
                possible.append(shots)
            except ValueError as error:
                log.warning("left out: %s", error)
        settings["shots"] = possible
    support_of(data, settings)
    return settings


def evaluate(
    config: Mapping[str, Any],
    folder: Path,
    model: ViT,
    data: ImageData,
    device: torch.device,
    record: Record,
    fewshot: Mapping[str, Any],
) -> None:
    """Add test metrics, transfer, few-shot and diagnostics of a trained model to its record; reads the test data."""
    started = time.perf_counter()
    precision = machine.pick_precision(config["trainer"]["precision"], config["trainer"]["accelerator"])
    predictions = predict(model, data.test_dataloader(), device, precision=precision)
    predictions.save(folder / PREDICTIONS_FILE)
    record.metrics.update({f"test/{name}": value for name, value in predictions.metrics().items()})
    rows = evaluate_transfer(
        model, data, config["transfer"], device, precision=precision, trained_top1=record.metrics["test/top1"]
    )
    record.transfer = [TransferRow.model_validate(row) for row in rows]
    if precision.endswith("-true") and precision != "32-true":
        model.float()  # features and diagnostics are compared across arms to more digits than bf16 has
    record.metrics.update(evaluate_fewshot(model, data, fewshot, device))
    record.diagnostics.update(diagnose(model, data, config["diagnostics"], device))
    record.diagnostics["evaluation_seconds"] = time.perf_counter() - started


def draw(config: Mapping[str, Any], folder: Path, model: ViT, record: Record) -> dict[str, Path]:
    """Draw attention distances, and the positions at the largest other size; returns the pictures by name.

    A picture that cannot be drawn is logged and left out: the numbers it shows are in the record.
    """
    optim = config["optim"]
    caption = (
        f"{record.position.label}, seed {record.seed}, {record.data.name}, best of {record.epochs} epochs "
        f"({record.best_epoch}, from 0); learning rate {optim['lr']:g}, weight decay {optim['weight_decay']:g}."
    )
    drawings: dict[str, Drawing] = {}
    try:
        drawings["attention_distance"] = draw_attention(record.diagnostics, caption)
        others = [size for size in sizes(config["transfer"], model.patch_size) if size != model.image_size]
        if others and record.position.family != "none":
            largest = max(others, key=lambda size: size[0] * size[1])
            protocol = protocols(config["transfer"], model.position.honours)[0]
            grid = grid_of(largest, model.patch_size)
            drawings["resize"] = draw_resize(model.position, grid, protocol.transfer, caption)
        if curve := draw_resolution(
            [row.model_dump() for row in record.transfer], model.image_size, record.position.label
        ):
            drawings["resolution"] = Drawing(*curve)
        return {name: drawing.save(folder / "figures" / name)[0] for name, drawing in drawings.items()}
    except Exception:
        log.exception("figures could not be drawn; the record is complete without them")
        return {}
