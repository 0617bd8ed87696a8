import pytest
import torch
from timm.layers import resample_abs_pos_embed

from vitpos.position import Geometry, Transfer
from vitpos.position.learned_1d import Learned1D

TIMM = {
    "bicubic_antialias": {"interpolation": "bicubic", "antialias": True},
    "bicubic": {"interpolation": "bicubic", "antialias": False},
    "bilinear": {"interpolation": "bilinear", "antialias": False},
}


def test_native_grid_returns_the_parameter_itself(geometry):
    module = Learned1D(geometry)
    assert module.code(0) is module.tables[0]
    assert module.tables[0].shape == (geometry.tokens, geometry.dim)


@pytest.mark.parametrize("operator", TIMM)
@pytest.mark.parametrize("prefix", [0, 1, 5])
@pytest.mark.parametrize("size", [(6, 2), (7, 7), (2, 9)], ids=str)
def test_resampling_equals_timm(grid, prefix, size, operator):
    module = Learned1D(Geometry(grid, prefix, 32, 2, 2), std=1.0)
    module.resize(size, Transfer(table=operator))
    table = module.tables[0].detach()[None]
    expected = resample_abs_pos_embed(table, list(size), list(grid), num_prefix_tokens=prefix, **TIMM[operator])[0]
    torch.testing.assert_close(module.code(0), expected, atol=1e-5, rtol=1e-5)


def test_prefix_rows_are_never_resampled():
    module = Learned1D(Geometry((14, 14), 1, 8, 2, 1))
    module.resize((24, 24), Transfer())
    code = module.code(0)
    assert code.shape == (577, 8)
    assert torch.equal(code[0], module.tables[0][0])


def test_zero_prefix_has_no_rows_and_adds_nothing(geometry):
    module = Learned1D(geometry, prefix="zero")
    assert module.tables[0].shape == (geometry.patches, geometry.dim)
    for size in (geometry.grid, (6, 2)):
        module.resize(size, Transfer())
        assert not module.code(0)[0].any()


def test_same_number_of_patches_in_another_shape_is_resampled():
    module = Learned1D(Geometry((2, 6), 1, 8, 2, 1))
    module.resize((6, 2), Transfer())
    assert not torch.equal(module.code(0), module.tables[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("operator", [*TIMM, "linear_corners"])
def test_half_precision_weights_are_resampled_in_float32(geometry, operator, dtype):
    module = Learned1D(geometry)
    module.resize((6, 2), Transfer(table=operator))
    exact = module.code(0)
    rounded = module.to(dtype).embed(torch.zeros(1, 13, 32, dtype=dtype))
    assert rounded.dtype == dtype
    torch.testing.assert_close(rounded[0].float(), exact, atol=1e-2, rtol=0)


def test_spread_of_the_initialisation_and_refusals(geometry):
    table = Learned1D(Geometry((14, 14), 1, 192, 3, 1)).tables[0]
    assert float(table.detach().std()) == pytest.approx(0.02, rel=0.02)
    with pytest.raises(ValueError, match="std=-1"):
        Learned1D(geometry, std=-1)
