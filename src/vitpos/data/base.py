"""What every data set offers to training and evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, TypedDict

import pytorch_lightning as pl
import torch
from torch import Tensor

from vitpos.data.augment import Augment
from vitpos.data.sampler import Shard, current_shard
from vitpos.data.splits import Split
from vitpos.spec import ImageSize, ImageSpec, as_size

SplitName = Literal["train", "val", "test"]
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
    augment: Augment
    transfer_sizes: Sequence[int | Sequence[int]]
    shots: Sequence[int]


class ImageData(pl.LightningDataModule, ABC):
    """Labelled images with a training, a validation and a test split.

    Order and augmentation of training images are pure functions of (seed, epoch, step), drawn for all ranks together.
    Evaluation shows each image exactly once over all ranks, in file order, never padded or dropped.

    Args:
        seed: training seed: order and augmentation, nothing else.
        image_size: pixels of training images, one number or [height, width].
        batch_size: images per optimiser step over all ranks.
        limit_train: train on so many images only, stratified; 0 uses all.
        split: how validation images are carved from the training images.
        augment: what happens to training images.
        transfer_sizes: image sizes at which a trained model is evaluated.
        shots: images per class of the few-shot evaluation.

    Attributes:
        spec: shape of training images and number of classes.
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
        augment: Augment,
        transfer_sizes: Sequence[int | Sequence[int]],
        shots: Sequence[int],
    ) -> None:
        super().__init__()
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
        self.augment = augment
        self.transfer_sizes: list[ImageSize] = [as_size(size) for size in transfer_sizes]
        self.shots = [int(count) for count in shots]
        self.reads: Counter[str] = Counter()

    @property
    @abstractmethod
    def spec(self) -> ImageSpec:
        """Shape of training images and number of classes; known without touching test images."""

    @property
    def device(self) -> torch.device:
        """Where batches are made: the trainer's device, or the CPU without a trainer."""
        return self.trainer.strategy.root_device if self.trainer is not None else torch.device("cpu")

    @abstractmethod
    def train_loader(self, shard: Shard) -> Loader:
        """Return the shuffled, augmented training batches of one rank."""

    @abstractmethod
    def eval_loader(self, split: SplitName, image_size: ImageSize, shard: Shard) -> Loader:
        """Return the plain batches of one rank, of any split at any image size."""

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
