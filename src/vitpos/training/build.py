"""From a resolved config to its data module and its network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from hydra.utils import instantiate

from vitpos.data.base import ImageData
from vitpos.models.vit import ViT
from vitpos.spec import ImageSpec


def build_data(config: Mapping[str, Any]) -> ImageData:
    """Return the data module of a resolved config; its order and augmentation follow the run's seed."""
    # patch_size is what a data set recommends to the model, through interpolation; the data itself has no use for it.
    settings = {key: value for key, value in config["data"].items() if key != "patch_size"}
    data: ImageData = instantiate(settings, _convert_="all")(seed=config["seed"])
    return data


def build_model(config: Mapping[str, Any], spec: ImageSpec) -> ViT:
    """Return the network of a resolved config for images of `spec`.

    The backbone draws its initial weights first and from the run's seed alone, so all position modules share them.
    """
    # _convert_: constructors must not see OmegaConf containers, which would end up in checkpoints.
    position = instantiate(config["position"], _convert_="all")
    build = instantiate(config["model"], _convert_="all")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config["seed"])
        model: ViT = build(spec=spec, position=position)
    return model
