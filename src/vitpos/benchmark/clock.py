"""How long a function takes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

GPU_REPEATS = 10  # launches of a short step would otherwise be measured with it


class Clock:
    """Measures calls on one device.

    On a GPU between two events of its own; on a CPU with one thread as CPU time of this process, which neither waits
    for nor counts what others do on the machine; else on the wall.

    Args:
        device: where the work happens.
        threads: of PyTorch on the CPU.
    """

    def __init__(self, device: torch.device, threads: int) -> None:
        self.device = device
        self._now = time.process_time if threads == 1 else time.perf_counter

    def seconds(self, function: Callable[[], object]) -> float:
        """Return the seconds of one call, all its work done."""
        if self.device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            start.record()
            for _ in range(GPU_REPEATS):
                function()
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) / 1000 / GPU_REPEATS
        before = self._now()
        function()
        return self._now() - before


@contextmanager
def without_collecting() -> Iterator[None]:
    """Context in which Python collects no garbage: it would fall on one call of many."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
