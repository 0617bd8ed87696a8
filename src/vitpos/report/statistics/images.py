"""Paired comparisons of two arms on the same test images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import stats

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
    if discordant < 25:
        return float(min(1.0, 2 * stats.binom.cdf(min(only_first, only_second), discordant, 0.5)))
    return float(stats.chi2.sf((abs(only_first - only_second) - 1) ** 2 / discordant, 1))


def image_bootstrap(differences: Mapping[str, NDArray[np.int8]]) -> dict[str, tuple[float, float]]:
    """Return the 95 % percentile interval of the mean accuracy difference of every arm under a two-level bootstrap.

    Seeds and images are drawn with replacement, independently, 1,000 times from a fixed generator, so the interval
    holds both the variance of training and that of the test set. With few seeds the seed level is too narrow, as every
    bootstrap of few units is; the t-interval over seeds stays the first thing to read. Arms with as many images share
    the drawn images, which costs once.

    Args:
        differences: arm -> (S seeds, N images), 1 where only the arm is right, -1 where only the reference is, else 0.
    """
    found = {}
    for images in sorted({difference.shape[1] for difference in differences.values()}):
        group = {arm: difference for arm, difference in differences.items() if difference.shape[1] == images}
        generator = np.random.default_rng(0)
        means: dict[str, list[NDArray[np.float64]]] = {arm: [] for arm in group}
        for _ in range(DRAWS // BLOCK):
            drawn = generator.integers(images, size=(BLOCK, images))
            weights = np.stack([np.bincount(row, minlength=images) for row in drawn]).astype(np.float32)  # BLOCK N
            for arm, difference in group.items():
                seeds = len(difference)
                per_seed = weights @ difference.T.astype(np.float32) / images  # BLOCK S
                places = np.random.default_rng((seeds, len(means[arm]))).integers(seeds, size=(BLOCK, seeds))
                means[arm].append(np.take_along_axis(per_seed, places, axis=1).mean(axis=1, dtype=np.float64))
        for arm, parts in means.items():
            low, high = np.percentile(np.concatenate(parts), (2.5, 97.5))
            found[arm] = (float(low), float(high))
    return found
