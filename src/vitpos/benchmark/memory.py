"""The most memory that a function holds at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

MIB = 2**20


def peak_bytes(function: Callable[[], object], device: torch.device) -> int:
    """Return how many bytes more than before PyTorch's allocator hands out at once during a call."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        function()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as measured:
        function()
    results = measured.profiler.kineto_results  # type: ignore[union-attr]
    events = [event for event in results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def bytes_of(tensors: Iterable[object]) -> int:
    """Return the bytes of tensors; what is no tensor counts nothing."""
    return sum(item.nbytes for item in tensors if isinstance(item, Tensor))
