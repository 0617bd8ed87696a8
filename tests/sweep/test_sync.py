"""Uploading offline runs: which, and what is said when they cannot be uploaded."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from filelock import FileLock

from vitpos.sweep import sync
from vitpos.sweep.jobs import LOCK_FILE


@pytest.fixture
def outputs(tmp_path):
    """Offline runs: one to upload, one resumed, one uploaded, one online, one of a study."""
    for place in (
        "a/one/wandb/offline-run-1-x",
        "a/one/wandb/offline-run-2-x",
        "a/two/wandb/run-1-y",
        "a/.report/wandb/offline-run-3-z",
    ):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "run-x.wandb").write_bytes(b"")
    done = tmp_path / "a/three/wandb/offline-run-1-v"
    done.mkdir(parents=True)
    (done / "run-v.wandb").write_bytes(b"")
    (done / "run-v.wandb.synced").write_bytes(b"")
    return tmp_path


@pytest.fixture
def commands(monkeypatch):
    """Collect commands instead of running them, with a login and a server."""
    found = []

    def run(command, env, check):
        found.append((command, env))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(sync.subprocess, "run", run)
    monkeypatch.setattr(sync, "has_login", lambda url: True)
    monkeypatch.setattr(sync, "answers", lambda url: True)
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
        monkeypatch.setenv(name, "")
    return found


def names(paths):
    return [path.name for path in paths]


def test_runs_that_are_offline_and_not_uploaded_are_found(outputs):
    ended, running = sync.offline_runs(outputs)
    assert names(ended) == ["offline-run-3-z", "offline-run-1-x", "offline-run-2-x"]
    assert running == []


def test_a_run_still_written_is_left_for_later(outputs, commands, capsys):
    with FileLock(outputs / "a/one" / LOCK_FILE):
        assert names(sync.offline_runs(outputs)[1]) == ["offline-run-1-x", "offline-run-2-x"]
        assert sync.main([str(outputs)]) == 0
    assert "2 offline run(s) still being written" in capsys.readouterr().out
    ((command, _),) = commands
    assert command[4:] == [str(outputs / "a/.report/wandb/offline-run-3-z")]


def test_all_go_in_one_command_that_keeps_its_files_here(outputs, commands, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert sync.main([str(outputs)]) == 0
    ((command, environment),) = commands
    assert command[:4] == [sys.executable, "-m", "wandb", "sync"]
    assert len(command) == 7
    assert "WANDB_MODE" not in environment
    assert environment["WANDB_DIR"] == str(outputs / ".sync")


def test_without_a_login_it_says_what_to_do(outputs, monkeypatch, capsys):
    monkeypatch.setattr(sync, "has_login", lambda url: False)
    assert sync.main([str(outputs)]) == 1
    assert "for 3 offline run(s)" in (text := capsys.readouterr().err)
    assert "wandb login" in text


def test_a_dead_server_is_said(outputs, monkeypatch, capsys):
    monkeypatch.setattr(sync, "has_login", lambda url: True)
    monkeypatch.setattr(sync, "server", lambda: "http://127.0.0.1:9")
    assert sync.main([str(outputs)]) == 1
    assert "http://127.0.0.1:9 does not answer" in capsys.readouterr().err


def test_nothing_to_do(tmp_path, capsys):
    assert sync.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nothing to upload\n"
    assert sync.main([str(tmp_path / "nowhere")]) == 1


@pytest.mark.slow
def test_wandb_accepts_the_command(outputs, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    paths = map(str, sync.offline_runs(outputs)[0])
    command = [sys.executable, "-m", "wandb", "sync", "--dry-run", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Would sync 3 run(s)" in done.stderr + done.stdout
