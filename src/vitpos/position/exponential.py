"""Exponential of skew-symmetric matrices, the rotation that each generates.

Letters: n matrices, E their size.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, factorial, log2, sqrt
from typing import Any

import torch
from torch import Tensor

SMALL = 2.5  # spectral norm up to which 16 powers give the exponential to float32
HALVINGS = 2  # further ones, after which 8 commutators give the gradient to 1e-6
CACHED = 2**16  # numbers of a piece whose powers stay in a CPU's cache


def _taylor(skew: Tensor) -> Tensor:
    """Return the sum of skew^i / i!, i = 0 .. 16, by Horner's scheme in the fourth power: six products."""
    square = torch.bmm(skew, skew)
    cube, fourth = torch.bmm(square, skew), torch.bmm(square, square)

    def terms(first: int) -> Tensor:
        out = (skew / factorial(first + 1)).add_(square, alpha=1 / factorial(first + 2))
        out.add_(cube, alpha=1 / factorial(first + 3)).diagonal(dim1=-2, dim2=-1).add_(1 / factorial(first))
        return out

    total = terms(12).add_(fourth, alpha=1 / factorial(16))
    for first in (8, 4, 0):
        total = torch.baddbmm(terms(first), total, fourth)
    return total


def _mean_turn(skew: Tensor, x: Tensor) -> Tensor:
    """Return the mean of exp(t M) X exp(-t M) over 0 <= t <= 1 as the sum of [M, [M, .. X]] / (i + 1)!.

    Both matrices are skew-symmetric, so that a commutator M X - X M is a product minus its transpose.
    """
    total, term = x.clone(), x
    for order in range(1, 9):
        product = torch.bmm(skew, term)
        term = (product - product.mT).mul_(1 / (order + 1))
        total += term
    return total


def _pieces(skew: Tensor) -> Iterator[tuple[Tensor, int]]:
    """Yield indices of matrices (n, E, E) treated together, and how often they are halved to reach `SMALL`.

    Together are matrices of like norms: as many as stay in a CPU's cache, on a GPU all. Eigenvalues come in pairs +-ia,
    so the spectral norm is at most the Frobenius norm over sqrt(2).
    """
    norms = skew.flatten(1).norm(dim=1).div(sqrt(2)).nan_to_num(0.0, posinf=0.0)  # what has diverged stays so
    norms, order = norms.sort()
    count = max(1, CACHED // skew[0].numel()) if skew.device.type == "cpu" else len(skew)
    largest = norms[count - 1 :: count].tolist() + norms[-1:].tolist()  # the last piece may be a shorter one
    for piece, norm in zip(order.split(count), largest, strict=False):
        yield piece, ceil(log2(norm / SMALL)) if norm > SMALL else 0


def _powers(small: Tensor, count: int) -> Iterator[Tensor]:
    """Yield exp(M), exp(2 M), exp(4 M), ..., `count` of them."""
    power = _taylor(small)
    for done in range(count):
        power = torch.bmm(power, power) if done else power
        yield power


# An operator of PyTorch's rather than an autograd function: how often to square depends on values, which compilers and
# `torch.export` cannot follow, and so they call the same code.
@torch.library.custom_op("vitpos::rotation_exponential", mutates_args=())
def _exponential(skew: Tensor) -> Tensor:
    """exp(M) = exp(M / 2^s)^(2^s) of (n, E, E)."""
    out = torch.empty_like(skew)
    for piece, doublings in _pieces(skew):
        for power in _powers(skew[piece] * 0.5**doublings, doublings + 1):
            turn = power
        out[piece] = turn
    return out


@torch.library.custom_op("vitpos::rotation_exponential_backward", mutates_args=())
def _backward(skew: Tensor, turn: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of M, skew-symmetric.

    PyTorch takes it from the exponential of matrices twice as large, eight times the work. For a rotation R = exp(M) it
    is the mean of exp(t M) R'G exp(-t M) over 0 <= t <= 1; over twice the time that is the mean of the former mean X
    and of R X R', two products per squaring. Squarings are done again rather than kept.
    """
    out = torch.empty_like(skew)
    for piece, doublings in _pieces(skew):
        small = skew[piece] * 0.5 ** (doublings + HALVINGS)
        torque = torch.bmm(turn[piece].mT, grad[piece])
        mean = _mean_turn(small, (torque - torque.mT) / 2)
        for power in _powers(small, doublings + HALVINGS):
            mean = torch.baddbmm(mean, torch.bmm(power, mean), power.mT, beta=0.5, alpha=0.5)
        out[piece] = mean
    return out


def _keep(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs, output)


_exponential.register_fake(torch.empty_like)
_backward.register_fake(lambda skew, turn, grad: torch.empty_like(skew))
_exponential.register_autograd(lambda ctx, grad: _backward(*ctx.saved_tensors, grad), setup_context=_keep)


def rotation_exponential(skew: Tensor) -> Tensor:
    """Return exp(M) of skew-symmetric matrices, by scaling, a Taylor polynomial and squaring.

    Entries are off by about 1e-7 of the spectral norm of M, as rounding and squaring have it. The gradient is the
    skew-symmetric part of the matrix function's, the only part that reaches what M was made of.

    Args:
        skew: M (..., E, E) in float32, with M' = -M.

    Returns:
        rotations (..., E, E).
    """
    turned: Tensor = _exponential(skew.reshape(-1, *skew.shape[-2:]))
    return turned.view(skew.shape)
