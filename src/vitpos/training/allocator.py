"""Memory of a CPU step: taken once, kept from step to step."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

# Parameters of mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER = 2**31 - 1
_SIZES = (2**30, 2**25)  # bytes; older versions of glibc take no more than the second


def keep_freed_memory() -> None:
    """Let freed memory stay with this process, so that every training step reuses that of the step before.

    By default glibc hands large blocks back to the system as soon as they are free, and a step of a small network on a
    CPU spends up to a tenth of its time on page faults to get them again. Does nothing without glibc.
    """
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_TRIM_THRESHOLD, _NEVER)
        for size in _SIZES:
            if libc.mallopt(_MMAP_THRESHOLD, size):  # 1: accepted
                break


def release_freed_memory() -> None:
    """Hand what is free back to the system, so that the next job's peak is its own. Does nothing without glibc."""
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)


@functools.cache
def _glibc() -> Any:
    """Return the C library of this process if it has what we call, else None."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
