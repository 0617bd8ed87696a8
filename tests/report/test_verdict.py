"""The verdict in words: each rule by hand, and its error rates over many simulated studies."""

from __future__ import annotations

import numpy as np
import pytest

from vitpos.report.statistics import detection_power, seeds_needed
from vitpos.report.verdict import best_arms, compare_family

POINT = 0.01


def differences(*points: float) -> dict[int, float]:
    return {seed: value * POINT for seed, value in enumerate(points)}


def verdict(*points: float, margin: float = 0.5, test_images: int | None = None) -> str:
    return compare_family({"arm": differences(*points)}, margin * POINT, test_images)["arm"].verdict


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ((1.9, 2.0, 2.1), "better"),
        ((-1.9, -2.0, -2.1), "worse"),
        ((0.05, -0.05, 0.0), "tied"),
        ((0.0, 0.0, 0.0), "tied"),
        ((0.9, -0.4, 0.5), "not resolved"),
        ((2.0,), "not resolved"),
        ((0.2, 0.21, 0.19), "tied"),  # surely not zero, as surely inside the margin
    ],
)
def test_rules(points, expected):
    assert verdict(*points) == expected


def test_a_detected_tie_says_so():
    comparison = compare_family({"arm": differences(0.2, 0.21, 0.19)}, 0.5 * POINT)["arm"]
    assert comparison.verdict == "tied"
    assert comparison.detected


def test_margin_zero_switches_ties_off():
    assert verdict(0.2, 0.21, 0.19, margin=0) == "better"
    assert verdict(0.0, 0.0, 0.0, margin=0) == "not resolved"


def test_numbers_by_hand():
    comparison = compare_family({"arm": differences(1, 2, 3)}, 0.5 * POINT)["arm"]
    assert comparison.n == 3
    assert comparison.mean == pytest.approx(0.02)
    assert comparison.ci95 == pytest.approx(4.302653 * 0.01 / 3**0.5, rel=1e-6)
    assert comparison.p == pytest.approx(0.0741799, abs=1e-7)  # t = 2 sqrt(3) = 3.4641 on 2 degrees of freedom
    assert comparison.p_flip == 0.25


def test_one_seed_has_neither_interval_nor_p():
    comparison = compare_family({"arm": differences(5)}, 0.5 * POINT)["arm"]
    assert (comparison.ci95, comparison.p, comparison.p_holm, comparison.seeds_needed) == (None, None, None, None)


def test_holm_over_the_family():
    family = {"a": differences(1, 2, 3), "b": differences(0.9, 1.0, 1.1), "c": differences(5)}
    result = compare_family(family, 0.0)
    assert result["b"].p_holm == pytest.approx(2 * result["b"].p)
    assert result["a"].p_holm == pytest.approx(result["a"].p)  # the larger of two; one seed makes no test
    assert result["a"].family == 2


def test_rounding_of_the_test_set_is_a_floor_of_the_spread():
    """Two seeds that happen to differ by the same number of 360 images prove nothing."""
    assert verdict(3 / 3.6, 3 / 3.6, margin=0, test_images=None) == "better"
    assert verdict(3 / 3.6, 3 / 3.6, margin=0, test_images=360) == "not resolved"


def test_seeds_needed_only_where_it_is_asked():
    family = {"open": differences(0.9, -0.4, 0.5), "clear": differences(1.9, 2.0, 2.1)}
    result = compare_family(family, 0.5 * POINT)
    assert result["clear"].seeds_needed is None
    comparison = result["open"]
    assert comparison.seeds_needed == seeds_needed(comparison.mean, comparison.sd, 0.5 * POINT, family=2)
    assert comparison.seeds_needed > 3


@pytest.mark.parametrize(("arms", "seeds"), [(2, 2), (2, 5), (8, 3), (8, 5)])
def test_equal_arms_are_seldom_called_different(arms, seeds):
    """1,000 studies of equal arms: any false "better" or "worse" in at most 5 % of them; rounding to 360 images."""
    generator = np.random.default_rng(arms + seeds)
    wrong = 0
    for _ in range(1000):
        accuracy = np.round(generator.normal(0.93, 0.01, size=(arms, seeds)) * 360) / 360
        family = {f"arm{arm}": dict(enumerate(accuracy[arm] - accuracy[0])) for arm in range(1, arms)}
        verdicts = [comparison.verdict for comparison in compare_family(family, 0.005, 360).values()]
        wrong += "better" in verdicts or "worse" in verdicts
    assert wrong <= 50 + 2 * (1000 * 0.05 * 0.95) ** 0.5


def test_a_true_point_is_found_at_the_promised_power():
    """Spread 0.8 point between paired runs, true difference 1 point: found in 80 % of 1,000 studies."""
    n = seeds_needed(0.01, 0.008, margin=0.005)
    generator = np.random.default_rng(0)
    found = 0
    for _ in range(1000):
        family = {"arm": dict(enumerate(generator.normal(0.01, 0.008, size=n)))}
        found += compare_family(family, 0.005)["arm"].verdict == "better"
    power = detection_power(n, 0.01, 0.008)
    assert power >= 0.8
    assert found / 1000 == pytest.approx(power, abs=0.03)


def test_ties_are_seldom_false():
    """A true difference of exactly the margin is called tied in at most 5 % of the studies."""
    generator = np.random.default_rng(0)
    tied = 0
    for _ in range(1000):
        tied += (
            compare_family({"arm": dict(enumerate(generator.normal(0.005, 0.002, size=5)))}, 0.005)["arm"].verdict
            == "tied"
        )
    assert tied <= 50 + 2 * (1000 * 0.05 * 0.95) ** 0.5


class TestBest:
    def test_the_clear_winner(self):
        scores = {"a": differences(90, 91, 92), "b": differences(80, 81.1, 82), "c": differences(70, 71, 72.1)}
        assert best_arms(scores) == {"a"}

    def test_ties_are_all_marked(self):
        scores = {"a": differences(90, 91, 92), "b": differences(91, 90, 92), "c": differences(70, 71, 72)}
        assert best_arms(scores) == {"a", "b"}

    def test_one_seed_is_never_marked(self):
        assert best_arms({"a": differences(99), "b": differences(90, 91), "c": differences(91, 90)}) == {"b", "c"}
        assert best_arms({"a": differences(99)}) == frozenset()

    def test_equal_arms_are_seldom_left_out(self):
        generator = np.random.default_rng(0)
        left_out = 0
        for _ in range(200):
            scores = {f"arm{arm}": dict(enumerate(generator.normal(0.9, 0.01, size=3))) for arm in range(5)}
            left_out += len(best_arms(scores)) < 5
        assert left_out <= 10 + 2 * (200 * 0.05 * 0.95) ** 0.5
