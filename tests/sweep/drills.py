"""Drills: a run, or a sweep, is killed at chosen or random moments until it ends; the result must be the same.

    python tests/sweep/drills.py writes FOLDER            one run, killed before every durable write of it in turn
    python tests/sweep/drills.py moments FOLDER --times 20   one run, killed at random moments
    python tests/sweep/drills.py sweep FOLDER --times 20     the whole command, killed with or without its workers
    python tests/sweep/drills.py memory FOLDER --times 20    jobs one after the other in one worker, tracked and drawn

Durations differ between two runs of the same job, so everything else is compared: records, metrics, predictions and
the report's table.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import yaml
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode

from vitpos.cli import CONFIG_FOLDER
from vitpos.record import read_record
from vitpos.report import build_report
from vitpos.sweep.expand import expand
from vitpos.sweep.jobs import state_of

ROOT = CONFIG_FOLDER.parent
TINY = [
    "trainer.max_epochs=3",
    "trainer.accelerator=cpu",
    "data.limit_train=128",
    "model.depth=2",
    "model.dim=16",
    "transfer=none",
    "fewshot=none",
    "callbacks=none",
    "diagnostics.images=16",
    "diagnostics.shuffle_images=64",
    "experiment_name=drill",
]
TIMES = ("seconds", "per_second", "step_ms", "memory", "_s_", "time")


def jobs_of(folder, *arguments):
    """Return the jobs of a command line whose outputs go to `folder`."""
    texts = [*TINY, f"output_dir={folder}", *arguments]
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        hydra = GlobalHydra.instance().hydra
        master = hydra.compose_config("train", texts, run_mode=RunMode.MULTIRUN, with_log_configuration=False)
        return list(expand(hydra.config_loader, master, {}, texts))


def timeless(value):
    """Return nested plain values without what measures time or memory."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if not any(word in key for word in TIMES)}
    if isinstance(value, list):
        return [timeless(item) for item in value]
    return value


def result_of(folder):
    """Return everything that a finished run says, times left out."""
    record = timeless(read_record(folder).model_dump(mode="json"))
    for key in ("started", "resumed", "overrides", "commit"):
        record.pop(key)
    rows = [timeless(row) for row in csv.DictReader((folder / "metrics.csv").read_text().splitlines())]
    arrays = {name: value.tolist() for name, value in np.load(folder / "predictions.npz").items()}
    return (
        record,
        rows,
        arrays,
        timeless(yaml.safe_load((folder / "config.yaml").read_text()) | {"output_dir": ""})["seed"],
    )


def table_of(folder):
    """Return the report's table, times left out."""
    build_report(folder, reference="none")
    rows = list(csv.DictReader((folder / "report" / "table.csv").read_text().splitlines()))
    return [timeless(row) for row in rows]


def in_child(config, before=None):
    """Run a job in a forked process, which needs no imports any more; returns its process id."""
    process = os.fork()
    if process:
        return process
    from vitpos.sweep import worker

    if before:
        before()
    outcome = worker.work(config, 1)
    os._exit(0 if outcome.status in ("finished", "skipped") else 1)


