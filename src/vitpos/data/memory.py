"""Small data sets held as bytes on the training device: no workers, no copies, no waiting for the host."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, Unpack

import torch
from torch import Tensor

from vitpos.data.base import ImageData, Settings, SplitName
from vitpos.data.loader import EvalLoader, Preprocess, TrainLoader
from vitpos.data.mix import Mix
from vitpos.data.sampler import EpochSampler, Shard
from vitpos.data.splits import Indices
from vitpos.spec import ImageSize, ImageSpec

Part = Literal["train", "test"]
Arrays = tuple[Tensor, Tensor]


class InMemory(ImageData):
    """A data set small enough to keep whole. A subclass gives its constants and `read`.

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

    def __init__(self, **settings: Unpack[Settings]) -> None:
        super().__init__(**settings)
        self._parts: dict[tuple[Part, ImageSize | None], Arrays] = {}
        self._positions: dict[SplitName, Tensor] = {}

    @abstractmethod
    def read(self, part: Part, image_size: ImageSize) -> Arrays:
        """Read one part of the source: uint8 images (n, C, h, w) and int64 labels (n,), on the CPU."""

    @property
    def spec(self) -> ImageSpec:
        """Shape of training images and number of classes."""
        return ImageSpec(self.image_size, self.channels, self.classes)

    def setup(self, stage: str) -> None:
        """Read the training part and check that every setting fits it, before anything is trained.

        Raises:
            ValueError: naming the setting that doesn't fit.
        """
        if stage == "fit":
            self.train_dataloader()
            self.val_dataloader()

    def train_loader(self, shard: Shard) -> TrainLoader:
        """Return the shuffled, augmented training batches of one rank."""
        pixels, labels = self.load("train", self.image_size)
        chosen = self._chosen("train")
        sampler = EpochSampler(len(chosen), self.batch_size, self.seed, shard)
        augment = self.augment
        mix = Mix(augment.mixup, augment.cutmix, self.classes, self.seed) if augment.mixup or augment.cutmix else None
        return TrainLoader(
            pixels,
            labels,
            chosen=chosen,
            sampler=sampler,
            augment=augment,
            preprocess=self._preprocess(self.image_size),
            mix=mix,
        )

    def eval_loader(self, split: SplitName, image_size: ImageSize, shard: Shard) -> EvalLoader:
        """Return the plain batches of one rank, of any split at any image size."""
        pixels, labels = self.load("test" if split == "test" else "train", image_size)
        chosen = self._chosen(split)
        if len(chosen) < shard.world:
            raise ValueError(f"{len(chosen)} {split} images can't be shared by {shard.world} ranks")
        size = max(1, self.batch_size // shard.world)
        return EvalLoader(pixels, labels, chosen[shard.rank :: shard.world], size, self._preprocess(image_size))

    def load(self, part: Part, image_size: ImageSize) -> Arrays:
        """Return a part's images and labels on the device, read once."""
        key = part, image_size if self.any_size else None
        if key not in self._parts:
            self.reads[part] += 1
            self._parts[key] = self.read(part, image_size)
        pixels, labels = self._parts[key]
        self._parts[key] = pixels.to(self.device), labels.to(self.device)
        return self._parts[key]

    def carve(self, labels: Indices) -> tuple[Indices, Indices]:
        """Return the (train, val) positions in the training part, before `limit_train`."""
        return self.split.carve(labels)

    def _chosen(self, split: SplitName) -> Tensor:
        """Return the positions of a split in its part, on the device, drawn once."""
        if split not in self._positions:
            labels = self.load("test" if split == "test" else "train", self.image_size)[1].cpu().numpy()
            if split == "test":
                self._positions["test"] = torch.arange(len(labels))
            else:
                train, val = self.carve(labels)
                train = self.split.limit(train, labels, self.limit_train)
                self._positions |= {"train": torch.from_numpy(train), "val": torch.from_numpy(val)}
        self._positions[split] = self._positions[split].to(self.device)
        return self._positions[split]

    def _preprocess(self, size: ImageSize) -> Preprocess:
        return Preprocess(self.levels, self.mean, self.std, size, self.device)
