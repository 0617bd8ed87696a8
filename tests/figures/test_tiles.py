"""Panels of tiles: the right tile in the right place, one colour range, nothing undefined drawn as a value."""

import numpy as np
import pytest

from vitpos.figures.tiles import COSINE, Panel, Scale, mosaic, panels_figure


def one_hot_tiles(rows, columns):
    return np.eye(rows * columns).reshape(rows, columns, rows, columns)


def test_mosaic_puts_every_tile_and_every_value_in_its_place():
    tiles = one_hot_tiles(4, 6)
    image = mosaic(tiles, COSINE)
    assert image.shape == (4 * 5 - 1, 6 * 7 - 1, 4)
    brightest = COSINE.mappable.to_rgba(1.0, bytes=True)
    found = np.argwhere((image == brightest).all(-1))
    expected = [[r * 5 + r, c * 7 + c] for r in range(4) for c in range(6)]
    assert found.tolist() == sorted(expected)


def test_tiles_are_apart_and_undefined_values_are_grey():
    tiles = np.zeros((2, 2, 3, 3))
    tiles[0, 0, 1, 1] = np.nan
    image = mosaic(tiles, COSINE)
    assert (image[3] == 255).all() and (image[:, 3] == 255).all()
    assert image[1, 1].tolist() == [153, 153, 153, 255]


def test_gap_grows_with_the_tiles():
    assert mosaic(np.zeros((2, 2, 30, 30)), COSINE).shape[0] == 63


def test_all_panels_share_one_range():
    panels = [Panel("a", np.zeros((2, 2, 2, 2))), Panel("b", 7 * np.ones((2, 2, 2, 2)))]
    scale = Scale.of([panel.tiles for panel in panels], "value")
    assert (scale.low, scale.high) == (0, 7)
    figure = panels_figure(panels, scale)
    shown = [image.get_array()[0, 0].tolist() for axes in figure.axes for image in axes.images]
    assert shown == [list(scale.mappable.to_rgba(value, bytes=True)) for value in (0, 7)]


def test_constant_values_still_have_a_range():
    assert Scale.of([np.full(3, 2.0)], "value").high > 2
    assert Scale.of([np.full(3, np.nan)], "value").high == 1


def test_axes_are_labelled_in_patches_and_long_sides_thinned():
    figure = panels_figure([Panel("stem", one_hot_tiles(3, 20))], title="T", caption="C")
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("patch column", "patch row", "stem")
    assert axes.get_xticks().tolist() == [0, 3, 6, 9, 12, 15, 18]
    assert axes.get_yticks().tolist() == [0, 1, 2]
    assert figure.axes[-1].get_ylabel() == "cosine similarity"


@pytest.mark.parametrize("side", [2, 4, 14])
def test_panels_are_further_apart_than_their_tiles(side):
    figure = panels_figure([Panel(str(n), np.zeros((side,) * 4)) for n in range(3)])
    figure.draw_without_rendering()
    left, right = (axes.get_window_extent() for axes in figure.axes[:2])
    gap = max(1, side // 10)
    between_tiles = left.width * gap / (side * (side + gap) - gap)
    assert right.x0 - left.x1 > 1.5 * between_tiles


def test_unused_places_stay_empty():
    figure = panels_figure([Panel(str(n), one_hot_tiles(2, 2)) for n in range(5)], per_row=3)
    assert sum(bool(axes.images) for axes in figure.axes) == 5
    assert not figure.axes[5].axison


@pytest.mark.parametrize(
    ("panels", "problem"), [([], "nothing to draw"), ([Panel("flat", np.zeros((4, 4)))], "'flat': 2 dimensions")]
)
def test_refuses_what_it_cannot_draw(panels, problem):
    with pytest.raises(ValueError, match=problem):
        panels_figure(panels)
