"""A finished run, as it was when it was written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from vitpos.data.base import ImageData
from vitpos.models.vit import ViT
from vitpos.record import CONFIG_FILE
from vitpos.training.build import build_data
from vitpos.training.checkpoint import read_checkpoint
from vitpos.training.finetune import BEST, resize_to_training_size


def reopen(folder: Path, data_changes: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], ViT, ImageData]:
    """Return the resolved config, the best network (on the CPU, at its training size) and the data of a run.

    The checkpoint is read with `weights_only` and strictly, whether the network was compiled or not.

    Args:
        folder: the run folder.
        data_changes: settings of the data that differ on this machine, such as `root`.

    Raises:
        ValueError: not a run folder, or its checkpoint is missing or damaged.
    """
    try:
        config: dict[str, Any] = yaml.safe_load((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"run={folder}: not the folder of a run ({CONFIG_FILE}: {error.strerror})") from error
    model = read_checkpoint(folder / BEST).build()
    resize_to_training_size(model, config)
    config["data"] |= dict(data_changes or {})
    return config, model.eval(), build_data(config)
