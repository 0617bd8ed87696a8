"""The position-only attention kernel: what position does to attention when every token holds the same content.

**Contents.** Averages run over the 2E vectors +-sqrt(E) e_i of a space of width E: unit variance per channel, and a
spherical 3-design (Delsarte, Goethals, Seidel 1977), so a mean over them equals the mean over all directions for
anything up to cubic in the content. Rotations (quadratic), contextual biases (linear) and plain biases (constant) are
therefore averaged exactly, without a random draw.

Letters: B contents, P prefix, N = H*W patches, T = P + N, K heads, E head width.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from vitpos.evaluation.inference import evaluating
from vitpos.position import Position

CHUNK = 2**24  # numbers in the largest intermediate tensor


def contents(width: int, cost: int, device: torch.device) -> Iterator[Tensor]:
    """Yield the 2E contents (B, E) in chunks, for a cost in numbers per content."""
    basis = torch.eye(width, device=device) * width**0.5
    yield from torch.split(torch.cat([basis, -basis]), max(1, CHUNK // cost))


def device_of(position: Position) -> torch.device:
    """Return where a module's numbers are; the CPU for one that has none."""
    held = next(itertools.chain(position.parameters(), position.buffers()), None)
    return torch.device("cpu") if held is None else held.device


def attention_kernel(position: Position, layer: int) -> tuple[Tensor, Tensor]:
    """Return what position alone does to the attention logits of a layer.

    With content c in every token, position changes the logit of query i and key j by
    l_ij(c) = (<rotate(c)_i, rotate(c)_j> - <c, c>) / sqrt(E) + bias(c, c)_ij.

    Returns:
        The mean of l over contents (K, N, N), and the root mean square over contents of the part of the bias that
        depends on content (K, N, N), zero for a bias that does not. Prefix tokens are left out.
    """
    geometry, prefix = position.geometry, position.geometry.prefix
    heads, width = geometry.heads, geometry.head_dim
    tokens = prefix + position.grid[0] * position.grid[1]
    total = torch.zeros(heads, tokens, tokens, device=device_of(position))
    bias_sum, bias_squares = torch.zeros_like(total), torch.zeros_like(total)
    with evaluating(position):
        for content in contents(width, heads * tokens * max(tokens, width), total.device):
            q = content[:, None, None].expand(-1, heads, tokens, -1)  # B K T E
            rotated_q, rotated_k = position.rotate(q, q, layer)
            if not (torch.equal(rotated_q, q) and torch.equal(rotated_k, q)):
                products = torch.einsum("bkie,bkje->kij", rotated_q.float(), rotated_k.float())
                total += (products - len(content) * width) / width**0.5  # <c, c> = E for all contents
            bias = position.bias(q, q, layer)
            if bias is not None:
                each = bias.float().expand(len(content), heads, tokens, tokens)  # B K T T, a view
                bias_sum += each.sum(0)
                bias_squares += each.square().sum(0)
    count = 2 * width
    mean_bias, mean_square = bias_sum / count, bias_squares / count
    # Terms that cancel exactly leave rounding errors, which must not pass for a pattern.
    mean_bias[mean_bias.square() <= 1e-10 * mean_square] = 0
    variance = mean_square - mean_bias.square()
    variance[variance <= 1e-5 * mean_square] = 0
    mean = total / count + mean_bias
    return mean[:, prefix:, prefix:], variance.sqrt()[:, prefix:, prefix:]
