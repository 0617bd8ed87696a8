"""The paper's table with ours beside it, and its numbers."""

from __future__ import annotations

import pytest

from vitpos.report import make_report
from vitpos.report.build import files
from vitpos.report.paper import GAP_POINTS, SAMPLING_POINTS, SPREAD_POINTS, TABLE8
from vitpos.report.statistics import sampling_half_width

CELLS = [cell.position for cell in TABLE8 if cell.position]


@pytest.fixture
def study(experiment):
    for place, position in enumerate(CELLS):
        for seed in range(3):
            metrics = {"fewshot/5": 0.5 + 0.01 * place + 0.001 * seed}
            experiment.run(position, seed, 0.8 + 0.01 * place + 0.001 * seed, metrics=metrics)
    return experiment


def test_layout_of_the_paper(study):
    table = make_report(study.folder).table8
    assert table.keys == ["No pos. emb.", "1-D pos. emb.", "2-D pos. emb.", "Rel. pos. emb."]
    assert [column.heading for column in table.columns][1:4] == [
        "Stem: paper",
        "Stem: ours, 5-shot",
        "Stem: ours, top-1",
    ]
    texts = [[cell.text for cell in row] for row in table.rows]
    assert texts[0][1:] == ["61.38", "50.10 ± 0.25", "80.10 ± 0.25", "N/A", "", "", "N/A", "", ""]
    assert [row[1] for row in texts] == ["61.38", "64.21", "64.00", "64.03"]
    assert [row[4] for row in texts] == ["N/A", "63.96", "64.05", "N/A"]
    assert [row[7] for row in texts] == ["N/A", "64.29", "64.02", "N/A"]
    assert texts[1][5] == "52.10 ± 0.25"


def test_caption_says_what_differs_and_what_the_numbers_support(study):
    text = " ".join(files(make_report(study.folder))["table8.md"].split())
    for words in (
        "Dosovitskiy et al. 2020",
        "What differs from the paper: the data, the network, the schedule",
        "one value per cell, without seeds or intervals",
        "any embedding beats none",
        "no order among the embeddings",
        "trained from scratch for 3 epochs, 3 seeds per cell",
    ):
        assert words in text


def test_derived_numbers_of_the_paper():
    """The caption's spread, gap and half-width follow from the cells."""
    none = next(cell.accuracy for cell in TABLE8 if cell.position == "none")
    others = [cell.accuracy for cell in TABLE8 if cell.accuracy and cell.position != "none"]
    assert len(others) == 7
    assert 100 * (max(others) - min(others)) == pytest.approx(SPREAD_POINTS, abs=0.005)
    assert [100 * (edge - none) for edge in (min(others), max(others))] == pytest.approx(GAP_POINTS, abs=0.005)
    assert 100 * sampling_half_width(0.64, 50_000) == pytest.approx(SAMPLING_POINTS, abs=0.005)


def test_a_missing_cell_is_a_dash(experiment):
    experiment.arm("none", [0.7, 0.71])
    experiment.arm("learned_1d", [0.8, 0.81])
    row = make_report(experiment.folder).table8.rows[1]
    assert [cell.text for cell in row][4:7] == ["63.96", "—", "—"]


def test_other_studies_have_no_such_table(experiment):
    experiment.arm("learned_1d", [0.8, 0.81])
    experiment.arm("rope_axial", [0.8, 0.81])
    assert make_report(experiment.folder).table8 is None
    assert "table8.md" not in files(make_report(experiment.folder))


def test_fine_tuned_top1_stands_beside(study):
    for seed in range(2):
        parent = next(study.folder.glob(f"learned_1d-s{seed}-*"))
        study.run(
            "learned_1d",
            seed,
            0.9,
            config={"data": {"image_size": 16}},
            parent={"name": parent.name, "image_size": 8},
        )
    table = make_report(study.folder).table8
    assert table.columns[4].heading == "Stem: ours, fine-tuned"
    assert table.rows[1][4].text == "90.00 ± 0.00 at 16 x 16 px"
