"""Batches made from bytes that already lie on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

import torch
import torch.nn.functional as F
from torch import Tensor

from vitpos.data.augment import Augment, Draws
from vitpos.data.base import Batch
from vitpos.data.epochs import EpochLoader
from vitpos.data.mix import Mix
from vitpos.data.sampler import EpochSampler
from vitpos.spec import ImageSize


class Preprocess:
    """Turn bytes into the normalised floats a network sees, at any image size.

    y_c = (x / levels - mean_c) / std_c, then the whole image resampled (bicubic, antialiased) to the wanted size; at
    its own size an image passes untouched.

    Args:
        levels: byte value of full intensity.
        mean: per channel, of intensities in [0, 1].
        std: per channel.
        size: (height, width) of the result in pixels.
        device: where the images are.
    """

    def __init__(
        self, levels: int, mean: Sequence[float], std: Sequence[float], size: ImageSize, device: torch.device
    ) -> None:
        std64 = torch.tensor(std, dtype=torch.float64)[:, None, None]
        mean64 = torch.tensor(mean, dtype=torch.float64)[:, None, None]
        self._scale = (1 / (levels * std64)).float().to(device)
        self._shift = (-mean64 / std64).float().to(device)
        self.size = size

    def __call__(self, images: Tensor) -> Tensor:
        """Map uint8 (b, C, h, w) to float32 (b, C, height, width)."""
        result = images.float().mul_(self._scale).add_(self._shift)
        if result.shape[-2:] != self.size:
            result = F.interpolate(result, self.size, mode="bicubic", antialias=True, align_corners=False)
        return result


class MemoryTrainLoader(EpochLoader):
    """Shuffled, augmented batches of one rank.

    Args:
        pixels: uint8 (n, C, h, w), the whole training part.
        labels: int64 (n,).
        chosen: int64 (m,), which of them to train on.
        sampler: the order of each epoch.
        augment: what to draw and do.
        preprocess: bytes to floats.
        mix: mixup or cutmix; None for neither.
    """

    def __init__(
        self,
        pixels: Tensor,
        labels: Tensor,
        *,
        chosen: Tensor,
        sampler: EpochSampler,
        augment: Augment,
        preprocess: Preprocess,
        mix: Mix | None,
    ) -> None:
        super().__init__(sampler, mix)
        self.pixels, self.labels, self.chosen = pixels, labels, chosen
        self.augment, self.preprocess = augment, preprocess

    def batches(self, start: int) -> Iterator[Batch]:
        """Yield the sampler's present epoch from batch `start`, not mixed."""
        # An epoch's numbers go to the device at once, so that no step waits for the host.
        numbers = self.chosen[self._send(self.sampler.local(self.sampler.positions()))]  # (steps, b)
        draws = Draws(*(self._send(each) for each in self.augment.draw(self.sampler)))
        for step in range(start, len(self)):
            index = numbers[step]
            images = self.augment.apply(self.pixels.index_select(0, index), draws.at(step))
            yield self.preprocess(images), self.labels.index_select(0, index), index

    def _send(self, table: Tensor) -> Tensor:
        if self.pixels.device.type == "cuda":
            table = table.pin_memory()
        return table.to(self.pixels.device, non_blocking=True)


class MemoryEvalLoader:
    """Plain batches of one rank: its images in file order, each once.

    Args:
        pixels: uint8 (n, C, h, w).
        labels: int64 (n,).
        chosen: int64 (m,), this rank's images.
        batch_size: images per batch; the last batch holds the rest.
        preprocess: bytes to floats.
    """

    def __init__(self, pixels: Tensor, labels: Tensor, chosen: Tensor, batch_size: int, preprocess: Preprocess) -> None:
        self.pixels, self.labels, self.chosen = pixels, labels, chosen
        self.batch_size, self.preprocess = batch_size, preprocess

    def __len__(self) -> int:
        return ceil(len(self.chosen) / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        for index in torch.split(self.chosen, self.batch_size):
            images = self.pixels.index_select(0, index)
            yield self.preprocess(images), self.labels.index_select(0, index), index
