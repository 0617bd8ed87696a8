"""Figures of a table of positions."""

import numpy as np
import pytest

from vitpos.figures.table import (
    choose_dimensions,
    curves_figure,
    marked_rows_figure,
    similarities_figure,
    symmetric_limit,
    table_figure,
)

TABLE = np.random.default_rng(0).normal(size=(20, 30))


def test_limit_is_a_round_number_that_outliers_do_not_move():
    values = np.full(1000, 0.17)
    values[:5] = 40
    assert symmetric_limit(values) == 0.2
    assert symmetric_limit([0.2, -0.2]) == 0.2
    assert symmetric_limit(np.zeros(4)) == 1.0


def test_dimensions_follow_the_seed():
    assert choose_dimensions(768, 0).tolist() == choose_dimensions(768, 0).tolist()
    assert choose_dimensions(768, 0).tolist() != choose_dimensions(768, 1).tolist()
    assert len(set(choose_dimensions(768, 3))) == 12
    assert choose_dimensions(4, 0).tolist() == [0, 1, 2, 3]


def test_table_has_positions_along_and_dimensions_upwards():
    image = table_figure(TABLE, 2.0).axes[0].images[0]
    assert np.array_equal(image.get_array(), TABLE.T)
    assert image.get_clim() == (-2, 2)
    assert image.origin == "lower"


def test_curves_show_the_chosen_dimensions_with_their_zero_line():
    figure = curves_figure(TABLE, [3, 5, 8])
    drawn = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in drawn] == ["dimension 3", "dimension 5", "dimension 8"]
    for axes, dimension in zip(drawn, (3, 5, 8), strict=True):
        zero, curve = axes.lines
        assert set(zero.get_ydata()) == {0}
        assert np.array_equal(curve.get_ydata(), TABLE[:, dimension])


def test_similarities_share_the_range_from_minus_one_to_one():
    figure = similarities_figure(np.eye(4), np.eye(6), step=(10, 1))
    left, right = figure.axes[:2]
    assert left.images[0].get_clim() == right.images[0].get_clim() == (-1, 1)
    assert left.get_xlim() == (-0.5, 39.5)  # thinned maps keep the numbering of positions
    assert right.get_xlim() == (-0.5, 5.5)


@pytest.mark.parametrize("strands", [1, 2])
def test_marked_rows_are_drawn_beside_the_table(strands):
    figure = marked_rows_figure(TABLE, [0, 19], 1.0, strands=strands)
    left, right = figure.axes[0], figure.axes[1]
    assert [line.get_xdata()[0] for line in left.lines] == [0, 19]
    curves = [line for line in right.lines if len(line.get_ydata()) > 2]
    assert len(curves) == 2 * strands
    assert np.allclose(curves[0].get_ydata(), TABLE[0, ::strands])
    assert [label.get_text() for label in right.get_yticklabels()] == ["0", "19"]
