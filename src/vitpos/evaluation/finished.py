"""Evaluate finished runs again: other sizes and protocols, few-shot, other data; added to their records."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ValueType
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import nn

from vitpos.cli import CONFIG_FOLDER
from vitpos.evaluation.fewshot import evaluate_fewshot
from vitpos.evaluation.predictions import predict
from vitpos.evaluation.reopen import reopen
from vitpos.evaluation.resolution import evaluate_transfer
from vitpos.figures.resolution import draw_resolution
from vitpos.figures.save import save
from vitpos.record import CONFIG_FILE, Record, read_record, with_transfer, write_record
from vitpos.sweep.jobs import LOCK_FILE
from vitpos.training.build import build_data
from vitpos.training.machine import describe_device, pick_device, pick_precision

log = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> None:
    """Evaluate the runs that a command line names; ends with status 1 if one of them could not be evaluated."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    logging.getLogger("vitpos").setLevel(logging.INFO)
    try:
        settings, data_name = parse(arguments)
        folders = find_runs(settings.run)
    except OverrideParseException as error:
        sys.exit(f"{error.override}: {error}")
    except (ValueError, HydraException, OmegaConfBaseException) as error:
        sys.exit(str(error))
    failed = 0
    for folder in folders:
        log.info("%s", folder)
        try:
            evaluate_finished(folder, settings, data_name)
        except (ValueError, RuntimeError) as error:  # the other runs go on
            log.error("not evaluated: %s", error)
            failed += 1
    sys.exit(1 if failed else 0)


def parse(arguments: Sequence[str]) -> tuple[DictConfig, str]:
    """Compose `conf/evaluate.yaml` with overrides; a comma-separated value is a list here, not a sweep.

    Returns:
        The composed config, and the name of the other data set, empty without one.
    """
    overrides = [
        re.sub("=(.*)", r"=[\1]", override.input_line or "", count=1)
        if override.value_type is ValueType.SIMPLE_CHOICE_SWEEP
        else str(override.input_line)
        for override in OverridesParser.create().parse_overrides(list(arguments))
    ]
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        settings = compose("evaluate", overrides)
    names = [text.removeprefix("data=") for text in overrides if text.startswith("data=")]
    return settings, names[-1] if names else ""


def find_runs(given: str | Sequence[str]) -> list[Path]:
    """Return the run folders of a path, a pattern, or a list of these, each once.

    Raises:
        ValueError: one that matches no run folder.
    """
    found: dict[Path, None] = {}
    for pattern in [given] if isinstance(given, str) else given:
        matches = sorted(Path().glob(pattern)) if not Path(pattern).is_absolute() else _absolute(pattern)
        runs = [path for path in matches if (path / CONFIG_FILE).is_file()]
        if not runs:
            raise ValueError(f"run={pattern}: no run folder (one with a {CONFIG_FILE}) matches")
        found |= dict.fromkeys(runs)
    return list(found)


def evaluate_finished(folder: Path, settings: DictConfig, data_name: str = "") -> Record:
    """Evaluate one finished run and write what was measured into its record.

    Args:
        folder: the run folder.
        settings: `transfer`, `fewshot`, `accelerator`, and `data`: another data set, or changes to the run's own.
        data_name: name of the other data set; metric names carry it.

    Raises:
        ValueError: not a finished run, a run that another process holds, or unusable settings.
        RuntimeError: the stored accuracy is not reproduced on the device it was measured on.
    """
    try:
        with FileLock(folder / LOCK_FILE, timeout=0):
            return _evaluate(folder, settings, data_name)
    except Timeout:
        raise ValueError(f"{folder}: another process holds this run") from None


def _evaluate(folder: Path, settings: DictConfig, data_name: str) -> Record:
    record = read_record(folder)
    if record.status != "finished":
        raise ValueError(f"{folder}: this run {record.status}; only finished runs are evaluated")
    device = pick_device(settings.accelerator)
    given: Any = OmegaConf.to_container(settings.get("data") or OmegaConf.create(), resolve=True)
    config, model, data = reopen(folder, {} if data_name else given)
    model.to(device)
    precision = pick_precision(config["trainer"]["precision"], settings.accelerator)
    rows: list[dict[str, Any]] = []
    classes = model.head.out_features if isinstance(model.head, nn.Linear) else 0
    data.setup()  # a folder knows its classes once it has been looked at
    if classes == data.spec.classes:
        top1 = predict(model, data.eval_dataloader("test"), device, precision=precision).top1
        _compare(top1, record, describe_device(device))
        transfer = resolve(settings, "transfer", config)
        rows = evaluate_transfer(model, data, transfer, device, precision=precision, trained_top1=top1)
    else:  # imported weights, or a head for other data: an accuracy would mean nothing
        log.warning("its head has %d classes, the data have %d: features only", classes, data.spec.classes)
    other = {**config, "data": given} if data_name else config
    shots = resolve(settings, "fewshot", other)
    found = evaluate_fewshot(model, build_data(other) if data_name else data, shots, device, data_name=data_name)
    for name, value in found.items():
        log.info("%s %.4f", name, value)

    record = with_transfer(record, rows)
    record.metrics.update(found)
    drawn = draw_resolution([row.model_dump() for row in record.transfer], model.image_size, record.position.label)
    if drawn:
        save(drawn[0], folder / "figures" / "resolution", drawn[1])
    write_record(folder, record)
    return record


def resolve(settings: DictConfig, group: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return a group's settings as plain containers, with `${data.…}` taken from a run's config."""
    whole = OmegaConf.create({"data": config["data"], group: settings[group]})
    plain: dict[str, Any] = OmegaConf.to_container(whole, resolve=True)[group]  # type: ignore[index,call-overload,assignment]
    return plain


def _compare(top1: float, record: Record, device: str) -> None:
    """Check the accuracy of the reopened network against the stored one.

    Another kind of device rounds differently, which is reported; on the same one there is no excuse.
    """
    stored = record.metrics.get("test/top1")
    if stored is None or top1 == stored:
        return
    message = f"test accuracy is {top1!r} on {device}, stored is {stored!r} on {record.device}"
    if device == record.device:
        raise RuntimeError(f"{message}: the network was not restored")
    log.warning("%s", message)


def _absolute(pattern: str) -> list[Path]:
    root = Path(pattern).anchor
    return sorted(Path(root).glob(str(Path(pattern).relative_to(root))))
