"""Figures show every seed, carry their numbers, and are the same bytes every time."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import pytest

from vitpos.report import build_report, make_report
from vitpos.report.figures import draw_cost, draw_forest, draw_ranks, draw_seeds, render
from vitpos.report.html.svg import inline_svg
from vitpos.report.statistics import rank_arms


@pytest.fixture
def analysis(digits):
    return make_report(digits.folder).sections[0].analysis


def test_files_and_numbers(digits, read_csv):
    folder = build_report(digits.folder) / "figures"
    assert {path.name for path in folder.iterdir()} == {
        f"{name}.{ending}" for name in ("forest", "seeds", "cost") for ending in ("svg", "png", "csv")
    }
    forest = {row["position"]: row for row in read_csv(folder / "forest.csv")}
    assert forest["none"]["verdict"] == "worse"
    assert {key for key in forest["none"] if key.startswith("seed_")} == {f"seed_{seed}" for seed in range(5)}
    seeds = {row["position"]: row for row in read_csv(folder / "seeds.csv")}
    assert [float(seeds["learned_1d"][f"seed_{seed}"]) for seed in range(5)] == [0.93, 0.935, 0.925, 0.932, 0.928]


def test_every_seed_is_a_dot(analysis):
    svg = render(draw_seeds(analysis))["svg"].decode()
    # A group of marks per arm, one <use> per seed.
    groups = re.findall(r'<g id="PathCollection_\d+">.*?</g>\s*</g>', svg, flags=re.DOTALL)
    assert [group.count("<use ") for group in groups] == [5] * 5


@pytest.mark.parametrize("draw", [draw_forest, draw_seeds, draw_cost])
def test_same_numbers_same_bytes(analysis, draw):
    first, second = render(draw(analysis)), render(draw(analysis))
    assert first == second
    assert b"Matplotlib" not in first["svg"]
    assert b"Software" not in first["png"]


def test_no_figure_stays_open(digits):
    build_report(digits.folder)
    assert plt.get_fignums() == []


def test_the_readers_own_matplotlib_settings_do_not_matter(analysis):
    expected = render(draw_forest(analysis))
    with plt.rc_context({"font.size": 20, "axes.facecolor": "red", "svg.fonttype": "none"}):
        assert render(draw_forest(analysis)) == expected


def test_far_arms_get_a_panel_of_their_own(analysis):
    figure = draw_forest(analysis).draw()
    assert [axes.get_title() for axes in figure.axes] == ["all arms", "near the reference"]
    low, high = figure.axes[1].get_xlim()
    assert -5 < low < -0.5 < 0.5 < high < 5
    assert any("−14.9" in text.get_text() for text in figure.axes[1].texts)


def test_one_panel_where_all_arms_are_near(experiment):
    experiment.arm("learned_1d", [0.9, 0.91, 0.92])
    experiment.arm("sincos_2d", [0.91, 0.91, 0.92])
    figure = draw_forest(make_report(experiment.folder).sections[0].analysis).draw()
    assert len(figure.axes) == 1


def test_nothing_to_compare_no_forest(experiment):
    experiment.arm("learned_1d", [0.9, 0.91])
    assert draw_forest(make_report(experiment.folder).sections[0].analysis) is None


def test_ranks():
    picture = draw_ranks(["a", "b"], rank_arms([[0.9, 0.8], [0.8, 0.7], [0.9, 0.6]]), 3)
    assert picture.numbers == [{"position": "a", "rank": 1.0}, {"position": "b", "rank": 2.0}]
    assert render(picture)["svg"]


def test_inline_svg_is_themed_unique_and_named(analysis):
    picture = draw_forest(analysis)
    text = inline_svg(render(picture)["html"], "svg-forest", picture.title, "none: worse & more")
    assert text.startswith("<svg")
    assert 'role="img" aria-labelledby="svg-forest-title svg-forest-desc"' in text
    assert "none: worse &amp; more</desc>" in text
    assert "currentColor" in text
    assert "#1f2328" not in text
    assert "DejaVu" not in text
    assert "<style" not in text
    identifiers = re.findall(r'\bid="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))
    assert all(identifier.startswith("svg-forest-") for identifier in identifiers)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(identifiers)


def test_a_study_of_several_tasks_has_a_matrix(experiment):
    from vitpos.report.build import make_report, write_report

    for task, change in (("where_arrow", 0.0), ("where_bag", 0.1)):
        for arm, top1 in (("none", 0.125), ("rope_axial", 0.8)):
            for seed in (0, 1):
                data = {"name": task, "image_size": 24}
                experiment.run(arm, seed, top1 + change, config={"data": {"task": task}}, data=data)
    report = make_report(experiment.folder, "none")
    assert report.matrix is not None
    rows = {row["position"]: row for row in report.matrix.numbers}
    assert rows["none"]["where_arrow"] == pytest.approx(0.125)
    assert rows["rope_axial"]["where_bag"] == pytest.approx(0.9)
    folder = write_report(report)
    assert (folder / "figures" / "matrix.png").exists()
    assert "figures/matrix.svg" in (folder / "table.md").read_text()


def test_one_section_has_no_matrix(digits):
    from vitpos.report.build import make_report

    assert make_report(digits.folder).matrix is None
