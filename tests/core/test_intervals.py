import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from headeval.core.intervals import (
    Interval,
    clopper_pearson,
    effective_size,
    lower_bound,
    nonempty,
    upper_bound,
    wilson,
)

ORACLE = 1e-11  # scipy finds the exact bounds by a root search to about 1e-12
COUNTS = [(0, 1), (1, 1), (0, 12), (12, 12), (1, 12), (7, 12), (199, 1000), (999, 1000), (1, 10**6), (10**6, 10**6)]


@pytest.mark.parametrize(("successes", "n"), COUNTS)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(("interval", "name"), [(wilson, "wilson"), (clopper_pearson, "exact")])
def test_intervals_of_counts_agree_with_scipy(interval, name, successes, n, confidence):
    expected = stats.binomtest(successes, n).proportion_ci(confidence, name)
    bounds = interval(successes, n, confidence=confidence)
    assert (bounds.lower, bounds.upper) == pytest.approx((expected.low, expected.high), rel=1e-7, abs=ORACLE)
    assert bounds.confidence == confidence


@pytest.mark.parametrize(("successes", "n"), [(3, 11), (1, 4), (17, 18)])
def test_exact_bounds_leave_exactly_the_tail(successes, n):
    """In fractions: at the bounds an outcome as extreme has probability 5 %."""

    def at_most(k: int, p: float) -> Fraction:
        q = Fraction(p)
        return sum((math.comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(k + 1)), Fraction(0))

    above = upper_bound(successes, n, confidence=0.95)
    below = lower_bound(successes, n, confidence=0.95)
    assert float(at_most(successes, above)) == pytest.approx(0.05, rel=1e-11)
    assert float(1 - at_most(successes - 1, below)) == pytest.approx(0.05, rel=1e-11)


@pytest.mark.parametrize("n", [1, 12, 3000, 0.4, 7.5, 1e9])
def test_all_or_none_ends_exactly_at_the_edge_and_never_is_a_point(n):
    assert wilson(0, n).lower == clopper_pearson(0, n).lower == 0.0
    assert wilson(n, n).upper == clopper_pearson(n, n).upper == 1.0
    assert wilson(n, n).lower < 1
    # 1 − r^n = confidence solved for r; for any real n, as the beta distribution has it.
    rate = -math.expm1(math.log(0.025) / n)
    assert clopper_pearson(0, n).upper == pytest.approx(rate, rel=1e-12)
    assert 1 - clopper_pearson(n, n).lower == pytest.approx(rate, rel=1e-6)
    assert upper_bound(0, n, confidence=0.9) == pytest.approx(-math.expm1(math.log(0.1) / n), rel=1e-12)
    assert (lower_bound(0, n, confidence=0.9), upper_bound(n, n, confidence=0.9)) == (0.0, 1.0)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
def test_wilson_ends_exactly_at_one_whatever_the_rounding(confidence):
    assert all(wilson(n, n, confidence=confidence).upper == 1.0 for n in [*range(1, 300), 0.1, 7.3, 1e-9])
    assert all(wilson(0, n, confidence=confidence).lower == 0.0 for n in [*range(1, 300), 0.1, 7.3, 1e-9])


@pytest.mark.parametrize(
    ("successes", "n", "confidence"),
    [(0.5379216797180149, 0.5379216797180154, 0.99), (3.2065283032906096, 3.20652830329061, 0.8)],
)
def test_next_to_no_failure_rounds_to_one_and_not_beyond(successes, n, confidence):
    """Found at random among sizes a few floats above the successes: the quotient is 1 + 2e-16 before it is cut."""
    assert wilson(successes, n, confidence=confidence).upper == 1.0


def test_every_interval_is_called_by_its_authors():
    assert (wilson(1, 2).method, clopper_pearson(1, 2).method) == ("Wilson", "Clopper-Pearson")


@pytest.mark.parametrize(
    ("at", "lower", "upper"),
    [(0.75, 0.75 - 2.0**-53, 0.75 + 2.0**-53), (0.0, 0.0, 2.0**-1074), (1.0, 1 - 2.0**-53, 1.0)],
)
def test_a_point_becomes_the_floats_on_either_side(at, lower, upper):
    assert nonempty(at, at, 0.9, "any") == Interval(lower, upper, 0.9, "any")
    assert nonempty(0.25, 0.5, 0.9, "any") == Interval(0.25, 0.5, 0.9, "any")


