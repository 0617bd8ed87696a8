import numpy as np
import pytest
import torch
from scipy.ndimage import zoom

from vitpos import reference
from vitpos.position import grid as maths

OPERATORS = ["bicubic_antialias", "bicubic", "bilinear", "linear_corners"]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("trained", [7, 8, 14, 16, 37])
def test_resampling_reaches_every_size_exactly(operator, trained):
    for size in (*range(1, 129, 3), 60, 61, 114, 115, 121, 122):
        matrix = maths.resampling_matrix(size, trained, operator)
        if size == trained:
            assert matrix is None
        else:
            assert matrix.shape == (size, trained)
            torch.testing.assert_close(matrix.sum(1), torch.ones(size))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("size", [(24, 24), (12, 6), (3, 28)])
def test_two_matrices_equal_the_operator_on_an_image(operator, size):
    table = torch.randn(14, 9, 5)
    rows, columns = (maths.resampling_matrix(new, old, operator) for new, old in zip(size, (14, 9), strict=True))
    ours = maths.resample(table, rows, columns)
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
    table, matrix = torch.randn(4, 4, 8), maths.resampling_matrix(6, 4, "bicubic")
    exact = maths.resample(table, matrix, matrix)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(maths.resample(table, matrix, matrix), exact)


def test_bicubic_keeps_more_of_the_norm_than_bilinear():
    table = torch.randn(14, 14, 64)

    def kept(operator):
        matrix = maths.resampling_matrix(24, 14, operator)
        return maths.resample(table, matrix, matrix).norm(dim=-1).mean() / table.norm(dim=-1).mean()

    assert kept("bicubic") > kept("bilinear")


def test_relative_index_of_every_pair_of_a_rectangle():
    index = maths.relative_index((3, 5))
    for i in range(15):
        for j in range(15):
            dy, dx = i // 5 - j // 5, i % 5 - j % 5
            assert index[i, j] == (dy + 2) * 9 + dx + 4


@pytest.mark.parametrize("prefix", [0, 1, 3])
def test_prefixed_index_names_the_three_kinds_of_pairs(prefix):
    index, entries = maths.prefixed_index((3, 5), prefix), 5 * 9
    assert torch.equal(index[prefix:, prefix:], maths.relative_index((3, 5)))
    assert (index[:prefix, prefix:] == entries).all()
    assert (index[prefix:, :prefix] == entries + 1).all()
    assert (index[:prefix, :prefix] == entries + 2).all()


def test_coordinates_of_the_three_protocols():
    assert maths.axis_coordinates(5, 3, "extrapolate").tolist() == [0, 1, 2, 3, 4]
    assert maths.axis_coordinates(5, 3, "ntk").tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(maths.axis_coordinates(5, 3, "rescale"), reference.rescaled(5, 3))
    assert maths.axis_coordinates(7, 7, "rescale").tolist() == list(range(7))


@pytest.mark.parametrize("count", [2, 4, 16])
def test_ntk_factors_equal_the_stretched_base(count):
    ladder = maths.frequency_ladder(count, 100.0) * maths.ntk_factors(count, 24, 14, "ntk")
    theta = reference.ntk_theta(100.0, 24 / 14, 2 * count)
    np.testing.assert_allclose(ladder, maths.frequency_ladder(count, theta), rtol=1e-12)
    assert ladder[0] == 1


def test_one_frequency_has_nothing_to_stretch():
    assert maths.ntk_factors(1, 24, 14, "ntk").tolist() == [1]


def test_ladder_with_endpoint_ends_at_the_base():
    assert maths.frequency_ladder(5, 100.0, endpoint=True)[-1] == pytest.approx(0.01)
    assert maths.frequency_ladder(1, 100.0, endpoint=True).tolist() == [1]


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (3, [2**-4, 2**-8, 2**-2]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
        (8, [2**-k for k in range(1, 9)]),
        (1, [2**-8]),
    ],
)
def test_slopes_of_any_number_of_heads(heads, slopes):
    assert maths.alibi_slopes(heads).tolist() == pytest.approx(slopes)


def test_twelve_heads_span_what_the_literature_says():
    slopes = maths.alibi_slopes(12)
    assert slopes.min() == pytest.approx(2**-8)
    assert slopes.max() == pytest.approx(2**-0.5)


def test_offsets_are_symmetric_around_zero():
    offsets = maths.relative_offsets(5, 3, "rescale")
    assert offsets[4] == 0
    torch.testing.assert_close(offsets, -offsets.flip(0))
    assert offsets[-1] == pytest.approx(4 * 3 / 5)
