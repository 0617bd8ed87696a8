import numpy as np
import pytest
import torch

from vitpos import reference
from vitpos.position import Geometry, Transfer
from vitpos.position.sincos_1d import SinCos1D


def test_table_equals_the_formula(geometry):
    module = SinCos1D(geometry)
    np.testing.assert_allclose(module.table[1:], reference.sinusoids(geometry.patches, 32), atol=1e-6)
    assert not module.table[0].any()
    assert not list(module.parameters())


@pytest.mark.parametrize("size", [(6, 2), (8, 8)], ids=str)
def test_protocols_at_another_size(geometry, size):
    module, count = SinCos1D(geometry), size[0] * size[1]
    expected = {
        "extrapolate": reference.sinusoids(count, 32),
        "rescale": reference.sinusoids(reference.rescaled(count, geometry.patches), 32),
        "ntk": reference.sinusoids(count, 32, reference.ntk_theta(10000.0, count / geometry.patches, 32)),
    }
    for coordinates, table in expected.items():
        module.resize(size, Transfer(coordinates=coordinates))
        np.testing.assert_allclose(module.table[1:], table, atol=1e-6)


def test_phases_are_exact_at_large_grids_and_in_half_precision():
    module = SinCos1D(Geometry((128, 128), 0, 32, 2, 1))
    np.testing.assert_allclose(module.table, reference.sinusoids(128 * 128, 32), atol=1e-6)
    rounded = module.bfloat16().embed(torch.zeros(1, 128 * 128, 32, dtype=torch.bfloat16))[0]
    np.testing.assert_allclose(rounded.float(), reference.sinusoids(128 * 128, 32), atol=0.004)


@pytest.mark.parametrize("dim", [1, 7])
def test_odd_width_is_refused(dim):
    with pytest.raises(ValueError, match=f"dim={dim}"):
        SinCos1D(Geometry((3, 5), 1, dim, 1, 1))
    with pytest.raises(ValueError, match="theta=1"):
        SinCos1D(Geometry((3, 5), 1, 8, 1, 1), theta=1)
