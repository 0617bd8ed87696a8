"""Compute a tensor once per pass through the layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor


class OncePerPass:
    """Share one tensor among the layers of a pass: the first layer computes it, the last lets go of it.

    Nothing outlives a pass, so weights may change between passes. A layer asked on its own (activation checkpointing,
    analysis) computes afresh; copies and saved modules leave behind what an interrupted pass kept.

    Args:
        depth: layers L.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.kept: Tensor | None = None

    def __call__(self, layer: int, compute: Callable[[], Tensor]) -> Tensor:
        """Return the tensor for `layer`, calling `compute` where needed."""
        value = compute() if layer == 0 or self.kept is None else self.kept
        if layer == 0:
            self.kept = value
        if layer == self.depth - 1:
            self.kept = None
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return OncePerPass, (self.depth,)
