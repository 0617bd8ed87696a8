"""Writing figures: three files, the same bytes for the same numbers, nothing left open."""

import hashlib
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import _pylab_helpers

from vitpos.figures.save import save
from vitpos.figures.tiles import Panel, panels_figure


def draw():
    return panels_figure([Panel("stem", np.eye(6).reshape(2, 3, 2, 3))], title="title", caption="caption")


def digests(files):
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]


def test_writes_png_svg_and_the_numbers(tmp_path):
    files = save(draw(), tmp_path / "new" / "panel", {"tiles": np.eye(6), "names": ["stem"]})
    assert [path.name for path in files] == ["panel.png", "panel.svg", "panel.npz"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in files[1].read_text()
    with np.load(files[2], allow_pickle=False) as numbers:
        assert numbers["tiles"].shape == (6, 6)
        assert numbers["names"].tolist() == ["stem"]


def test_same_numbers_same_bytes(tmp_path):
    first = save(draw(), tmp_path / "a", {"x": np.arange(5)})
    second = save(draw(), tmp_path / "b", {"x": np.arange(5)})
    assert digests(first) == digests(second)


def test_names_with_dots_keep_them(tmp_path):
    assert save(draw(), tmp_path / "vit.v1", {})[0].name == "vit.v1.png"


def test_fifty_figures_leave_nothing_open(tmp_path):
    before = dict(mpl.rcParams)
    for _ in range(50):
        figure = panels_figure([Panel("", np.zeros((1, 1, 1, 1)))])
    save(figure, tmp_path / "last", {})
    assert not figure.axes
    assert _pylab_helpers.Gcf.get_num_fig_managers() == 0
    assert dict(mpl.rcParams) == before


def test_figures_know_neither_training_nor_torch():
    import subprocess

    folder = Path(__file__).parents[2] / "src" / "vitpos" / "figures"
    modules = [f"vitpos.figures.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"]
    banned = {"torch", "wandb", "pytorch_lightning", "matplotlib.pyplot"}
    code = f"import sys, {', '.join(modules)}; print(sorted({banned} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
