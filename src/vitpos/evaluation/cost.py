"""Time and memory of a network's forward passes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

MIB = 2**20


@dataclass
class Meter:
    """Collects what the passes under `measure` take.

    The first pass warms caches up and counts only when it stays the only one. Peak memory is what PyTorch's allocator
    held at once on a CUDA device, network and images included; elsewhere it is not known (None): the resident set of
    a process hardly shrinks between two passes and would credit one size with the memory of another.

    Args:
        device: where the network is.
    """

    device: torch.device
    seconds: list[float] = field(default_factory=list)
    images: list[int] = field(default_factory=list)
    peak: int = 0

    @contextmanager
    def measure(self, images: int) -> Iterator[None]:
        """Measure one pass over `images` images."""
        cuda = self.device.type == "cuda"
        if cuda:
            torch.cuda.reset_peak_memory_stats(self.device)
        self._wait()
        start = time.perf_counter()
        yield
        self._wait()
        self.seconds.append(time.perf_counter() - start)
        self.images.append(images)
        if cuda:
            self.peak = max(self.peak, torch.cuda.max_memory_allocated(self.device))

    @property
    def images_per_second(self) -> float | None:
        """Images per second of this process, without the loading of images; None before the first pass."""
        start = 1 if len(self.seconds) > 1 else 0
        spent = sum(self.seconds[start:])
        return sum(self.images[start:]) / spent if spent else None

    @property
    def peak_memory_mib(self) -> float | None:
        """Largest memory of a pass in MiB, None where it is not known."""
        return self.peak / MIB if self.peak else None

    def _wait(self) -> None:
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that the device or the machine has no memory left for a request."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    # The CPU allocator and some kernels have no type of their own.
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(
        words in text for words in ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed")
    )
