"""Before, after, difference."""

import numpy as np
import pytest

from vitpos.figures.resize import Resized, resize_figure


def test_difference_is_after_minus_stretched():
    row = Resized("row", np.zeros((2, 2)), np.full((3, 4), 5.0), np.full((3, 4), 2.0))
    before, after, change = [axes.images[0] for axes in resize_figure([row], "value").axes[:3]]
    assert before.get_clim() == after.get_clim() == (0, 5)
    assert np.array_equal(change.get_array(), np.full((3, 4), 3.0))
    assert change.get_clim() == (-3, 3)


def test_refuses_no_rows():
    with pytest.raises(ValueError, match="nothing to draw"):
        resize_figure([], "value")
