import pytest
import torch

from vitpos.position import Geometry, Transfer
from vitpos.position.learned_2d import Learned2D
from vitpos.position.resampling import resample, resampling_matrix


def test_first_half_of_the_channels_is_x_and_second_half_y(geometry):
    module = Learned2D(geometry)
    height, width = geometry.grid
    code = module.code(0)[1:].reshape(height, width, 2, -1)  # H W 2 D/2
    for y in range(height):
        for x in range(width):
            assert torch.equal(code[y, x, 0], module.columns[0][x])
            assert torch.equal(code[y, x, 1], module.rows[0][y])
    assert not module.code(0)[0].any()


def test_tables_hold_rows_plus_columns_of_half_the_width():
    module = Learned2D(Geometry((14, 10), 1, 192, 3, 12))
    assert sum(p.numel() for p in module.parameters()) == (14 + 10) * 96


@pytest.mark.parametrize("size", [(6, 2), (4, 9), (9, 5)], ids=str)
def test_each_axis_is_resampled_alone(geometry, size):
    module = Learned2D(geometry)
    module.resize(size, Transfer())
    full = Learned2D(geometry)
    full.load_state_dict(module.state_dict())
    image = full.code(0)[1:].reshape(*geometry.grid, -1)
    matrices = [resampling_matrix(new, old, "bicubic_antialias") for new, old in zip(size, geometry.grid, strict=True)]
    expected = resample(image, *matrices).flatten(0, 1)
    torch.testing.assert_close(module.code(0)[1:], expected, atol=1e-6, rtol=1e-5)


def test_odd_width_is_refused():
    with pytest.raises(ValueError, match="dim=7"):
        Learned2D(Geometry((3, 5), 1, 7, 1, 2))
