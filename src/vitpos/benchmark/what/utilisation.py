"""How much of the machine's matrix-product rate each model size reaches in training."""

from __future__ import annotations

import torch
from rich.progress import track

from vitpos.benchmark.clock import Clock, without_collecting
from vitpos.benchmark.flops import count_flops
from vitpos.benchmark.machine_rate import product_rate
from vitpos.benchmark.networks import WITHOUT, model_sizes, network
from vitpos.benchmark.settings import Settings
from vitpos.benchmark.step import TrainingStep
from vitpos.benchmark.table import Table
from vitpos.evaluation.inference import AUTOCAST

STEPS = 3
BUDGET = 60e9  # FLOPs of a step on a CPU; larger networks get fewer images


def measure(settings: Settings) -> list[Table]:
    """Return one row per file of `conf/model`, without positions."""
    clock = Clock(settings.place, settings.threads)
    rows = []
    for name, sizes in track(model_sizes().items(), description="model sizes", transient=True):
        model = network(WITHOUT, settings, **sizes)
        tokens = model.geometry.tokens
        per_image = 3 * model.cost()["flops_per_image"]
        batch = settings.batch
        if settings.place.type == "cpu":
            batch = max(1, min(batch, round(BUDGET / per_image)))
        step = TrainingStep(model, settings, batch)
        step()
        flops = count_flops(step)
        with without_collecting():
            seconds = sorted(clock.seconds(step) for _ in range(STEPS))[STEPS // 2]
        rate = product_rate(batch * tokens, sizes["dim"], clock, dtype(settings))
        rows.append(
            {
                "name": name,
                **sizes,
                "tokens": tokens,
                "batch": batch,
                "step_ms": 1000 * seconds,
                "images_per_second": batch / seconds,
                "gflop_per_image": flops / batch / 1e9,
                "gflops": flops / seconds / 1e9,
                "product_gflops": rate / 1e9,
                "utilisation": flops / seconds / rate,
            }
        )
    note = (
        f"Median of {STEPS} training steps, {settings.precision} on {settings.device}. gflop_per_image: matrix "
        "products really done, forward and backward. product_gflops: what this machine reaches in products of these "
        "shapes."
    )
    return [Table("utilisation", "Utilisation of each model size", rows, note, ("images_per_second",))]


def dtype(settings: Settings) -> torch.dtype:
    """Return the type in which a precision multiplies matrices."""
    return AUTOCAST.get(settings.precision, torch.float32)
