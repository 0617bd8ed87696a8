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


def _complex(x: Tensor, pairing: Pairing) -> Tensor | None:
    """Return a view of adjacent pairs as complex numbers, where that is possible and pays.

    One complex product moves a third of the memory of the same formula in real numbers. Compilers fuse the real form
    and do not take complex numbers; half precision and odd strides have no such view.
    """
    wide = x.dtype in (torch.float32, torch.float64)
    if pairing != "interleaved" or not wide or torch.compiler.is_compiling():
        return None
    even = x.stride(-1) == 1 and x.storage_offset() % 2 == 0 and all(step % 2 == 0 for step in x.stride()[:-1])
    return torch.view_as_complex(x.view(*x.shape[:-1], -1, 2)) if even else None


def _turn(x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
    """Multiply every pair (a, b), read as a + ib, by cos + i sin."""
    pairs = _complex(x, pairing)
    if pairs is not None:
        return torch.view_as_real(pairs * torch.complex(cos, sin)).flatten(-2)
    if pairing == "half" and not torch.compiler.is_compiling():
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        (a, b), (first, second) = halves(x, pairing), halves(out, pairing)
        torch.mul(a, cos, out=first)  # each half on its own: a factor twice as wide would have to be read as well
        torch.mul(b, cos, out=second)
    else:
        out = x * (cos.repeat_interleave(2, -1) if pairing == "interleaved" else torch.cat((cos, cos), -1))
        (a, b), (first, second) = halves(x, pairing), halves(out, pairing)
    first.addcmul_(b, sin, value=-1)
    second.addcmul_(a, sin)
    return out


def _torque(out: Tensor, grad: Tensor, pairing: Pairing, shape: torch.Size) -> Tensor:
    """Return the gradient of the angle, summed to its shape: a turn by d moves the result (a, b) by d (-b, a)."""
    result, pull = _complex(out, pairing), _complex(grad, pairing)
    if result is not None and pull is not None:
        return (pull * result.conj()).sum_to_size(shape).imag
    (a, b), (da, db) = halves(out, pairing), halves(grad, pairing)
    product = (a * db).addcmul_(b, da, value=-1)  # B K T E/2
    return product.to(torch.promote_types(product.dtype, torch.float32)).sum_to_size(shape)


class _Rotation(torch.autograd.Function):
    """(a, b) -> (a cos - b sin, b cos + a sin), written into one new tensor.

    Autograd's own composition of the same formula reads and writes q and k several times more. This one keeps nothing
    of them, or the result if the angle is learned.
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
        torque = None if out is None else _torque(out, grad, ctx.pairing, ctx.shape)
        return grad_x, None, None, None, torque


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
    """Rotate every pair (a, b) of channels of x by its token's fixed angle; x may hold fewer tokens, the first ones.

    A row of angle zero (cos 1, sin 0) passes through unchanged, which is how prefix tokens stay as they are.

    Args:
        x: queries or keys (B, K, R, E), R <= T.
        cos: cosines (T, E/2) or (K, T, E/2), in any float dtype; rounded to that of `x`. No gradient reaches them.
        sin: sines, as `cos`.
        pairing: which channels form a pair, see `halves`.

    Returns:
        rotated x, same shape and dtype.
    """
    cos, sin = (table[..., : x.shape[-2], :].to(x.dtype) for table in (cos, sin))
    out: Tensor = _Rotation.apply(x, cos, sin, pairing, None)
    return out


def rotate_both(q: Tensor, k: Tensor, angle: Tensor, pairing: Pairing) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys by learned angles (K, T, E/2) in float32, which receive a gradient.

    q may hold fewer tokens, the first ones.
    """
    cos, sin = angle.detach().cos().to(q.dtype), angle.detach().sin().to(q.dtype)
    cos_q, sin_q, angle_q = (table[:, : q.shape[-2]] for table in (cos, sin, angle))
    turned_q: Tensor = _Rotation.apply(q, cos_q, sin_q, pairing, angle_q)
    turned_k: Tensor = _Rotation.apply(k, cos, sin, pairing, angle)
    return turned_q, turned_k
