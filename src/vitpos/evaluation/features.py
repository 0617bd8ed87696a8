"""Frozen representations of a trained network, by name.

Letters: B batch, T tokens, D width, n images.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vitpos.data.base import ImageData, SplitName
from vitpos.evaluation.inference import evaluating, gather, precision_context
from vitpos.models.vit import ViT

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Labelled:
    """Representations of images, sorted by the images' index in their data set.

    Attributes:
        index: (n,).
        label: (n,).
        features: (n, D), float64.
    """

    index: Index
    label: Index
    features: NDArray[np.float64]

    def take(self, index: Index) -> Labelled:
        """Return the images of the given indices, in that order."""
        place = np.searchsorted(self.index, index)
        return Labelled(self.index[place], self.label[place], self.features[place])


def pre_logits(model: ViT, images: Tensor) -> Tensor:
    """Return what the head reads (B, D)."""
    return model.features(images)


def patch_mean(model: ViT, images: Tensor) -> Tensor:
    """Return the mean over patches of the last layer (B, D), after the norm of a network that norms before pooling."""
    return _last(model, images)[:, model.prefix :].mean(dim=1)


def cls(model: ViT, images: Tensor) -> Tensor:
    """Return the CLS token of the last layer (B, D), after the norm of a network that norms before pooling.

    Raises:
        ValueError: the network has no CLS token.
    """
    if model.cls_token is None:
        raise ValueError(f"fewshot.features='cls': a network with model.pool={model.pool!r} has no CLS token")
    return _last(model, images)[:, 0]


FEATURES: dict[str, Callable[[ViT, Tensor], Tensor]] = {f.__name__: f for f in (pre_logits, patch_mean, cls)}


def extract(
    model: ViT,
    data: ImageData,
    split: SplitName,
    name: str,
    device: torch.device | str,
    *,
    precision: str = "32-true",
    only: Index | None = None,
) -> Labelled:
    """Return representations of a split at the network's present image size, each image once, from all processes.

    Args:
        model: trained network on `device`.
        data: images, of the network's number of channels.
        split: which images.
        name: `pre_logits`, `patch_mean` or `cls`.
        device: where the network is.
        precision: as Lightning names it.
        only: indices of the images wanted; None takes all.

    Raises:
        ValueError: an unknown name, no CLS token, or another number of channels.
        FloatingPointError: a feature that is NaN or infinite.
    """
    if name not in FEATURES:
        raise ValueError(f"fewshot.features={name!r}: choose one of {', '.join(FEATURES)}")
    channels = model.patch_embed.proj.in_channels
    if data.spec.channels != channels:
        raise ValueError(f"images of {data.spec.channels} channels for a network trained on {channels}")
    wanted = None if only is None else torch.from_numpy(np.sort(only))
    parts = []
    with evaluating(model), precision_context(device, precision):
        dtype = model.patch_embed.proj.weight.dtype
        for images, labels, index in data.eval_dataloader(split, image_size=model.image_size):
            mask = torch.ones_like(index, dtype=torch.bool) if wanted is None else torch.isin(index.cpu(), wanted)
            mask = mask.to(images.device)
            if not mask.any():
                continue
            found = FEATURES[name](model, images[mask].to(device, dtype))
            columns = index[mask, None], labels[mask, None], found
            parts.append(torch.cat([column.cpu().double() for column in columns], dim=1))
    width = 2 + model.geometry.dim
    rows = gather(torch.cat(parts) if parts else torch.empty(0, width, dtype=torch.float64), device).numpy()
    if not np.isfinite(rows).all():
        raise FloatingPointError(f"{name} features of the {split} images are NaN or infinite")
    keys, first = np.unique(rows[:, 0].astype(np.int64), return_index=True)
    return Labelled(keys, rows[first, 1].astype(np.int64), rows[first, 2:])


def _last(model: ViT, images: Tensor) -> Tensor:
    """Return the tokens after the last layer (B, T, D)."""
    tokens: Tensor = model.norm(model.trace(images)[f"layer{len(model.blocks) - 1}"])
    return tokens
