"""One pre-norm transformer layer whose attention asks the position module for rotation and bias.

Letters: B batch, T tokens, D width, K heads, E = D / K head width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from timm.layers import DropPath, LayerScale, Mlp
from torch import Tensor, nn

from vitpos.models import biased_attention
from vitpos.position import Position

layer_norm = partial(nn.LayerNorm, eps=1e-6)  # the value of the first ViTs; PyTorch's default differs


class Attention(nn.Module):
    """Multi-head self-attention: softmax(t (q k' / sqrt(E) + bias)) v, with one path for all position modules.

    Args:
        dim: token width D.
        heads: number of heads K; must divide D.
        qkv_bias: whether the projection to q, k and v has a bias.
    """

    def __init__(self, dim: int, heads: int, qkv_bias: bool = True) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def project(self, x: Tensor, read: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return q (B, K, R, E) of the first `read` = R tokens, and k, v (B, K, T, E) of all tokens (B, T, D)."""
        batch, tokens, dim = x.shape
        # Split before heads and tokens change places: the gradients then join in the order in which they lie in memory.
        if read is None:
            q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).unbind(2)  # B T K E each
        else:
            sizes, bias = [dim, 2 * dim], self.qkv.bias
            weights = torch.split(self.qkv.weight, sizes)
            biases = (None, None) if bias is None else torch.split(bias, sizes)
            q = F.linear(x[:, :read], weights[0], biases[0]).view(batch, read, self.heads, -1)
            k, v = F.linear(x, weights[1], biases[1]).view(batch, tokens, 2, self.heads, -1).unbind(2)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def forward(
        self, x: Tensor, position: Position, layer: int, temperature: float = 1.0, read: int | None = None
    ) -> Tensor:
        """Mix the tokens (B, T, D) into each of them, or into the first `read` only, (B, read, D)."""
        q, k, v = self.project(x, read)
        bias = self._bias(position, q, k, layer, temperature)
        q, k = position.rotate(q, k, layer)
        if read is not None:  # a module may have answered for more
            q, bias = q[:, :, :read], bias[..., :read, :] if bias is not None else None
        scale = self.scale * temperature
        if bias is not None and biased_attention.pays(q, bias):
            mixed = biased_attention.attend(q, k, v, bias, scale)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)
        out: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))  # B T D
        return out

    def weights(self, x: Tensor, position: Position, layer: int, temperature: float = 1.0) -> Tensor:
        """Return the attention weights (B, K, T, T) of the tokens (B, T, D), computed without a fused kernel."""
        q, k, _ = self.project(x)
        bias = self._bias(position, q, k, layer, temperature)
        q, k = position.rotate(q, k, layer)
        logits = (q @ k.transpose(-2, -1)) * (self.scale * temperature)  # B K T T
        weights: Tensor = (logits if bias is None else logits + bias).softmax(-1)
        return weights

    @staticmethod
    def _bias(position: Position, q: Tensor, k: Tensor, layer: int, temperature: float) -> Tensor | None:
        """Return the bias in the dtype of the queries, which fused kernels insist on."""
        bias = position.bias(q, k, layer)
        if bias is None:
            return None
        scaled = bias if temperature == 1.0 else bias * temperature
        return scaled.to(q.dtype)


class Block(nn.Module):
    """x + s1 Attention(norm1 x), then x + s2 MLP(norm2 x), with stochastic depth and optional LayerScale s.

    Args:
        dim: token width D.
        drop_path: probability of dropping each branch per sample.
        heads: number of heads K.
        mlp_ratio: hidden width of the MLP over D.
        layer_scale: initial LayerScale gain; 0 builds none.
        qkv_bias: whether the projection to q, k and v has a bias.
        mlp: feed-forward network, called as `mlp(in_features=, hidden_features=)`.
        norm: normalisation of the tokens, called with D; the network's last one is of the same kind.
    """

    def __init__(
        self,
        dim: int,
        drop_path: float,
        heads: int,
        mlp_ratio: float = 4.0,
        layer_scale: float = 0.0,
        qkv_bias: bool = True,
        mlp: Callable[..., nn.Module] = Mlp,
        norm: Callable[[int], nn.Module] = layer_norm,
    ) -> None:
        super().__init__()

        def scale() -> nn.Module:
            return LayerScale(dim, init_values=layer_scale) if layer_scale else nn.Identity()

        self.norm1 = norm(dim)
        self.attn = Attention(dim, heads, qkv_bias)
        self.ls1 = scale()
        self.norm2 = norm(dim)
        self.mlp = mlp(in_features=dim, hidden_features=int(dim * mlp_ratio))
        self.ls2 = scale()
        self.drop_path = DropPath(drop_path) if drop_path else nn.Identity()

    def forward(
        self, x: Tensor, position: Position, layer: int, temperature: float = 1.0, read: int | None = None
    ) -> Tensor:
        """Transform the tokens (B, T, D).

        Args:
            x: tokens.
            position: asked for rotation and bias.
            layer: number of this layer, from 0.
            temperature: factor of the attention logits.
            read: how many of the first tokens anybody reads; only these are computed and returned. None: all.
        """
        mixed = self.attn(self.norm1(x), position, layer, temperature, read)
        x = (x if read is None else x[:, :read]) + self.drop_path(self.ls1(mixed))
        x = x + self.drop_path(self.ls2(self.mlp(self.norm2(x))))
        return x
