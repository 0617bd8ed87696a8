"""A network from a checkpoint of ours: nothing but tensors and plain containers is read, and every name must match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitpos.models.vit import ViT
from vitpos.spec import ImageSpec
from vitpos.training.build import build_model

PREFIX = "model."
COMPILED = "_orig_mod."  # what a compiled wrapper puts into names


@dataclass(frozen=True)
class Saved:
    """A network as a checkpoint holds it.

    Attributes:
        network: its `seed`, `model` and `position` settings.
        spec: fields of the `ImageSpec` its position tables belong to.
        weights: its parameters by name.
        path: the file.
    """

    network: Mapping[str, Any]
    spec: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    path: Path

    def build(self) -> ViT:
        """Return the network with its weights, set to the size its tables belong to."""
        size = tuple(self.spec["image_size"])
        model = build_model(self.network, ImageSpec(size, self.spec["channels"], self.spec["classes"]))
        self.load_into(model)
        return model

    def load_into(self, model: ViT) -> None:
        """Load the weights; every name and shape must match.

        Raises:
            ValueError: other names or shapes.
        """
        try:
            model.load_state_dict(self.weights, strict=True)
        except RuntimeError as error:
            raise ValueError(f"{self.path} does not fit this network: {error}") from error


def read_checkpoint(path: Path) -> Saved:
    """Read the network of a checkpoint, trained compiled or not.

    Raises:
        ValueError: no such file, a damaged file, or not a checkpoint of ours.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such checkpoint")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        hyper, state = content["hyper_parameters"], content["state_dict"]
        network, spec = hyper["network"], hyper["spec"]
    except Exception as error:  # unpickling and unzipping raise many kinds
        raise ValueError(f"{path}: not a readable checkpoint of a run ({type(error).__name__}: {error})") from error
    weights = {
        name.removeprefix(PREFIX).replace(COMPILED, ""): value
        for name, value in state.items()
        if name.startswith(PREFIX)
    }
    return Saved(network, spec, weights, path)
