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

    Autograd's own composition of the same formula reads and writes q and k several times more. This one keeps nothing
    of them, or the result if the angle is learned: turning by d moves the result (a, b) by d (-b, a).
    """

    @staticmethod
    def forward(x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing, angle: Tensor | None) -> Tensor:
        return _turn(x, cos, sin, pairing)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, cos, sin, ctx.pairing, angle = inputs
        ctx.shape = None if angle is None else angle.shape
        ctx.save_for_backward(cos, sin, None if angle is None else output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin, out = ctx.saved_tensors
        grad_x = _turn(grad, cos, -sin, ctx.pairing)
        if out is None:
            return grad_x, None, None, None, None
        (a, b), (da, db) = halves(out, ctx.pairing), halves(grad, ctx.pairing)
        grad_angle = (a * db).addcmul_(b, da, value=-1)  # B K T E/2
        wide = torch.promote_types(grad_angle.dtype, torch.float32)
        return grad_x, None, None, None, grad_angle.to(wide).sum_to_size(ctx.shape)


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
    """Rotate every pair (a, b) of channels of x by a fixed angle.

    A row of angle zero (cos 1, sin 0) passes through unchanged, which is how prefix tokens stay as they are.

    Args:
        x: queries or keys (B, K, T, E).
        cos: cosines (T, E/2) or (K, T, E/2), in any float dtype; rounded to that of `x`. No gradient reaches them.
        sin: sines, as `cos`.
        pairing: which channels form a pair, see `halves`.

    Returns:
        rotated x, same shape and dtype.
    """
    out: Tensor = _Rotation.apply(x, cos.to(x.dtype), sin.to(x.dtype), pairing, None)
    return out


def rotate_both(q: Tensor, k: Tensor, angle: Tensor, pairing: Pairing) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys by learned angles (K, T, E/2) in float32, which receive a gradient."""
    cos, sin = angle.detach().cos().to(q.dtype), angle.detach().sin().to(q.dtype)
    turned_q: Tensor = _Rotation.apply(q, cos, sin, pairing, angle)
    turned_k: Tensor = _Rotation.apply(k, cos, sin, pairing, angle)
    return turned_q, turned_k
