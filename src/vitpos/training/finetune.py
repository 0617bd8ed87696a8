"""Fine-tuning at another image size: a run that starts from the weights of a finished one.

The network and the data come from the parent, the schedule from the new run. The network is built at the size its
position tables belong to, loads the weights, and is then resized under the `resize` settings; so tables keep their
shape, and a chain of fine-tunings keeps the first one's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf, open_dict

from vitpos.models.vit import ViT
from vitpos.position import Transfer
from vitpos.record import CONFIG_FILE, RecordError, read_record
from vitpos.spec import as_size
from vitpos.training.checkpoint import Saved, read_checkpoint

BEST = Path("checkpoints") / "best.ckpt"
GROUPS = ("position", "model", "data")


def inherit(composed: DictConfig, overrides: Sequence[str]) -> DictConfig:
    """Return the composed config of a fine-tuning run with its parent's network, data and seed.

    Single settings given on the command line, such as data.image_size=56, stay. `parent` is added: the parent's name,
    which its settings determine, and its image size.

    Args:
        composed: config with `from`, the parent's run folder; interpolations may be unresolved.
        overrides: the command line it was composed from.

    Raises:
        ValueError: no finished run at `from`, or a command line that asks for another network or data set.
    """
    folder = Path(composed["from"])
    parent = parent_config(folder)
    child = composed.copy()
    with open_dict(child):
        for group in GROUPS:
            if any(text.lstrip("+~").split("=")[0] == group for text in overrides):
                raise ValueError(f"{group}=…: a run that starts from {folder} has its {group}; leave it out")
            child[group] = OmegaConf.create(parent[group])
            child[f"{group}_name"] = parent[f"{group}_name"]
            for key in (text.lstrip("+").split("=")[0] for text in overrides):
                if key.startswith(f"{group}."):
                    OmegaConf.update(child, key, OmegaConf.select(composed, key), force_add=True)
        if not any(text.startswith("seed=") for text in overrides):
            child.seed = parent["seed"]
        child.parent = {"name": folder.resolve().name, "image_size": list(as_size(parent["data"]["image_size"]))}
    return child


def parent_config(folder: Path) -> dict[str, Any]:
    """Return the resolved config of a finished run.

    Raises:
        ValueError: not the folder of a finished run.
    """
    try:
        status = read_record(folder).status
    except RecordError as error:
        raise ValueError(f"from={folder}: not a finished run ({error})") from error
    if status != "finished":
        raise ValueError(f"from={folder}: this run {status}; give a finished one")
    config: dict[str, Any] = yaml.safe_load((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    return config


def read_parent(config: Mapping[str, Any]) -> Saved:
    """Return the best network of the run at `from`.

    Raises:
        ValueError: its checkpoint is missing or damaged.
    """
    return read_checkpoint(Path(config["from"]) / BEST)


def resize_to_training_size(model: ViT, config: Mapping[str, Any]) -> None:
    """Set a network built at the size of its position tables to the size it is (or was) fine-tuned at.

    A run without `resize` settings was trained at the size it was built at; nothing happens.
    """
    if config.get("resize"):
        # YAML reads a bare `off` as false.
        table, coordinates, temperature = (config["resize"][key] for key in ("table", "coordinates", "temperature"))
        model.resize(config["data"]["image_size"], Transfer(table, coordinates, temperature or "off"))
