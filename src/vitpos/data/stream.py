"""Batches of image files, read by worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import ceil

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.v2.functional import pil_to_tensor

from vitpos.data.base import Batch
from vitpos.data.epochs import EpochLoader
from vitpos.data.files import Files, open_rgb
from vitpos.data.loader import Preprocess
from vitpos.data.mix import Mix
from vitpos.data.sampler import EpochSampler
from vitpos.data.streams import AUGMENT, stream_seed

Key = tuple[int, int]  # epoch, image number
View = Callable[[Image.Image], Image.Image]


class ImageFiles(Dataset[tuple[Tensor, int, int]]):
    """Images by (epoch, number): uint8 (3, h, w), label, number.

    A random view draws from a generator seeded by (seed, epoch, number), so it does not depend on which worker makes
    it, or after what.

    Args:
        files: where the images are.
        view: makes a PIL image of the wanted size.
        seed: training seed.
    """

    def __init__(self, files: Files, view: View, seed: int) -> None:
        self.files, self.view, self.seed = files, view, seed

    def __getitem__(self, key: Key) -> tuple[Tensor, int, int]:
        epoch, number = key
        image = open_rgb(self.files.path(number))
        with torch.random.fork_rng(devices=[]):
            # Not torch.manual_seed, which would also reach for the GPU.
            torch.default_generator.manual_seed(stream_seed(self.seed, AUGMENT, epoch, number))
            image = self.view(image)
        return pil_to_tensor(image), int(self.files.labels[number]), number


class Reader:
    """Runs worker processes over batches of keys and puts the batches on the device.

    Args:
        images: where the workers look keys up.
        workers: worker processes; 0 reads in this process.
        preprocess: bytes to floats, on the device.
        device: where batches go.
    """

    def __init__(self, images: ImageFiles, workers: int, preprocess: Preprocess, device: torch.device) -> None:
        self.images, self.workers, self.preprocess, self.device = images, workers, preprocess, device

    def __call__(self, batches: Iterable[list[Key]]) -> Iterator[Batch]:
        """Yield the batches in order; the workers end with the iteration."""
        loader = DataLoader(
            self.images,
            batch_sampler=batches,
            num_workers=self.workers,
            pin_memory=self.device.type == "cuda",
            # Workers must not draw their seeds from the global generator, which the network shares.
            generator=torch.Generator().manual_seed(0),
        )
        for batch in loader:
            images, labels, index = (each.to(self.device, non_blocking=True) for each in batch)
            yield self.preprocess(images), labels, index


class StreamTrainLoader(EpochLoader):
    """Shuffled, augmented batches of one rank.

    Args:
        reader: reads keys.
        chosen: int64 (m,), the images to train on.
        sampler: the order of each epoch.
        mix: mixup or cutmix; None for neither.
    """

    def __init__(self, reader: Reader, chosen: Tensor, sampler: EpochSampler, mix: Mix | None) -> None:
        super().__init__(sampler, mix)
        self.reader, self.chosen = reader, chosen

    def batches(self, start: int) -> Iterator[Batch]:
        """Yield the sampler's present epoch from batch `start`, not mixed."""
        epoch = self.sampler.epoch
        numbers = self.chosen[self.sampler.local(self.sampler.positions())[start:]]  # (steps, b)
        return self.reader([(epoch, number) for number in step.tolist()] for step in numbers)


class StreamEvalLoader:
    """Plain batches of one rank: its images in file order, each once.

    Args:
        reader: reads keys.
        chosen: int64 (m,), this rank's images.
        batch_size: images per batch; the last batch holds the rest.
    """

    def __init__(self, reader: Reader, chosen: Tensor, batch_size: int) -> None:
        self.reader, self.chosen, self.batch_size = reader, chosen, batch_size

    def __len__(self) -> int:
        return ceil(len(self.chosen) / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        batches = torch.split(self.chosen, self.batch_size)
        return self.reader([(0, number) for number in batch.tolist()] for batch in batches)
