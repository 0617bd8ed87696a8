"""Rotation of query and key channels in pairs, the one operation of the rotary family.

Letters: B batch, K heads, T tokens, E head width.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

Pairing = Literal["interleaved", "half"]


def halves(x: Tensor, pairing: Pairing) -> tuple[Tensor, Tensor]:
    """Return views of the first and the second channel of every pair.

    `interleaved` pairs channels (2i, 2i+1), `half` pairs (i, i + E/2): the same up to a permutation of channels.
    """
    if pairing == "interleaved":
        return x[..., ::2], x[..., 1::2]
    first, second = x.chunk(2, dim=-1)
    return first, second


def _turn(x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
    both = cos.repeat_interleave(2, -1) if pairing == "interleaved" else torch.cat((cos, cos), -1)  # ... T E
    out = x * both
    a, b = halves(x, pairing)
    first, second = halves(out, pairing)
    first.addcmul_(b, sin, value=-1)
    second.addcmul_(a, sin)
    return out


class _Rotation(torch.autograd.Function):
    """(a, b) -> (a cos - b sin, b cos + a sin), written into one new tensor.

    Autograd's own composition of the same formula reads and writes q and k several times more; this one keeps nothing
    of x unless the angles are learned.
    """

    @staticmethod
    def forward(x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
        return _turn(x, cos, sin, pairing)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, cos, sin, ctx.pairing = inputs
        learned = ctx.needs_input_grad[1] or ctx.needs_input_grad[2]
        ctx.save_for_backward(cos, sin, x if learned else None)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin, x = ctx.saved_tensors
        grad_x = _turn(grad, cos, -sin, ctx.pairing) if ctx.needs_input_grad[0] else None
        if x is None:
            return grad_x, None, None, None
        (a, b), (da, db) = halves(x, ctx.pairing), halves(grad, ctx.pairing)
        return grad_x, (a * da + b * db).sum_to_size(cos.shape), (a * db - b * da).sum_to_size(sin.shape), None


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
    """Rotate every pair (a, b) of channels of x by its angle.

    A row of angle zero (cos 1, sin 0) passes through unchanged, which is how prefix tokens stay as they are.

    Args:
        x: queries or keys (B, K, T, E).
        cos: cosines (T, E/2) or (K, T, E/2), in any float dtype; rounded to that of `x`.
        sin: sines, as `cos`.
        pairing: which channels form a pair, see `halves`.

    Returns:
        rotated x, same shape and dtype.
    """
    out: Tensor = _Rotation.apply(x, cos.to(x.dtype), sin.to(x.dtype), pairing)
    return out
