"""Small data sets held as bytes on the training device: no workers, no copies, no waiting for the host."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Unpack

import numpy as np
import torch
from torch import Tensor

from vitpos.data.augment import Augment
from vitpos.data.base import ImageData, Part, Settings, SplitName
from vitpos.data.loader import MemoryEvalLoader, MemoryTrainLoader, Preprocess
from vitpos.data.mix import Mix
from vitpos.data.sampler import Shard
from vitpos.data.splits import Indices
from vitpos.spec import ImageSize, ImageSpec

Arrays = tuple[Tensor, Tensor]


class MemorySettings(Settings):
    """Settings that all in-memory data sets share; `ImageData` and `InMemory` describe them."""

    augment: Augment


class InMemory(ImageData):
    """A data set small enough to keep whole. A subclass gives its constants and `read`.

    Args:
        augment: what happens to training images.
        settings: see `ImageData`.

    Attributes:
        channels: colour channels.
        classes: number of labels.
        levels: byte value of full intensity.
        mean: per channel, of training intensities in [0, 1].
        std: per channel.
        any_size: whether `read` makes images of the size asked for; otherwise they have one size and are resampled.
    """

    channels: ClassVar[int]
    classes: int
    levels: ClassVar[int] = 255
    mean: ClassVar[tuple[float, ...]]
    std: ClassVar[tuple[float, ...]]
    any_size: ClassVar[bool] = False

    def __init__(self, *, augment: Augment, **settings: Unpack[Settings]) -> None:
        super().__init__(**settings)
        self.augment = augment
        self._parts: dict[tuple[Part, ImageSize | None], Arrays] = {}

    @abstractmethod
    def read(self, part: Part, image_size: ImageSize) -> Arrays:
        """Read one part of the source: uint8 images (n, C, h, w) and int64 labels (n,), on the CPU."""

    @property
    def spec(self) -> ImageSpec:
        """Shape of training images and number of classes."""
        return ImageSpec(self.image_size, self.channels, self.classes)

    def part_labels(self, part: Part) -> Indices:
        """Return the label of every image in a part of the source."""
        return np.asarray(self.load(part, self.image_size)[1].cpu())

    def train_loader(self, shard: Shard) -> MemoryTrainLoader:
        """Return the shuffled, augmented training batches of one rank."""
        pixels, labels = self.load("train", self.image_size)
        augment = self.augment
        mix = Mix(augment.mixup, augment.cutmix, self.classes, self.seed) if augment.mixup or augment.cutmix else None
        return MemoryTrainLoader(
            pixels,
            labels,
            chosen=torch.from_numpy(self.positions("train")).to(self.device),
            sampler=self.sampler(shard),
            augment=augment,
            preprocess=self._preprocess(self.image_size),
            mix=mix,
        )

    def eval_loader(self, split: SplitName, image_size: ImageSize, shard: Shard) -> MemoryEvalLoader:
        """Return the plain batches of one rank, of any split at any image size."""
        pixels, labels = self.load("test" if split == "test" else "train", image_size)
        chosen = self.share(split, shard).to(self.device)
        size = max(1, self.batch_size // shard.world)
        return MemoryEvalLoader(pixels, labels, chosen, size, self._preprocess(image_size))

    def load(self, part: Part, image_size: ImageSize) -> Arrays:
        """Return a part's images and labels on the device, read once."""
        key = part, image_size if self.any_size else None
        if key not in self._parts:
            self.reads[part] += 1
            self._parts[key] = self.read(part, image_size)
        pixels, labels = self._parts[key]
        self._parts[key] = pixels.to(self.device), labels.to(self.device)
        return self._parts[key]

    def _preprocess(self, size: ImageSize) -> Preprocess:
        return Preprocess(self.levels, self.mean, self.std, size, self.device)
