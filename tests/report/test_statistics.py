"""Each statistic against a hand calculation or an example published with R or by its authors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import ttost_paired

from vitpos.report.statistics import (
    detection_power,
    equivalence_p,
    equivalence_power,
    holm,
    image_bootstrap,
    mcnemar_p,
    paired_t,
    rank_arms,
    sampling_half_width,
    seeds_needed,
    sign_flip_p,
    summarise,
)
from vitpos.report.statistics.intervals import half_width
from vitpos.report.statistics.ranks import iman_davenport

# R's data set `sleep`: extra hours of sleep of ten patients under two drugs.
SLEEP = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]) - np.array(
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
)


class TestSummary:
    def test_three_seeds_by_hand(self):
        # mean 0.92, sd 0.02, t_{0.975, 2} = 4.302653: 4.302653 * 0.02 / sqrt(3) = 0.0496828
        summary = summarise([0.90, 0.92, 0.94])
        assert (summary.n, summary.low, summary.high) == (3, 0.90, 0.94)
        assert summary.mean == pytest.approx(0.92)
        assert summary.sd == pytest.approx(0.02)
        assert summary.ci95 == pytest.approx(0.0496828, abs=1e-7)

    def test_five_seeds_by_hand(self):
        # sd = sqrt(10 / 4) / 100, t_{0.975, 4} = 2.776445: 2.776445 * 0.01581139 / sqrt(5) = 0.0196324
        assert summarise([0.01, 0.02, 0.03, 0.04, 0.05]).ci95 == pytest.approx(0.0196324, abs=1e-7)

    def test_one_seed_has_no_interval(self):
        summary = summarise([0.5])
        assert (summary.n, summary.mean, summary.sd, summary.ci95) == (1, 0.5, None, None)

    def test_none_and_not_finite(self):
        assert summarise([]) is None
        with pytest.raises(ValueError, match="finite"):
            summarise([0.5, math.nan])

    @pytest.mark.parametrize(
        ("accuracy", "images", "points"),
        [(0.90, 10_000, 0.59), (0.65, 10_000, 0.93), (0.92, 10_000, 0.53), (0.64, 50_000, 0.42)],
    )
    def test_sampling_of_known_test_sets(self, accuracy, images, points):
        assert 100 * sampling_half_width(accuracy, images) == pytest.approx(points, abs=0.005)


class TestPaired:
    def test_r_sleep(self):
        """R's paired t.test of `sleep`: t = -4.0621, df = 9, p = 0.002833, interval -2.4598858 -0.7001142."""
        mean, sd = float(SLEEP.mean()), float(SLEEP.std(ddof=1))
        assert paired_t(mean, sd, 10) == pytest.approx(0.002833, abs=5e-7)
        width = half_width(sd, 10)
        assert (mean - width, mean + width) == pytest.approx((-2.4598858, -0.7001142), abs=1e-7)

    @pytest.mark.parametrize("margin", [0.5, 1.58, 3.0])
    def test_equivalence_is_statsmodels(self, margin):
        expected, *_ = ttost_paired(SLEEP, np.zeros(10), -margin, margin)
        assert equivalence_p(float(SLEEP.mean()), float(SLEEP.std(ddof=1)), 10, margin) == pytest.approx(expected)

    def test_equivalence_is_the_90_percent_interval(self):
        width = half_width(0.3, 5, 0.90)
        assert equivalence_p(0.1, 0.3, 5, 0.1 + width) == pytest.approx(0.05)

    def test_no_margin_no_tie(self):
        assert equivalence_p(0.0, 0.0, 5, 0.0) == 1.0

    def test_no_spread(self):
        assert paired_t(0.0, 0.0, 3) == 1.0
        assert paired_t(0.1, 0.0, 3) == 0.0
        assert equivalence_p(0.001, 0.0, 3, 0.005) == 0.0
        assert equivalence_p(0.01, 0.0, 3, 0.005) == 1.0

    def test_sign_flip_by_hand(self):
        assert sign_flip_p([1, 2, 3]) == 2 / 8  # only + + + and - - - reach |6|
        assert sign_flip_p([1, 2, -3]) == 1.0  # the sum is zero
        assert sign_flip_p([1, 1, 1, -1]) == 10 / 16  # |sum| >= 2 for all but the 6 balanced patterns
        assert sign_flip_p([0.1 + 0.2, -0.3]) == 1.0  # equal on paper

    def test_sign_flip_r_sleep(self):
        """All 1,024 patterns counted with exact whole numbers."""
        tenths = [round(10 * value) for value in SLEEP]
        count = sum(
            abs(sum(value if pattern >> bit & 1 else -value for bit, value in enumerate(tenths))) >= abs(sum(tenths))
            for pattern in range(1024)
        )
        assert sign_flip_p(SLEEP) == count / 1024

    def test_sign_flip_with_many_seeds_is_close_and_repeatable(self):
        data = np.random.default_rng(1).normal(0.3, 1, size=30)
        p = sign_flip_p(data)
        assert p == sign_flip_p(data)
        assert p == pytest.approx(stats.ttest_1samp(data, 0).pvalue, abs=0.02)
        assert sign_flip_p(data + 100) > 0

    def test_holm_is_r_p_adjust(self):
        # p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm"): 0.03 0.06 0.06 0.02
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
        assert holm([]) == []
        assert holm([0.6, 0.7]) == [1.0, 1.0]
        data = np.random.default_rng(0).random(19) ** 4
        assert holm(data) == pytest.approx(multipletests(data, method="holm")[1])


