"""Ray, for real, on this machine's cores and on GPUs that it only believes in."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from vitpos.sweep import ray_tasks, worker
from vitpos.sweep.execute import Outcome
from vitpos.sweep.ray_tasks import RayTasks

ray = pytest.importorskip("ray")
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test


def note(config, threads):
    folder = Path(config["output_dir"])
    folder.mkdir(exist_ok=True)
    started = time.time()
    time.sleep(1)
    seen = {
        "device": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "threads": [threads, os.environ["OMP_NUM_THREADS"]],
        "folder": os.getcwd(),  # noqa: PTH109
        "time": [started, time.time()],
    }
    (folder / f"{config['seed']}.json").write_text(json.dumps(seen))
    return Outcome(folder / str(config["seed"]), "finished")


def die(config, threads):
    if config["seed"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return note(config, threads)


def say(config, message):
    return Outcome(Path(str(config["seed"])), "failed", error=message)


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A machine of 8 cores and, as far as Ray knows, 2 GPUs."""
    monkeypatch.setattr(ray_tasks, "usable_cores", lambda: 8)
    monkeypatch.setattr(ray_tasks, "visible_gpus", lambda: ["0", "1"])
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    yield
    ray.shutdown()


@pytest.fixture
def tasks(make_jobs, monkeypatch, tmp_path):
    def run(work, count, accelerator="auto", **settings):
        monkeypatch.setattr(worker, "work", work)
        monkeypatch.setattr(worker, "crashed", say)
        jobs = make_jobs("position=none", f"seed=range({count})", f"trainer.accelerator={accelerator}")
        outcomes = list(RayTasks(**({"address": "", "gpus": "auto", "cpus": 0} | settings)).run(jobs))
        return outcomes, {path.stem: json.loads(path.read_text()) for path in (tmp_path / "outputs").glob("*.json")}

    return run


def overlap(one, other):
    return one["time"][0] < other["time"][1] and other["time"][0] < one["time"][1]


def at_once(make_jobs, *overrides, **settings):
    jobs = make_jobs("seed=range(20)", "trainer.accelerator=auto", *overrides)
    return RayTasks(**({"address": "", "gpus": "auto", "cpus": 0} | settings)).at_once(jobs)


def test_jobs_at_once(make_jobs):
    assert at_once(make_jobs) == 2
    assert at_once(make_jobs, gpus=0.25) == 8
    assert at_once(make_jobs, gpus=0, cpus=2) == 4
    assert at_once(make_jobs, "trainer.accelerator=cpu") == 8
    assert at_once(make_jobs, "trainer.devices=2") == 1


def test_what_cannot_be_had_is_refused(make_jobs):
    with pytest.raises(ValueError, match=r"a job asks for 16 cores and 4 GPUs .* there are 8 and 2"):
        at_once(make_jobs, "trainer.devices=4")
    with pytest.raises(ValueError, match=r"launcher.gpus=0.5 with trainer.devices=2: .* whole GPUs"):
        at_once(make_jobs, "trainer.devices=2", gpus=0.5)
    with pytest.raises(ValueError, match=r"launcher.gpus=-1: must not be negative"):
        at_once(make_jobs, gpus=-1)


@pytest.mark.slow
def test_whole_gpus_are_not_shared_and_crashes_stay_with_their_job(tasks):
    outcomes, seen = tasks(die, 4)
    by_seed = {outcome.folder.name: outcome for outcome in outcomes}
    assert [by_seed[seed].status for seed in "0123"] == ["finished", "failed", "finished", "finished"]
    assert "worker process died" in by_seed["1"].error
    assert {item["device"] for item in seen.values()} <= {"0", "1"}
    pairs = [(a, b) for a in seen for b in seen if a < b and overlap(seen[a], seen[b])]
    assert all(seen[a]["device"] != seen[b]["device"] for a, b in pairs)
    assert all(item["threads"] == [4, "4"] for item in seen.values())
    assert all(item["folder"] == str(Path.cwd()) for item in seen.values())


@pytest.mark.slow
def test_fractions_share_a_gpu(tasks):
    _, seen = tasks(note, 4, gpus=0.5, cpus=1)
    pairs = [(a, b) for a in seen for b in seen if a < b and overlap(seen[a], seen[b])]
    assert any(seen[a]["device"] == seen[b]["device"] for a, b in pairs)
