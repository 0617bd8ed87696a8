"""The command itself: in processes of its own, as a user runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vitpos.cli import CONFIG_FOLDER
from vitpos.record import read_record

ROOT = CONFIG_FOLDER.parent
TINY = [
    "trainer.max_epochs=1",
    "trainer.accelerator=cpu",
    "data.limit_train=64",
    "model.depth=1",
    "model.dim=16",
    "transfer=none",
    "fewshot=none",
    "callbacks=none",
    "diagnostics.images=16",
    "logger=none",
]


def train(*arguments):
    command = [sys.executable, "scripts/train.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


def test_what_composes_plans_and_reports_does_not_wait_for_pytorch():
    code = (
        "import sys, hydra_plugins.vitpos_sweeper, vitpos.sweep.single, vitpos.sweep.joblib_pool, "
        "vitpos.sweep.ray_tasks, vitpos.sweep.slurm_array, vitpos.sweep.sync, vitpos.training.tracking; "
        "print(sorted({'torch', 'pytorch_lightning', 'wandb', 'ray', 'submitit', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_a_sweep_with_a_failing_job(tmp_path):
    done = train(
        "-m",
        f"output_dir={tmp_path}",
        "experiment_name=mixed",
        "position=none",
        "model.patch_size=2,3,4",
        "launcher.jobs=1",
        *TINY,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    folders = sorted(path for path in (tmp_path / "mixed").iterdir() if path.name.startswith("none"))
    status = {read_record(folder).model.patch_size: read_record(folder).status for folder in folders}
    assert status == {2: "finished", 3: "failed", 4: "finished"}
    lines = done.stdout.splitlines()
    assert lines[0] == "3 of 3 jobs to run, 1 at once"
    assert [line.split()[1] for line in lines if line.startswith("[")] == ["finished", "failed", "finished"]
    assert any(line.startswith("2 of 3 jobs finished, 1 failed") for line in lines)
    (failed,) = [folder for folder in folders if read_record(folder).status == "failed"]
    assert f"failed    {failed.name}  model.patch_size=3" in lines
    assert f"          traceback: {failed / 'run.log'}" in lines
    assert "model.patch_size=3 does not divide" in (failed / "run.log").read_text()
    # What jobs print is in their logs, not between the lines of the overview.
    assert "GPU available" not in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    # A second time: only what is missing.
    again = train(
        "-m", f"output_dir={tmp_path}", "experiment_name=mixed", "position=none", "model.patch_size=2,4", *TINY
    )
    assert again.returncode == 0
    assert again.stdout.count("finished before") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "launcher=joblib,ray"], "launcher cannot be swept: run one sweep per value"),
        (["-m", "position=none,sincos_2d", "position.thta=5"], "thta"),
        (["position=nope"], "Available options in 'position'"),
        (["-m", "experiment_name=a/b", "plan=true"], "experiment_name='a/b': must be a plain folder name"),
        (["launcher=joblib", "launcher.jobs=-1", "plan=true"], "launcher.jobs=-1: must be at least 0"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, message, tmp_path):
    done = train(*arguments, f"output_dir={tmp_path}")
    assert done.returncode == 1
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())
