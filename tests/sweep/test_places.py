"""How cores and GPUs are divided."""

from __future__ import annotations

import os
import threading
import time

import pytest

from vitpos.sweep import places
from vitpos.sweep.places import claim, gpu_sets, share_machine, visible_gpus


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A machine of 16 cores without GPUs."""
    monkeypatch.setattr(places, "usable_cores", lambda: 16)
    monkeypatch.setattr(places, "DRIVERS", ())
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def on_gpus(make_jobs):
    return lambda count, *overrides: make_jobs("seed=range(20)", "trainer.accelerator=auto", *overrides)[:count]


def test_gpus_are_found_without_importing_anything_heavy(monkeypatch):
    assert visible_gpus() == []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, GPU-1a,")
    assert visible_gpus() == ["2", "GPU-1a"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_gpus() == []


def test_gpu_sets_are_disjoint():
    assert gpu_sets("01234", 2) == (("0", "1"), ("2", "3"))
    assert gpu_sets("01", 1, per_set=2) == (("0",), ("1",), ("0",), ("1",))


@pytest.mark.parametrize(
    ("jobs", "at_once", "threads"), [(20, 0, 1), (20, 4, 4), (2, 0, 8), (20, 5, 3), (1, 0, 16), (20, 100, 1)]
)
def test_cores_are_shared(on_gpus, jobs, at_once, threads):
    share = share_machine(on_gpus(jobs), at_once)
    assert share.at_once == min(at_once or 16, jobs)
    assert share.threads == threads


def test_processes_of_a_job_share_its_cores(on_gpus):
    share = share_machine(on_gpus(4, "trainer.devices=2"))
    assert (share.at_once, share.threads) == (4, 2)


def test_gpus_decide_how_many_run_at_once(on_gpus, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    assert share_machine(on_gpus(20)).at_once == 4
    assert share_machine(on_gpus(20), at_once=8).at_once == 4
    assert share_machine(on_gpus(20), at_once=2).at_once == 2
    assert share_machine(on_gpus(20), per_gpu=2).at_once == 8
    share = share_machine(on_gpus(20, "trainer.devices=2"))
    assert (share.at_once, share.threads, share.places) == (2, 4, (("0", "1"), ("2", "3")))


def test_cpu_jobs_do_not_look_for_gpus(make_jobs, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert share_machine(make_jobs("seed=0,1,2")).places == ()


def test_a_set_number_of_threads_wins(on_gpus, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert share_machine(on_gpus(20)).threads == 3


def test_loader_workers_are_counted(on_gpus, monkeypatch):
    jobs = on_gpus(20, "+data.num_workers=3")
    assert share_machine(jobs, at_once=2).threads == 5
    assert share_machine(jobs, at_once=16).threads == 1
    share = share_machine(on_gpus(20, "+data.num_workers=auto"), at_once=2)
    assert (share.threads, share.workers) == (4, 4)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    jobs = on_gpus(20, "+data.num_workers=auto")
    share = share_machine(jobs)
    assert (share.threads, share.workers) == (1, 7)
    assert share.config(jobs[0])["data"]["num_workers"] == 7
    assert jobs[0].config["data"]["num_workers"] == "auto"


def test_a_claimed_set_is_given_to_nobody_else(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    both = (("0",), ("1",))
    first = claim(tmp_path, both)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"
    second = claim(tmp_path, both)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    got = []
    thread = threading.Thread(target=lambda: got.append(claim(tmp_path, both)))
    thread.start()
    time.sleep(0.2)
    assert not got
    first.release()
    thread.join(5)
    assert len(got) == 1
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"
    second.release()
    got[0].release(force=True)


def test_a_shared_gpu_has_as_many_locks_as_jobs(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    twice = gpu_sets(["0"], 1, per_set=2)
    locks = [claim(tmp_path, twice), claim(tmp_path, twice)]
    assert len(list(tmp_path.iterdir())) == 2
    for lock in locks:
        lock.release()


def test_a_missing_job_gets_the_threads_it_would_have_had_in_the_whole_sweep(on_gpus):
    share = share_machine(on_gpus(1), study=40)
    assert (share.at_once, share.threads) == (1, share_machine(on_gpus(40)).threads)
    assert share_machine(on_gpus(1), study=2).threads == share_machine(on_gpus(2)).threads == 8
