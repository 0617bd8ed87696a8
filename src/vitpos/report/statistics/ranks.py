"""Comparison of arms over several data sets by ranks (Demsar 2006, JMLR 7, 1-30)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


@dataclass(frozen=True)
class Ranking:
    """Average ranks of k arms over N data sets; rank 1 is the highest score, ties share their mean rank.

    Attributes:
        ranks: average rank per arm.
        critical_difference: two arms differ at the 5 % level (Nemenyi) if their average ranks are further apart.
        friedman_p: p that all arms rank alike, by Iman and Davenport's F; None where it is undefined.
    """

    ranks: list[float]
    critical_difference: float
    friedman_p: float | None


def iman_davenport(ranks: Sequence[float], sets: int) -> tuple[float, float | None]:
    """Return Friedman's chi-squared and Iman and Davenport's F of average ranks over N data sets.

    chi2 = 12 N / (k (k + 1)) (sum of R^2 - k (k + 1)^2 / 4); F = (N - 1) chi2 / (N (k - 1) - chi2), None where all data
    sets agree and F is infinite.
    """
    arms = len(ranks)
    chi2 = 12 * sets / (arms * (arms + 1)) * (sum(rank**2 for rank in ranks) - arms * (arms + 1) ** 2 / 4)
    rest = sets * (arms - 1) - chi2
    return chi2, (sets - 1) * chi2 / rest if rest > 1e-9 else None


def rank_arms(scores: ArrayLike) -> Ranking:
    """Rank arms by scores (N data sets, k arms), larger is better.

    Critical difference q * sqrt(k (k + 1) / (6 N)), with q the upper 5 % point of the studentised range over sqrt(2).

    Raises:
        ValueError: fewer than two data sets or two arms, or a missing score.
    """
    table = np.asarray(scores, dtype=float)
    sets, arms = table.shape
    if sets < 2 or arms < 2 or not np.isfinite(table).all():
        raise ValueError(f"scores of shape {table.shape}: need at least 2 data sets and 2 arms without a gap")
    average = stats.rankdata(-table, axis=1).mean(axis=0)
    q = float(stats.studentized_range.ppf(0.95, arms, np.inf)) / math.sqrt(2)
    _, f = iman_davenport([float(rank) for rank in average], sets)
    friedman_p = None if f is None else float(stats.f.sf(f, arms - 1, (arms - 1) * (sets - 1)))
    return Ranking([float(rank) for rank in average], q * math.sqrt(arms * (arms + 1) / (6 * sets)), friedman_p)