@pytest.mark.parametrize("successes", [1, 1e-5])
def test_a_rate_near_zero_keeps_its_digits(successes):
    """The smaller root of (n + z²) r² − (2s + z²) r + s²/n = 0, with forty digits."""
    n = 10**12
    with mpmath.workdps(40):
        z2, s = 2 * mpmath.erfinv(mpmath.mpf("0.95")) ** 2, mpmath.mpf(successes)
        root = mpmath.sqrt(z2) * mpmath.sqrt(s * (n - s) / n + z2 / 4)
        lower, upper = ((s + z2 / 2 + sign * root) / (n + z2) for sign in (-1, 1))
    bounds = wilson(successes, n)
    assert bounds.lower == pytest.approx(float(lower), rel=1e-12, abs=0)
    assert bounds.upper == pytest.approx(float(upper), rel=1e-12, abs=0)


@given(st.floats(1e-9, 1e12), st.floats(0, 1), st.floats(1e-6, 1 - 1e-9))
def test_every_interval_has_width_and_holds_the_rate(n, rate, confidence):
    successes = min(rate * n, n)
    for bounds in (wilson(successes, n, confidence=confidence), clopper_pearson(successes, n, confidence=confidence)):
        assert 0 <= bounds.lower < bounds.upper <= 1
        assert bounds.lower <= successes / n + 1e-12
        assert bounds.upper >= successes / n - 1e-12


@given(st.floats(0.5, 1e6), st.floats(0, 1), st.floats(0.01, 0.99))
def test_failures_are_mirrored_successes(n, rate, confidence):
    successes = round(rate * n) * 1.0 if round(rate * n) <= n else 0.0
    for interval in (wilson, clopper_pearson):
        one, other = interval(successes, n, confidence=confidence), interval(n - successes, n, confidence=confidence)
        assert (one.lower, one.upper) == pytest.approx((1 - other.upper, 1 - other.lower), abs=1e-11)


@pytest.mark.parametrize("confidence", [1e-300, 1 - 1e-16])
@pytest.mark.parametrize(("successes", "n"), [(3, 7), (0, 1e-200), (1e-300, 1e-290), (5e14, 1e15)])
def test_extremes_of_confidence_and_size_still_give_intervals(successes, n, confidence):
    for interval in (wilson, clopper_pearson):
        bounds = interval(successes, n, confidence=confidence)
        assert 0 <= bounds.lower < bounds.upper <= 1


@pytest.mark.parametrize(
    ("successes", "n", "confidence"),
    [
        *[(-1, 5, 0.9), (6, 5, 0.9), (0, 0, 0.9), (1, -3, 0.9), (math.nan, 5, 0.9), (1, math.inf, 0.9)],
        *[(1, 5, 0.0), (1, 5, 1.0), (1, 5, 95), ("1", 5, 0.9), (1, 5, True)],
    ],
)
def test_impossible_counts_and_confidences_are_refused(successes, n, confidence):
    for interval in (wilson, clopper_pearson, upper_bound, lower_bound):
        with pytest.raises(ValueError, match="must"):
            interval(successes, n, confidence=confidence)


def test_plain_rows_are_their_own_number():
    values = [0, 1, 1, 0, 1]
    assert effective_size(values) == 5
    assert effective_size(values, weights=[2.5] * 5) == 5
    assert effective_size(values, groups=list("abcde")) == 5
    assert effective_size([1]) == 1


def test_weights_without_a_view_cost_what_kish_says():
    """Weights unrelated to the values: Σw²/(Σw)², here with equal weights in either value."""
    weights = np.array([1, 1, 1, 3, 3, 3] * 50)
    values = np.array([0, 1] * 150)
    kish = weights.sum() ** 2 / (weights**2).sum()
    assert effective_size(values, weights=weights) == pytest.approx(kish, rel=1e-2)
    assert effective_size(np.ones(300), weights=weights) == pytest.approx(kish)


def test_the_size_is_never_believed_above_rows_or_kish():
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(2, 40))
        values, weights, groups = rng.integers(0, 2, n), rng.random(n) + 0.01, rng.integers(0, n, n)
        kish = weights.sum() ** 2 / (weights**2).sum()
        assert 1 <= effective_size(values, groups=groups) <= n
        assert 1 <= effective_size(values, weights=weights, groups=groups) <= kish * (1 + 1e-12)
    # Every group holds one of each: the sample says the mean cannot vary at all.
    assert effective_size([0, 1] * 20, groups=np.repeat(np.arange(20), 2)) <= 40


def test_equal_rows_in_a_group_count_once():
    once = np.array([0, 1] * 40)
    assert effective_size(np.repeat(once, 5), groups=np.repeat(np.arange(80), 5)) == pytest.approx(80, rel=0.02)


