"""Attention with a bias that is learned, on a CPU.

Letters: B batch, K heads, R queries, T keys, E head width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _fold(x: Tensor) -> Tensor:
    """Join batch and heads, (B, K, ...) -> (B*K, ...)."""
    return x.reshape(-1, *x.shape[2:])


class _BiasedAttention(torch.autograd.Function):
    """softmax(s q k' + bias) v, with six matrix products in all and the weights as the only new memory."""

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        logits = q.new_empty(*q.shape[:-1], k.shape[-2]).copy_(bias)  # B K R T
        weights = _fold(logits).baddbmm_(_fold(q), _fold(k).mT, alpha=scale).softmax(-1)  # BK R T
        return torch.bmm(weights, _fold(v)).view(q.shape), weights

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        q, k, v, bias, ctx.scale = inputs
        ctx.bias_shape = bias.shape
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(q, k, v, output[1])

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        grad = _fold(grad)
        grad_v = torch.bmm(weights.mT, grad).view(v.shape)
        grad_weights = torch.bmm(grad, _fold(v).mT)
        grad_logits = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)  # BK R T
        grad_bias = grad_logits.view(*q.shape[:-1], -1).sum_to_size(ctx.bias_shape)
        grad_q = torch.bmm(grad_logits, _fold(k)).mul_(ctx.scale).view(q.shape)
        grad_k = torch.bmm(grad_logits.mT, _fold(q)).mul_(ctx.scale).view(k.shape)
        return grad_q, grad_k, grad_v, grad_bias, None


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
