import numpy as np
import pytest
import torch

from vitpos import reference
from vitpos.position.rotation import rotate_both, rotate_pairs

pairings = pytest.mark.parametrize("pairing", ["interleaved", "half"])
shapes = pytest.mark.parametrize("shape", [(5, 4), (3, 5, 4)], ids=["shared", "per_head"])


@pairings
@shapes
def test_equals_multiplication_by_a_complex_number(pairing, shape):
    x, angle = torch.randn(2, 3, 5, 8), torch.randn(shape)
    expected = reference.rotate(x.double().numpy(), angle.double().numpy(), pairing)
    np.testing.assert_allclose(rotate_pairs(x, angle.cos(), angle.sin(), pairing), expected, atol=1e-6)


@pairings
@shapes
def test_gradients_of_input_and_angle(pairing, shape):
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64, requires_grad=True)
    angle = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    fixed = angle.detach()
    assert torch.autograd.gradcheck(lambda x: rotate_pairs(x, fixed.cos(), fixed.sin(), pairing), x)
    assert torch.autograd.gradcheck(lambda x, angle: rotate_both(x, 2 * x, angle, pairing), (x, angle))


@pairings
def test_zero_angle_passes_bits_through_and_norms_are_kept(pairing):
    x, angle = torch.randn(2, 3, 5, 8), torch.randn(5, 4)
    angle[:2] = 0
    turned = rotate_pairs(x, angle.cos(), angle.sin(), pairing)
    assert torch.equal(turned[:, :, :2], x[:, :, :2])
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_what_it_is_and_angles_learn_in_float32(dtype):
    q, k = torch.randn(2, 2, 3, 5, 8).to(dtype)
    angle = torch.randn(3, 5, 4, requires_grad=True)
    turned, _ = rotate_both(q.requires_grad_(), k, angle, "half")
    turned.sum().backward()
    assert turned.dtype == q.grad.dtype == dtype
    assert angle.grad.dtype == torch.float32


def test_the_two_layouts_differ_by_a_permutation_of_channels():
    x, angle = torch.randn(1, 1, 5, 8), torch.randn(5, 4)
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    interleaved = rotate_pairs(x, angle.cos(), angle.sin(), "interleaved")
    half = rotate_pairs(x[..., order], angle.cos(), angle.sin(), "half")
    torch.testing.assert_close(interleaved[..., order], half)
