"""Evaluation at several image sizes beside the bare forward passes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from rich.progress import track

from vitpos.benchmark.clock import Clock
from vitpos.benchmark.pairs import compare
from vitpos.benchmark.runs import build, compose_jobs, present
from vitpos.benchmark.settings import Settings
from vitpos.benchmark.table import Table
from vitpos.data.base import ImageData
from vitpos.evaluation.predictions import predict
from vitpos.evaluation.resolution import evaluate_transfer
from vitpos.models.vit import ViT
from vitpos.position import Transfer


def measure(settings: Settings) -> list[Table]:
    """Return one row per data set."""
    names, missing = present(settings.data)
    clock = Clock(settings.place, settings.threads)
    rows = []
    for name in track(names, description="transfer", transient=True):
        config = compose_jobs([f"data={name}", f"model={settings.model}"])[0].config
        data, task = build(config)
        model = task.model.to(settings.place).eval()
        top1 = predict(model, data.test_dataloader(), settings.place).top1
        whole = _whole(model, data, config["transfer"], settings, top1)
        whole()
        found = compare(whole, _bare(model, data, settings), settings.rounds, clock)
        rows.append(
            {
                "name": name,
                "baseline": "forward passes",
                "ratio": found.ratio,
                "min": min(found.ratios),
                "max": max(found.ratios),
                "rounds": settings.rounds,
                "seconds": sorted(found.seconds)[len(found.seconds) // 2],
                "sizes": len(data.transfer_sizes),
                "images": len(data.positions("test")),
            }
        )
    note = (
        "One protocol at every size of the data set, as after training: resampled images, resized positions, scores. "
        "forward passes: the network alone at these sizes and once more at its own, which checks that it came back, on "
        "batches made before."
    )
    return [Table("transfer", "Evaluation at several image sizes", rows, " ".join([note, *missing]))] if rows else []


def _whole(
    model: ViT, data: ImageData, transfer: dict[str, object], settings: Settings, top1: float
) -> Callable[[], None]:
    def evaluate() -> None:
        evaluate_transfer(model, data, transfer, settings.place, trained_top1=top1)

    return evaluate


def _bare(model: ViT, data: ImageData, settings: Settings) -> Callable[[], None]:
    home = model.image_size
    sizes = [*data.transfer_sizes, home]
    batches = [[batch[0].to(settings.place) for batch in data.eval_dataloader("test", size)] for size in sizes]

    def passes() -> None:
        with torch.no_grad():
            for size, images in zip(sizes, batches, strict=True):
                model.resize(size, Transfer())
                for batch in images:
                    model(batch)

    return passes
