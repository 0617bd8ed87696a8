"""One training step of any network on made-up images."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitpos.benchmark.memory import bytes_of, peak_bytes
from vitpos.benchmark.settings import Settings
from vitpos.evaluation.inference import precision_context


class TrainingStep:
    """Forward, backward and AdamW, under the conditions of a training run: fused update, gradients dropped, not zeroed.

    Args:
        network: maps images to logits.
        settings: images, precision and place.
        batch: images per step; that of the settings if 0.
    """

    def __init__(self, network: nn.Module, settings: Settings, batch: int = 0) -> None:
        device, self.precision = settings.place, settings.precision
        self.batch = batch or settings.batch
        self.network = network.to(device).train()
        if settings.compile:
            self.network.compile(dynamic=False)  # type: ignore[no-untyped-call]
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3, fused=True)
        made_up = torch.Generator().manual_seed(0)
        spec = settings.spec
        self.images = torch.randn(self.batch, spec.channels, *spec.image_size, generator=made_up).to(device)
        self.labels = torch.randint(spec.classes, (self.batch,), generator=made_up).to(device)

    def __call__(self) -> None:
        """Do one step."""
        self.optimizer.zero_grad()
        with precision_context(self.images.device, self.precision):
            loss = F.cross_entropy(self.network(self.images), self.labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def peak_bytes(self) -> int:
        """Return the most memory that a step holds at once: weights, optimiser, images, activations, gradients."""
        self.optimizer.zero_grad()
        states: list[Any] = [value for state in self.optimizer.state.values() for value in state.values()]
        lasting = chain(self.network.parameters(), self.network.buffers(), states, (self.images, self.labels))
        return bytes_of(lasting) + peak_bytes(self, self.images.device)
