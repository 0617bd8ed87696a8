"""The ablation table: its numbers by hand, its fixed columns, the same numbers in every format."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from vitpos.report import build_report, make_report, print_report
from vitpos.report.build import files
from vitpos.report.statistics import seeds_needed

FIXED = "position,n,test_top1_mean,test_top1_ci95,delta_mean,delta_ci95,verdict,parameters,position_parameters,step_ms"


def text(folder, name, **settings):
    """Return a table as text, without drawing the figures."""
    return files(make_report(folder, **settings))[name]


def table(folder, read_csv, **settings):
    return {row["position"]: row for row in read_csv(text(folder, "table.csv", **settings))}


def test_leading_columns_are_fixed(digits):
    assert text(digits.folder, "table.csv").startswith(FIXED + ",")


def test_leading_columns_without_any_run(experiment):
    folder = build_report(experiment.folder)
    assert (folder / "table.csv").read_text() == FIXED + "\n"
    assert (folder / "transfer.csv").read_text() == "position,height,width,protocol,n,top1_mean,top1_ci95\n"
    assert "No run has finished" in (folder / "table.md").read_text()


def test_numbers_by_hand(experiment, read_csv):
    experiment.arm("learned_1d", [0.90, 0.92, 0.94])
    experiment.arm("none", [0.70, 0.73, 0.73])
    rows = table(experiment.folder, read_csv)
    row, reference = rows["none"], rows["learned_1d"]
    assert (row["n"], row["verdict"]) == ("3", "worse")
    assert float(row["test_top1_mean"]) == pytest.approx(0.72)
    # differences -0.20 -0.19 -0.21: sd 0.01, t_{0.975, 2} = 4.302653
    assert float(row["delta_mean"]) == pytest.approx(-0.20)
    assert float(row["delta_ci95"]) == pytest.approx(4.302653 * 0.01 / 3**0.5, rel=1e-6)
    assert (reference["delta_mean"], reference["delta_ci95"], reference["verdict"]) == ("", "", "reference")
    assert (row["parameters"], row["position_parameters"], row["step_ms"]) == ("200004", "0", "40")
    assert (row["worst_seed"], row["best_seed"]) == ("0", "1")


def test_verdicts(digits, read_csv):
    rows = table(digits.folder, read_csv)
    assert {arm: row["verdict"] for arm, row in rows.items()} == {
        "none": "worse",
        "learned_1d": "reference",
        "sincos_2d": "tied",
        "rope_axial": "better",
        "relative_1d": "not resolved",
    }
    assert int(rows["relative_1d"]["seeds_needed"]) > 5
    assert rows["rope_axial"]["seeds_needed"] == ""


def test_verdicts_in_words(experiment):
    experiment.arm("learned_1d", [0.90, 0.91, 0.92])
    experiment.arm("sincos_2d", [0.902, 0.9121, 0.9219])
    experiment.arm("rope_axial", [0.91, 0.91, 0.94])
    markdown = text(experiment.folder, "table.md")
    assert "| tied (though not zero) |" in markdown
    assert f"| not resolved (needs {seeds_needed(0.01, 0.01, 0.005, family=2)} seeds) |" in markdown


def test_reference_and_margin_are_settings(digits, read_csv):
    rows = table(digits.folder, read_csv, reference="none", margin=20)
    assert rows["none"]["verdict"] == "reference"
    assert rows["learned_1d"]["verdict"] == "tied"


def test_one_seed_has_no_interval_and_no_verdict(experiment, read_csv):
    experiment.run("learned_1d", 0, 0.9)
    experiment.run("none", 0, 0.5)
    row = table(experiment.folder, read_csv)["none"]
    assert (row["n"], row["test_top1_ci95"], row["delta_ci95"], row["verdict"]) == ("1", "", "", "not resolved")
    assert float(row["delta_mean"]) == pytest.approx(-0.4)
    markdown = text(experiment.folder, "table.md")
    assert "| 50.00 |" in markdown
    assert "one seed" in markdown
    assert "**90.00**" not in markdown


def test_best_arms_are_all_marked(experiment):
    experiment.arm("learned_1d", [0.90, 0.92, 0.94])
    experiment.arm("rope_axial", [0.92, 0.90, 0.945])
    experiment.arm("none", [0.70, 0.73, 0.73])
    markdown = text(experiment.folder, "table.md")
    assert markdown.count("| **9") == 2
    assert "| **7" not in markdown


def test_sampling_is_apart_from_seeds(experiment, read_csv):
    right = np.arange(400) < 320
    for seed in range(3):
        experiment.run("learned_1d", seed, 0.8, answers=right)
        experiment.run("none", seed, 0.8, answers=np.roll(right, seed + 1))
    rows = table(experiment.folder, read_csv)
    row = rows["none"]
    assert float(row["test_sampling_ci95"]) == pytest.approx(1.959964 * (0.8 * 0.2 / 400) ** 0.5, rel=1e-6)
    assert row["test_images"] == "400"
    assert (row["images_only_arm_right"], row["images_only_reference_right"]) == ("6", "6")  # 1 + 2 + 3 images moved
    assert float(row["p_mcnemar_median"]) == 1.0
    assert float(row["bootstrap_low"]) < 0 < float(row["bootstrap_high"])
    assert rows["learned_1d"]["p_mcnemar_median"] == ""


def test_arms_with_other_numbers_are_other_arms(experiment, read_csv):
    for theta in (10, 100):
        experiment.arm("rope_axial", [0.9, 0.91], config={"position": {"theta": theta}})
    experiment.arm("learned_1d", [0.9, 0.91])
    assert list(table(experiment.folder, read_csv)) == ["learned_1d", "rope_axial[theta=10]", "rope_axial[theta=100]"]


def test_same_numbers_in_every_format(digits):
    report = make_report(digits.folder)
    out = io.StringIO()
    print_report(report, Console(file=out, width=220, color_system=None))
    markdown, latex, terminal = files(report)["table.md"], files(report)["table.tex"], out.getvalue()
    for arm, accuracy, delta in (("none", "78.08 ± 0.59", "−14.92 ± 0.14"), ("rope_axial", "95.08 ± 0.", "+2.08 ± 0.")):
        assert f"| {arm} |" in markdown
        for number in (accuracy, delta):
            assert number in markdown
            assert number in terminal
            assert number.replace("±", r"$\pm$").replace("−", "$-$") in latex


def test_caption_says_what_the_numbers_are(digits):
    caption = " ".join(text(digits.folder, "table.md").split())
    for words in (
        "digits, 8 x 8 px, vit_nano",
        "3 epochs",
        "seeds 0–4",
        "best validation top-1",
        "95 % t-interval of the mean over training seeds",
        "paired by seed",
        "Holm-adjusted over 4 comparisons",
        "within ±0.5 point",
    ):
        assert words in caption


def test_summary_is_two_sentences_a_referee_signs(digits):
    summary = make_report(digits.folder).sections[0].summary
    assert summary.count(". ") == 1
    for words in (
        "4 position modules were compared with learned_1d (93.00 ± 0.47 % test top-1) over 5 training seeds",
        "Better: rope_axial (+2.08 ± 0.10 points)",
        "worse: none",
        "tied within ±0.5 point: sincos_2d",
        "not resolved, neither different nor tied: relative_1d",
    ):
        assert words in summary


def test_byte_for_byte(digits):
    folder = build_report(digits.folder)
    before = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    shutil.rmtree(folder)
    build_report(digits.folder)
    assert {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_nothing_of_an_earlier_report_stays(digits):
    folder = build_report(digits.folder)
    (folder / "figures" / "forest-section2.svg").write_text("")
    (folder / "table8.md").write_text("")
    for path in digits.folder.glob("learned_1d-*"):
        (path / "result.json").unlink()
    build_report(str(digits.folder))
    assert {path.stem for path in (folder / "figures").iterdir()} == {"seeds", "cost"}
    assert (folder / "table8.md").exists()  # none and relative_1d are cells of the paper


def test_imports_neither_torch_nor_wandb():
    code = (
        "import sys, vitpos.report.command; "
        "sys.exit(bool({'torch', 'wandb', 'pytorch_lightning', 'hydra'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
