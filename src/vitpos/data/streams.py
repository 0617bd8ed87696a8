"""Independent random streams: what is drawn in one never shifts another, nor the process's global generators."""

from __future__ import annotations

import numpy as np
import torch

# One number per purpose. The numbers are part of every stored result: add new ones, never reuse or renumber.
ORDER, CROP, FLIP, MIX, AUGMENT, SPLIT, LIMIT, CONTENT = range(8)


def stream_seed(seed: int, purpose: int, *path: int) -> int:
    """Return a 63-bit seed that is a pure function of its arguments.

    Args:
        seed: the user's seed, zero or more.
        purpose: one of the constants of this module.
        path: epoch, step or image number. Fixed in length for one purpose, since `SeedSequence` pads with zeros.

    Raises:
        ValueError: a negative seed.
    """
    if seed < 0:
        raise ValueError(f"seed={seed}: must be zero or more")
    words = np.random.SeedSequence((seed, purpose, *path)).generate_state(1, np.uint64)
    return int(words[0] >> np.uint64(1))


def torch_stream(seed: int, purpose: int, *path: int) -> torch.Generator:
    """Return a CPU generator for `stream_seed(...)`; drawing on the CPU makes the numbers equal on every device."""
    return torch.Generator().manual_seed(stream_seed(seed, purpose, *path))


def numpy_stream(seed: int, purpose: int, *path: int) -> np.random.Generator:
    """Return a NumPy generator for `stream_seed(...)`."""
    return np.random.Generator(np.random.PCG64(stream_seed(seed, purpose, *path)))
