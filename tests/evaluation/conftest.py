"""A tiny network with any position module, and a tiny data set whose classes can be told apart."""

from functools import cache, partial

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from vitpos.cli import CONFIG_FOLDER
from vitpos.data.augment import Augment
from vitpos.data.memory import InMemory
from vitpos.data.splits import Split
from vitpos.models.block import Block
from vitpos.models.vit import ViT
from vitpos.spec import ImageSpec, as_size


class Bars(InMemory):
    """Noisy 8 x 8 images with a bright row; the class is the place of the row among four."""

    channels = 1
    classes = 4
    levels = 255
    mean = (0.5,)
    std = (0.25,)

    def read(self, part, image_size):
        generator = np.random.default_rng(0 if part == "train" else 1)
        labels = np.arange(60 if part == "train" else 30) % 4
        pixels = generator.integers(0, 150, (len(labels), 1, 8, 8))
        pixels[np.arange(len(labels)), 0, 2 * labels] += 80
        return torch.from_numpy(pixels.astype(np.uint8)), torch.from_numpy(labels)


@pytest.fixture
def bars():
    """A data module; keyword arguments change its settings."""

    def make(**changes):
        settings = {
            "seed": 0,
            "image_size": 8,
            "batch_size": 8,
            "limit_train": 0,
            "split": Split(val_fraction=0.2, seed=0),
            "augment": Augment(),
            "transfer_sizes": [4, 8, [8, 12]],
            "shots": [1, 5],
        }
        return Bars(**settings | changes)

    return make


@pytest.fixture(scope="session")
def position():
    """The partial of a file in conf/position."""

    @cache
    def build(name):
        with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
            return instantiate(compose(f"position/{name}").position, _convert_="all")

    return build


@pytest.fixture
def vit(position):
    """A network of 2 layers for 8 x 8 images, in evaluation mode, with weights large enough for varied answers."""

    def build(name="learned_1d", image_size=8, **settings):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = ViT(
                spec=ImageSpec(as_size(image_size), 1, 4),
                position=position(name) if isinstance(name, str) else name,
                **{"patch_size": 2, "dim": 32, "depth": 2, "block": partial(Block, heads=2)} | settings,
            )
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.ndim > 1:
                        parameter.mul_(5)
                for parameter in model.position.parameters():
                    parameter.add_(0.3 * torch.randn_like(parameter))  # what starts at zero would hide resizing
                typical = model.eval().features(torch.randn(64, 1, *model.image_size) - 0.8).mean(dim=0)
                model.head.bias.copy_(-model.head.weight @ typical)
        return model

    return build
