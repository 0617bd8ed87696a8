import numpy as np
import pytest
import torch

from vitpos import reference
from vitpos.position import grid as maths


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
