"""A tiny in-memory data set and the settings that all data sets share."""

import numpy as np
import pytest
import torch

from vitpos.data.augment import Augment
from vitpos.data.memory import InMemory
from vitpos.data.splits import Split


class Toy(InMemory):
    """Sixty training and ten test images of 4 x 6 pixels: in image i, i in the first channel, i + x in the second."""

    channels = 2
    classes = 3
    levels = 100
    mean = (0.5, 0.25)
    std = (0.5, 0.125)

    def read(self, part, image_size):
        count = 60 if part == "train" else 10
        number = torch.arange(count, dtype=torch.uint8)[:, None, None].expand(count, 4, 6)
        return torch.stack((number, number + torch.arange(6, dtype=torch.uint8)), 1), torch.from_numpy(
            np.arange(count) % 3
        )


def _settings(**overrides):
    base = {
        "seed": 0,
        "image_size": [4, 6],
        "batch_size": 8,
        "limit_train": 0,
        "split": Split(val_fraction=0.2, seed=0),
        "augment": Augment(),
        "transfer_sizes": [4, [4, 8]],
        "shots": [1],
    }
    return base | overrides


@pytest.fixture(scope="session")
def settings():
    return _settings


@pytest.fixture(scope="session")
def toy():
    return lambda **overrides: Toy(**_settings(**overrides))
