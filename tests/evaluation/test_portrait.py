"""Figures of a module: which, and what they say."""

import numpy as np
import pytest
import torch
from matplotlib.text import Text

from vitpos.evaluation.portrait import draw_attention, draw_position
from vitpos.evaluation.resized import draw_resize
from vitpos.position import Geometry, Transfer

GEOMETRY = Geometry((3, 4), 1, 32, 2, 2)


def texts(figure):
    return " ".join(text.get_text().replace("\n", " ") for text in figure.findobj(Text))


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("learned_1d", {"similarity"}),
        ("rope_axial", {"kernel"}),
        ("rope_mixed_ape", {"similarity", "kernel", "kernel_heads"}),
        ("alibi_2d", {"kernel", "kernel_heads"}),
        ("relative_1d", {"strength", "strength_heads"}),
        ("peg", {"response"}),
    ],
)
def test_names_of_the_figures(position, name, figures):
    assert set(draw_position(position(name)(geometry=GEOMETRY))) == figures


def test_figure_says_what_it_is_and_where_from(position):
    drawing = draw_position(position("rope_axial")(geometry=GEOMETRY), "seed 3; 30 epochs.")["kernel"]
    said = texts(drawing.figure)
    for part in ("position-only attention kernel", "All heads are alike", "seed 3; 30 epochs.", "layers 0-1"):
        assert part in said
    assert np.asarray(drawing.arrays["tiles"]).shape == (1, 3, 4, 3, 4)
    assert drawing.arrays["names"] == ["layers 0-1"]


def test_heads_of_one_layer_get_panels_and_of_several_a_tile_each(position):
    alike = draw_position(position("alibi_2d")(geometry=GEOMETRY))["kernel_heads"]
    assert np.asarray(alike.arrays["tiles"]).shape == (2, 3, 4, 3, 4)  # heads
    apart = draw_position(position("rope_mixed")(geometry=GEOMETRY))["kernel_heads"]
    assert np.asarray(apart.arrays["tiles"]).shape == (2, 2, 3, 4)  # layers, heads, one tile
    assert "row 1, column 2" in texts(apart.figure)


def test_attention_distances_of_a_record():
    drawing = draw_attention({"attention_distance": [[1.0, 2.0]], "attention_distance_uniform": 3.0}, "seed 0.")
    assert drawing.arrays["distances"].shape == (1, 2)
    assert "seed 0." in texts(drawing.figure) and "uniform attention" in texts(drawing.figure)


def test_resize_leaves_the_module_as_it_was(position):
    module = position("sincos_2d")(geometry=GEOMETRY)
    before = module.embed(torch.zeros(1, 13, 32))
    drawing = draw_resize(module, (6, 8), Transfer(coordinates="rescale"), "seed 0.")
    assert module.grid == (3, 4) and module.transfer == Transfer()
    assert torch.equal(module.embed(torch.zeros(1, 13, 32)), before)
    assert np.shape(drawing.arrays["before_0"]) == (3, 4)
    assert np.shape(drawing.arrays["after_0"]) == (6, 8)
    assert "coordinates rescale" in texts(drawing.figure)


def test_resize_of_a_module_without_table_shows_its_kernel(position):
    assert draw_resize(position("rope_axial")(geometry=GEOMETRY), (5, 5), Transfer()).arrays["names"] == [
        "kernel of the centre"
    ]


def test_resize_of_nothing_is_refused(position):
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_resize(position("none")(geometry=GEOMETRY), (5, 5), Transfer())
