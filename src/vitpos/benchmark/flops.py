"""Floating-point operations of the matrix products that a function really does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

_aten = torch.ops.aten


def _attention(query: Any, key: Any, value: Any, *rest: Any, out_shape: Any = None, **settings: Any) -> int:
    return int(sdpa_flop_count(query, key, value))  # type: ignore[no-untyped-call]


def _attention_backward(
    grad: Any, query: Any, key: Any, value: Any, *rest: Any, out_shape: Any = None, **settings: Any
) -> int:
    return int(sdpa_backward_flop_count(grad, query, key, value))  # type: ignore[no-untyped-call]


def _added_product(out: Any, left: Any, right: Any, out_shape: Any = None, **settings: Any) -> int:
    (batch, rows, inner), columns = left, right[-1]
    return int(2 * batch * rows * inner * columns)


# Products that PyTorch's counter has no formula for.
_MORE = {
    _aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    _aten.baddbmm_: _added_product,
}


def count_flops(function: Callable[[], object]) -> int:
    """Return the FLOPs of one call: two per multiplication and addition of a matrix product or a convolution."""
    with FlopCounterMode(display=False, custom_mapping=_MORE) as counter:
        function()
    return int(counter.get_total_flops())
