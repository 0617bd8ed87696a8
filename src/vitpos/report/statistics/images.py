"""Paired comparisons of two arms on the same test images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.contingency_tables import mcnemar

DRAWS = 1_000
BLOCK = 100  # resamples at a time, so that memory stays flat


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Return McNemar's two-sided p that two networks are right equally often.

    Exact binomial below 25 discordant images, else chi-squared with continuity correction.

    Args:
        only_first: images that only the first network gets right.
        only_second: images that only the second network gets right.
    """
    discordant = only_first + only_second
    if discordant == 0:
        return 1.0
    return float(mcnemar([[0, only_first], [only_second, 0]], exact=discordant < 25, correction=True).pvalue)


def image_bootstrap(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean accuracy difference under a two-level bootstrap.

    Seeds and images are drawn with replacement, independently, 1,000 times from a fixed generator, so the interval
    holds both the variance of training and that of the test set. With few seeds the seed level is too narrow, as every
    bootstrap of few units is; the t-interval over seeds stays the first thing to read.

    Args:
        first: correctness (S seeds, N images) of one arm.
        second: the same of the other arm, for the same seeds and images.
    """
    difference = first.astype(np.float32) - second.astype(np.float32)  # S N
    seeds, images = difference.shape
    generator = np.random.default_rng(0)
    means = np.empty(DRAWS)
    for start in range(0, DRAWS, BLOCK):
        drawn_images = generator.integers(images, size=(BLOCK, images))
        weights = np.stack([np.bincount(row, minlength=images) for row in drawn_images]).astype(np.float32)  # BLOCK N
        per_seed = weights @ difference.T / images  # BLOCK S
        drawn_seeds = generator.integers(seeds, size=(BLOCK, seeds))
        means[start : start + BLOCK] = np.take_along_axis(per_seed, drawn_seeds, axis=1).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)
