import numpy as np
import pytest
import torch
from timm.layers.pos_embed_sincos import build_sincos2d_pos_embed

from vitpos import reference
from vitpos.position import Geometry, Transfer
from vitpos.position.sincos_2d import SinCos2D


@pytest.mark.parametrize("endpoint", [False, True], ids=["mae", "big_vision"])
def test_layouts_of_mae_and_big_vision(geometry, endpoint):
    module = SinCos2D(geometry, endpoint=endpoint)
    expected = reference.sinusoids_2d(geometry.grid, 32, endpoint=endpoint)
    np.testing.assert_allclose(module.table[1:], expected, atol=1e-6)
    assert not module.table[0].any()


@pytest.mark.parametrize("grouping", ["function", "axis"])
def test_layouts_of_timm(geometry, grouping):
    module = SinCos2D(geometry, order="ij", grouping=grouping)
    expected = build_sincos2d_pos_embed(list(geometry.grid), 32, interleave_sin_cos=grouping == "axis")
    torch.testing.assert_close(module.table[1:], expected, atol=1e-5, rtol=0)


def test_order_swaps_the_halves_and_transposing_the_grid_swaps_them_back(geometry):
    height, width = geometry.grid
    xy = SinCos2D(geometry, order="xy").table[1:].reshape(height, width, -1)
    ij = SinCos2D(Geometry((width, height), 1, 32, 2, 3), order="ij").table[1:].reshape(width, height, -1)
    assert torch.equal(xy.transpose(0, 1), ij)


def test_patches_of_a_row_share_the_half_of_y_and_differ_in_the_half_of_x():
    table = SinCos2D(Geometry((3, 5), 0, 32, 2, 1)).table.reshape(3, 5, 32)
    x, y = table.chunk(2, dim=-1)
    assert (y == y[:, :1]).all()
    assert (x == x[:1]).all()
    assert len(x[0].unique(dim=0)) == 5
    assert len(y[:, 0].unique(dim=0)) == 3


def test_protocols_at_another_size():
    module = SinCos2D(Geometry((4, 4), 0, 16, 2, 1))
    module.resize((8, 8), Transfer(coordinates="ntk"))
    np.testing.assert_allclose(
        module.table, reference.sinusoids_2d((8, 8), 16, reference.ntk_theta(10000.0, 2.0, 8)), atol=1e-6
    )
    module.resize((8, 8), Transfer(coordinates="rescale"))
    x = reference.rescaled(8, 4)
    expected = np.sin(x[:, None] * 10000.0 ** (-np.arange(4) / 4))
    np.testing.assert_allclose(module.table.reshape(8, 8, 4, 4)[3, :, 0], expected, atol=1e-6)


def test_fractional_coordinates_are_the_same_at_every_size():
    module = SinCos2D(Geometry((4, 4), 0, 16, 2, 1), coordinates="fractional")
    module.resize((12, 12), Transfer())
    centre = module.table.reshape(12, 12, -1)[1::3, 1::3]  # centres of the trained patches
    native = SinCos2D(Geometry((4, 4), 0, 16, 2, 1)).table.reshape(4, 4, -1)
    torch.testing.assert_close(centre, native, atol=1e-6, rtol=0)
    assert not module.honours


@pytest.mark.parametrize("dim", [2, 6, 7])
def test_width_must_be_divisible_by_four(dim):
    with pytest.raises(ValueError, match=rf"dim={dim}.*divisible by 4"):
        SinCos2D(Geometry((3, 5), 1, dim, 1, 1))
