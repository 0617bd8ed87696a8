"""A sweep as its user sees it: what runs, what is said, what is waited for, and how it ends."""

from __future__ import annotations

import re
import threading
import time

import pytest
from filelock import FileLock
from omegaconf import OmegaConf

from vitpos.sweep import overview
from vitpos.sweep.jobs import LOCK_FILE, state_of
from vitpos.sweep.overview import run_jobs

REPORT = OmegaConf.create({"reference": "none", "margin": 0.5})


@pytest.fixture
def sweep(here, capsys):
    def run(jobs, fail_fast=False):
        finished = run_jobs(jobs, here, fail_fast=fail_fast, report=REPORT)
        return finished, capsys.readouterr().out

    return run


def test_a_sweep_runs_every_job_once_and_reports(make_jobs, quick_training, sweep):
    jobs = make_jobs("position=none,sincos_2d", "seed=0,1")
    finished, text = sweep(jobs)
    assert finished
    assert [(call["seed"], call["position_name"]) for call in quick_training] == [
        (0, "none"),
        (0, "sincos_2d"),
        (1, "none"),
        (1, "sincos_2d"),
    ]
    assert "4 of 4 jobs to run, 1 at once" in text
    for number, job in enumerate(jobs, 1):
        assert re.search(rf"\[{number}/4\] finished {job.name}  test top-1 50.00%", text)
    assert "4 of 4 jobs finished, 0 failed" in text
    assert (jobs[0].folder.parent / "report" / "table.csv").exists()


def test_finished_jobs_are_skipped_in_one_line_each(make_jobs, quick_training, sweep):
    first = make_jobs("position=none", "seed=0,1")
    sweep(first)
    kept = {job.name: (job.folder / "result.json").read_bytes() for job in first}
    del quick_training[:]
    finished, text = sweep(make_jobs("position=none", "seed=0,1,2"))
    assert finished
    assert [call["seed"] for call in quick_training] == [2]
    assert all(f"skipped   {job.name}  finished before\n" in text for job in first)
    assert kept == {job.name: (job.folder / "result.json").read_bytes() for job in first}


def test_a_changed_setting_is_not_skipped_and_overwrites_nothing(make_jobs, quick_training, sweep):
    first, second = make_jobs("position=none", "seed=0"), make_jobs("position=none", "seed=0", "optim.lr=2e-3")
    sweep(first)
    sweep(second)
    assert len(quick_training) == 2
    assert first[0].folder != second[0].folder
    assert state_of(first[0].folder) == state_of(second[0].folder) == "finished"


def test_two_experiments_do_not_share_folders(make_jobs, quick_training, sweep):
    sweep(make_jobs("position=none", "seed=0"))
    sweep(make_jobs("position=none", "seed=0", "experiment_name=other"))
    assert len(quick_training) == 2


def test_failures_do_not_stop_others_and_are_named_at_the_end(make_jobs, quick_training, sweep):
    quick_training.failing = (1, 2)
    jobs = make_jobs("position=none", "seed=0,1,2,3")
    finished, text = sweep(jobs)
    assert not finished
    assert len(quick_training) == 4
    assert "2 of 4 jobs finished, 2 failed" in text
    summary = text.partition("2 of 4 jobs finished")[2]
    for job in jobs[1:3]:
        assert f"failed    {job.name}  seed={job.config['seed']}\n" in summary
        assert f"RuntimeError: seed {job.config['seed']} does not work" in summary
        place = job.folder / "run.log"
        assert f"traceback: {place}" in summary
        assert "Traceback" in place.read_text()
    # Also at once, while the sweep goes on.
    assert "RuntimeError: seed 1 does not work" in text.partition("2 of 4 jobs finished")[0]


def test_fail_fast_stops_at_the_first_failure(make_jobs, quick_training, sweep):
    quick_training.failing = (1,)
    finished, text = sweep(make_jobs("position=none", "seed=0,1,2,3"), fail_fast=True)
    assert not finished
    assert [call["seed"] for call in quick_training] == [0, 1]
    assert "1 of 4 jobs finished, 1 failed" in text


def test_a_job_of_another_process_is_waited_for(make_jobs, quick_training, sweep, monkeypatch):
    monkeypatch.setattr(overview, "POLL_SECONDS", 0.05)
    jobs = make_jobs("position=none", "seed=0,1")
    jobs[0].folder.mkdir(parents=True)
    held = threading.Event()

    def other_process():
        with FileLock(jobs[0].folder / LOCK_FILE):
            held.set()
            while len(quick_training) < 1:
                time.sleep(0.01)
            time.sleep(0.3)

    thread = threading.Thread(target=other_process)
    thread.start()
    held.wait()
    finished, text = sweep(jobs)
    thread.join()
    assert finished
    assert f"waiting   {jobs[0].name}  another process runs it" in text
    # Left unfinished by its owner, the job is run here, after the others.
    assert [call["seed"] for call in quick_training] == [1, 0]


def test_a_job_that_another_process_finishes_is_not_run_again(make_jobs, quick_training, sweep, monkeypatch, here):
    monkeypatch.setattr(overview, "POLL_SECONDS", 0.05)
    first, second = make_jobs("position=none", "seed=0,1")
    first.folder.mkdir(parents=True)
    lock = FileLock(first.folder / LOCK_FILE, thread_local=False)
    lock.acquire()

    def finish(config):
        assert len(quick_training) == 1
        from vitpos.training import run as training

        training.run(config)
        lock.release()

    threading.Timer(2.0, finish, [first.config]).start()
    finished, text = sweep([first, second])
    assert finished
    assert [call["seed"] for call in quick_training] == [1, 0]
    assert f"skipped  {first.name}" in text


def test_nothing_to_run_is_said(sweep, make_jobs, quick_training):
    assert sweep([]) == (True, "no jobs\n")
    jobs = make_jobs("position=none")
    sweep(jobs)
    finished, text = sweep(jobs)
    assert finished
    assert "jobs to run" not in text
    assert "1 of 1 jobs finished, 0 failed" in text


def test_a_foreign_folder_does_not_disturb(make_jobs, quick_training, sweep):
    jobs = make_jobs("position=none")
    foreign = jobs[0].folder.parent / "holiday"
    foreign.mkdir(parents=True)
    (foreign / "photo.jpg").write_bytes(b"\0")
    finished, _ = sweep(jobs)
    assert finished
    assert (foreign / "photo.jpg").read_bytes() == b"\0"


def test_the_time_left_is_said_while_jobs_are_left(make_jobs, quick_training, sweep):
    _, text = sweep(make_jobs("position=none", "seed=0,1"))
    lines = [line for line in text.splitlines() if line.startswith("[")]
    assert "running 1" in lines[0]
    assert "left)" in lines[0]
    assert "left" not in lines[1]
