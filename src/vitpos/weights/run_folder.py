"""An imported network as a finished run: the same files, so that everything which reopens runs can reopen it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import yaml
from filelock import FileLock, Timeout
from omegaconf import open_dict
from torch import Tensor

from vitpos.data.base import ImageData
from vitpos.evaluation.predictions import predict
from vitpos.models.vit import ViT
from vitpos.record import (
    CONFIG_FILE,
    PREDICTIONS_FILE,
    RESULT_FILE,
    Record,
    read_record,
    write_record,
    write_text_atomic,
)
from vitpos.spec import ImageSpec
from vitpos.sweep.jobs import LOCK_FILE, Job, make_job
from vitpos.training import machine
from vitpos.training.build import build_data, build_model
from vitpos.training.checkpoint import PREFIX
from vitpos.training.finetune import BEST
from vitpos.training.run import describe
from vitpos.weights.compare import compare
from vitpos.weights.convert import convert
from vitpos.weights.network import image_spec, model_settings
from vitpos.weights.origin import Origin
from vitpos.weights.positions import describe_positions
from vitpos.weights.settings import compose_config


def import_network(
    origin: Origin, *, output_dir: str, experiment_name: str, data: Sequence[str] = (), overrides: Sequence[str] = ()
) -> tuple[Path, Record]:
    """Convert a network, check it against timm's, and write the folder of a finished run.

    Test accuracy is measured on a data set that the user names, if it has as many classes as the network.

    Args:
        origin: the network.
        output_dir: folder of all experiments.
        experiment_name: folder of this one.
        data: overrides of the data set that the run is reopened with, see `settings.compose_config`.
        overrides: the command line, for the record.

    Returns:
        The run folder and its record; those of an earlier import of the same weights, if there was one.

    Raises:
        ValueError: weights that do not fit, a network that does not do what timm's does, a data set that does not suit
            it, or a run folder that another process holds.
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    network = origin.network
    positions, spec, settings = describe_positions(network), image_spec(network), model_settings(network)
    composed = compose_config(positions, data, spec, settings["patch_size"], origin.preprocessing)
    with open_dict(composed):
        composed.output_dir, composed.experiment_name = output_dir, experiment_name
        composed.model, composed.model_name = settings, origin.architecture
    job = make_job(composed, tuple(overrides))
    images = build_data(job.config)
    if images.spec.channels != spec.channels:
        raise ValueError(
            f"data={job.config['data_name']}: its images have {images.spec.channels} channels, the network takes "
            f"{spec.channels}"
        )
    model = build_model(job.config, spec)
    weights = convert(network.state_dict(), positions, model)
    model.load_state_dict(weights, strict=True)
    found = compare(network, model)
    source = {"timm": origin.name, "architecture": origin.architecture, "sha256": fingerprint(weights)}
    job = Job({**job.config, "weights": {**source, **origin.preprocessing}}, job.overrides)
    job.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(job.folder / LOCK_FILE, timeout=0):
            if not (job.folder / RESULT_FILE).exists():
                named = any(text.startswith("data=") for text in data)
                measured = images if named and images.spec.classes == spec.classes else None
                known = {"started": started, "diagnostics": {"timm_difference": found}}
                _write(job, model, spec, measured, known)
            return job.folder, read_record(job.folder)
    except Timeout:
        raise ValueError(f"{job.folder}: another process holds this run") from None


def _write(job: Job, model: ViT, spec: ImageSpec, measured: ImageData | None, known: Mapping[str, Any]) -> None:
    """Write config, checkpoint and, last, the record, with the accuracy on the test images of `measured`."""
    config, folder = job.config, job.folder
    write_text_atomic(folder / CONFIG_FILE, yaml.safe_dump(config, sort_keys=False))
    _save_checkpoint(folder / BEST, config, model, spec)
    position = model.position
    device = machine.pick_device(config["trainer"]["accelerator"])
    described = describe(config)
    record = Record.model_validate(
        {
            **described,
            **known,
            "status": "finished",
            "device": machine.describe_device(device) if measured else None,
            "position": {
                **{key: value for key, value in config["position"].items() if not key.startswith("_")},
                "name": config["position_name"],
                "label": f"{position.label}, imported ({config['weights']['timm']})",
                "injection": position.injection,
                "family": position.family,
            },
            "model": {**described["model"], "weights": config["weights"]},
            "cost": model.cost(),
        }
    )
    if measured:
        precision = machine.pick_precision(config["trainer"]["precision"], config["trainer"]["accelerator"])
        answers = predict(model.to(device), measured.test_dataloader(), device, precision=precision)
        answers.save(folder / PREDICTIONS_FILE)
        record.metrics.update({f"test/{name}": value for name, value in answers.metrics().items()})
    write_record(folder, record)


def _save_checkpoint(path: Path, config: Mapping[str, Any], model: ViT, spec: ImageSpec) -> None:
    """Write what Lightning would have written of a `ClassificationTask` with these weights, but no optimiser."""
    content = {
        "epoch": 0,
        "global_step": 0,
        "pytorch-lightning_version": version("pytorch-lightning"),
        "state_dict": {f"{PREFIX}{name}": weight for name, weight in model.state_dict().items()},
        "hyper_parameters": {
            "network": {key: config[key] for key in ("seed", "model", "position")},
            "spec": {**asdict(spec), "image_size": list(spec.image_size)},
            "optim": {key: value for key, value in config["optim"].items() if not key.startswith("_")},
        },
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")  # the run is locked: nobody else writes it
    torch.save(content, temporary)
    temporary.replace(path)


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """Return 16 hex digits over the names and values of weights in float32."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        digest.update(weights[name].numpy().tobytes())
    return digest.hexdigest()[:16]