def test_the_linearised_variance_is_that_of_the_ratio_of_group_sums():
    """Many groups hold the value: n/deff, by the textbook formula of the ratio estimator written out."""
    rng = np.random.default_rng(4)
    groups = rng.integers(0, 400, 2000)
    values = (rng.random(2000) < rng.beta(2, 2, 400)[groups]).astype(int)
    weights = rng.random(2000) + 0.5
    mean = (weights * values).sum() / weights.sum()
    totals = [(weights * (values - mean))[groups == g].sum() / weights.sum() for g in np.unique(groups)]
    variance = len(totals) / (len(totals) - 1) * sum(t * t for t in totals)
    plain = mean * (1 - mean) / variance * 2000 / 1999
    hits = [(weights * values)[groups == g].sum() for g in np.unique(groups)]
    carriers = sum(hits) ** 2 / sum(h * h for h in hits) if mean <= 0.5 else None
    if carriers is None:
        misses = [(weights * (1 - values))[groups == g].sum() for g in np.unique(groups)]
        carriers = sum(misses) ** 2 / sum(m * m for m in misses)
    shrink = (stats.norm.ppf(0.975) / stats.t.ppf(0.975, carriers - 1)) ** 2
    assert effective_size(values, weights=weights, groups=groups) == pytest.approx(plain * shrink, rel=1e-9)


def test_groups_that_hold_one_of_each_are_as_sure_as_their_number_allows():
    """Their means do not vary at all: 32 rows, shrunk by Student's t of the 16 groups that hold the value."""
    expected = 32 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 15)) ** 2
    assert effective_size([0, 1] * 16, groups=np.repeat(np.arange(16), 2)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("scale", [2.0**-800, 2.0**800])
def test_the_scale_of_the_weights_changes_nothing(scale):
    values, groups, weights = [0, 1, 1, 0, 1], [1, 1, 2, 2, 3], np.array([1.0, 2.0, 1.0, 2.0, 3.0])
    expected = effective_size(values, weights=weights, groups=groups)
    assert effective_size(values, weights=weights * scale, groups=groups) == expected


def test_one_failure_is_no_better_news_than_none():
    """Ten groups of 100: the bound without a failure is that of ten; one failure must not make it 1000."""
    groups = np.repeat(np.arange(10), 100)
    none, one, many = (np.isin(np.arange(1000), bad).astype(int) for bad in ([], [5], list(range(5, 1000, 40))))
    assert effective_size(none, groups=groups) == 10
    assert effective_size(one, groups=groups) == pytest.approx(10)
    assert effective_size(many, groups=groups) > 500
    bounds = [
        upper_bound(v.mean() * s, s, confidence=0.95) for v in (none, one) for s in [effective_size(v, groups=groups)]
    ]
    assert bounds[1] >= bounds[0]


def test_one_group_is_one_row():
    assert effective_size([0, 1, 1, 0], groups=["a"] * 4) == 1
    assert effective_size([0, 1, 1, 0], groups=["a"] * 4, weights=[1, 2, 3, 4]) == 1


def test_rows_of_weight_zero_are_absent():
    values, groups = [0, 1, 1, 0, 1, 0, 1], [1, 1, 2, 2, 3, 4, 5]
    weights = [1, 2, 1, 2, 1, 0, 0]
    expected = effective_size(values[:5], weights=weights[:5], groups=groups[:5])
    assert effective_size(values, weights=weights, groups=groups) == expected


def test_row_order_does_not_change_a_bit():
    rng = np.random.default_rng(5)
    values, weights, groups = rng.integers(0, 2, 300), rng.random(300), rng.integers(0, 40, 300)
    sizes = set()
    for _ in range(20):
        order = rng.permutation(300)
        sizes.add(effective_size(values[order], weights=weights[order], groups=groups[order]))
    assert len(sizes) == 1


def coverage(draws: int, seed: int) -> tuple[float, float]:
    """Misses of the exact upper bound at 95 %: as if rows were independent, and with the effective size."""
    rng = np.random.default_rng(seed)
    groups, rate = np.repeat(np.arange(200), 20), 0.01
    missed = np.zeros(2)
    for _ in range(draws):
        values = (rng.random(4000) < rng.beta(rate * 1.5, (1 - rate) * 1.5, 200)[groups]).astype(int)
        sizes = np.array([4000, effective_size(values, groups=groups)])
        missed += [clopper_pearson(values.mean() * size, size).upper < rate for size in sizes]
    return tuple(missed / draws)


def test_bounds_with_the_effective_size_cover_where_naive_ones_do_not():
    """Rates that differ between groups (beta, correlation 0.4): misses of a 2.5 % side."""
    naive, honest = coverage(300, seed=6)
    assert naive > 0.2
    assert honest < 0.06  # 2.5 % and three standard errors of 300 draws


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([0, 2], {}, "labels must be integers from 0 to 1"),
        ([], {}, "at least one row"),
        ([0, 1], {"weights": [1, -1]}, "not be negative"),
        ([0, 1], {"weights": [0, 0]}, "not all zero"),
        ([0, 1], {"groups": [1]}, "groups must be 1-D of length 2"),
    ],
)
def test_impossible_values_are_refused(values, options, message):
    with pytest.raises(ValueError, match=message):
        effective_size(values, **options)
