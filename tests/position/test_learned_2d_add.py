import pytest
import torch

from vitpos.position import Geometry, Transfer
from vitpos.position.learned_2d_add import Learned2DAdd


def test_each_patch_gets_its_column_plus_its_row(geometry):
    module = Learned2DAdd(geometry)
    code = module.code(0)[1:].reshape(*geometry.grid, -1)
    for y in range(geometry.grid[0]):
        for x in range(geometry.grid[1]):
            assert torch.equal(code[y, x], module.columns[0][x] + module.rows[0][y])
    assert not module.code(0)[0].any()


def test_absolute_coordinates_read_the_first_rows_and_end_with_the_table():
    module = Learned2DAdd(Geometry((4, 6), 1, 8, 2, 1), coordinates="absolute")
    native = module.code(0)[1:].reshape(4, 6, -1)
    module.resize((2, 6), Transfer())
    torch.testing.assert_close(module.code(0)[1:].reshape(2, 6, -1), native[:2])
    with pytest.raises(ValueError, match="4 rows, 5 were asked for"):
        module.resize((5, 6), Transfer())


def test_fractional_coordinates_stretch_over_the_image():
    module = Learned2DAdd(Geometry((4, 4), 0, 8, 2, 1))
    with torch.no_grad():
        for table in (module.rows[0], module.columns[0]):
            table.copy_(torch.linspace(0, 1, 4)[:, None].expand(-1, 8))
    module.resize((7, 7), Transfer(table="linear_corners"))
    torch.testing.assert_close(module.code(0)[:, 0].reshape(7, 7)[-1], torch.linspace(1, 2, 7))
