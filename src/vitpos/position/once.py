"""Compute a tensor once per pass through the layers."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


class OncePerPass:
    """Share one tensor among the layers of a pass: the first layer computes it, the last lets go of it.

    Nothing outlives a pass, so weights may change between passes, and copying or saving the module finds no graph. A
    layer asked on its own (activation checkpointing, analysis) computes afresh.

    Args:
        depth: layers L.
    """

    def __init__(self, depth: int) -> None:
        self.last = depth - 1
        self.kept: Tensor | None = None

    def __call__(self, layer: int, compute: Callable[[], Tensor]) -> Tensor:
        """Return the tensor for `layer`, calling `compute` where needed."""
        value = compute() if layer == 0 or self.kept is None else self.kept
        self.kept = None if layer == self.last else value
        return value
