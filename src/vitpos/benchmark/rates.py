"""FLOP/s that a run's network really achieves on this machine, from a few steps on made-up images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F

from vitpos.benchmark.clock import Clock, without_collecting
from vitpos.benchmark.runs import build
from vitpos.benchmark.studies import shape_of
from vitpos.training.optim import build_optimizer

STEPS = 5


@dataclass(frozen=True)
class Rates:
    """FLOP/s of the products that the cost model counts.

    Attributes:
        training: of training steps.
        forward: of forward passes.
    """

    training: float
    forward: float


def measure_rates(config: Mapping[str, Any], clock: Clock) -> Rates:
    """Return what the network of a resolved config achieves at its own batch."""
    data, task = build(dict(config))
    model = task.model.to(clock.device).train()
    optimizer = build_optimizer(model, task.settings)
    size, shape = data.batch_size, shape_of(config, data.spec)
    images = torch.randn(size, data.spec.channels, *data.spec.image_size, device=clock.device)
    labels = torch.zeros(size, dtype=torch.int64, device=clock.device)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    def forward() -> None:
        with torch.no_grad():
            model(images)

    rates = []
    for function, flops in ((step, shape.training_flops), (forward, shape.forward_flops)):
        function()
        with without_collecting():
            rates.append(size * flops / median(clock.seconds(function) for _ in range(STEPS)))
    return Rates(*rates)
