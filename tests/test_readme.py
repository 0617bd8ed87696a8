"""What the README promises: a position module in two files, settings that exist, files that exist."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(path):
    """Return the code block that follows a line naming `path`."""
    return re.search(rf"`{re.escape(path)}`:\n\n```\w+\n(.*?)```", README, re.DOTALL).group(1)


@pytest.mark.slow
def test_a_position_module_is_two_files(tmp_path):
    for folder in ("src", "conf", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "test_position_contract.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path in ("src/vitpos/position/wave.py", "conf/position/wave.yaml"):
        (tmp_path / path).write_text(block(path), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "OMP_NUM_THREADS": "1"}

    def python(*arguments):
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    contract = python("-m", "pytest", "-p", "no:cacheprovider", "tests/test_position_contract.py", "-k", "wave")
    assert contract.returncode == 0, contract.stdout
    assert int(re.search(r"(\d+) passed", contract.stdout).group(1)) >= 9
    tiny = ("data.limit_train=64", "trainer.max_epochs=1", "model.depth=1")
    run = python("scripts/train.py", "position=wave", *tiny, "logger=none", "transfer=none", "fewshot=none")
    assert run.returncode == 0, run.stderr
    assert "finished" in run.stdout


def test_every_file_and_folder_it_names_exists():
    tree = re.search(r"## The tree\n\n```\n(.*?)```", README, re.DOTALL).group(1)
    names = re.findall(r"^(?:  )?([\w/]+(?:\.py|/))", tree, re.MULTILINE)
    assert len(names) > 15
    for name in names:
        places = [ROOT / name, ROOT / "src" / "vitpos" / name]
        assert any(place.exists() for place in places), name
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


@pytest.mark.parametrize("line", re.findall(r"^python scripts/train.py (.+?)(?:\s+#.*)?$", README, re.MULTILINE))
def test_every_train_command_composes(line):
    if "from=" in line:
        pytest.skip("needs a finished run; see tests/evaluation/test_finetune.py")
    if line.startswith("-m "):
        line = re.sub(r"=([^, ]+),\S+", r"=\1", line[3:])
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        compose("train", line.split())


def test_every_make_target_it_names_exists():
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`?make ([a-z0-9]+)", README))
    assert named
    assert named <= targets
