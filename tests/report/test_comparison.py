"""Several experiments side by side."""

from __future__ import annotations

import pytest

from vitpos.report import make_report
from vitpos.report.build import write_comparison
from vitpos.report.command import main, parse
from vitpos.report.comparison import compare_reports


@pytest.fixture
def outputs(new_experiment):
    for place, name in enumerate(("digits", "fashion", "cifar")):
        study = new_experiment(name)
        data = {"data": {"name": name, "image_size": 8}}
        for arm, gain in (("learned_1d", 0.0), ("none", -0.1), ("rope_axial", 0.02)):
            study.arm(arm, [0.9 - 0.1 * place + gain + 0.001 * seed for seed in range(3)], **data)
        if name == "cifar":
            study.arm("peg", [0.7, 0.71, 0.72], **data)
    return study.folder.parent


def test_rows_are_arms_and_columns_data_sets(outputs):
    reports = [make_report(outputs / name) for name in ("digits", "fashion", "cifar")]
    comparison = compare_reports(reports)
    headings = [column.heading for column in comparison.table.columns]
    assert headings == [
        "Position",
        "digits, 8 x 8 px, vit_nano (%)",
        "fashion, 8 x 8 px, vit_nano (%)",
        "cifar, 8 x 8 px, vit_nano (%)",
        "Average rank",
    ]
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in comparison.table.rows}
    assert rows["none"] == ["80.10 ± 0.25", "70.10 ± 0.25", "60.10 ± 0.25", "3.00"]
    assert rows["rope_axial"][-1] == "1.00"
    assert rows["peg"] == ["—", "—", "71.00 ± 2.48", "—"]
    assert "critical difference of 1.91" in comparison.table.caption
    assert "separates little" in comparison.table.caption
    assert "rope_axial above none (2.00)" in comparison.summary


def test_two_experiments_with_one_title_keep_their_names(outputs):
    reports = [make_report(outputs / "digits"), make_report(outputs / "digits")]
    headings = [column.heading for column in compare_reports(reports).table.columns]
    assert headings[1].startswith("digits: digits, 8 x 8 px")


def test_one_data_set_cannot_be_ranked(outputs):
    comparison = compare_reports([make_report(outputs / "digits")])
    assert comparison.picture is None
    assert "Nothing can be ranked" in comparison.summary


def test_files(outputs, read_csv):
    reports = [make_report(outputs / name) for name in ("digits", "fashion")]
    _, folder = write_comparison(reports, outputs)
    assert folder == outputs / "comparison" / "digits+fashion"
    rows = read_csv(folder / "comparison.csv")
    assert len(rows) == 6
    assert rows[0]["experiment"] == "digits"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    write_comparison(reports, outputs)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert {"comparison.csv", "comparison.md", "comparison.tex", "comparison.html", "ranks.svg"} <= {
        path.name for path in before
    }


class TestCommand:
    def test_one_experiment(self, outputs, capsys):
        assert main(["experiment=digits", f"output_dir={outputs}"]) == 0
        assert "compared with learned_1d" in " ".join(capsys.readouterr().out.split())
        assert (outputs / "digits" / "report" / "report.html").exists()
        assert not (outputs / "comparison").exists()

    def test_several_experiments(self, outputs, capsys):
        assert main(["experiments=[digits, cifar]", "reference=none", "margin=1", f"output_dir={outputs}"]) == 0
        assert "Comparison across data sets" in capsys.readouterr().out
        assert (outputs / "comparison" / "digits+cifar" / "comparison.html").exists()

    def test_settings(self):
        settings = parse(["experiments=[a,b,a]", "experiment=c", "margin=0"])
        assert settings.experiments == ("c", "a", "b")
        assert (settings.reference, settings.margin) == ("learned_1d", 0.0)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "name an experiment"),
            (["experiment="], "name an experiment"),
            (["digits"], "key=value"),
            (["experiment=a", "marign=1"], "marign=1"),
            (["experiment=a", "margin=half"], "margin must be a number"),
            (["experiment=a", "margin=-1"], "margin=-1"),
            (["experiment=nowhere"], "no such experiment folder"),
        ],
    )
    def test_refused_in_one_line(self, arguments, message, capsys, tmp_path):
        (tmp_path / "a").mkdir()
        assert main([*arguments, f"output_dir={tmp_path}"]) == 1
        assert message in capsys.readouterr().err

    def test_help(self, capsys):
        assert main(["--help"]) == 0
        assert "experiments=[A,B,...]" in capsys.readouterr().out


def test_a_mistyped_reference_leaves_the_report_alone(digits, capsys):
    folder = digits.folder
    assert main([f"experiment={folder.name}", f"output_dir={folder.parent}"]) == 0
    before = (folder / "report" / "table.csv").read_bytes()
    assert main([f"experiment={folder.name}", f"output_dir={folder.parent}", "reference=nope"]) == 1
    assert "the arms are" in capsys.readouterr().err
    assert (folder / "report" / "table.csv").read_bytes() == before
