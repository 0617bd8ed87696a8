"""Augmentation of a whole batch at once, each image with its own draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from vitpos.data.sampler import EpochSampler
from vitpos.data.streams import CROP, FLIP, torch_stream


class Draws(NamedTuple):
    """Random numbers of one epoch (steps, b) or, indexed by step, of one batch (b,)."""

    top: Tensor
    left: Tensor
    flip: Tensor

    def at(self, step: int) -> Draws:
        """Return one batch's numbers."""
        return Draws(*(each[step] for each in self))


@dataclass(frozen=True)
class Augment:
    """Settings of the augmentation of in-memory images; all zero or false means none.

    Attributes:
        padding: pixels (at the native size) by which an image may shift, vertically and horizontally; what comes in
            from outside is zero.
        flip: mirror half of the images left to right. Wrong where left and right mean something, as for digits.
        mixup: alpha of the Beta distribution of mixup's weight; 0 is off.
        cutmix: the same for cutmix; if both are on, each batch uses one of the two with equal chance.
    """

    padding: int = 0
    flip: bool = False
    mixup: float = 0.0
    cutmix: float = 0.0

    def __post_init__(self) -> None:
        """Refuse numbers that have no meaning."""
        for name in ("padding", "mixup", "cutmix"):
            if getattr(self, name) < 0:
                raise ValueError(f"data.augment.{name}={getattr(self, name)}: must be zero or more")

    def draw(self, sampler: EpochSampler) -> Draws:
        """Draw an epoch's numbers for all ranks and keep this rank's, each kind from its own stream."""
        shape = (sampler.steps, sampler.batch_size)
        crop = torch_stream(sampler.seed, CROP, sampler.epoch)
        corners = torch.randint(0, 2 * self.padding + 1, (*shape, 2), generator=crop)
        flip = torch.randint(0, 2, shape, generator=torch_stream(sampler.seed, FLIP, sampler.epoch)).bool()
        top, left = sampler.local(corners).unbind(-1)
        return Draws(top, left, sampler.local(flip))

    def apply(self, images: Tensor, draws: Draws) -> Tensor:
        """Mirror and shift images (b, C, h, w) by one batch's draws; any dtype, same shape."""
        if self.flip:
            both = torch.cat((images, images.flip(-1)))  # (2b, C, h, w)
            each = torch.arange(len(images), device=images.device)
            images = both.index_select(0, each + draws.flip * len(images))
        return shift(images, draws.top, draws.left, self.padding) if self.padding else images


def shift(images: Tensor, top: Tensor, left: Tensor, padding: int) -> Tensor:
    """Cut from each zero-padded image a window of the image's size.

    Args:
        images: (b, C, h, w).
        top: first row of each window in the padded image, (b,), 0 .. 2 * padding.
        left: first column, alike.
        padding: pixels added on each side.
    """
    batch, channels, height, width = images.shape
    padded = F.pad(images, (padding,) * 4)  # (b, C, h+2p, w+2p)
    rows, columns = padded.shape[-2:]
    # Each row of a window is one run of `width` elements in memory: select runs by where they start.
    planes = torch.arange(batch * channels, device=images.device).view(batch, channels, 1) * rows
    lines = planes + top[:, None, None] + torch.arange(height, device=images.device)  # (b, C, h)
    starts = lines * columns + left[:, None, None]
    return padded.view(-1).unfold(0, width, 1).index_select(0, starts.view(-1)).view(images.shape)