def ended(process):
    """Wait for a child; returns its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def die_at_write(number):
    """Kill this process just before its n-th durable write reaches its place."""
    count = iter(range(1, 10**6))

    def watch(original):
        def call(*arguments, **options):
            if next(count) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **options)

        return call

    os.fsync, Path.replace = watch(os.fsync), watch(Path.replace)


def drill_run(folder, kill, epochs=3):
    """Run one job undisturbed and one that is killed by `kill(attempt, process_of)` until it ends; compare."""
    import torch  # noqa: F401  before the forks

    from vitpos.training import run  # noqa: F401

    arguments = ("position=learned_1d", "logger=none", f"trainer.max_epochs={epochs}")
    (reference,) = jobs_of(folder / "undisturbed", *arguments)
    (victim,) = jobs_of(folder / "killed", *arguments)
    assert ended(in_child(reference.config)) == 0
    attempts = kills = 0
    while state_of(victim.folder) != "finished":
        attempts += 1
        code = kill(attempts, victim.config)
        kills += code == -signal.SIGKILL
        assert code in (0, -signal.SIGKILL), f"attempt {attempts} ended with {code}: see {victim.folder / 'run.log'}"
        assert state_of(victim.folder) in ("missing", "interrupted", "finished"), state_of(victim.folder)
    assert result_of(reference.folder) == result_of(victim.folder)
    print(f"{kills} kills, {attempts} attempts: the same result")
    return kills


def drill_writes(folder):
    """Kill a run before each of its durable writes; every attempt gets one write further than the one before."""
    return drill_run(folder, lambda attempt, config: ended(in_child(config, lambda: die_at_write(attempt))))


def drill_moments(folder, times, rng):
    """Kill a run at random moments, `times` times; then let it end."""

    def kill(attempt, config):
        process = in_child(config)
        if attempt <= times:
            time.sleep(rng.uniform(0.05, 1.0))
            os.kill(process, signal.SIGKILL)
        return ended(process)

    return drill_run(folder, kill, epochs=40)


def drill_sweep(folder, times, rng):
    """Kill the whole command at random moments: the sweep alone, or a worker, or all of its processes."""
    arguments = ["position=none,learned_1d", "seed=0,1", "launcher.jobs=2", "trainer.max_epochs=12"]

    def start(name):
        command = [sys.executable, "scripts/train.py", "-m", *TINY, f"output_dir={folder / name}", *arguments]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "WANDB_MODE": "offline"}
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)

    started = time.monotonic()
    assert start("undisturbed").wait() == 0
    duration = time.monotonic() - started
    jobs = jobs_of(folder / "killed", *arguments)
    kills, ids = 0, {}
    while kills < times:
        process = start("killed")
        try:
            assert process.wait(rng.uniform(1, 1.2 * duration)) == 0
            for job in rng.sample(jobs, 3):  # it has ended: begin most of it again
                shutil.rmtree(job.folder)
                ids.pop(job.name, None)
            continue
        except subprocess.TimeoutExpired:
            kills += 1
        how = rng.choice(["the sweep", "a worker", "everything"])
        children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        if how == "a worker" and children:
            os.kill(rng.choice(children), signal.SIGKILL)
            process.wait()
        elif how == "everything":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        print(f"kill {kills}: {how}; {[state_of(job.folder) for job in jobs]}", flush=True)
        for job in jobs:
            path = job.folder / "wandb_id.txt"
            if path.exists():
                assert ids.setdefault(job.name, path.read_text()) == path.read_text()
    assert start("killed").wait() == 0
    for job in jobs:
        assert result_of(job.folder) == result_of(folder / "undisturbed" / "drill" / job.name), job.name
    assert table_of(folder / "undisturbed" / "drill") == table_of(folder / "killed" / "drill")
    print(f"{kills} kills: the same records, predictions and table")


def drill_memory(folder, times):
    """Run jobs in this process; memory and open files after the last are those after the second."""
    from vitpos.sweep import worker

    used = []
    for job in jobs_of(folder, "position=learned_1d", f"seed=range({times})", "callbacks=figures", "transfer=default"):
        assert worker.work(job.config, 1).status == "finished"
        status = Path("/proc/self/status").read_text()
        memory = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
        used.append((memory, len(list(Path("/proc/self/fd").iterdir())), threading.active_count()))
        print(f"job {len(used)}: {memory:.0f} MiB, {used[-1][1]} files, {used[-1][2]} threads", flush=True)
    assert used[-1][0] < 1.1 * used[1][0], "memory grows"
    assert used[-1][1] <= used[1][1], "files stay open"
    assert used[-1][2] <= used[1][2], "threads stay alive"


def main():
    """Run one drill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drill", choices=["writes", "moments", "sweep", "memory"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None)
    settings = parser.parse_args()
    rng = random.Random(settings.seed)
    shutil.rmtree(settings.folder, ignore_errors=True)
    if settings.drill == "writes":
        drill_writes(settings.folder)
    elif settings.drill == "moments":
        drill_moments(settings.folder, settings.times, rng)
    elif settings.drill == "sweep":
        drill_sweep(settings.folder, settings.times, rng)
    else:
        drill_memory(settings.folder, settings.times)


if __name__ == "__main__":
    main()