class TestPower:
    def test_dalgaard_paired_example(self):
        """Dalgaard, Introductory Statistics with R, 8.3: delta 10, sd 14.14214, power 0.85, paired: n = 19.96892."""
        assert seeds_needed(10, 10 * math.sqrt(2), margin=0.0, power=0.85) == 20
        assert detection_power(20, 10, 10 * math.sqrt(2)) == pytest.approx(0.85, abs=0.002)

    @pytest.mark.parametrize(("n", "effect"), [(2, 3.0), (3, 1.0), (5, 0.5), (40, 0.3)])
    def test_detection_is_statsmodels(self, n, effect):
        assert detection_power(n, effect, 1.0) == pytest.approx(TTestPower().power(effect, n, 0.05), abs=1e-5)

    def test_power_grows_with_seeds(self):
        """Everywhere, also where scipy's noncentral t distribution is undefined."""
        for difference, sd, alpha in ((0.0054, 0.0049, 0.05 / 18), (0.005376, 0.004917, 0.05 / 22)):
            powers = [detection_power(n, difference, sd, alpha) for n in (2, 4, 8, 16, 17, 32, 64, 500, 1000, 10_000)]
            assert powers == sorted(powers)
            assert powers[-1] == pytest.approx(1.0)
            assert 16 <= seeds_needed(difference, sd, 0.005, family=18) <= 18

    def test_seeds_needed_is_the_smallest(self):
        for difference, sd in ((1.0, 1.0), (0.8, 2.0), (0.1, 0.5), (0.3, 0.5)):
            n = seeds_needed(difference, sd, margin=0.5)
            best = [
                max(detection_power(m, difference, sd), equivalence_power(m, difference, sd, 0.5)) for m in (n - 1, n)
            ]
            assert best[0] < 0.8 <= best[1]

    def test_seeds_needed_for_one_standard_deviation(self):
        """power.t.test(power = 0.8, delta = 1, sd = 1, type = "paired"): n = 9.94, so 10."""
        assert seeds_needed(1.0, 1.0, margin=0.0) == 10

    def test_family_needs_more(self):
        assert seeds_needed(1.0, 1.0, 0.0, family=7) > seeds_needed(1.0, 1.0, 0.0)

    def test_no_number_where_seeds_do_not_help(self):
        assert seeds_needed(1e-4, 1.0, margin=0.0) is None
        assert seeds_needed(0.0, 1.0, margin=0.5) is not None

    def test_equivalence_power_by_simulation(self):
        generator = np.random.default_rng(0)
        data = generator.normal(0.1, 0.5, size=(20_000, 16))
        error, critical = data.std(axis=1, ddof=1) / 4, stats.t.ppf(0.95, 15)
        hits = (data.mean(axis=1) + critical * error < 0.5) & (data.mean(axis=1) - critical * error > -0.5)
        assert equivalence_power(16, 0.1, 0.5, 0.5) == pytest.approx(hits.mean(), abs=0.01)
        assert equivalence_power(16, 0.6, 0.5, 0.5) == 0.0


