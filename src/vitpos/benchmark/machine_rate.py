"""How fast the machine multiplies matrices: the limit that utilisation is measured against."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from vitpos.benchmark.clock import Clock, without_collecting

MLP_RATIO = 4
REPEATS = 5
ENOUGH = 2e9  # FLOPs of one timed call: shorter ones measure the clock


def product_rate(tokens: int, dim: int, clock: Clock, dtype: torch.dtype) -> float:
    """Return the FLOP/s of the four products of a transformer layer, each at its best of a few calls.

    Args:
        tokens: rows of the left factor, tokens of all images of a step.
        dim: token width.
        clock: of the device.
        dtype: of the factors.
    """
    work = seconds = 0.0
    with without_collecting(), torch.no_grad():
        for inner, outer in ((dim, 3 * dim), (dim, dim), (dim, MLP_RATIO * dim), (MLP_RATIO * dim, dim)):
            flops = 2 * tokens * inner * outer
            left, right, out = (
                torch.ones(shape, device=clock.device, dtype=dtype)
                for shape in ((tokens, inner), (inner, outer), (tokens, outer))
            )
            calls = max(1, round(ENOUGH / flops)) if clock.device.type == "cpu" else 1
            products = partial(_multiply, left, right, out, calls)
            products()
            seconds += min(clock.seconds(products) for _ in range(REPEATS)) / calls
            work += flops
    return work / seconds


def _multiply(left: Tensor, right: Tensor, out: Tensor, calls: int) -> None:
    for _ in range(calls):
        torch.mm(left, right, out=out)
