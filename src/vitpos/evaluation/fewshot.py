"""Few-shot evaluation of frozen features: the metric of Dosovitskiy et al. 2020, Table 8.

Support images come from the training split, query images are the test split. The draws depend on the few-shot seed and
the labels alone, so all networks of a study are judged on the same images, and fewer shots are a part of more shots.

Metric names: `fewshot/5` is the mean accuracy over draws with 5 images per class, `fewshot/5_sd` its standard deviation
over draws (not with one draw); `fewshot/all` uses every training image. What departs from the paper's protocol is named
in between, as in `fewshot/l2_512/5`, `fewshot/patch_mean/5` and `fewshot/fashion_mnist/5`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from hydra.utils import instantiate

from vitpos.data.base import ImageData
from vitpos.evaluation.classifiers import Classes, Classifier
from vitpos.evaluation.features import extract
from vitpos.models.vit import ViT

ALL = "all"
PAPER_FEATURES = "pre_logits"
NAMED = 5  # classes that an error names


def evaluate_fewshot(
    model: ViT,
    data: ImageData,
    settings: Mapping[str, Any],
    device: torch.device | str,
    *,
    precision: str = "32-true",
    data_name: str = "",
) -> dict[str, float]:
    """Return accuracies of a classifier on frozen features, by metric name. All processes of a group must call.

    Args:
        model: trained network on `device`; its present image size is used.
        data: images of any data set with as many channels.
        settings: `features` (name), `shots` (images per class, or `all`), `draws`, `seed` and `classifier` (a
            `Classifier` or the config of one).
        device: where the network is.
        precision: as Lightning names it.
        data_name: name of the data set where it is not the one the network was trained on.

    Raises:
        ValueError: a class with too few images, or a setting out of its range.
    """
    features, classes = str(settings["features"]), data.spec.classes
    given = settings["classifier"]
    classifier: Classifier = instantiate(given) if isinstance(given, Mapping) else given
    chosen = support_of(data, settings)
    if not chosen:
        return {}
    only = np.unique(np.concatenate([part for parts in chosen.values() for part in parts]))
    pool = extract(model, data, "train", features, device, precision=precision, only=only)
    query = extract(model, data, "test", features, device, precision=precision)
    found: dict[str, float] = {}
    for count, parts in chosen.items():
        accuracies = defaultdict[str, list[float]](list)
        for part in parts:
            support = pool.take(part)
            answers = classifier(support.features, support.label, query.features, classes)
            for kind, answer in answers.items():
                accuracies[kind].append(float((answer == query.label).mean()))
        for kind, values in accuracies.items():
            found |= summarise(metric_name(kind, data_name, features, count), values)
    return found


def support_of(data: ImageData, settings: Mapping[str, Any]) -> dict[int | str, list[Classes]]:
    """Return the indices of the support images per number of shots and draw; reads training labels only.

    Called before training, it refuses in time what could not be evaluated afterwards.

    Raises:
        ValueError: a class with too few images, or a setting out of its range.
    """
    draws, seed, shots = int(settings["draws"]), int(settings["seed"]), list(settings["shots"])
    if draws < 1:
        raise ValueError(f"fewshot.draws={draws}: must be at least 1")
    if not shots:
        return {}
    index, label = data.labels("train")
    return {count: draw_support(index, label, count, data.spec.classes, draws=draws, seed=seed) for count in shots}


def draw_support(
    index: Classes, label: Classes, shots: int | str, classes: int, *, draws: int, seed: int
) -> list[Classes]:
    """Return, for each draw, the indices of `shots` random images of every class.

    Args:
        index: indices of the training images, sorted (n,).
        label: their classes (n,).
        shots: images per class; `all` takes every image, in one draw.
        classes: number of classes.
        draws: number of draws.
        seed: of the draws.

    Raises:
        ValueError: a class with fewer images than `shots`, or a number of shots that is not positive.
    """
    if shots == ALL:
        return [index]
    if not isinstance(shots, int) or isinstance(shots, bool) or shots < 1:
        raise ValueError(f"fewshot.shots={shots!r}: give positive whole numbers, or {ALL!r}")
    counts = np.bincount(label, minlength=classes)
    short = np.flatnonzero(counts < shots)
    if len(short):
        have = ", ".join(f"class {place} has {counts[place]}" for place in short[:NAMED])
        more = f" and {len(short) - NAMED} more classes" if len(short) > NAMED else ""
        raise ValueError(f"fewshot.shots={shots}: too few training images, {have}{more}; lower it or set fewshot=none")
    found = []
    for draw in range(draws):
        random = np.random.default_rng([seed, draw])
        # One permutation per class, cut to length: fewer shots are a part of more shots.
        orders = [random.permutation(index[label == place])[:shots] for place in range(classes)]
        found.append(np.concatenate(orders))
    return found


def metric_name(kind: str, data_name: str, features: str, shots: int | str) -> str:
    """Return the name of a metric, such as `fewshot/5`; departures from the paper's protocol stand in between."""
    parts = [kind, data_name, "" if features == PAPER_FEATURES else features, str(shots)]
    return "/".join(part for part in parts if part)


def summarise(name: str, accuracies: Sequence[float]) -> dict[str, float]:
    """Return the mean over draws and, from two draws on, their standard deviation."""
    found = {name: float(np.mean(accuracies))}
    if len(accuracies) > 1:
        found[f"{name}_sd"] = float(np.std(accuracies, ddof=1))
    return found
