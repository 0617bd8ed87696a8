"""Jobs of several processes: one folder, one record, the accuracy of one process; a failing rank ends its job alone."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from vitpos.cli import CONFIG_FOLDER
from vitpos.record import read_record
from vitpos.sweep import ranks
from vitpos.sweep.execute import execute
from vitpos.sweep.ranks import RankError, launch_ranks, ranks_of

FAIL = "+callbacks.fail={_target_: failing_rank.Fail, _partial_: true}"


@pytest.fixture
def failing_rank(tmp_path, monkeypatch):
    """Put a callback on the ranks' path that makes rank 1 fail in the first epoch, in a chosen way."""

    def make(how):
        code = f"""
            import os, signal
            import pytorch_lightning as pl

            class Fail(pl.Callback):
                def __init__(self, folder):
                    pass

                def on_train_epoch_start(self, trainer, module):
                    if trainer.global_rank == 1:
                        {how}
            """
        (tmp_path / "failing_rank.py").write_text(textwrap.dedent(code))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return make


def processes_of(folder):
    """Return the processes whose command line names a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = place.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in text and str(os.getpid()) != place.parent.name:
            found.append(text)
    return found


def left_over(folder, seconds=5):
    end = time.monotonic() + seconds
    while processes_of(folder) and time.monotonic() < end:
        time.sleep(0.1)
    return processes_of(folder)


@pytest.mark.parametrize("devices", [0, -1, "auto", True, 1.5, None])
def test_the_number_of_processes_is_a_positive_whole_number(devices):
    with pytest.raises(ValueError, match=r"trainer\.devices="):
        ranks_of({"trainer": {"devices": devices}})
    assert ranks_of({"trainer": {"devices": 3}}) == 3


def test_the_first_rank_to_fail_is_the_cause(tmp_path, monkeypatch):
    class Failing:
        """Stands in for the launcher of two ranks that both fail, the second one first."""

        pid = 2**22 + 1  # nobody

        def __init__(self, command, **options):
            (tmp_path / "rank1.error").write_text("Traceback ...\nValueError: the cause\n")
            os.utime(tmp_path / "rank1.error", ns=(1, 1))
            (tmp_path / "rank0.error").write_text("Traceback ...\nRuntimeError: connection closed\n")

        def wait(self):
            return 1

    monkeypatch.setattr(ranks.subprocess, "Popen", Failing)
    (tmp_path / "rank0.error").write_text("of an earlier try")
    with pytest.raises(RankError, match="ValueError: the cause"):
        launch_ranks({"trainer": {"devices": 2}}, tmp_path, 1)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("Traceback (most recent call last):\n  File x\n    f()\nValueError: no\n", "ValueError", "no"),
        ("Traceback (most recent call last):\n  File x\na.b.OwnError: no\nnever\n", "OwnError", "no\nnever"),
        ("Traceback (most recent call last):\n  File x\nKeyboardInterrupt\n", "KeyboardInterrupt", ""),
        (
            "Traceback:\n  File x\nKeyError: a\n\nDuring:\n\nTraceback:\n  File y\nOSError: b\nHint: c",
            "OSError",
            "b\nHint: c",
        ),
        ("rank 1 was killed by signal 9\n", "RankError", "rank 1 was killed by signal 9"),
        ("worker process died: SIGKILL(-9)", "RankError", "worker process died: SIGKILL(-9)"),
    ],
)
def test_the_error_of_another_process_is_read_from_its_traceback(text, kind, message):
    error = RankError(text)
    assert (error.kind, error.message) == (kind, message)
    assert str(error) == text


@pytest.mark.slow
def test_two_processes_give_the_accuracy_of_one(make_job, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "5")  # left over from another launcher
    settings = ("position=learned_1d", "trainer.max_epochs=2", "data.limit_train=200")
    one, two = make_job(*settings), make_job(*settings, "trainer.devices=2")
    first, second = execute(one.config, 1), execute(two.config, 1)
    assert (first.status, second.status) == ("finished", "finished"), second.error
    assert first.top1 == second.top1
    a, b = (np.load(job.folder / "predictions.npz") for job in (one, two))
    assert (a["prediction"] == b["prediction"]).all()
    assert np.allclose(a["confidence"], b["confidence"], atol=1e-5)
    assert read_record(one.folder).metrics["val/top1"] == read_record(two.folder).metrics["val/top1"]
    folders = [path.name for path in one.folder.parent.iterdir()]
    assert sorted(folders) == sorted([one.name, two.name])
    assert not left_over(two.folder)


@pytest.mark.slow
def test_a_failing_rank_ends_its_job_and_is_quoted(make_job, failing_rank):
    failing_rank("raise ValueError('rank 1 does not like this')")
    job = make_job("position=none", "trainer.devices=2", FAIL)
    started = time.monotonic()
    outcome = execute(job.config, 1)
    assert time.monotonic() - started < 120
    assert outcome.status == "failed"
    assert outcome.error == "ValueError: rank 1 does not like this"
    record = read_record(job.folder)
    assert record.error.type == "ValueError"
    assert "on_train_epoch_start" in record.error.traceback
    assert not left_over(job.folder)


@pytest.mark.slow
def test_a_killed_rank_is_named(make_job, failing_rank):
    failing_rank("os.kill(os.getpid(), signal.SIGKILL)")
    job = make_job("position=none", "trainer.devices=2", FAIL)
    outcome = execute(job.config, 1)
    assert outcome.status == "failed"
    assert outcome.error == "rank 1 was killed by signal 9 and left no traceback"
    assert not left_over(job.folder)


@pytest.mark.slow
def test_no_module_has_a_parameter_that_some_rank_does_not_use():
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [str(Path(__file__).with_name("every_module_in_ranks.py"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    names = sorted(path.stem for path in (CONFIG_FOLDER / "position").glob("*.yaml"))
    assert sorted(done.stdout.split()) == names
