import pytest
import torch
from scipy.ndimage import zoom

from vitpos.position.resampling import resample, resampling_matrix

OPERATORS = ["bicubic_antialias", "bicubic", "bilinear", "linear_corners"]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("trained", [7, 8, 14, 16, 37])
def test_resampling_reaches_every_size_exactly(operator, trained):
    for size in (*range(1, 129, 3), 60, 61, 114, 115, 121, 122):
        matrix = resampling_matrix(size, trained, operator)
        if size == trained:
            assert matrix is None
        else:
            assert matrix.shape == (size, trained)
            torch.testing.assert_close(matrix.sum(1), torch.ones(size))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("size", [(24, 24), (12, 6), (3, 28)])
def test_two_matrices_equal_the_operator_on_an_image(operator, size):
    table = torch.randn(14, 9, 5)
    rows, columns = (resampling_matrix(new, old, operator) for new, old in zip(size, (14, 9), strict=True))
    ours = resample(table, rows, columns)
    if operator == "linear_corners":
        factors = (size[0] / 14, size[1] / 9, 1)
        expected = torch.from_numpy(zoom(table.double().numpy(), factors, order=1)).float()
    else:
        expected = torch.nn.functional.interpolate(
            table.permute(2, 0, 1)[None],
            size=size,
            mode=operator.split("_")[0],
            antialias=operator.endswith("antialias"),
        )[0].permute(1, 2, 0)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_resampling_runs_in_float32_under_autocast():
    table, matrix = torch.randn(4, 4, 8), resampling_matrix(6, 4, "bicubic")
    exact = resample(table, matrix, matrix)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(resample(table, matrix, matrix), exact)


def test_bicubic_keeps_more_of_the_norm_than_bilinear():
    table = torch.randn(14, 14, 64)

    def kept(operator):
        matrix = resampling_matrix(24, 14, operator)
        return resample(table, matrix, matrix).norm(dim=-1).mean() / table.norm(dim=-1).mean()

    assert kept("bicubic") > kept("bilinear")
