import importlib
import re
import runpy
import sys
from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import instantiate

import vitpos.position
from vitpos.position import Geometry, Transfer
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


def test_the_readmes_own_module_works_from_two_files(tmp_path, monkeypatch):
    code, config = (
        re.search(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)[1] for language in ("python", "yaml")
    )
    (tmp_path / "wave.py").write_text(code)
    (tmp_path / "position").mkdir()
    (tmp_path / "position/wave.yaml").write_text(config)
    monkeypatch.setattr(vitpos.position, "__path__", [*vitpos.position.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(tmp_path), version_base="1.3"):
        module = instantiate(compose("position/wave").position)(geometry=Geometry((3, 5), 1, 8, 2, 2))
    assert len(module.code(0)[1:].round(decimals=4).unique(dim=0)) > 5
    module.resize((6, 2), Transfer(coordinates="rescale"))
    assert module.bfloat16().embed(torch.zeros(1, 13, 8, dtype=torch.bfloat16)).shape == (1, 13, 8)
    with pytest.raises(ValueError, match="length=0"):
        type(module)(module.geometry, length=0)
    sys.modules.pop("vitpos.position.wave")
