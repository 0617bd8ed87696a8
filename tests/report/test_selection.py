"""A tuned setting is chosen on validation data; test results of the other values are not read."""

from __future__ import annotations

import pytest

from vitpos.report import make_report
from vitpos.report.build import files

LR = "optim.lr"


def sweep(experiment, arm: str, scores: dict[float, tuple[float, float]], seeds: int = 3, **options) -> None:
    """Write an arm at several learning rates: lr -> (validation, test)."""
    for lr, (val, test) in scores.items():
        for seed in range(seeds):
            wiggle = 0.001 * seed
            experiment.run(
                arm, seed, test + wiggle, config={"optim": {"lr": lr}}, metrics={"val/top1": val + wiggle}, **options
            )


@pytest.fixture
def study(experiment):
    sweep(experiment, "learned_1d", {0.001: (0.90, 0.89), 0.003: (0.91, 0.90), 0.01: (0.80, 0.95)})
    sweep(experiment, "none", {0.001: (0.75, 0.76), 0.003: (0.70, 0.69), 0.01: (0.60, 0.99)})
    return experiment


def test_shared_and_tuned_columns(study, read_csv):
    rows = {row["position"]: row for row in read_csv(files(make_report(study.folder))["table.csv"])}
    # Shared: mean validation 0.825 at 0.001, 0.805 at 0.003, 0.70 at 0.01.
    assert {row["shared_setting"] for row in rows.values()} == {"optim.lr=0.001"}
    assert float(rows["learned_1d"]["test_top1_mean"]) == pytest.approx(0.891)
    assert float(rows["none"]["delta_mean"]) == pytest.approx(-0.13)
    # Tuned: each arm's own best validation; never the lucky test result at 0.01.
    assert rows["learned_1d"]["tuned_setting"] == "optim.lr=0.003"
    assert rows["none"]["tuned_setting"] == "optim.lr=0.001"
    assert float(rows["learned_1d"]["tuned_top1_mean"]) == pytest.approx(0.901)
    assert float(rows["none"]["tuned_delta_mean"]) == pytest.approx(-0.14)
    assert {row["n"] for row in rows.values()} == {"3"}


def test_the_choice_is_named(study):
    text = files(make_report(study.folder))["table.md"]
    assert "chosen by mean val/top1" in text
    assert "optim.lr=0.001" in text
    assert "95.1" not in text  # a test result that was not chosen is not shown
    assert "confounder" not in text


def test_settings_with_fewer_seeds_do_not_take_part(experiment):
    sweep(experiment, "learned_1d", {0.001: (0.90, 0.9)})
    sweep(experiment, "learned_1d", {0.003: (0.99, 0.9)}, seeds=1)
    view = make_report(experiment.folder).sections[0]
    assert view.analysis.selection.tuned["learned_1d"] == ((LR, "0.001"),)
    assert any("for want of seeds: optim.lr=0.003" in flag.text for flag in view.flags)


def test_no_value_in_common(experiment):
    sweep(experiment, "learned_1d", {0.001: (0.9, 0.9), 0.003: (0.8, 0.8)})
    sweep(experiment, "none", {0.0001: (0.7, 0.7)})
    view = make_report(experiment.folder).sections[0]
    assert view.analysis.row("none").accuracy is None
    assert view.analysis.row("none").tuned.mean == pytest.approx(0.701)
    assert any("no shared setting" in flag.text for flag in view.flags)
    assert files(make_report(experiment.folder))["table.csv"]


def test_without_validation_nothing_is_chosen(experiment):
    for lr in (0.001, 0.003):
        for seed in range(2):
            experiment.run("none", seed, 0.7 + lr, config={"optim": {"lr": lr}}, metrics={"val/top1": None})
    report = make_report(experiment.folder)
    assert [view.table.title for view in report.sections] == [
        "digits, 8 x 8 px, vit_nano, optim.lr 0.001",
        "digits, 8 x 8 px, vit_nano, optim.lr 0.003",
    ]
    assert all(view.analysis.row("none").accuracy.n == 2 for view in report.sections)


def test_failed_seeds_of_another_setting_are_not_this_settings(study):
    study.run("none", 3, status="failed", config={"optim": {"lr": 0.01}})
    assert make_report(study.folder).sections[0].analysis.row("none").failed == ()
