"""What may not be averaged is refused or flagged, never averaged in silence."""

from __future__ import annotations

import math

import pytest

from vitpos.report import make_report
from vitpos.report.build import files


def kinds(report) -> set[str]:
    return {flag.kind for flag in report.flags} | {flag.kind for view in report.sections for flag in view.flags}


def text_of(report, kind: str) -> str:
    flags = [*report.flags, *(flag for view in report.sections for flag in view.flags)]
    return " ".join(flag.text for flag in flags if flag.kind == kind)


def row(report, arm: str, section: int = 0):
    return report.sections[section].analysis.row(arm)


def test_a_clean_study_has_no_remark(digits):
    assert kinds(make_report(digits.folder)) == set()


def test_failed_runs_are_listed_and_not_averaged(digits):
    digits.run("none", 5, status="failed")
    digits.run("learned_1d", 5, 0.93)
    report = make_report(digits.folder)
    assert row(report, "none").accuracy.n == 5
    assert row(report, "none").failed == (5,)
    assert "none-s5" in text_of(report, "failed")
    assert "ValueError" in text_of(report, "failed")
    assert "| 5 (1 failed) |" in files(make_report(digits.folder))["table.md"]


def test_an_arm_that_only_failed_is_a_dash(experiment):
    experiment.arm("learned_1d", [0.9, 0.91])
    experiment.run("none", 0, status="failed")
    assert "| none | 0 (1 failed) | — | — | — |" in files(make_report(experiment.folder))["table.md"]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_is_not_averaged(experiment, value):
    experiment.arm("learned_1d", [0.9, 0.91, 0.92])
    experiment.run("learned_1d", 3, value)
    report = make_report(experiment.folder)
    assert row(report, "learned_1d").accuracy.mean == pytest.approx(0.91)
    assert "learned_1d-s3" in text_of(report, "not finite")


def test_folders_without_a_record(digits):
    (digits.folder / "none-s9-00000000").mkdir()
    (digits.folder / "none-s9-00000000" / "config.yaml").write_text("seed: 9")
    (digits.folder / "holiday").mkdir()
    (digits.folder / "broken").mkdir()
    (digits.folder / "broken" / "result.json").write_text("{")
    report = make_report(digits.folder)
    assert {"unfinished", "foreign", "unreadable"} <= kinds(report)
    assert row(report, "none").accuracy.n == 5


def test_unequal_seeds(digits):
    digits.run("none", 5, 0.8)
    report = make_report(digits.folder)
    assert "none has 6, the others 5" in text_of(report, "unequal seeds")
    assert row(report, "none").comparison.n == 5
    assert row(report, "rope_axial").missing == (5,)
    assert "rope_axial seed 5" in text_of(report, "unequal seeds")


def test_planted_confounder(digits):
    for seed in range(5):
        digits.run("learned_2d", seed, 0.95 + 0.001 * seed, config={"optim": {"lr": 0.003}})
    report = make_report(digits.folder)
    text = text_of(report, "confounder")
    assert "optim.lr" in text
    assert "learned_2d: 0.003" in text
    assert row(report, "learned_2d").confounded_by == ("optim.lr",)
    assert row(report, "none").confounded_by == ()
    view = report.sections[0]
    assert "Better: rope_axial" in view.summary
    assert "not attributable to the position module alone, because other settings differ: learned_2d" in view.summary
    assert "better †" in files(make_report(digits.folder))["table.md"]


def test_position_settings_are_no_confounder(digits):
    digits.arm("fourier", [0.9, 0.91], config={"position": {"gamma": 2.0}})
    assert "confounder" not in kinds(make_report(digits.folder))


def test_settings_that_cannot_matter_are_no_confounder(digits):
    for seed in range(5):
        digits.run(
            "peg", seed, 0.93, config={"data": {"root": "/elsewhere", "num_workers": 8}, "logger": {"mode": "off"}}
        )
    assert kinds(make_report(digits.folder)) == set()