class TestImages:
    def test_agresti_approval_ratings(self):
        """Agresti 1990, p. 350, the example of R's mcnemar.test: 150 and 86 discordant pairs."""
        chi_squared = (abs(150 - 86) - 1) ** 2 / (150 + 86)  # 16.818, one degree of freedom
        assert mcnemar_p(150, 86) == pytest.approx(math.erfc(math.sqrt(chi_squared / 2)))
        assert mcnemar_p(150, 86) == mcnemar_p(86, 150)

    def test_exact_by_hand(self):
        # binomial: 2 * (1 + 10 + 45) / 1024 for 2 against 8
        assert mcnemar_p(2, 8) == pytest.approx(2 * 56 / 1024)
        assert mcnemar_p(0, 0) == 1.0

    def test_statsmodels(self):
        for counts in ((3, 9), (12, 12), (12, 13), (40, 10)):
            expected = mcnemar([[0, counts[0]], [counts[1], 0]], exact=sum(counts) < 25).pvalue
            assert mcnemar_p(*counts) == pytest.approx(expected)

    def test_bootstrap_of_many_seeds_and_images(self):
        """Owen 2007 on two crossed levels: seed variance / S + image variance / N + residual variance / (S N)."""
        generator = np.random.default_rng(0)
        seeds, images = 60, 2000
        rate = np.clip(0.7 + generator.normal(0, 0.02, size=(seeds, 1)), 0, 1)
        first = generator.random((seeds, images)) < rate
        second = generator.random((seeds, images)) < 0.6
        difference = first.astype(np.int8) - second
        low, high = image_bootstrap({"arm": difference})["arm"]
        by_seed, by_image = difference.mean(axis=1, keepdims=True), difference.mean(axis=0, keepdims=True)
        residual = difference - by_seed - by_image + difference.mean()
        variance = by_seed.var() / seeds + by_image.var() / images + residual.var() / (seeds * images)
        assert (low + high) / 2 == pytest.approx(difference.mean(), abs=0.003)
        assert high - low == pytest.approx(2 * 1.96 * math.sqrt(variance), rel=0.08)

    def test_bootstrap_of_an_arm_does_not_depend_on_the_others(self):
        generator = np.random.default_rng(0)
        arms = {f"arm{n}": generator.integers(-1, 2, size=(n, 100 * (n % 2 + 1)), dtype=np.int8) for n in range(2, 6)}
        together = image_bootstrap(arms)
        assert all(image_bootstrap({arm: found})[arm] == together[arm] for arm, found in arms.items())

    def test_bootstrap_of_equal_arms_is_zero(self):
        assert image_bootstrap({"arm": np.zeros((3, 50), dtype=np.int8)}) == {"arm": (0.0, 0.0)}


class TestRanks:
    def test_demsar_2006(self):
        """The paper's example of 4 algorithms on 14 data sets: chi-squared = 9.28, F = 3.69, CD = 1.25."""
        chi2, f = iman_davenport([3.143, 2.000, 2.893, 1.964], 14)
        assert (chi2, f) == pytest.approx((9.28, 3.69), abs=0.01)
        assert rank_arms(np.zeros((14, 4))).critical_difference == pytest.approx(1.25, abs=0.005)

    @pytest.mark.parametrize(("arms", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (8, 3.031), (10, 3.164)])
    def test_critical_values_of_the_paper(self, arms, q):
        expected = q * math.sqrt(arms * (arms + 1) / (6 * 5))
        assert rank_arms(np.zeros((5, arms))).critical_difference == pytest.approx(expected, rel=1e-3)

    def test_friedman_is_scipy(self):
        scores = np.random.default_rng(0).normal(size=(9, 4))
        ranking = rank_arms(scores)
        assert ranking.ranks == pytest.approx(stats.rankdata(-scores, axis=1).mean(axis=0))
        assert iman_davenport(ranking.ranks, 9)[0] == pytest.approx(stats.friedmanchisquare(*scores.T).statistic)

    def test_ties_share_their_rank(self):
        assert rank_arms([[1, 2, 2], [1, 2, 2]]).ranks == [3.0, 1.5, 1.5]

    def test_refused(self):
        with pytest.raises(ValueError, match="at least 2"):
            rank_arms([[1.0, 2.0]])
        with pytest.raises(ValueError, match="gap"):
            rank_arms([[1.0, math.nan], [1.0, 2.0]])

    def test_the_same_order_everywhere_has_no_f(self):
        assert rank_arms([[1, 2], [1, 2]]).friedman_p is None
