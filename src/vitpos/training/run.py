"""One run: a resolved config in, a finished record out."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import yaml
from hydra.utils import instantiate
from pytorch_lightning.loggers import Logger

from vitpos.position import Position
from vitpos.record import CONFIG_FILE, Record, identity, run_name, write_record, write_text_atomic
from vitpos.record.folder import run_folder
from vitpos.training import machine
from vitpos.training.afterwards import check, draw, evaluate
from vitpos.training.build import build_data
from vitpos.training.finetune import read_parent, resize_to_training_size
from vitpos.training.fit import CHECKPOINTS, fit, plain_spec
from vitpos.training.publish import publish
from vitpos.training.task import ClassificationTask
from vitpos.training.tracking import Tracking, close

log = logging.getLogger(__name__)


def describe(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record says of a run before it has started."""
    position, model, data = config["position"], config["model"], config["data"]
    settings = {key: value for key, value in position.items() if not key.startswith("_")}
    return {
        "experiment": str(config["experiment_name"]),
        "run": run_name(config),
        "config_hash": identity(config),
        "seed": config["seed"],
        "commit": machine.commit(),
        "versions": machine.versions(),
        "overrides": list(config.get("overrides", [])),
        "parent": config.get("parent"),
        "position": {"label": config["position_name"], **settings, "name": config["position_name"]},
        "model": {**_plain(model), "name": config["model_name"]},
        "data": {**_plain(data), "name": config["data_name"]},
    }


def run(config: Mapping[str, Any]) -> Record | None:
    """Train, pick the best checkpoint on validation data, read the test data once, write the record last.

    Every rank of a multi-process job calls this; rank 0 alone evaluates and writes once training has ended.

    Args:
        config: resolved plain config.

    Returns:
        The record; None on ranks other than 0.
    """
    folder = run_folder(config)
    main = int(os.environ.get("RANK", "0")) == 0
    started = datetime.now(UTC).isoformat(timespec="seconds")
    if main:  # first of all, so that a run that fails has its config, too
        (folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
        write_text_atomic(folder / CONFIG_FILE, yaml.safe_dump(dict(config), sort_keys=False))
    data = build_data(config)
    data.setup()
    parent = read_parent(config) if config["from"] else None
    task = ClassificationTask(
        network={key: config[key] for key in ("seed", "model", "position")},
        spec=dict(parent.spec) if parent else plain_spec(data),
        optim={key: value for key, value in config["optim"].items() if key != "_target_"},
    )
    if parent:
        if parent.spec["classes"] != data.spec.classes:
            raise ValueError(
                f"from={config['from']}: its head has {parent.spec['classes']} classes, data={config['data_name']} has "
                f"{data.spec.classes}"
            )
        parent.load_into(task.model)
        resize_to_training_size(task.model, config)
    fewshot = check(config, task.model, data)
    logger = _open_logger(config, folder) if main else None
    failed = True
    try:
        device = machine.pick_device(config["trainer"]["accelerator"])
        machine.reset_peak_memory(device)
        history, checkpoint, resumed = fit(config, folder, task, data, logger)
        peak = machine.peak_memory_mib(device)
        if dist.is_initialized():
            dist.destroy_process_group()  # what follows is one process's work; the other ranks are done
        if not main:
            return None
        best = torch.load(checkpoint.best_model_path, map_location="cpu", weights_only=True)
        task.load_state_dict(best["state_dict"], strict=True)
        model = task.model.to(device).eval()
        rate = history.images_per_second
        record = Record.model_validate(
            {
                **describe(config),
                "status": "finished",
                "started": started,
                "resumed": resumed,
                "device": machine.describe_device(device),
                "position": _position(config, model.position),
                "cost": {
                    **model.cost(),
                    "train_seconds": history.train_seconds,
                    "train_images_per_second": rate,
                    "step_ms": 1000 * data.batch_size / rate if rate else None,
                    "peak_memory_mib": peak,
                },
                "metrics": _validation_metrics(history.rows, int(best["epoch"])),
                "best_epoch": int(best["epoch"]),
                "epochs": len(history.rows),
            }
        )
        evaluate(config, folder, model, data, device, record, fewshot)
        publish(logger, record, draw(config, folder, model, record))
        write_record(folder, record)
        failed = False
        return record
    finally:
        close(logger, failed)


def _open_logger(config: Mapping[str, Any], folder: Path) -> Logger | None:
    tracking: Tracking = instantiate(config["logger"], _convert_="all")
    run = tracking.open(
        folder,
        name=folder.name,
        group=str(config["experiment_name"]),
        kind="train",
        tags=[str(config["position_name"])],
        config={**config, "folder": str(folder), "commit": machine.commit(), "config_hash": identity(config)},
    )
    return tracking.logger(run, folder)


def _validation_metrics(rows: list[dict[str, float]], best_epoch: int) -> dict[str, float]:
    """Return validation metrics of the best epoch, and of the last one under names ending in `_last`."""
    best = next(row for row in rows if row["epoch"] == best_epoch)
    chosen = {name: value for name, value in best.items() if name.startswith("val/")}
    return chosen | {f"{name}_last": value for name, value in rows[-1].items() if name.startswith("val/")}


def _position(config: Mapping[str, Any], position: Position) -> dict[str, Any]:
    settings = _plain(config["position"])
    described = {"label": position.label, "injection": position.injection, "family": position.family}
    return {**settings, **described, "name": config["position_name"]}


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the keys that tell Hydra what to build."""
    return {key: value for key, value in settings.items() if not key.startswith("_")}
