import itertools

import numpy as np

from vitpos.figures.resolution import draw_resolution
from vitpos.figures.save import save


def row(size, top1, table="bicubic", coordinates="not_applicable", temperature="off", status="ok"):
    protocol = {"table": table, "coordinates": coordinates, "temperature": temperature}
    return {"height": size[0], "width": size[1], **protocol, "top1": top1, "status": status}


def curves(figure):
    return [[list(line.get_xdata()), list(line.get_ydata())] for line in figure.axes[0].get_lines()]


def test_one_line_per_protocol_rectangles_apart():
    rows = [row((16, 16), 0.5), row((8, 8), 0.75), row((8, 18), 0.25)]
    rows += [row((8, 8), 0.75, "bilinear"), row((16, 16), 0.625, "bilinear")]
    figure, arrays = draw_resolution(rows, (8, 8), "1-D learned")
    found = curves(figure)
    assert found[0] == [[8.0, 16.0], [75.0, 50.0]]
    assert found[1] == [[12.0], [25.0]]
    assert found[2] == [[8.0, 16.0], [75.0, 62.5]]
    assert found[-1][0] == [8.0, 8.0]  # the trained size
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["bicubic", "bilinear"]
    assert arrays["top1"] == [0.5, 0.75, 0.25, 0.75, 0.625]


def test_many_protocols_are_thinned_to_those_near_the_default():
    tables = ("bicubic", "bicubic_antialias", "bilinear", "linear_corners")
    factors = itertools.product(tables, ("ntk", "rescale", "extrapolate"), ("log_tokens", "off"))
    rows = [row((side, side), 0.5, *protocol) for protocol in factors for side in (8, 16)]
    figure, _ = draw_resolution(rows, (8, 8), "combined")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    base = "bicubic_antialias"
    others = ["bicubic, extrapolate", "bilinear, extrapolate", "linear_corners, extrapolate"]
    others += [f"{base}, ntk", f"{base}, rescale", f"{base}, extrapolate, log_tokens"]
    assert (labels[0], sorted(labels[1:])) == (f"{base}, extrapolate", sorted(others))
    assert "in more than one factor are not drawn" in figure.get_supxlabel().replace("\n", " ")


def test_sizes_without_an_accuracy_are_told_not_drawn():
    rows = [row((8, 8), 0.5), row((12, 12), 0.5), row((512, 512), None, status="out_of_memory")]
    figure, arrays = draw_resolution(rows, (8, 8), "none")
    assert "512x512 (out_of_memory)" in figure.get_supxlabel().replace("\n", " ")
    assert len(arrays["top1"]) == 2


def test_one_size_is_no_curve():
    assert draw_resolution([row((8, 8), 0.5)], (8, 8), "none") is None
    assert draw_resolution([row((8, 8), 0.5), row((9, 9), None)], (8, 8), "none") is None
    assert draw_resolution([], (8, 8), "none") is None


def test_saved_twice_it_is_the_same_file(tmp_path):
    rows = [row((8, 8), 0.5), row((12, 12), 0.25)]
    for name in ("one", "other"):
        figure, arrays = draw_resolution(rows, (8, 8), "none")
        save(figure, tmp_path / name, arrays)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()
    with np.load(tmp_path / "one.npz") as file:
        assert file["top1"].tolist() == [0.5, 0.25]
