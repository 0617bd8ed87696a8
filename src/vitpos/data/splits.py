"""Stratified splits that depend on the labels and the split seed alone, never on the training seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitpos.data.streams import LIMIT, SPLIT, numpy_stream

Indices = NDArray[np.int64]


def stratified(labels: Indices, count: int, rng: np.random.Generator) -> Indices:
    """Choose `count` images with the class shares of `labels`, at random within each class.

    Class c of n_c images out of n gets floor(count * n_c / n) images; what is left goes to the largest remainders.

    Args:
        labels: (n,) class numbers.
        count: how many to choose, at most n.
        rng: consumed in a fixed way, so that a larger count keeps most of a smaller one.

    Returns:
        Ascending positions in `labels`, (count,).
    """
    classes, sizes = np.unique(labels, return_counts=True)
    share = count * sizes / len(labels)
    quota = np.floor(share).astype(np.int64)
    largest = np.argsort(quota - share, kind="stable")
    quota[largest[: count - int(quota.sum())]] += 1
    chosen = [
        rng.permutation(np.flatnonzero(labels == each))[:wanted] for each, wanted in zip(classes, quota, strict=True)
    ]
    return np.sort(np.concatenate(chosen))


@dataclass(frozen=True)
class Split:
    """How validation images are carved from the training images.

    Attributes:
        val_fraction: share of the training images kept for validation, in (0, 1).
        seed: of the split; the same for all arms and all training seeds of a study.
    """

    val_fraction: float
    seed: int

    def __post_init__(self) -> None:
        """Refuse shares that leave one side empty whatever the data."""
        if not 0 < self.val_fraction < 1:
            raise ValueError(
                f"data.split.val_fraction={self.val_fraction}: must lie between 0 and 1, since the checkpoint is "
                "chosen on validation images"
            )

    def carve(self, labels: Indices) -> tuple[Indices, Indices]:
        """Return the (train, val) positions in `labels`, disjoint, ascending and together complete.

        Raises:
            ValueError: validation would be empty, or a class would be left without a training image.
        """
        count = round(self.val_fraction * len(labels))
        if count == 0:
            raise ValueError(
                f"data.split.val_fraction={self.val_fraction} of {len(labels)} images leaves none to validate on"
            )
        val = stratified(labels, count, numpy_stream(self.seed, SPLIT))
        train = np.setdiff1d(np.arange(len(labels)), val, assume_unique=True)
        lost = np.setdiff1d(labels, labels[train])
        if lost.size:
            raise ValueError(
                f"data.split.val_fraction={self.val_fraction} leaves no training image of class {lost[0]} "
                f"({int((labels == lost[0]).sum())} in all)"
            )
        return train, val

    def limit(self, train: Indices, labels: Indices, count: int) -> Indices:
        """Return `count` of the training positions, stratified; all of them for a count of 0.

        Args:
            train: training positions in `labels`.
            labels: (n,) class numbers of the whole training file.
            count: `data.limit_train`.

        Raises:
            ValueError: more than there are, or too few for one image of each class.
        """
        if count == 0:
            return train
        classes = len(np.unique(labels))
        if not classes <= count <= len(train):
            raise ValueError(
                f"data.limit_train={count}: must be 0 (all) or lie between {classes}, one image for each class, "
                f"and {len(train)}, the training images there are"
            )
        kept = train[stratified(labels[train], count, numpy_stream(self.seed, LIMIT))]
        lost = np.setdiff1d(labels, labels[kept])
        if lost.size:
            raise ValueError(f"data.limit_train={count}: too few for an image of each class; class {lost[0]} gets none")
        return kept
