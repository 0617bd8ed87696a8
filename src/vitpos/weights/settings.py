"""The resolved config of an imported network's run: what a run of ours has, and where the weights came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from vitpos.cli import CONFIG_FOLDER
from vitpos.spec import ImageSize, ImageSpec
from vitpos.weights.positions import Positions

GENERATED_CHANNELS = 3
FACTORS = (0.5, 0.75, 1.0, 1.25, 1.5)
LEAST_ROWS = 3  # of patches; the smallest grid on which the generated images pose their question


def compose_config(
    positions: Positions, data: Sequence[str], spec: ImageSpec, patch_size: int, preprocessing: Mapping[str, Any]
) -> DictConfig:
    """Return a run's config with the position module of a network and a data set of its image size.

    Args:
        positions: the position module.
        data: overrides of the data set, such as `data=cifar10` and `data.root=...`; none takes generated images.
        spec: of the network.
        patch_size: of the network.
        preprocessing: what the network was trained with, for data sets that have such settings.

    Raises:
        ValueError: an unknown data set or setting, or an image size that is not the network's.
    """
    overrides = list(data)
    if not any(text.startswith("data=") for text in overrides):
        overrides = [*default_data(spec), *overrides]
    data_name = next(text for text in reversed(overrides) if text.startswith("data=")).removeprefix("data=")
    names = [f"position_name={positions.name}", "model_name=imported", f"data_name={data_name}"]
    try:
        with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
            groups = [f"position={positions.name}", "logger=none", "transfer=none", "fewshot=none"]
            config = compose("train", [*groups, *names, *overrides])
    except (HydraException, OmegaConfBaseException) as error:
        raise ValueError(f"{' '.join(data)}: {error}") from error
    given = {text.lstrip("+").split("=")[0] for text in overrides}
    if "data.image_size" in given:
        raise ValueError(
            f"data.image_size: it is the network's own, {spec.image_size[0]}x{spec.image_size[1]}; leave it out"
        )
    OmegaConf.set_struct(config, True)
    config.position = OmegaConf.merge(config.position, positions.changes)
    with open_dict(config):
        config.data.patch_size = patch_size
        config.data.image_size = list(spec.image_size)
        for key, value in preprocessing.items():
            if key in config.data and f"data.{key}" not in given:
                config.data[key] = value
        if "data.transfer_sizes" not in given:
            config.data.transfer_sizes = [list(size) for size in transfer_sizes(spec.image_size, patch_size)]
    return config


def default_data(spec: ImageSpec) -> list[str]:
    """Return the data set of a user who names none: generated images, which need no files and come in any size."""
    if spec.channels != GENERATED_CHANNELS:
        return ["data=digits"]
    regions = 2 if 0 < spec.classes < 9 else 3  # labels: regions^2, no more than the head can name
    return ["data=where_absolute", f"data.task.regions={regions}", "data.train_images=360", "data.test_images=216"]


def transfer_sizes(native: ImageSize, patch_size: int) -> list[ImageSize]:
    """Return image sizes around the native one, in whole patches, and one of other proportions."""
    rows, columns = (side // patch_size for side in native)
    grids = [(round(rows * factor), round(columns * factor)) for factor in FACTORS]
    grids.append((rows, round(1.5 * columns)))
    return [
        (height * patch_size, width * patch_size)
        for height, width in dict.fromkeys(grids)
        if (height, width) == (rows, columns) or min(height, width) >= LEAST_ROWS
    ]
