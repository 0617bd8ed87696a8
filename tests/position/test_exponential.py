import math

import pytest
import torch

from vitpos.position import exponential
from vitpos.position.exponential import rotation_exponential


def skew(*shape, norm):
    made = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    made = made - made.mT
    return made * (norm / torch.linalg.matrix_norm(made, 2)[..., None, None])


def exact(matrix, pull):
    """Exponential and skew-symmetric part of its gradient, by PyTorch in float64."""
    matrix = matrix.double().requires_grad_()
    turned = torch.linalg.matrix_exp(matrix)
    (grad,) = torch.autograd.grad(turned, matrix, pull.double())
    return turned.detach(), (grad - grad.mT) / 2


@pytest.mark.parametrize("size", [2, 3, 8, 64])
@pytest.mark.parametrize("norm", [1e-4, 0.3, 1.0, 7.5, 250.0])
def test_value_and_gradient_are_those_of_the_matrix_function(size, norm):
    matrix, pull = skew(2, 3, size, size, norm=norm), torch.randn(2, 3, size, size)
    turned, grad = exact(matrix, pull)
    matrix.requires_grad_()
    out = rotation_exponential(matrix)
    (own,) = torch.autograd.grad(out, matrix, pull)
    within = 1e-6 + 1e-7 * norm
    assert (out.detach() - turned).abs().max() < within
    assert (own - grad).norm() < 2 * within * grad.norm()


def test_every_matrix_is_halved_as_its_own_norm_asks():
    norms = [0.0, 300.0, 0.1, 5.0, 40.0, 1e-3, 80.0]
    matrix, pull = torch.stack([skew(8, 8, norm=norm) for norm in norms]), torch.randn(len(norms), 8, 8)
    turned, grad = exact(matrix, pull)
    for cached in (1, 2 * 64, 3 * 64, 2**16):  # pieces of one, two, three and all matrices
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(exponential, "CACHED", cached)
            given = matrix.clone().requires_grad_()
            out = rotation_exponential(given)
            (own,) = torch.autograd.grad(out, given, pull)
        torch.testing.assert_close(out.detach().double(), turned, atol=3e-5, rtol=0)
        torch.testing.assert_close(own.double(), grad, atol=1e-4, rtol=1e-4)


def test_halvings_follow_the_norm():
    matrices = torch.stack([skew(2, 2, norm=norm) for norm in (9.0, 2.4, 75.0)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exponential, "CACHED", 4)
        pieces = [(piece.tolist(), count) for piece, count in exponential._pieces(matrices)]
    assert pieces == [([1], 0), ([0], 2), ([2], 5)]


def test_no_turn_is_exactly_the_identity():
    assert torch.equal(rotation_exponential(torch.zeros(2, 4, 4)), torch.eye(4).expand(2, 4, 4))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_has_diverged_spoils_no_other_matrix(bad):
    matrix = skew(3, 4, 4, norm=2.0)
    matrix[1, 0, 1], matrix[1, 1, 0] = bad, -bad
    out = rotation_exponential(matrix)
    assert not out[1].isfinite().all()
    torch.testing.assert_close(out[::2].double(), exact(matrix[::2], out[::2])[0], atol=2e-6, rtol=0)


def test_rotations_stay_orthogonal():
    out = rotation_exponential(skew(16, 64, 64, norm=200.0))
    torch.testing.assert_close(out @ out.mT, torch.eye(64).expand(16, 64, 64), atol=2e-5, rtol=0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiler_runs_the_same_code(backend):
    matrix, pull = skew(2, 6, 6, norm=3.0).requires_grad_(), torch.randn(2, 6, 6)
    compiled = torch.compile(rotation_exponential, fullgraph=True, backend=backend)
    (out, grad), (expected, wanted) = [
        (turned, torch.autograd.grad(turned, matrix, pull)[0])
        for turned in (compiled(matrix), rotation_exponential(matrix))
    ]
    assert torch.equal(out, expected)
    assert torch.equal(grad, wanted)


def test_operators_keep_the_rules_of_pytorch():
    matrix = skew(2, 4, 4, norm=3.0)
    rules = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(exponential._exponential, (matrix.clone().requires_grad_(),), test_utils=rules)
    torch.library.opcheck(exponential._backward, (matrix, matrix, matrix), test_utils=rules)


def test_tensors_without_numbers_have_a_shape():
    assert rotation_exponential(torch.zeros(2, 3, 4, 4, device="meta")).shape == (2, 3, 4, 4)
