"""Attention with a learned bias: PyTorch's own results and gradients, from fewer operations."""

import pytest
import torch
import torch.nn.functional as F

from vitpos.models.biased_attention import attend, pays


@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize("shape", [(1, 3, 0, 5), (2, 3, 0, 5), (1, 1, 0, 5), (3, 1, 5), (0, 5), (5,)])
def test_it_is_what_pytorch_computes(shape, queries):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, n, 3, 4, dtype=torch.float64).transpose(1, 2).requires_grad_() for n in (queries, 5, 5))
    size = [queries if length == 0 else length for length in shape]
    bias = torch.randn(size, dtype=torch.float64, requires_grad=True)
    gradients = []
    for function in (
        lambda: attend(q, k, v, bias, 0.3),
        lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.3),
    ):
        out = function()
        gradients.append([out, *torch.autograd.grad(out.square().sum(), (q, k, v, bias))])
    for found, expected in zip(*gradients, strict=True):
        assert found.shape == expected.shape
        torch.testing.assert_close(found, expected)


def test_gradients_against_finite_differences():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 2, 3, 2, dtype=torch.float64, requires_grad=True) for _ in range(3))
    bias = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *inputs: attend(*inputs, 0.7), (q, k, v, bias))


def test_it_serves_learned_biases_in_full_precision():
    q, bias = torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2, requires_grad=True)
    assert pays(q, bias)
    assert not pays(q, bias.detach())
    assert not pays(q.bfloat16(), bias)
    with torch.no_grad():
        assert not pays(q, bias)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not pays(q, bias)
