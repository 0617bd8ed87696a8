"""One job: its lock, its skip, and every way to fail."""

from __future__ import annotations

import json
import os
import time

import pytest
import torch
from filelock import FileLock

from vitpos.record import read_record
from vitpos.sweep import execute as module
from vitpos.sweep.execute import execute
from vitpos.sweep.jobs import LOCK_FILE, state_of
from vitpos.training import run as training


@pytest.fixture
def crash(monkeypatch):
    """Replace training by something that raises."""

    def make(error):
        def fail(config):
            raise error

        monkeypatch.setattr(training, "run", fail)

    return make


@pytest.fixture
def watch(monkeypatch):
    """Count trainings instead of running them."""
    calls = []
    monkeypatch.setattr(training, "run", calls.append)
    return calls


def test_a_job_trains_once(make_job, monkeypatch):
    job = make_job("position=none")
    outcome = execute(job.config, 1)
    assert outcome.status == "finished"
    assert outcome.top1 == read_record(job.folder).metrics["test/top1"]
    assert outcome.seconds > 0
    assert state_of(job.folder) == "finished"
    before = {
        path: path.stat().st_mtime_ns for path in job.folder.rglob("*") if path.name not in (LOCK_FILE, "run.log")
    }
    again = execute(job.config, 1)
    assert again.status == "skipped"
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_failure_is_recorded_logged_and_returned(make_job, crash):
    job = make_job("position=none")
    crash(RuntimeError("no luck\nat all"))
    outcome = execute(job.config, 1)
    assert (outcome.status, outcome.error) == ("failed", "RuntimeError: no luck")
    record = read_record(job.folder)
    assert record.status == "failed"
    assert (record.error.type, record.error.message) == ("RuntimeError", "no luck\nat all")
    assert "Traceback" in record.error.traceback
    assert "RuntimeError: no luck" in (job.folder / "run.log").read_text()
    assert record.overrides == list(job.overrides)
    assert state_of(job.folder) == "failed"


def test_a_failed_job_is_tried_again(make_job, watch, monkeypatch):
    job = make_job("position=none")
    with monkeypatch.context() as patch:
        patch.setattr(training, "run", lambda config: 1 / 0)
        assert execute(job.config, 1).status == "failed"
    execute(job.config, 1)
    assert len(watch) == 1


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_no_failure(make_job, crash, interruption):
    job = make_job("position=none")
    crash(interruption())
    with pytest.raises(interruption):
        execute(job.config, 1)
    assert state_of(job.folder) in ("interrupted", "missing")
    lock = FileLock(job.folder / LOCK_FILE)
    lock.acquire(blocking=False)
    lock.release()


def test_a_job_of_another_process_is_busy(make_job, watch):
    job = make_job("position=none")
    job.folder.mkdir(parents=True)
    with FileLock(job.folder / LOCK_FILE):
        started = time.perf_counter()
        assert execute(job.config, 1).status == "busy"
        assert time.perf_counter() - started < 5
    assert not watch


def test_a_damaged_record_is_replaced(make_job):
    job = make_job("position=none")
    job.folder.mkdir(parents=True)
    (job.folder / "result.json").write_text('{"schema": 1, "status": "finis')
    assert execute(job.config, 1).status == "finished"
    assert read_record(job.folder).status == "finished"


def test_a_truncated_checkpoint_is_named(make_job):
    job = make_job("position=none", "trainer.max_epochs=2")
    last = job.folder / "checkpoints" / "last.ckpt"
    last.parent.mkdir(parents=True)
    torch.save({"state_dict": {"x": torch.zeros(1000)}}, last)
    last.write_bytes(last.read_bytes()[:2000])
    outcome = execute(job.config, 1)
    assert outcome.status == "failed"
    assert str(last) in outcome.error
    assert "delete the run folder" in outcome.error


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(30, "Read-only file system")])
def test_an_output_folder_that_cannot_be_written_is_named(make_job, monkeypatch, watch, error):
    job = make_job("position=none")

    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr(module.Path, "mkdir", refuse)
    outcome = execute(job.config, 1)
    assert outcome.status == "failed"
    assert error.strerror in outcome.error
    assert not watch


def test_a_file_in_the_way_is_named(make_job, watch):
    job = make_job("position=none")
    job.folder.parent.mkdir(parents=True)
    job.folder.write_text("not a folder")
    outcome = execute(job.config, 1)
    assert outcome.status == "failed"
    assert job.name in outcome.error
    assert job.folder.read_text() == "not a folder"


def test_a_full_disk_while_the_record_is_written(make_job, monkeypatch):
    job = make_job("position=none")

    def full(folder, record):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(training, "write_record", full)
    monkeypatch.setattr(module, "write_record", full)
    outcome = execute(job.config, 1)
    assert outcome.status == "failed"
    assert outcome.error.startswith("OSError: [Errno 28] No space left on device")
    assert "no record could be written" in outcome.error
    assert state_of(job.folder) == "interrupted"


def test_variables_left_by_another_launcher_are_ignored(make_job, monkeypatch):
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    job = make_job("position=none")
    assert execute(job.config, 1).status == "finished"
    assert "LOCAL_RANK" not in os.environ


def test_a_loss_that_is_not_finite_is_a_failed_job_and_a_dash(make_job):
    from vitpos.report import build_report

    job = make_job("position=none", "optim.lr=1e30", "optim.grad_clip=0", "optim.warmup=0", "trainer.max_epochs=2")
    outcome = execute(job.config, 1)
    assert outcome.status == "failed"
    assert outcome.error.startswith("NonFiniteLossError: training loss is")
    record = json.loads((job.folder / "result.json").read_text())
    assert (record["status"], record["metrics"]) == ("failed", {})
    table = (build_report(job.folder.parent, reference="none") / "table.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith("| none") or line.startswith("| **none"))
    assert "—" in row


def test_the_number_of_processes_must_make_sense(make_job, watch):
    for devices in ("0", "auto", "-1"):
        outcome = execute(make_job("position=none", f"trainer.devices={devices}").config, 1)
        assert outcome.status == "failed"
        assert "trainer.devices=" in outcome.error
    assert not watch


def test_the_threads_given_are_used(make_job, monkeypatch):
    seen = []
    monkeypatch.setattr(training, "run", lambda config: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    try:
        execute(make_job("position=none").config, 2)
    finally:
        torch.set_num_threads(before)
    assert seen == [2]
