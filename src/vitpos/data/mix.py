"""Mixup and cutmix through timm, made a pure function of (seed, epoch, step)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from timm.data.mixup import Mixup
from torch import Tensor

from vitpos.data.streams import MIX, stream_seed


@contextmanager
def numpy_seeded(seed: int) -> Iterator[None]:
    """Run a block with NumPy's global generator seeded, and put the generator back where it was."""
    state = np.random.get_state()
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        np.random.set_state(state)


class Mix:
    """Blend each image of a batch with the one in the mirrored place, and their labels alike.

    One weight per batch, equal on all ranks; `Shard.columns` puts the same pairs on any number of ranks.

    Args:
        mixup: alpha of mixup, 0 is off.
        cutmix: alpha of cutmix, 0 is off.
        classes: number of labels.
        seed: training seed.
    """

    def __init__(self, mixup: float, cutmix: float, classes: int, seed: int) -> None:
        # Label smoothing belongs to the loss, which applies it to soft labels too.
        self._mix = Mixup(mixup_alpha=mixup, cutmix_alpha=cutmix, label_smoothing=0.0, num_classes=classes)
        self._seed = seed

    def __call__(self, images: Tensor, labels: Tensor, epoch: int, step: int) -> tuple[Tensor, Tensor]:
        """Return images (b, C, h, w), overwritten, and soft labels (b, classes).

        Raises:
            ValueError: an odd batch, in which one image has no partner.
        """
        if len(images) % 2:
            raise ValueError(
                f"data.augment.mixup and cutmix need an even number of images on each rank; data.batch_size gives "
                f"{len(images)}"
            )
        with numpy_seeded(stream_seed(self._seed, MIX, epoch, step)):
            mixed: tuple[Tensor, Tensor] = self._mix(images, labels)
        return mixed
