"""The attention distance figure."""

import numpy as np
import pytest

from vitpos.figures.attention import distance_figure


def test_a_dot_per_head_and_the_mean_per_layer():
    values = np.array([[1.0, 3.0], [2.0, 6.0], [4.0, 4.0]])
    axes = distance_figure(values, uniform=5.0, title="title").axes[0]
    dots, mean, uniform = axes.lines
    assert dots.get_xdata().tolist() == [0, 0, 1, 1, 2, 2]
    assert dots.get_ydata().tolist() == values.ravel().tolist()
    assert mean.get_ydata().tolist() == [2, 4, 4]
    assert set(uniform.get_ydata()) == {5.0}
    assert axes.get_ylabel() == "mean attention distance (px)"
    assert axes.get_ylim()[0] == 0


def test_refuses_distances_without_heads():
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        distance_figure(np.zeros(3))
