import numpy as np
import pytest
import torch
from timm.layers.pos_embed_sincos import RotaryEmbeddingCat, apply_rot_embed_cat

from vitpos import reference
from vitpos.position import Geometry, Transfer
from vitpos.position.rope_axial import RopeAxial


def expected(module, x, rows, columns, theta=100.0, max_frequency=1.0):
    """Rotate the patches of x (B, K, T, E) by the formula."""
    count = module.geometry.head_dim // 4
    frequencies = max_frequency * theta ** (-np.arange(count) / count)
    angles = reference.axial_angles(rows, columns, frequencies, module.order)
    out, prefix = x.double().numpy().copy(), module.geometry.prefix
    out[:, :, prefix:] = reference.rotate(out[:, :, prefix:], angles, module.pairing)
    return out


@pytest.mark.parametrize("pairing", ["interleaved", "half"])
@pytest.mark.parametrize("order", ["xy", "ij"])
@pytest.mark.parametrize(("theta", "offset"), [(100.0, 0.0), (10000.0, 1.0)])
def test_rotation_equals_the_formula_and_timm(geometry, q, k, pairing, order, theta, offset):
    module = RopeAxial(geometry, theta=theta, offset=offset, order=order, pairing=pairing)
    rows, columns = (np.arange(side) + offset for side in geometry.grid)
    other = RotaryEmbeddingCat(
        geometry.head_dim,
        temperature=theta,
        in_pixels=False,
        grid_offset=offset,
        grid_indexing=order,
        rotate_half=pairing == "half",
    ).get_embed(list(geometry.grid))
    for before, after in zip((q, k), module.rotate(q, k, 0), strict=True):
        np.testing.assert_allclose(after, expected(module, before, rows, columns, theta), atol=1e-6)
        timms = apply_rot_embed_cat(before[:, :, 1:], other, half=pairing == "half")
        torch.testing.assert_close(after[:, :, 1:], timms, atol=1e-5, rtol=0)


def test_normalised_coordinates_run_from_edge_to_edge_at_every_size(geometry, q, k):
    module = RopeAxial(geometry, coordinates="normalised", max_frequency=50.0)
    rows, columns = (2 * (np.arange(side) + 0.5) / side - 1 for side in geometry.grid)
    np.testing.assert_allclose(
        module.rotate(q, k, 0)[0], expected(module, q, rows, columns, max_frequency=50.0), atol=1e-5
    )
    assert not module.honours


@pytest.mark.parametrize("size", [(8, 8), (6, 10)], ids=str)
def test_protocols_at_another_size(size):
    module = RopeAxial(Geometry((4, 4), 0, 32, 2, 1))
    q = torch.randn(1, 2, size[0] * size[1], 16)
    module.resize(size, Transfer(coordinates="extrapolate"))
    np.testing.assert_allclose(module.rotate(q, q, 0)[0], expected(module, q, *map(range, size)), atol=1e-6)
    module.resize(size, Transfer(coordinates="rescale"))
    axes = [reference.rescaled(side, 4) for side in size]
    np.testing.assert_allclose(module.rotate(q, q, 0)[0], expected(module, q, *axes), atol=1e-6)
    module.resize(size, Transfer(coordinates="ntk"))
    if size[0] == size[1]:
        theta = reference.ntk_theta(100.0, size[0] / 4, module.geometry.head_dim // 2)
        np.testing.assert_allclose(module.rotate(q, q, 0)[0], expected(module, q, *map(range, size), theta), atol=1e-6)


def test_rescaling_equals_timms_reference_grid_up_to_a_shift():
    module = RopeAxial(Geometry((4, 4), 0, 32, 2, 1), theta=10000.0, order="ij")
    module.resize((8, 6), Transfer(coordinates="rescale"))
    other = RotaryEmbeddingCat(16, in_pixels=False, ref_feat_shape=[4, 4]).get_embed([8, 6])
    q, k = torch.randn(2, 1, 2, 1, 16).expand(-1, -1, -1, 48, -1)
    ours_q, ours_k = module.rotate(q, k, 0)
    timms = apply_rot_embed_cat(q, other) @ apply_rot_embed_cat(k, other).mT
    torch.testing.assert_close(ours_q @ ours_k.mT, timms, atol=1e-4, rtol=1e-5)


def test_transposed_image_with_transposed_grid_and_order_is_the_same(geometry):
    height, width = geometry.grid
    here = RopeAxial(geometry, order="xy").cos[1:].reshape(height, width, -1)
    there = RopeAxial(Geometry((width, height), 1, 32, 2, 3), order="ij").cos[1:].reshape(width, height, -1)
    assert torch.equal(here.transpose(0, 1), there)


def test_tables_do_not_depend_on_the_seed(geometry):
    first = RopeAxial(geometry)
    torch.manual_seed(1)
    assert torch.equal(first.cos, RopeAxial(geometry).cos)


@pytest.mark.parametrize("side", [14, 128])
def test_bfloat16_table_is_a_rounded_exact_table(side):
    module = RopeAxial(Geometry((side, side), 0, 16, 1, 1)).bfloat16()
    angles = reference.axial_angles(range(side), range(side), 100.0 ** (-np.arange(4) / 4))
    assert np.abs(module.cos.bfloat16().double().numpy() - np.cos(angles)).max() < 0.004


@pytest.mark.parametrize("head_dim", [6, 10, 65])
def test_head_width_must_be_divisible_by_four(head_dim):
    rule = rf"head width={head_dim} \(dim={2 * head_dim}, heads=2\): must be divisible by 4"
    with pytest.raises(ValueError, match=rule):
        RopeAxial(Geometry((3, 5), 1, 2 * head_dim, 2, 1))
    with pytest.raises(ValueError, match=r"theta=0\.5"):
        RopeAxial(Geometry((3, 5), 1, 8, 2, 1), theta=0.5)
