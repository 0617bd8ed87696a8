"""Whole runs as the command line would compose them, and their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser

from vitpos.cli import CONFIG_FOLDER
from vitpos.data.base import ImageData
from vitpos.data.download import without_fetching
from vitpos.sweep.expand import expand
from vitpos.sweep.jobs import Job
from vitpos.training.build import build_data
from vitpos.training.fit import plain_spec
from vitpos.training.task import ClassificationTask


def compose_jobs(overrides: Sequence[str], swept: Mapping[str, str] | None = None) -> list[Job]:
    """Return the jobs of a command line of `scripts/train.py`; a single one if nothing is swept.

    Args:
        overrides: of single settings, or an experiment.
        swept: comma-separated values of settings.
    """
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        master = compose("train", list(overrides), return_hydra_config=True)
        HydraConfig.instance().set_config(master)
        loader = GlobalHydra.instance().config_loader()
        return list(expand(loader, master, {**master.hydra.sweeper.params, **(swept or {})}, list(overrides)))


def first_job(overrides: Sequence[str]) -> tuple[Job, int]:
    """Return the first job of a command line and their number, without composing the others."""
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        params = compose("train", list(overrides), return_hydra_config=True).hydra.sweeper.params
        parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
        swept = parser.parse_overrides([f"{key}={value}" for key, value in params.items()])
    choices = {
        item.get_key_element(): list(item.sweep_string_iterator()) if item.is_sweep_override() else [item.value()]
        for item in swept
    }
    firsts = [f"{key}={values[0]}" for key, values in choices.items()]
    return compose_jobs([*overrides, *firsts])[0], prod(len(values) for values in choices.values())


def build(config: dict[str, Any]) -> tuple[ImageData, ClassificationTask]:
    """Return the data and the task of a resolved config, as a run builds them."""
    data = build_data(config)
    data.setup()
    task = ClassificationTask(
        network={key: config[key] for key in ("seed", "model", "position")},
        spec=plain_spec(data),
        optim={key: value for key, value in config["optim"].items() if key != "_target_"},
    )
    return data, task


def limit(name: str, images: int) -> list[str]:
    """Return the override that trains on so many images of a data set that has more; nothing for 0."""
    data = build_data(compose_jobs([f"data={name}"])[0].config)
    return [f"data.limit_train={images}"] if 0 < images < len(data.positions("train")) else []


def present(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the data sets that are on this machine, and a line for each that is not; nothing is downloaded."""
    found, missing = list[str](), list[str]()
    for name in names:
        data = build_data(compose_jobs([f"data={name}"])[0].config)
        try:
            with without_fetching():
                data.positions("train")
        except ValueError as error:
            missing.append(f"{name} skipped: {error}")
        else:
            found.append(name)
    return found, missing
