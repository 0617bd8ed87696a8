import numpy as np
import pytest
import torch

from vitpos import reference
from vitpos.position import Geometry, Transfer
from vitpos.position.relative_1d import Relative1D
from vitpos.position.resampling import resampling_matrix


@pytest.mark.parametrize("grid", [(4, 4), (3, 5), (1, 6), (6, 1), (1, 1)], ids=str)
@pytest.mark.parametrize("prefix", [0, 1, 3])
def test_bias_is_shaws_extra_attention(grid, prefix):
    geometry = Geometry(grid, prefix, 16, 2, 2)
    module = Relative1D(geometry, std=1.0)
    q = torch.randn(2, 2, geometry.tokens, 8)
    bias = module.bias(q, q, 1).detach().numpy()
    table = module.tables[1].detach().double().numpy()
    for image in range(2):
        for head in range(2):
            expected = reference.relative_scores(q[image, head, prefix:].double().numpy(), table)
            np.testing.assert_allclose(bias[image, head, prefix:, prefix:], expected, atol=1e-5)
    assert not bias[:, :, :prefix].any()
    assert not bias[:, :, :, :prefix].any()


def test_offsets_are_resampled_at_another_size(geometry):
    module = Relative1D(geometry, std=1.0)
    module.resize((6, 2), Transfer(table="bilinear"))
    matrix = resampling_matrix(23, 2 * geometry.patches - 1, "bilinear").double().numpy()
    q = torch.randn(1, 2, 13, 16)
    expected = reference.relative_scores(q[0, 0, 1:].double().numpy(), matrix @ module.tables[0].detach().numpy())
    np.testing.assert_allclose(module.bias(q, q, 0)[0, 0, 1:, 1:].detach(), expected, atol=1e-5)


def test_zero_table_adds_nothing(geometry, q, k):
    assert not Relative1D(geometry, std=0.0).bias(q, k, 0).any()


def test_gradient_equals_that_of_the_plain_formula(geometry, q, k):
    module = Relative1D(geometry).double()
    q = q.double().requires_grad_()
    weights = torch.randn(2, 2, geometry.patches, geometry.patches, dtype=torch.float64)
    (module.bias(q, k, 0)[..., 1:, 1:] * weights).sum().backward()
    ours = q.grad.clone(), module.tables[0].grad.clone()
    q.grad = module.tables[0].grad = None
    n = torch.arange(geometry.patches)
    offsets = module.tables[0][n[:, None] - n + geometry.patches - 1]  # N N E
    (torch.einsum("bkie,ije->bkij", q[:, :, 1:], offsets) / 4 * weights).sum().backward()
    for left, right in zip(ours, (q.grad, module.tables[0].grad), strict=True):
        torch.testing.assert_close(left, right)
