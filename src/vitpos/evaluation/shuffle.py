"""Patch shuffling: how much accuracy a network loses when the patches of each image change places.

A network that ignores position loses nothing; one that depends on the arrangement falls towards chance.

Letters: B images, C channels, H W grid, N = H*W, p patch side.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vitpos.data.streams import numpy_stream

SHUFFLE = 1000  # purpose of the random stream, apart from those of `data.streams`


def shuffle_patches(images: Tensor, index: Tensor, patch_size: int, seed: int) -> Tensor:
    """Return the images (B, C, H*p, W*p) with their patches permuted, each image by its own permutation.

    The permutation depends on the seed and on the image's index within its data set, so neither the batch size nor the
    order of the images nor the number of ranks changes it.

    Args:
        images: (B, C, height, width), sides multiples of the patch size.
        index: (B,) index of each image within its data set.
        patch_size: p in pixels.
        seed: of the permutations.
    """
    batch, channels, height, width = images.shape
    rows, columns = height // patch_size, width // patch_size
    order = np.stack([numpy_stream(seed, SHUFFLE, int(i)).permutation(rows * columns) for i in index])  # B N
    patches = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    patches = patches.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)  # B N C p p
    patches = patches[torch.arange(batch)[:, None], torch.from_numpy(order)]
    patches = patches.reshape(batch, rows, columns, channels, patch_size, patch_size)
    return patches.permute(0, 3, 1, 4, 2, 5).reshape(images.shape)  # B C H*p W*p
