"""How many seeds a question needs."""

from __future__ import annotations

import math

from scipy import stats

MOST = 10_000


def detection_power(n: int, difference: float, sd: float, alpha: float = 0.05) -> float:
    """Return the power of the two-sided paired t-test on n seeds, by the noncentral t distribution.

    Args:
        n: seeds, at least 2.
        difference: true mean difference.
        sd: true standard deviation of the paired differences, positive.
        alpha: level of the test.
    """
    critical = stats.t.ppf(1 - alpha / 2, n - 1)
    shift = abs(difference) * math.sqrt(n) / sd
    return float(stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift))


def equivalence_power(n: int, difference: float, sd: float, margin: float, alpha: float = 0.05) -> float:
    """Return the power of the two one-sided tests on n seeds, by the usual noncentral-t approximation."""
    if abs(difference) >= margin:
        return 0.0
    error = sd / math.sqrt(n)
    critical = stats.t.ppf(1 - alpha, n - 1)
    below = stats.nct.cdf(-critical, n - 1, (difference - margin) / error)
    above = stats.nct.cdf(critical, n - 1, (difference + margin) / error)
    return float(max(below - above, 0.0))


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
