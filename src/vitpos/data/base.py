"""What every data set offers to training and evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, TypedDict

import numpy as np
import torch
from torch import Tensor

from vitpos.data.sampler import EpochSampler, Shard, current_shard
from vitpos.data.splits import Indices, Split
from vitpos.spec import ImageSize, ImageSpec, as_size

SplitName = Literal["train", "val", "test"]
Part = Literal["train", "test"]  # of the source; "train" and "val" are carved from its "train"
Batch = tuple[Tensor, Tensor, Tensor]


class Loader(Protocol):
    """Batches (images float32 (b, C, h, w), labels (b,) or soft (b, classes), index int64 (b,))."""

    def __iter__(self) -> Iterator[Batch]:
        """Run over the batches of this rank."""

    def __len__(self) -> int:
        """Return the number of batches of this rank."""


class Settings(TypedDict):
    """Settings that all data sets share; `ImageData` describes them."""

    seed: int
    image_size: int | Sequence[int]
    batch_size: int
    limit_train: int
    split: Split
    transfer_sizes: Sequence[int | Sequence[int]]
    shots: Sequence[int]


class ImageData(ABC):
    """Labelled images with a training, a validation and a test split.

    Order and augmentation of training images are pure functions of (seed, epoch, step), drawn for all ranks together.
    Evaluation shows each image exactly once over all ranks, in file order, never padded or dropped.

    Args:
        seed: training seed: order and augmentation, nothing else.
        image_size: pixels of training images, one number or [height, width].
        batch_size: images per optimiser step over all ranks.
        limit_train: train on so many images only, stratified; 0 uses all.
        split: how validation images are carved from the training images.
        transfer_sizes: image sizes at which a trained model is evaluated.
        shots: images per class of the few-shot evaluation.

    Attributes:
        spec: shape of training images and number of classes.
        device: where batches are made; whoever trains sets it.
        reads: how often the images of the source's "train" and "test" parts were read.

    Raises:
        ValueError: a setting out of its range.
    """

    def __init__(
        self,
        *,
        seed: int,
        image_size: int | Sequence[int],
        batch_size: int,
        limit_train: int,
        split: Split,
        transfer_sizes: Sequence[int | Sequence[int]],
        shots: Sequence[int],
    ) -> None:
        for name, value, least in (("seed", seed, 0), ("data.batch_size", batch_size, 1)):
            if value < least:
                raise ValueError(f"{name}={value}: must be at least {least}")
        if limit_train < 0:
            raise ValueError(f"data.limit_train={limit_train}: must be 0 (all) or a number of images")
        self.seed = seed
        self.image_size: ImageSize = as_size(image_size)
        self.batch_size = batch_size
        self.limit_train = limit_train
        self.split = split
        self.transfer_sizes: list[ImageSize] = [as_size(size) for size in transfer_sizes]
        self.shots = [int(count) for count in shots]
        self.device = torch.device("cpu")
        self.reads: Counter[Part] = Counter()
        self._positions: dict[SplitName, Indices] = {}

    @property
    @abstractmethod
    def spec(self) -> ImageSpec:
        """Shape of training images and number of classes; known without touching test images."""

    @abstractmethod
    def part_labels(self, part: Part) -> Indices:
        """Return the label of every image in a part of the source, without opening more images than it must."""

    @abstractmethod
    def train_loader(self, shard: Shard) -> Loader:
        """Return the shuffled, augmented training batches of one rank."""

    @abstractmethod
    def eval_loader(self, split: SplitName, image_size: ImageSize, shard: Shard) -> Loader:
        """Return the plain batches of one rank, of any split at any image size."""

    def setup(self) -> None:
        """Read the training part and check that every setting fits it, before anything is trained.

        Raises:
            ValueError: naming the file or setting that doesn't fit.
        """
        self.train_dataloader()
        self.val_dataloader()

    def train_dataloader(self) -> Loader:
        """Return this rank's training batches."""
        return self.train_loader(current_shard())

    def val_dataloader(self) -> Loader:
        """Return this rank's validation batches."""
        return self.eval_dataloader("val")

    def test_dataloader(self) -> Loader:
        """Return this rank's test batches; the first call reads the test images."""
        return self.eval_dataloader("test")

    def eval_dataloader(self, split: SplitName, image_size: int | Sequence[int] | None = None) -> Loader:
        """Return this rank's un-augmented batches.

        Args:
            split: which images.
            image_size: pixels, the training size if not given; the field of view is the same at all sizes.
        """
        size = self.image_size if image_size is None else as_size(image_size)
        return self.eval_loader(split, size, current_shard())

    def labels(self, split: SplitName) -> tuple[Indices, Indices]:
        """Return (index, label) of every image of a split, of all ranks, ascending in index, without making batches."""
        positions = self.positions(split)
        return positions, self.part_labels("test" if split == "test" else "train")[positions]

    def positions(self, split: SplitName) -> Indices:
        """Return the places of a split's images in its part of the source, ascending, drawn once."""
        if split not in self._positions:
            labels = self.part_labels("test" if split == "test" else "train")
            if split == "test":
                self._positions["test"] = np.arange(len(labels))
            else:
                train, val = self.carve(labels)
                self._positions |= {"train": self.split.limit(train, labels, self.limit_train), "val": val}
        return self._positions[split]

    def carve(self, labels: Indices) -> tuple[Indices, Indices]:
        """Return the (train, val) places in the training part, before `limit_train`."""
        return self.split.carve(labels)

    def share(self, split: SplitName, shard: Shard) -> Tensor:
        """Return the places of the images that one rank evaluates.

        Raises:
            ValueError: a rank would have none.
        """
        positions = self.positions(split)
        if len(positions) < shard.world:
            raise ValueError(f"{len(positions)} {split} images can't be shared by {shard.world} ranks")
        return torch.from_numpy(positions[shard.rank :: shard.world].copy())

    def sampler(self, shard: Shard) -> EpochSampler:
        """Return the order of one rank's training images, as places in `positions("train")`."""
        return EpochSampler(len(self.positions("train")), self.batch_size, self.seed, shard)
