"""What a sweep would do, before it costs anything: jobs, their state, an estimate; creates nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from omegaconf import DictConfig

from vitpos.record import read_record
from vitpos.sweep.execute import ranks_of
from vitpos.sweep.jobs import Job, state_of
from vitpos.sweep.launchers import plan_slots


def show_plan(jobs: Sequence[Job], launcher: DictConfig) -> None:
    """Print every job with its state and overrides, then counts and the time that the rest will take.

    Time per job is the median of finished siblings with the same model, data and epochs; without one, seconds per
    optimiser step are measured on a few steps of the first such job.

    Raises:
        Exception: a job that cannot be built.
    """
    if not jobs:
        print("no jobs")
        return
    states = {job.name: state_of(job.folder) for job in jobs}
    width = max(len(job.name) for job in jobs)
    print(f"{len(jobs)} jobs into {jobs[0].folder.parent}")
    for job in jobs:
        print(f"{states[job.name]:<11} {job.name:<{width}}  {' '.join(job.overrides)}")
    counts = Counter(states.values())
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    waiting = [job for job in jobs if states[job.name] != "finished"]
    if not waiting:
        return
    at_once, threads, _ = plan_slots(waiting, int(launcher.get("jobs", 0)))
    finished = [job for job in jobs if states[job.name] == "finished"]
    seconds = 0.0
    measured: dict[str, float] = {}
    source = ""
    for job in waiting:
        kind = _kind(job.config)
        if kind not in measured:
            siblings = [cost for other in finished if _kind(other.config) == kind if (cost := _seconds(other))]
            measured[kind] = median(siblings) if siblings else calibrate(job.config, threads)
            source = f"{len(siblings)} finished runs" if siblings else "a few steps measured now"
        seconds += measured[kind]
    print(f"about {seconds / at_once / 60:.1f} min: {len(waiting)} jobs, {at_once} at once ({source})")


def calibrate(config: Mapping[str, Any], threads: int, steps: int = 4) -> float:
    """Return the estimated training seconds of a job from a few optimiser steps on made-up images.

    Builds the network, so a config that cannot be built is found here; reads no data beyond what describes them.
    """
    import time

    import torch
    import torch.nn.functional as F

    from vitpos.training.build import build_data, build_model
    from vitpos.training.machine import pick_device
    from vitpos.training.optim import OptimSettings, build_optimizer

    torch.set_num_threads(threads)
    data = build_data(config)
    data.setup("fit")
    device = pick_device(config["trainer"]["accelerator"])
    model = build_model(config, data.spec).to(device)
    settings = OptimSettings(**{key: value for key, value in config["optim"].items() if key != "_target_"})
    optimizer = build_optimizer(model, settings)
    batch = data.batch_size // ranks_of(dict(config))
    images = torch.zeros(batch, data.spec.channels, *data.spec.image_size, device=device)
    labels = torch.zeros(batch, dtype=torch.int64, device=device)
    times = []
    for _ in range(steps):
        started = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    epochs = int(config["trainer"]["max_epochs"])
    return min(times) * len(data.train_dataloader()) * epochs


def _kind(config: Mapping[str, Any]) -> str:
    """Return what decides how long a job takes, the position module apart."""
    keys = ("model", "data")
    return repr([config[key] for key in keys] + [config["trainer"]["max_epochs"], config["trainer"]["devices"]])


def _seconds(job: Job) -> float | None:
    record = read_record(job.folder)
    if record.cost is None or record.cost.train_seconds is None:
        return None
    return record.cost.train_seconds + float(record.diagnostics.get("evaluation_seconds") or 0.0)
