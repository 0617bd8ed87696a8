"""Worker processes: one pool per slot, GPUs that are never shared, crashes that stay with their job."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

try:
    import cloudpickle
except ImportError:  # joblib before 1.6 brings its own
    from joblib.externals import cloudpickle

from vitpos.sweep import worker
from vitpos.sweep.execute import Outcome
from vitpos.sweep.joblib_pool import JoblibPool

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test


def note(config, threads):
    """Stand in for a job: write down where and when it ran."""
    folder = Path(config["output_dir"])
    folder.mkdir(exist_ok=True)
    started = time.time()
    time.sleep(0.4)
    seen = {
        "device": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "process": os.getpid(),
        "threads": [threads, os.environ["OMP_NUM_THREADS"]],
        "time": [started, time.time()],
    }
    (folder / f"{config['seed']}.json").write_text(json.dumps(seen))
    return Outcome(folder / str(config["seed"]), "finished")


def die_once(config, threads):
    """A job whose process is killed at its first try."""
    marker = Path(config["output_dir"]) / f"tried-{config['seed']}"
    marker.parent.mkdir(exist_ok=True)
    if config["seed"] == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return note(config, threads)


def die(config, threads):
    """A job whose process is always killed."""
    if config["seed"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return note(config, threads)


def with_helpers(config, threads):
    """A job that starts processes of its own, as loader workers are."""
    context = multiprocessing.get_context()
    queue = context.Queue()
    helper = context.Process(target=queue.put, args=(os.getpid(),))
    helper.start()
    assert queue.get(timeout=30) == os.getpid()
    helper.join()
    return note(config, threads)


def say(config, message):
    """Stand in for the record of a crash."""
    return Outcome(Path("1"), "failed", error=message)


@pytest.fixture
def pool(make_jobs, monkeypatch, tmp_path):
    """Run a stand-in for jobs in real workers; returns (outcomes, what the jobs wrote down by seed)."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def run(work, count, accelerator="cpu", **settings):
        monkeypatch.setattr(worker, "work", work)
        monkeypatch.setattr(worker, "crashed", say)
        jobs = make_jobs("position=none", f"seed=range({count})", f"trainer.accelerator={accelerator}")
        outcomes = list(JoblibPool(**({"jobs": 0, "jobs_per_gpu": 1} | settings)).run(jobs))
        return outcomes, {path.stem: json.loads(path.read_text()) for path in (tmp_path / "outputs").glob("*.json")}

    return run


def overlap(one, other):
    return one["time"][0] < other["time"][1] and other["time"][0] < one["time"][1]


def test_jobs_at_once_never_share_a_gpu(pool, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    outcomes, seen = pool(note, 4, accelerator="auto")
    assert len(outcomes) == 4
    assert sorted(item["device"] for item in seen.values()) == ["3", "3", "5", "5"]
    pairs = [(a, b) for a in seen for b in seen if a < b and overlap(seen[a], seen[b])]
    assert pairs, "nothing ran at once"
    assert all(seen[a]["device"] != seen[b]["device"] for a, b in pairs)
    # A worker serves several jobs and keeps its device.
    assert len({item["process"] for item in seen.values()}) == 2


def test_a_gpu_is_shared_when_asked_for(pool, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    _, seen = pool(note, 2, accelerator="auto", jobs_per_gpu=2)
    assert [item["device"] for item in seen.values()] == ["3", "3"]
    assert overlap(seen["0"], seen["1"])


def test_threads_are_shared_and_jobs_run_in_other_processes(pool, monkeypatch):
    monkeypatch.setattr("vitpos.sweep.places.usable_cores", lambda: 6)
    _, seen = pool(note, 2, jobs=2)
    assert all(item["threads"] == [3, "3"] for item in seen.values())
    _, seen = pool(note, 1, jobs=1)
    assert seen["0"]["threads"] == [6, "6"]
    assert seen["0"]["process"] != os.getpid()


def test_jobs_can_start_processes_of_their_own(pool):
    outcomes, _ = pool(with_helpers, 1, jobs=1)
    assert [outcome.status for outcome in outcomes] == ["finished"]


def test_a_killed_worker_costs_its_own_job_one_try(pool):
    outcomes, seen = pool(die_once, 4, jobs=2)
    assert [outcome.status for outcome in outcomes] == ["finished"] * 4
    assert sorted(seen) == ["0", "1", "2", "3"]
    # The neighbour went on in its process, the killed one was replaced.
    assert len({seen[seed]["process"] for seed in seen}) == 2


def test_a_job_that_kills_its_worker_twice_has_failed(pool):
    outcomes, seen = pool(die, 3, jobs=1)
    assert sorted(seen) == ["0", "2"]
    (failed,) = [outcome for outcome in outcomes if outcome.status == "failed"]
    assert failed.folder.name == "1"
    assert "worker process died" in failed.error
    assert "SIGKILL" in failed.error


def test_closing_ends_the_workers(pool, make_jobs, monkeypatch, tmp_path):
    monkeypatch.setattr(worker, "work", note)
    jobs = make_jobs("position=none", "seed=range(4)")
    running = JoblibPool(jobs=1, jobs_per_gpu=1).run(jobs)
    next(running)
    process = json.loads((tmp_path / "outputs" / "0.json").read_text())["process"]
    running.close()
    assert not alive(process)
    assert not (tmp_path / "outputs" / "3.json").exists()


def test_workers_end_with_a_killed_sweep(tmp_path):
    script = tmp_path / "sweep.py"
    script.write_text(
        textwrap.dedent("""
        import os, sys, time
        from joblib.externals.loky import ProcessPoolExecutor
        from vitpos.sweep import worker

        if __name__ == "__main__":
            pool = ProcessPoolExecutor(max_workers=1, initializer=worker.start, initargs=(sys.argv[1], ()))
            print(pool.submit(os.getpid).result(), flush=True)
            pool.submit(time.sleep, 60)
            time.sleep(60)
        """)
    )
    process = subprocess.Popen([sys.executable, str(script), str(tmp_path)], stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline())
    assert alive(child)
    process.kill()
    process.wait()
    process.stdout.close()
    assert gone(child, 5)


@pytest.mark.parametrize("settings", [{"jobs": -1, "jobs_per_gpu": 1}, {"jobs": 0, "jobs_per_gpu": 0}])
def test_numbers_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match=r"launcher\.jobs\w*=-?\d: must be at least"):
        JoblibPool(**settings)


def test_more_processes_than_gpus_are_refused(make_jobs, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    jobs = make_jobs("position=none", "trainer.devices=4", "trainer.accelerator=auto")
    with pytest.raises(ValueError, match=r"trainer.devices=4: this machine offers 2 GPU\(s\)"):
        list(JoblibPool(jobs=0, jobs_per_gpu=1).run(jobs))


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def gone(process, seconds):
    end = time.monotonic() + seconds
    while alive(process) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(process)
