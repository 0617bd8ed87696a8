"""Image folders in ImageNet's layout: `train/CLASS/*.jpg` and `val/CLASS/*.jpg`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, Unpack, final

import torch

from vitpos.data.base import ImageData, Part, Settings, SplitName
from vitpos.data.files import Files, check, class_names, find_files
from vitpos.data.loader import Preprocess
from vitpos.data.mix import Mix
from vitpos.data.sampler import Shard
from vitpos.data.splits import Indices
from vitpos.data.stream import ImageFiles, Reader, StreamEvalLoader, StreamTrainLoader, View
from vitpos.data.views import CentralView, PhotoAugment
from vitpos.spec import ImageSize, ImageSpec

# Of ImageNet's training images, per channel in [0, 1]; the field normalises all photographs with them.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# The folder named `val` is the benchmark's test set; validation images are carved from `train`.
_FOLDER: dict[Part, str] = {"train": "train", "test": "val"}


@final
class Folder(ImageData):
    """Photographs of any size, read by worker processes, normalised and mixed on the training device.

    Args:
        root: holds the folders `train` (to train and validate on) and `val` (to test on).
        name: of these images. A run's identity rests on it, since `root` is only where they lie.
        augment: what happens to training images.
        crop: share of the sides that evaluation sees, at every image size.
        num_workers: processes that read images, for each rank; `auto`: the cores this process may use, shared by the
            ranks of this machine.
        check_files: read every image once before training.
        settings: see `ImageData`.
    """

    def __init__(
        self,
        *,
        root: str | Path,
        name: str,
        augment: PhotoAugment,
        crop: float,
        num_workers: int | Literal["auto"],
        check_files: bool,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(**settings)
        if not 0 < crop <= 1:
            raise ValueError(f"data.crop={crop}: must be above 0 and at most 1")
        if num_workers != "auto" and (not isinstance(num_workers, int) or num_workers < 0):
            raise ValueError(f"data.num_workers={num_workers}: give auto, 0 or a number of processes")
        self.root = Path(root).expanduser().absolute()
        self.name, self.augment, self.crop, self.check_files = name, augment, crop, check_files
        self.num_workers = _cores() if num_workers == "auto" else num_workers
        self._classes: list[str] = []
        self._files: dict[Part, Files] = {}

    @property
    def class_names(self) -> list[str]:
        """Names of the classes in the order of their labels: the folders in `train`."""
        if not self._classes:
            self._classes = class_names(self.root / _FOLDER["train"])
        return self._classes

    @property
    def spec(self) -> ImageSpec:
        """Shape of training images and number of classes."""
        return ImageSpec(self.image_size, len(MEAN), len(self.class_names))

    def setup(self) -> None:
        """List both parts and check every file before anything is trained; test images are not shown to anything.

        Raises:
            ValueError: naming the folder, file or setting.
        """
        _same_classes(self.class_names, class_names(self.root / _FOLDER["test"]), self.root)
        if self.check_files:
            for part in _FOLDER:
                check(self.files(part), max(1, self.num_workers))
        super().setup()

    def files(self, part: Part) -> Files:
        """Return the images of a part, listed once."""
        if part not in self._files:
            self._files[part] = find_files(self.root / _FOLDER[part], self.class_names)
        return self._files[part]

    def part_labels(self, part: Part) -> Indices:
        """Return the label of every image in a part, opening none."""
        return self.files(part).labels

    def train_loader(self, shard: Shard) -> StreamTrainLoader:
        """Return the shuffled, augmented training batches of one rank."""
        augment = self.augment
        classes = self.spec.classes
        mix = Mix(augment.mixup, augment.cutmix, classes, self.seed) if augment.mixup or augment.cutmix else None
        chosen = torch.from_numpy(self.positions("train"))
        reader = self._reader("train", augment.build(self.image_size), self.image_size)
        return StreamTrainLoader(reader, chosen, self.sampler(shard), mix)

    def eval_loader(self, split: SplitName, image_size: ImageSize, shard: Shard) -> StreamEvalLoader:
        """Return the plain batches of one rank, of any split at any image size."""
        part: Part = "test" if split == "test" else "train"
        reader = self._reader(part, CentralView(image_size, self.crop), image_size)
        return StreamEvalLoader(reader, self.share(split, shard), max(1, self.batch_size // shard.world))

    def _reader(self, part: Part, view: View, size: ImageSize) -> Reader:
        self.reads[part] += 1
        images = ImageFiles(self.files(part), view, self.seed)
        return Reader(images, self.num_workers, Preprocess(255, MEAN, STD, size, self.device), self.device)


def _cores() -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def _same_classes(train: list[str], val: list[str], root: Path) -> None:
    for one, other, names in (("val", "train", set(val) - set(train)), ("train", "val", set(train) - set(val))):
        if names:
            raise ValueError(
                f"data.root={root}: {other} lacks {len(names)} of the classes in {one}, for example {min(names)!r}"
            )
