import numpy as np
import pytest
import torch

from vitpos import reference
from vitpos.position import Geometry, Transfer
from vitpos.position.alibi_2d import Alibi2D


def test_bias_equals_the_formula_and_is_zero_for_prefix_and_diagonal(geometry, q, k):
    bias = Alibi2D(geometry).bias(q, k, 0)[0]
    for head, slope in enumerate((2**-4, 2**-8)):
        np.testing.assert_allclose(bias[head, 1:, 1:], reference.alibi(geometry.grid, slope), atol=1e-6)
    assert torch.equal(bias, bias.mT)
    assert not bias.diagonal(dim1=1, dim2=2).any()
    assert not bias[:, 0].any()


def test_explicit_and_learned_slopes(geometry, q, k):
    assert not Alibi2D(geometry, slopes=[0.0, 0.0]).bias(q, k, 0).any()
    explicit, learned = Alibi2D(geometry, slopes=[2**-4, 2**-8]), Alibi2D(geometry, slopes="learned")
    assert torch.equal(explicit.bias(q, k, 0), learned.bias(q, k, 0))
    assert [p.shape for p in learned.parameters()] == [(2,)]
    assert not list(explicit.parameters())


def test_rescaled_distances_are_those_of_the_trained_grid():
    module, q = Alibi2D(Geometry((4, 4), 0, 32, 2, 1), slopes=[1.0, 1.0]), torch.zeros(1)
    module.resize((8, 12), Transfer(coordinates="rescale"))
    assert float(module.bias(q, q, 0)[0, 0, 0, 1]) == pytest.approx(-4 / 12)
    assert float(module.bias(q, q, 0)[0, 0, 0, 12]) == pytest.approx(-4 / 8)


def test_one_slope_per_head_is_needed(geometry):
    with pytest.raises(ValueError, match=r"slopes=\[1\.0\]: give one for each of 2 heads"):
        Alibi2D(geometry, slopes=[1.0])
