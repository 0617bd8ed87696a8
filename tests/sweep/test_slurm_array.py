"""Slurm through submitit: its debug and local executors stand in for a cluster."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from vitpos.sweep import slurm_array, worker
from vitpos.sweep.execute import Outcome
from vitpos.sweep.slurm_array import SlurmArray, Task

submitit = pytest.importorskip("submitit")
cloudpickle = pytest.importorskip("cloudpickle")
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # tasks cannot import a test

SETTINGS = {
    "cluster": "local",
    "parallel": 2,
    "partition": "",
    "minutes": 5,
    "cpus": 1,
    "gpus": 0,
    "memory_gb": 0,
    "options": {},
}


def note(config, threads):
    folder = Path(config["output_dir"])
    folder.mkdir(exist_ok=True)
    (folder / f"{config['seed']}-{threads}").touch()
    return Outcome(folder / str(config["seed"]), "finished")


def slow_at_first(config, threads):
    """A job that is still under way at its first try."""
    folder = Path(config["output_dir"])
    marker = folder / "started"
    if not marker.exists():
        marker.write_text(str(os.getpid()))
        time.sleep(60)
    return note(config, threads)


def die(config, threads):
    if config["seed"] == 1:
        os._exit(3)
    return note(config, threads)


@pytest.fixture
def array(make_jobs, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def run(work, count, **settings):
        monkeypatch.setattr(worker, "work", work)
        jobs = make_jobs("position=none", f"seed=range({count})")
        return jobs, SlurmArray(**(SETTINGS | settings)).run(jobs)

    return run


@pytest.fixture
def parameters(make_jobs, monkeypatch):
    """What the launcher asks Slurm for."""

    def get(*overrides, **settings):
        seen = {}

        class Executor:
            def __init__(self, folder, cluster):
                seen.update(folder=folder, cluster=cluster)

            def update_parameters(self, **given):
                seen.update(given)

            def map_array(self, task, configs):
                seen.update(task=task, configs=configs)
                return []

        monkeypatch.setattr(submitit, "AutoExecutor", Executor)
        jobs = make_jobs("seed=0,1", *overrides)
        with pytest.raises(ValueError, match="zip"):
            list(SlurmArray(**(SETTINGS | {"cluster": "slurm"} | settings)).run(jobs))
        return jobs, seen

    return get


def test_slurm_is_asked_for_what_is_set(parameters):
    jobs, seen = parameters(
        "trainer.devices=2", partition="gpu", cpus=4, gpus=1, memory_gb=20, options={"account": "us"}
    )
    assert (seen["cluster"], seen["folder"]) == ("slurm", jobs[0].folder.parent / ".slurm")
    assert (seen["cpus_per_task"], seen["gpus_per_node"], seen["mem_gb"]) == (8, 2, 20)
    assert (seen["slurm_partition"], seen["slurm_array_parallelism"], seen["timeout_min"]) == ("gpu", 2, 5)
    assert seen["slurm_additional_parameters"] == {"account": "us"}
    assert [config["seed"] for config in seen["configs"]] == [0, 1]


def test_slurm_is_left_alone_with_what_is_not_set(parameters):
    _, seen = parameters()
    assert not {"gpus_per_node", "mem_gb", "slurm_partition"} & set(seen)


def test_numbers_that_make_no_sense_are_refused():
    for name, value in {"parallel": 0, "minutes": 0, "cpus": 0, "gpus": -1}.items():
        with pytest.raises(ValueError, match=f"launcher.{name}={value}"):
            SlurmArray(**(SETTINGS | {name: value}))


def test_a_machine_without_slurm_says_so(array):
    _, running = array(note, 1, cluster="slurm")
    with pytest.raises(ValueError, match=r"launcher\.cluster=slurm: "):
        next(running)


def test_jobs_at_once(make_jobs):
    assert SlurmArray(**SETTINGS).at_once(make_jobs("seed=0,1,2")) == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # submitit leaves its logs open
def test_the_debug_executor_runs_jobs_here(array, tmp_path):
    _, running = array(note, 2, cluster="debug", cpus=3)
    assert [outcome.status for outcome in running] == ["finished", "finished"]
    assert sorted(path.name for path in (tmp_path / "outputs").glob("[01]-*")) == ["0-3", "1-3"]


@pytest.mark.slow
def test_tasks_of_the_local_executor_and_one_that_dies(array, tmp_path, monkeypatch):
    monkeypatch.setattr(
        slurm_array, "record_crash", lambda config, message: Outcome(Path("x"), "failed", error=message)
    )
    _, running = array(die, 3)
    outcomes = list(running)
    assert sorted(outcome.status for outcome in outcomes) == ["failed", "finished", "finished"]
    (failed,) = [outcome for outcome in outcomes if outcome.status == "failed"]
    assert failed.error.startswith("array task ")
    assert len(list((tmp_path / "outputs").glob("[012]-*"))) == 2


@pytest.mark.slow
def test_a_preempted_task_is_queued_again(make_job, monkeypatch, tmp_path):
    job = make_job("position=none")
    (tmp_path / "outputs").mkdir()
    executor = SlurmArray(**SETTINGS)._executor(job, 1)
    (submitted,) = executor.map_array(Task(slow_at_first, 1), [job.config])

    def preempt():
        started = tmp_path / "outputs" / "started"
        while not started.exists() or not started.read_text():
            time.sleep(0.1)
        os.kill(int(started.read_text()), signal.SIGUSR2)  # what Slurm sends before it takes a machine away

    thread = threading.Thread(target=preempt)
    thread.start()
    assert submitted.result().status == "finished"
    thread.join()
    assert (tmp_path / "outputs" / "0-1").exists()
