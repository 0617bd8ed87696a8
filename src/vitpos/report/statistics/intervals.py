"""One arm: the spread over training seeds, and apart from it the uncertainty of a finite test set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Summary:
    """Values of one arm over n seeds.

    Attributes:
        n: number of values.
        mean: arithmetic mean.
        sd: standard deviation with n - 1 in the denominator; None for n = 1.
        ci95: half-width of the 95 % t-interval of the mean; None for n = 1, where no interval exists.
        low: smallest value.
        high: largest value.
    """

    n: int
    mean: float
    sd: float | None
    ci95: float | None
    low: float
    high: float


def half_width(sd: float, n: int, confidence: float = 0.95) -> float:
    """Return t_{(1 + confidence) / 2, n - 1} * sd / sqrt(n), the half-width of the interval of a mean of n >= 2."""
    return float(stats.t.ppf((1 + confidence) / 2, n - 1)) * sd / math.sqrt(n)


def summarise(values: Sequence[float]) -> Summary | None:
    """Summarise the values of an arm, or return None where there is none.

    Raises:
        ValueError: a value that is not finite; a failed run must be left out by name, not averaged.
    """
    if not values:
        return None
    data = np.asarray(values, dtype=float)
    if not np.isfinite(data).all():
        raise ValueError(f"values {list(values)}: must all be finite")
    n = len(data)
    sd = float(data.std(ddof=1)) if n > 1 else None
    ci95 = half_width(sd, n) if sd is not None else None
    return Summary(n, float(data.mean()), sd, ci95, float(data.min()), float(data.max()))


def sampling_half_width(accuracy: float, images: int) -> float:
    """Return the 95 % half-width 1.96 * sqrt(p (1 - p) / N) of one network's accuracy p on N test images.

    It says how far the accuracy of a fixed network would move on another test set of that size. It is not a spread over
    seeds, does not shrink with more seeds, and is far smaller for a difference on the same images.
    """
    return float(stats.norm.ppf(0.975)) * math.sqrt(accuracy * (1 - accuracy) / images)
