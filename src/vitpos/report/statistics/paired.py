"""Tests on differences d_1 .. d_n of two arms, paired by training seed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

EXACT_UP_TO = 14  # 2^14 sign patterns
DRAWS = 10_000  # beyond


def paired_t(mean: float, sd: float, n: int) -> float:
    """Return the two-sided p of a mean difference of zero: t = mean / (sd / sqrt(n)) on n - 1 degrees of freedom.

    Without any spread the limit is returned: 1 for a mean of exactly zero, 0 for another mean.
    """
    if sd == 0:
        return float(mean == 0)
    return float(2 * stats.t.sf(abs(mean) * math.sqrt(n) / sd, n - 1))


def equivalence_p(mean: float, sd: float, n: int, margin: float) -> float:
    """Return the p of two one-sided tests: the larger of P(true <= -margin) and P(true >= margin).

    A p below 0.05 is the same statement as a 90 % interval that lies wholly inside (-margin, margin).
    """
    if margin <= 0:
        return 1.0
    if sd == 0:
        return float(abs(mean) >= margin)
    error = sd / math.sqrt(n)
    return float(max(stats.t.sf((mean + margin) / error, n - 1), stats.t.cdf((mean - margin) / error, n - 1)))


def sign_flip_p(differences: Sequence[float]) -> float:
    """Return the two-sided sign-flip permutation p of a mean difference of zero.

    Under the null hypothesis each difference is as likely as its negative. All 2^n sign patterns up to n = 14, else
    10,000 random ones from a fixed generator. The smallest possible value is 2 / 2^n: 0.25 for three seeds, 0.0625 for
    five.
    """
    data = np.asarray(differences, dtype=float)
    n = len(data)
    if n <= EXACT_UP_TO:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        extra = 0
    else:
        signs = 2 * np.random.default_rng(0).integers(2, size=(DRAWS, n), dtype=np.int8) - 1
        extra = 1  # the observed pattern itself, so that p is never zero
    observed = abs(data.sum())
    # Sums that are equal on paper differ in the last bits.
    as_extreme = np.abs(signs @ data) >= observed - 1e-12 * max(np.abs(data).sum(), 1e-300)
    return float((as_extreme.sum() + extra) / (len(signs) + extra))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p-values of one family, in the order given.

    Equal to statsmodels' `multipletests`, which collects garbage on every call and so takes a tenth of a second each.
    """
    data = np.asarray(p_values, dtype=float)
    order = np.argsort(data, kind="stable")
    # The i-th smallest of m is multiplied by m - i, and none may fall below its predecessor.
    steps = np.maximum.accumulate(data[order] * np.arange(len(data), 0, -1))
    adjusted = np.empty_like(data)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(p) for p in adjusted]
