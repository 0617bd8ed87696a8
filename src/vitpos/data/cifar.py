"""What CIFAR-10 and CIFAR-100 share: colour images of 32 x 32 pixels, read through torchvision."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Unpack

import numpy as np
import torch
from torchvision.datasets import CIFAR10

from vitpos.data.base import Part
from vitpos.data.download import find_or_fetch
from vitpos.data.memory import Arrays, InMemory, MemorySettings
from vitpos.spec import ImageSize


class Cifar(InMemory):
    """Fifty thousand training and ten thousand test images; a subclass gives torchvision's class and the constants.

    Args:
        root: folder in which torchvision's folder of the data set lies, or will lie.
        settings: see `InMemory`.

    Attributes:
        source: torchvision's data set, which checks its files against their checksums.
    """

    source: ClassVar[type[CIFAR10]]
    channels = 3

    def __init__(self, *, root: str | Path, **settings: Unpack[MemorySettings]) -> None:
        super().__init__(**settings)
        self.root = Path(root).expanduser().absolute()

    def read(self, part: Part, image_size: ImageSize) -> Arrays:
        """Read one part of the images, fetching the data set if it is missing or damaged.

        Raises:
            ValueError: no data and no network.
        """
        source = self.source

        def find() -> CIFAR10 | None:
            try:
                return source(self.root, train=part == "train")
            except RuntimeError:  # a file is missing or its checksum is wrong
                return None

        images = find_or_fetch(
            source.__name__,
            self.root,
            find=find,
            fetch=lambda: source(self.root, download=True),
            advice=f"Without a network: unpack {source.filename} ({source.url}) there, giving {source.base_folder}.",
        )
        pixels = torch.from_numpy(images.data).permute(0, 3, 1, 2).contiguous()  # n h w C -> n C h w
        return pixels, torch.from_numpy(np.asarray(images.targets, dtype=np.int64))
