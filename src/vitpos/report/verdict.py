"""From paired differences to a verdict in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vitpos.report.statistics import equivalence_p, holm, paired_t, seeds_needed, sign_flip_p
from vitpos.report.statistics.intervals import half_width

LEVEL = 0.05
BETTER, WORSE, TIED, NOT_RESOLVED = "better", "worse", "tied", "not resolved"


@dataclass(frozen=True)
class Comparison:
    """An arm against the reference, on the seeds that both have.

    Attributes:
        differences: (seed, arm minus reference) in fractions.
        mean: mean difference.
        sd: standard deviation used by the tests; None for one pair.
        ci95: half-width of the 95 % t-interval of the mean difference; None for one pair.
        p: two-sided paired t-test.
        p_holm: the same, adjusted over the family of all arms compared with this reference.
        p_equivalence: two one-sided tests within the margin.
        margin: half-width of the tie band, a fraction.
        family: number of comparisons adjusted together.
        verdict: better, worse, tied, not resolved.
    """

    differences: tuple[tuple[int, float], ...]
    mean: float
    sd: float | None
    ci95: float | None
    p: float | None
    p_holm: float | None
    p_equivalence: float | None
    margin: float
    family: int
    verdict: str

    @property
    def n(self) -> int:
        """Number of seeds that both arms have."""
        return len(self.differences)

    @cached_property
    def p_flip(self) -> float | None:
        """Two-sided sign-flip permutation test; None for one pair."""
        return sign_flip_p([value for _, value in self.differences]) if self.n > 1 else None

    @cached_property
    def seeds_needed(self) -> int | None:
        """Seeds that would settle a comparison that is not resolved, at 80 % power; None where unknown or needless."""
        if self.verdict != NOT_RESOLVED or self.sd is None:
            return None
        return seeds_needed(self.mean, self.sd, self.margin, self.family)

    @property
    def detected(self) -> bool:
        """Whether the difference is shown to be other than zero, be it inside the tie band."""
        return self.p_holm is not None and self.p_holm < LEVEL


def compare_family(
    family: Mapping[str, Mapping[int, float]], margin: float, test_images: int | None = None
) -> dict[str, Comparison]:
    """Compare every arm of a family with one reference.

    Rule, in this order: tied if the two one-sided tests put the difference inside the margin at the 5 % level, whether
    or not it also differs from zero; better or worse if Holm's adjusted paired t-test rejects zero at the 5 % level;
    else not resolved. Ties are judged one by one, claims of a difference as a family.

    Args:
        family: arm -> seed -> difference to the reference, a fraction.
        margin: half-width of the tie band, a fraction; 0 switches ties off.
        test_images: size of the test set. Accuracies are multiples of 1/N, so the rounding alone gives a difference a
            spread of 1 / (N sqrt(6)); a smaller observed spread is chance and is raised to it.
    """
    floor = 1 / (test_images * math.sqrt(6)) if test_images else 0.0
    pairs = {arm: tuple(sorted(by_seed.items())) for arm, by_seed in family.items() if by_seed}
    spread: dict[str, float] = {}
    for arm, differences in pairs.items():
        if len(differences) > 1:
            spread[arm] = max(float(np.std([value for _, value in differences], ddof=1)), floor)
    means = {arm: float(np.mean([value for _, value in differences])) for arm, differences in pairs.items()}
    raw = {arm: paired_t(means[arm], sd, len(pairs[arm])) for arm, sd in spread.items()}
    adjusted = dict(zip(raw, holm(list(raw.values())), strict=True))

    result = {}
    for arm, differences in pairs.items():
        n, mean, sd = len(differences), means[arm], spread.get(arm)
        equivalence = equivalence_p(mean, sd, n, margin) if sd is not None else None
        result[arm] = Comparison(
            differences=differences,
            mean=mean,
            sd=sd,
            ci95=half_width(sd, n) if sd is not None else None,
            p=raw.get(arm),
            p_holm=adjusted.get(arm),
            p_equivalence=equivalence,
            margin=margin,
            family=max(len(raw), 1),
            verdict=_verdict(mean, adjusted.get(arm), equivalence),
        )
    return result


def _verdict(mean: float, p_holm: float | None, p_equivalence: float | None) -> str:
    if p_holm is None or p_equivalence is None:
        return NOT_RESOLVED
    if p_equivalence < LEVEL:
        return TIED
    if p_holm < LEVEL:
        return BETTER if mean > 0 else WORSE
    return NOT_RESOLVED


def best_arms(scores: Mapping[str, Mapping[int, float]], test_images: int | None = None) -> frozenset[str]:
    """Return the arms that no other arm beats: the ones to mark as best, all of them.

    An arm is left out only if some arm is better than it by the paired t-test, Holm-adjusted over all pairs of arms.
    Arms with fewer than two seeds in common with another can't be ranked and are never marked.

    Args:
        scores: arm -> seed -> accuracy.
        test_images: as for `compare_family`.
    """
    arms = sorted(scores)
    family = {}
    for index, first in enumerate(arms):
        for second in arms[index + 1 :]:
            shared = scores[first].keys() & scores[second].keys()
            if len(shared) > 1:
                family[f"{first}\n{second}"] = {seed: scores[first][seed] - scores[second][seed] for seed in shared}
    ranked: set[str] = set()
    beaten: set[str] = set()
    for pair, comparison in compare_family(family, 0.0, test_images).items():
        first, second = pair.split("\n")
        ranked |= {first, second}
        if comparison.verdict in (BETTER, WORSE):
            beaten.add(second if comparison.verdict == BETTER else first)
    return frozenset(ranked - beaten)
