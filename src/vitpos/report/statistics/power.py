"""How many seeds a question needs."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

MOST = 10_000
_NODES = 400


def detection_power(n: int, difference: float, sd: float, alpha: float = 0.05) -> float:
    """Return the power of the two-sided paired t-test on n seeds.

    Given the ratio s of the observed to the true spread, the test rejects with probability
    Phi(delta - c s) + Phi(-delta - c s), delta = |difference| sqrt(n) / sd, c the critical value of t; this is averaged
    over the distribution of s. The noncentral t distribution says the same, but scipy's is undefined in places.

    Args:
        n: seeds, at least 2.
        difference: true mean difference.
        sd: true standard deviation of the paired differences, positive.
        alpha: level of the test.
    """
    ratio, weight = _spread(n)
    reach = stats.t.ppf(1 - alpha / 2, n - 1) * ratio
    shift = abs(difference) * math.sqrt(n) / sd
    return float(weight @ (stats.norm.cdf(shift - reach) + stats.norm.cdf(-shift - reach)))


def equivalence_power(n: int, difference: float, sd: float, margin: float, alpha: float = 0.05) -> float:
    """Return the power of the two one-sided tests on n seeds.

    Given s they both reject with probability Phi((m - d) / e - c s) - Phi(-(m + d) / e + c s) where that is positive,
    e = sd / sqrt(n), c the critical value of the one-sided t-test; averaged as in `detection_power`.
    """
    if abs(difference) >= margin:
        return 0.0
    ratio, weight = _spread(n)
    error = sd / math.sqrt(n)
    reach = stats.t.ppf(1 - alpha, n - 1) * ratio
    inside = stats.norm.cdf((margin - difference) / error - reach) - stats.norm.cdf(
        reach - (margin + difference) / error
    )
    return float(weight @ np.maximum(inside, 0.0))


def seeds_needed(difference: float, sd: float, margin: float, family: int = 1, power: float = 0.8) -> int | None:
    """Return the fewest seeds with which a comparison like the one observed would be settled at the given power.

    Settled means: shown different from zero, or shown equivalent within the margin, whichever is cheaper, if the true
    mean and spread of the differences are the observed ones. The test of a difference runs at the level 0.05 / family,
    the hardest step of Holm's procedure, so that the promise holds for every member of the family.

    Returns:
        The number of seeds, or None above 10,000, where more seeds are no answer.
    """
    if sd == 0:
        return 2

    def settled(n: int) -> bool:
        return (
            detection_power(n, difference, sd, 0.05 / family) >= power
            or equivalence_power(n, difference, sd, margin) >= power
        )

    high = 2
    while not settled(high):
        if high >= MOST:
            return None
        high = min(2 * high, MOST)
    low = high // 2
    while high - low > 1:  # settled at high, not at low
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high


@functools.lru_cache(maxsize=4096)
def _spread(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of the ratio of observed to true spread of n values, sqrt(chi2_{n-1} / (n - 1))."""
    node, weight = np.polynomial.legendre.leggauss(_NODES)
    ratio = np.sqrt(stats.chi2.ppf((node + 1) / 2, n - 1) / (n - 1))
    return ratio, weight / 2
