import numpy as np
import pytest
import torch
from timm.layers import RelPosBias

from vitpos import reference
from vitpos.position import Geometry, Transfer
from vitpos.position.relative_2d import Relative2D


@pytest.mark.parametrize("prefix", [0, 1])
def test_bias_equals_the_formula_and_timm(grid, prefix):
    geometry = Geometry(grid, prefix, 32, 2, 3)
    module, q = Relative2D(geometry), torch.zeros(1)
    for layer, table in enumerate(module.tables):
        bias = module.bias(q, q, layer)
        other = RelPosBias(grid, 2, prefix_tokens=prefix)
        other.load_state_dict({"relative_position_bias_table": table.detach()})
        assert torch.equal(bias, other.get_bias())
        offsets = (2 * grid[0] - 1, 2 * grid[1] - 1)
        for head in range(2):
            plain = table[: offsets[0] * offsets[1], head].detach().double().numpy().reshape(offsets)
            np.testing.assert_array_equal(
                bias[0, head, prefix:, prefix:].detach(), reference.relative_bias(plain, grid).astype(np.float32)
            )


def test_registers_share_the_three_entries_of_cls():
    module, q = Relative2D(Geometry((3, 5), 3, 32, 2, 1)), torch.zeros(1)
    bias, table = module.bias(q, q, 0)[0], module.tables[0]
    for pairs, entry in ((bias[:, :3, 3:], -3), (bias[:, 3:, :3], -2), (bias[:, :3, :3], -1)):
        assert (pairs == table[entry][:, None, None]).all()


def offsets_function(grid, function):
    dy, dx = torch.meshgrid(*(torch.arange(1 - side, side).float() for side in grid), indexing="ij")
    return function(dy, dx).flatten()[:, None].expand(-1, 2)


@pytest.mark.parametrize("operator", ["bicubic_antialias", "bicubic", "bilinear", "linear_corners"])
def test_resizing_keeps_the_centre_and_symmetries(operator):
    module = Relative2D(Geometry((8, 8), 1, 32, 2, 1))
    with torch.no_grad():
        module.tables[0][:-3] = offsets_function((8, 8), lambda dy, dx: dy.abs() + 2 * dx.abs() + 0.1 * dy * dx)
    extra, q = module.tables[0][-3:].clone(), torch.zeros(1)
    native = module.bias(q, q, 0)[0, 0, 1, 1]
    for size in ((12, 6), (12, 12)):
        module.resize(size, Transfer(table=operator))
        bias = module.bias(q, q, 0)[0, 0]
        patches = bias[1:, 1:]
        torch.testing.assert_close(patches, patches.T)  # the function is even
        if size == (12, 12) and operator != "bicubic_antialias":
            torch.testing.assert_close(bias[1, 1], native, atol=1e-5, rtol=0)
        assert bias[0, 1] == extra[0, 0]
        assert bias[1, 0] == extra[1, 0]
        assert bias[0, 0] == extra[2, 0]


def test_a_shared_table_is_looked_up_once_per_pass(geometry, q, k):
    module = Relative2D(geometry, layers="shared")
    first, second, third = (module.bias(q, k, layer) for layer in range(3))
    assert first is second is third
    assert first.shape == (1, 2, geometry.tokens, geometry.tokens)
    assert len(list(module.parameters())) == 1


def test_weights_changed_between_passes_are_seen(geometry, q, k):
    module = Relative2D(geometry, layers="shared")
    module.bias(q, k, 0)
    torch.nn.init.ones_(module.tables[0])
    assert (module.bias(q, k, 0) == 1).all()


def test_zero_table_adds_nothing(geometry, q, k):
    assert not Relative2D(geometry, std=0.0).bias(q, k, 0).any()
