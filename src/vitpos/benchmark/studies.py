"""The cost model's view of a resolved config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitpos.benchmark.cost_model import Shape, Study
from vitpos.spec import ImageSize, ImageSpec
from vitpos.training.build import build_data


def shape_of(config: Mapping[str, Any], spec: ImageSpec, image_size: ImageSize | None = None) -> Shape:
    """Return the shape of a run's network for its own images, or for those of another size."""
    model, (height, width) = config["model"], image_size or spec.image_size
    patch = model["patch_size"]
    return Shape(
        patches=(height // patch) * (width // patch),
        dim=model["dim"],
        depth=model["depth"],
        patch_values=spec.channels * patch**2,
        classes=spec.classes,
        prefix=model["registers"] + (model["pool"] != "mean"),
        mlp_ratio=model["block"]["mlp_ratio"],
        reads_one=model["pool"] == "cls",
    )


def study_of(config: Mapping[str, Any]) -> Study:
    """Return the cost of one run of a resolved config whose data are on this machine.

    Evaluation after training: the test images once, at every transfer size and once more at the end, and the features
    of training and test images for few-shot. Few-shot solutions and diagnostics are not counted.
    """
    data = build_data(config)
    train, val, test = (len(data.positions(split)) for split in ("train", "val", "test"))
    shape = shape_of(config, data.spec)
    evaluations = [(shape, test)]
    sizes = config["transfer"]["sizes"]
    evaluations += [(shape_of(config, data.spec, size), test) for size in map(_pair, sizes)]
    evaluations += [(shape, test)] if sizes else []
    if config["fewshot"].get("shots"):
        evaluations += [(shape, train), (shape, test)]
    steps = train // data.batch_size  # a ragged last batch is dropped
    epochs = config["trainer"]["max_epochs"]
    return Study(1, shape, steps * data.batch_size, epochs, val, tuple(evaluations))


def _pair(size: int | list[int]) -> ImageSize:
    return (size, size) if isinstance(size, int) else (size[0], size[1])
