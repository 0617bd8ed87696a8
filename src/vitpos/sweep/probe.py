"""Whether a job can be built and how long its training would take, without touching data or folders.

Runs in a helper process, since it needs PyTorch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F
from hydra.utils import instantiate

from vitpos.data.base import ImageData
from vitpos.data.download import without_fetching
from vitpos.sweep.process import forget_ranks
from vitpos.sweep.ranks import ranks_of
from vitpos.training.build import build_data, build_model
from vitpos.training.machine import pick_device
from vitpos.training.optim import OptimSettings, build_optimizer

STEPS = 4
ENOUGH = 1.0  # seconds of measuring, however few the steps


_looked_at = set[str]()  # settings that could be built; most jobs of a sweep share most of them


def probe(config: dict[str, Any]) -> str:
    """Build a job's parts and throw them away.

    Args:
        config: resolved plain config.

    Returns:
        Why it cannot be built; empty if it can.
    """
    forget_ranks()
    where = "trainer.devices"
    try:
        ranks_of(config)
        for path, settings in _targets(config, ""):
            where = path
            if repr(settings) not in _looked_at:
                _look_at(settings)
                _looked_at.add(repr(settings))
        where = "data"
        data = build_data(config)
        where = "model and position"
        _build_quickly(config, data)
    except Exception as error:
        return f"{where}: {' '.join(str(error).split())}"
    return ""


def measure(config: dict[str, Any]) -> float | None:
    """Return the estimated seconds of a job's training; None if its data set is not on this machine yet."""
    data = build_data(config)
    try:
        with without_fetching():
            images = len(data.positions("train"))
    except ValueError:
        return None
    steps = max(1, images // data.batch_size) * int(config["trainer"]["max_epochs"])
    return steps * seconds_per_step(config, data)


def seconds_per_step(config: Mapping[str, Any], data: ImageData) -> float:
    """Return the time of one optimiser step, from a few on made-up images."""
    device = pick_device(config["trainer"]["accelerator"])
    model = build_model(config, data.spec).to(device)
    settings = OptimSettings(**{key: value for key, value in config["optim"].items() if key != "_target_"})
    optimizer = build_optimizer(model, settings)
    batch = max(1, data.batch_size // ranks_of(dict(config)))
    images = torch.zeros(batch, data.spec.channels, *data.spec.image_size, device=device)
    labels = torch.zeros(batch, dtype=torch.int64, device=device)
    times: list[float] = []
    while len(times) < STEPS and sum(times) < ENOUGH:
        started = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    return min(times)


def _look_at(settings: Mapping[str, Any]) -> None:
    """Build something; of what a run completes later, such as a callback, only see that its file is there.

    Importing Lightning and Matplotlib for callbacks would take longer than all the rest.
    """
    if not settings.get("_partial_"):
        instantiate(settings, _convert_="all")
    elif find_spec(str(settings["_target_"]).rpartition(".")[0]) is None:
        raise ValueError(f"_target_={settings['_target_']}: no such module")


def _build_quickly(config: Mapping[str, Any], data: ImageData) -> None:
    """Build the network without memory; where that does not work, with memory."""
    try:
        with torch.device("meta"):
            build_model(config, data.spec)
    except Exception:
        build_model(config, data.spec)


def _targets(node: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return every outermost part of a config that builds something, by its dotted key."""
    if isinstance(node, Mapping):
        if "_target_" in node:
            yield path, node
            return
        for key, value in node.items():
            yield from _targets(value, f"{path}.{key}" if path else str(key))
