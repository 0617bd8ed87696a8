"""Attention with a bias that is learned, on a CPU.

Letters: B batch, K heads, R queries, T keys, E head width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _products(left: Tensor, right: Tensor, factor: float = 1.0) -> Tensor:
    """Return factor * left @ right of (K, B, ., .), head by head.

    The queries, keys and values of one head are views that a matrix product takes as they are, those of all are not:
    joining batch and heads would copy them.
    """
    out = left.new_empty(*left.shape[:-1], right.shape[-1])
    for into, one, other in zip(out, left, right, strict=True):
        into.baddbmm_(one, other, beta=0, alpha=factor)
    return out


class _BiasedAttention(torch.autograd.Function):
    """softmax(s q k' + bias) v, with six matrix products in all and the weights as the only new memory.

    Inside, heads come first.
    """

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        q, k, v = q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)
        logits = q.new_empty(*q.shape[:-1], k.shape[-2])  # K B R T
        logits.transpose(0, 1).copy_(bias)
        for into, query, key in zip(logits, q, k, strict=True):
            into.baddbmm_(query, key.mT, alpha=scale)
        weights = logits.softmax(-1)
        return _products(weights, v).transpose(0, 1), weights

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        q, k, v, bias, ctx.scale = inputs
        ctx.bias_shape = bias.shape
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(q, k, v, output[1])

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, weights = ctx.saved_tensors
        q, k, v, grad = (x.transpose(0, 1) for x in (*inputs, grad))
        grad_v = _products(weights.mT, grad)
        grad_logits = torch._softmax_backward_data(_products(grad, v.mT), weights, -1, weights.dtype)  # K B R T
        grad_bias = grad_logits.transpose(0, 1).sum_to_size(ctx.bias_shape)
        grad_q = _products(grad_logits, k, ctx.scale)
        grad_k = _products(grad_logits.mT, q, ctx.scale)
        return grad_q.transpose(0, 1), grad_k.transpose(0, 1), grad_v.transpose(0, 1), grad_bias, None


def pays(q: Tensor, bias: Tensor) -> bool:
    """Whether `attend` is the faster way.

    PyTorch's fused kernel for CPUs gives no gradient of the bias, and its fallback costs half as much again as this.
    GPUs have a fused kernel that does, and compilers make their own.
    """
    wanted = bias.requires_grad and torch.is_grad_enabled()
    plain = q.device.type == "cpu" and q.dtype in (torch.float32, torch.float64) and not torch.compiler.is_compiling()
    return wanted and plain and not torch.is_autocast_enabled("cpu")


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: float) -> Tensor:
    """Return softmax(scale q k' + bias) v (B, K, R, E), with a gradient for the bias.

    Args:
        q: queries (B, K, R, E).
        k: keys (B, K, T, E).
        v: values (B, K, T, E).
        bias: broadcastable to (B, K, R, T).
        scale: factor of the products.
    """
    out: Tensor = _BiasedAttention.apply(q, k, v, bias, scale)[0]
    return out
