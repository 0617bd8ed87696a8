"""A plan: states, what cannot be built, an estimate, and nothing created."""

from __future__ import annotations

import functools
import os
import re
import signal
import time
from concurrent.futures import Future

import pytest

from vitpos.record import read_record, write_record
from vitpos.sweep import estimate, probe
from vitpos.sweep.estimate import Estimator
from vitpos.sweep.execute import execute
from vitpos.sweep.helper import Helper, HelperError
from vitpos.sweep.plan import show_plan


class SamePlace:
    """A helper that is this process."""

    def __init__(self):
        self.asked = []

    def ask(self, question, config):
        self.asked.append((question, config["position_name"]))
        future = Future()
        future.set_result(getattr(probe, question)(config))
        return future

    def end(self):
        pass


@pytest.fixture
def plan(monkeypatch, here, capsys):
    """Run a plan with the helper in this process; returns (whether all can be built, text, questions asked)."""

    def run(jobs):
        helper = SamePlace()
        start = functools.cache(lambda: helper)
        monkeypatch.setattr(estimate, "start_helper", start)
        probe._looked_at.clear()
        with Estimator() as estimator:
            fine = show_plan(jobs, here, estimator)
        return fine, capsys.readouterr().out, helper.asked

    return run


def listing(folder):
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*"))


def test_a_plan_lists_jobs_and_creates_nothing(make_jobs, plan, tmp_path):
    jobs = make_jobs("position=none,sincos_2d", "seed=0,1")
    before = listing(tmp_path)
    fine, text, asked = plan(jobs)
    assert fine
    assert listing(tmp_path) == before
    first, *lines = text.splitlines()
    assert first.startswith(f"4 jobs into {jobs[0].folder.parent} with ")
    assert "trainer.max_epochs=1" in first
    for job, line in zip(jobs, lines, strict=False):
        assert line.split() == [
            "missing",
            job.name,
            f"seed={job.config['seed']}",
            f"position={job.config['position_name']}",
        ]
    assert lines[4] == "4 missing"
    assert re.fullmatch(r"about \d+ s: 4 jobs, 1 at once \(training alone, from a few steps measured now\)", lines[5])
    # One look per arm, one measurement in all.
    assert asked == [("probe", "none"), ("probe", "sincos_2d"), ("measure", "none")]


def test_states_and_finished_siblings(make_jobs, plan, quick_training):
    jobs = make_jobs("position=none,sincos_2d", "seed=0,1")
    quick_training.failing = (1,)
    execute(jobs[0].config, 1)
    execute(jobs[2].config, 1)
    record = read_record(jobs[0].folder)
    cost = {"parameters": 1, "position_parameters": 0, "train_seconds": 50.0}
    record = type(record).model_validate(
        record.model_dump(by_alias=True) | {"cost": cost, "diagnostics": {"evaluation_seconds": 10.0}}
    )
    write_record(jobs[0].folder, record)
    before = listing(jobs[0].folder.parent)
    fine, text, asked = plan(jobs)
    assert fine
    assert listing(jobs[0].folder.parent) == before
    states = [line.split()[0] for line in text.splitlines()[1:5]]
    assert states == ["finished", "missing", "failed", "missing"]
    assert "1 failed, 1 finished, 2 missing" in text
    assert "about 3 min: 3 jobs, 1 at once (from 1 finished runs)" in text
    assert all(question == "probe" for question, _ in asked)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.patch_size=3", "model.patch_size=3 does not divide the image size"),
        ("optim.lr=-1", "lr"),
        ("model.block.heads=3", "heads"),
        ("position._target_=vitpos.position.nowhere.Nothing", "position: .*nowhere"),
        ("+position.extra=1", "extra"),
        ("data.batch_size=0", "data.batch_size=0"),
        ("trainer.devices=0", "trainer.devices=0"),
        ("fewshot.classifier._target_=vitpos.nothing", "fewshot.classifier: "),
        ("+callbacks.more={_target_:vitpos.callbacks.nowhere.No,_partial_:true}", "callbacks.more: .*nowhere"),
    ],
)
def test_what_cannot_be_built_is_found(make_job, plan, override, message):
    job = make_job("position=sincos_2d", override)
    fine, text, _ = plan([job])
    assert not fine
    assert f"cannot be built: {job.name}" in text
    assert re.search(message, text)
    assert "about" not in text


def test_one_bad_arm_does_not_hide_the_others(make_jobs, plan):
    jobs = make_jobs("position=none,sincos_2d", "seed=0,1", "model.dim=16,6", "model.block.heads=2")
    fine, text, _ = plan(jobs)
    assert not fine
    bad = [line.split()[3] for line in text.splitlines() if line.startswith("cannot be built")]
    assert bad == [
        job.name for job in jobs if job.config["model"]["dim"] == 6 and job.config["position_name"] == "sincos_2d"
    ]


def test_a_data_set_that_is_not_here_is_not_fetched(make_job, plan, tmp_path, monkeypatch):
    from vitpos.data import fashion_mnist

    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "no-such-package")
    root = tmp_path / "data"
    job = make_job("position=none", "data=fashion_mnist", f"data.root={root}")
    fine, text, _ = plan([job])
    assert fine
    assert not root.exists()
    assert "no estimate" in text
    assert "not on this machine yet" in text


def test_measuring_ends_early_for_large_networks(make_job, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(probe.time, "perf_counter", lambda: float(next(clock)) * 2)
    config = make_job("position=none").config
    assert probe.seconds_per_step(config, probe.build_data(config)) == 2.0


def test_a_plan_of_a_hundred_jobs_is_listed_fast(make_jobs, plan):
    started = time.process_time()
    jobs = make_jobs("position=none,sincos_2d,rope_axial,learned_1d", "seed=range(25)")
    assert len(jobs) == 100
    plan(jobs)
    assert time.process_time() - started < 5


def test_no_jobs(plan):
    assert plan([])[:2] == (True, "no jobs\n")


@pytest.fixture
def helper():
    process = Helper()
    yield process
    process.end()
    assert process._process.returncode is not None


def test_the_helper_answers_whatever_its_libraries_print(make_job, helper, tmp_path, monkeypatch):
    fine, bad = make_job("position=none"), make_job("position=none", "model.patch_size=3")
    answers = [helper.ask("probe", job.config) for job in (fine, bad)] + [helper.ask("measure", fine.config)]
    assert answers[0].result() == ""
    assert "model.patch_size=3" in answers[1].result()
    assert answers[2].result() > 0
    with pytest.raises(HelperError, match="KeyError: 'data'"):
        helper.ask("measure", {}).result()
    assert helper.ask("probe", fine.config).result() == ""  # goes on after an error


def test_a_helper_that_dies_is_no_endless_wait(make_job, helper):
    os.kill(helper._process.pid, signal.SIGKILL)
    answers = [helper.ask("probe", make_job("position=none").config) for _ in range(2)]
    for answer in answers:
        with pytest.raises(HelperError, match="has ended"):
            answer.result()
