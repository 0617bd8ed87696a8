"""Handwritten digits that ship with scikit-learn: 1,797 images of 8 x 8 pixels, nothing to download."""

from __future__ import annotations

from typing import final

import numpy as np
import torch

from vitpos.data.base import Part
from vitpos.data.memory import Arrays, InMemory
from vitpos.data.splits import stratified
from vitpos.data.streams import SPLIT, numpy_stream
from vitpos.spec import ImageSize

# The source has no test part. Ours is fixed once for all, so that no setting can move test images into training.
TEST_IMAGES = 360
TEST_SEED = 0


@final
class Digits(InMemory):
    """Ten digits in 16 grey levels above black; the test part is a fixed stratified fifth of the images."""

    channels = 1
    classes = 10
    levels = 16
    mean = (0.3053,)
    std = (0.3760,)

    def read(self, part: Part, image_size: ImageSize) -> Arrays:
        """Read one part of the images."""
        from sklearn.datasets import load_digits  # takes longer than all that a plan needs of this file

        source = load_digits()
        labels = source.target.astype(np.int64)
        test = stratified(labels, TEST_IMAGES, numpy_stream(TEST_SEED, SPLIT))
        chosen = test if part == "test" else np.setdiff1d(np.arange(len(labels)), test)
        return torch.from_numpy(source.images[chosen].astype(np.uint8)).unsqueeze(1), torch.from_numpy(labels[chosen])
