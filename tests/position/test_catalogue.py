import runpy
import sys
from pathlib import Path

import pytest

from vitpos.position.catalogue import catalogue

ROOT = Path(__file__).parents[2]
README = ROOT / "src/vitpos/position/README.md"


def test_table_in_the_readme_is_current():
    table = catalogue(ROOT / "conf")
    assert table in README.read_text(), "run python scripts/position_table.py"
    assert table.count("\n") == 2 + len(list((ROOT / "conf/position").glob("*.yaml")))


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("learned_1d", ["| 37,824 |", "row of its own", "table resampled"]),
        ("relative_1d", ["300,288 (25,024 per layer)", "bias 0"]),
        ("relative_2d", ["26,352", "three biases of its own"]),
        ("rope_axial", ["| 0 | 0 | 0 |", "not rotated", "NTK"]),
        ("rope_axial_ape", ["nothing added, not rotated"]),
        ("alibi_2d", ["bias 0", "coordinates extrapolated or rescaled |"]),
    ],
)
def test_rows_say_what_the_modules_do(name, facts):
    row = next(line for line in README.read_text().splitlines() if line.startswith(f"| `{name}` |"))
    assert all(fact in row for fact in facts), row


def test_script_prints_the_table(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["position_table.py", "--print"])
    runpy.run_path(str(ROOT / "scripts/position_table.py"), run_name="__main__")
    assert capsys.readouterr().out in README.read_text()
