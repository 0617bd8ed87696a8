"""The numbers of every record that say whether and how a trained network uses position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from vitpos.data.base import Batch, ImageData
from vitpos.data.sampler import Shard
from vitpos.evaluation.attention import attention_distance, patch_distances
from vitpos.evaluation.inference import evaluating
from vitpos.evaluation.probe import probe_position
from vitpos.evaluation.sensitivity import logit_change, silenced
from vitpos.evaluation.shuffle import shuffle_patches
from vitpos.models.vit import ViT


def diagnose(model: ViT, data: ImageData, cfg: Mapping[str, Any], device: torch.device | str) -> dict[str, Any]:
    """Return the diagnostics of a trained network on test images, at the training size.

    Every process computes them on the same images, so their number changes nothing and a single process may call it
    alone.

    Args:
        model: the network, on `device` and at its training size.
        data: where the test images come from.
        cfg: `images` for attention distance and probe, `shuffle_images` for shuffling and silencing (0 for all),
            `seed` of the permutations.
        device: where the network is.

    Returns:
        `shuffle_top1`, accuracy with shuffled patches, and `shuffle_drop`, what that cost on the same `shuffle_n`
        images; `silenced_top1` and `silenced_drop`, the same without the position module; `sensitivity`, the relative
        change of the logits without it (`evaluation.sensitivity.logit_change`); `attention_distance`, per layer and
        head in pixels, and `attention_distance_uniform`, that of uniform attention; `probe`, R2 of the patch row and
        column per layer (`evaluation.probe.probe_position`).

    Raises:
        ValueError: a number of images out of range.
    """
    images, shuffle_images = int(cfg["images"]), int(cfg["shuffle_images"])
    if images < 2:
        raise ValueError(f"diagnostics.images={images}: must be at least 2")
    if shuffle_images < 0:
        raise ValueError(f"diagnostics.shuffle_images={shuffle_images}: must be 0 (all) or a number of images")
    with evaluating(model):
        answers = _answers(model, _loader(data), shuffle_images, int(cfg["seed"]), device)
        first = torch.cat([batch[0] for batch in _first(_loader(data), images)]).to(device)
        return {
            **answers,
            "attention_distance": [
                [round(value, 4) for value in layer] for layer in attention_distance(model, first).tolist()
            ],
            "attention_distance_uniform": float(patch_distances(model.position.grid, model.patch_size).mean()),
            "probe": probe_position(model, first),
        }


def _loader(data: ImageData) -> Iterable[Batch]:
    return data.eval_loader("test", data.image_size, Shard())


def _first(loader: Iterable[Batch], count: int) -> Iterable[Batch]:
    """Yield the first `count` images of a loader, all of them for 0."""
    left = count or float("inf")
    for images, labels, index in loader:
        keep = int(min(left, len(images)))
        yield images[:keep], labels[:keep], index[:keep]
        left -= keep
        if left <= 0:
            return


def _answers(model: ViT, loader: Iterable[Batch], count: int, seed: int, device: torch.device | str) -> dict[str, Any]:
    """Compare the logits as they are with those of shuffled patches and of a silenced position module."""
    logits: dict[str, list[Tensor]] = {"plain": [], "shuffle": [], "silenced": []}
    truth: list[Tensor] = []
    for batch, labels, index in _first(loader, count):
        images = batch.to(device)
        logits["plain"].append(model(images).float())
        logits["shuffle"].append(model(shuffle_patches(images, index, model.patch_size, seed)).float())
        with silenced(model):
            logits["silenced"].append(model(images).float())
        truth.append(labels.to(device))
    joined = {name: torch.cat(parts) for name, parts in logits.items()}
    labels = torch.cat(truth)
    top1 = {name: float((values.argmax(-1) == labels).double().mean()) for name, values in joined.items()}
    return {
        "shuffle_top1": top1["shuffle"],
        "shuffle_drop": top1["plain"] - top1["shuffle"],
        "shuffle_n": len(labels),
        "silenced_top1": top1["silenced"],
        "silenced_drop": top1["plain"] - top1["silenced"],
        "sensitivity": logit_change(joined["plain"], joined["silenced"]),
    }