def test_mixed_data_sets_are_never_averaged(digits):
    other = {"config": {"data": {"_target_": "vitpos.data.Other"}}, "data": {"name": "other", "image_size": 28}}
    digits.arm("learned_1d", [0.5, 0.51, 0.52], **other)
    digits.arm("none", [0.4, 0.41, 0.42], **other)
    report = make_report(digits.folder)
    assert [view.table.title for view in report.sections] == [
        "digits, 8 x 8 px, vit_nano",
        "other, 28 x 28 px, vit_nano",
    ]
    assert row(report, "learned_1d", 0).accuracy.n == 5
    assert row(report, "learned_1d", 1).accuracy.mean == pytest.approx(0.51)
    assert "never averaged or compared" in text_of(report, "mixed data")


def test_one_data_set_per_arm_is_not_compared(experiment):
    experiment.arm("learned_1d", [0.9, 0.91])
    experiment.arm("none", [0.4, 0.41], data={"name": "other", "image_size": 8})
    report = make_report(experiment.folder)
    assert len(report.sections) == 2
    assert row(report, "none", 1).comparison is None


def test_mixed_networks_are_never_averaged(digits):
    for seed in range(5):
        digits.run("none", seed, 0.99, config={"model": {"dim": 128}}, model={"name": "vit_tiny"})
    report = make_report(digits.folder)
    assert len(report.sections) == 2


def test_mixed_commits_versions_and_devices(digits):
    digits.run(
        "none", 5, 0.8, commit="fedcba9876543210+", versions={"torch": "2.10.0", "vitpos": "0.1.0"}, device="gpu"
    )
    report = make_report(digits.folder)
    assert {"mixed commits", "uncommitted code", "mixed versions", "mixed devices"} <= kinds(report)
    assert "fedcba9876+ (1 runs)" in text_of(report, "mixed commits")
    assert "torch" in text_of(report, "mixed versions")


def test_mixed_epochs(digits):
    digits.run("none", 5, 0.8, epochs=2)
    assert "2, 3" in text_of(make_report(digits.folder), "mixed epochs")


def test_lost_config(digits):
    digits.run("none", 5, 0.8, store_config=False)
    report = make_report(digits.folder)
    assert "none-s5" in text_of(report, "no config")
    assert "confounder" not in kinds(report)


def test_missing_reference_is_said(digits):
    report = make_report(digits.folder, reference="nope")
    assert "'nope'" in text_of(report, "no reference")
    assert "rope_axial" in text_of(report, "no reference")
    assert row(report, "none").comparison is None
    assert "no finished reference run" in report.sections[0].summary


def test_duplicate_is_not_counted_twice(digits):
    first = digits.run("none", 5, 0.8)
    twin = digits.folder / first.name.replace("-s5-", "-s5-0")[:-1]
    twin.mkdir()
    text = (first / "result.json").read_text().replace(first.name, twin.name)
    (twin / "result.json").write_text(text)
    (twin / "config.yaml").write_text((first / "config.yaml").read_text())
    report = make_report(digits.folder)
    assert row(report, "none").accuracy.n == 6
    assert "none-s5" in text_of(report, "duplicate")


def test_mixed_test_sets(digits):
    rows = [{"height": 8, "width": 8, "coordinates": "extrapolate", "table": "bicubic", "top1": 0.8, "n": 100}]
    digits.run("none", 5, 0.8, transfer=rows)
    digits.run("none", 6, 0.8, transfer=[rows[0] | {"n": 200}])
    report = make_report(digits.folder)
    assert "100, 200" in text_of(report, "mixed test sets")
    assert report.sections[0].analysis.test_images is None


@pytest.mark.parametrize("margin", [-0.1, math.nan, 100])
def test_impossible_margin(digits, margin):
    with pytest.raises(ValueError, match="margin="):
        make_report(digits.folder, margin=margin)
