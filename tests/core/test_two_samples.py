"""Kolmogorov–Smirnov, the population stability index and the difference of two shares, against scipy and by hand."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from headeval.core.two_samples import ks_two_sample, population_stability_index, proportion_difference

# scipy counts paths in another order; both keep about 12 digits.
PATHS = 1e-9


def samples(seed: int, decimals: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 40, 2)
    a, b = rng.normal(size=n), rng.normal(rng.normal(), 1, size=m)
    return (a, b) if decimals is None else (a.round(decimals), b.round(decimals))


@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_ks_agrees_with_scipy_with_and_without_ties(decimals: int | None) -> None:
    for seed in range(60):
        a, b = samples(seed, decimals)
        ours, theirs = ks_two_sample(a, b), stats.ks_2samp(a, b, method="exact")
        assert ours.statistic == pytest.approx(theirs.statistic, abs=1e-14)
        assert ours.p_value == pytest.approx(theirs.pvalue, rel=PATHS)
        assert ours.method == "exact"


def test_ks_p_value_counts_every_arrangement() -> None:
    """Brute force: all ways to divide seven distinct scores into four and three, in exact fractions."""
    ranks = range(7)
    gaps = []
    for chosen in itertools.combinations(ranks, 4):
        below = [(sum(c <= x for c in chosen), sum(r <= x for r in ranks if r not in chosen)) for x in ranks]
        gaps.append(max(abs(Fraction(i, 4) - Fraction(j, 3)) for i, j in below))
    for chosen, gap in zip(itertools.combinations(ranks, 4), gaps, strict=True):
        test = ks_two_sample(chosen, [r for r in ranks if r not in chosen])
        expected = Fraction(sum(other >= gap for other in gaps), len(gaps))
        assert test.statistic == pytest.approx(float(gap), rel=1e-15)
        assert test.p_value == pytest.approx(float(expected), rel=1e-13)


def test_ks_says_where_the_gap_is_and_on_which_side() -> None:
    a, b = [1.0, 2.0, 3.0, 9.0], [3.0, 8.0, 8.5, 9.5]
    test = ks_two_sample(a, b)
    assert (test.location, test.sign) == (2.0, 1)  # 2/4 against 0/4; at 3 it is 3/4 against 1/4, as much
    assert (ks_two_sample(b, a).location, ks_two_sample(b, a).sign) == (2.0, -1)


def test_ks_counts_paths_up_to_so_many_rows_and_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headeval.core.two_samples._EXACT_ROWS", 10)
    monkeypatch.setattr("headeval.core.two_samples._EXACT_PAIRS", 40)
    sizes = [(10, 4), (4, 10), (5, 8), (10, 5), (6, 7), (11, 1), (1, 11)]
    methods = [ks_two_sample(np.arange(n), np.arange(m)).method for n, m in sizes]
    assert methods == ["exact"] * 3 + ["asymptotic"] * 4


def test_ks_at_zero_is_at_plain_zero() -> None:
    assert math.copysign(1.0, ks_two_sample([-0.0], [1.0]).location) == 1.0


def test_ks_keeps_its_digits_far_in_the_tail() -> None:
    """Where 1 − P(inside) would be rounding only."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=300), rng.normal(3, 1, size=200)
    expected = stats.ks_2samp(a, b, method="exact").pvalue
    assert 0 < expected < 1e-60
    assert ks_two_sample(a, b).p_value == pytest.approx(expected, rel=PATHS)


def test_ks_of_equal_samples_is_certain() -> None:
    test = ks_two_sample([0.5, 0.5, 0.7], [0.5, 0.5, 0.7])
    assert (test.statistic, test.p_value) == (0.0, 1.0)
    assert ks_two_sample(np.zeros(20_000), np.zeros(20_000)).p_value == 1.0


@pytest.mark.parametrize(("n", "m", "shift"), [(30_000, 20_000, 0.005), (12_000, 900, 0.05), (20_000, 5_000, 0.1)])
def test_large_samples_use_the_limit(n: int, m: int, shift: float) -> None:
    """scipy uses the finite distribution of one sample of size nm/(n+m); Stephens' correction comes close to it."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=n), rng.normal(shift, 1, size=m)
    test = ks_two_sample(a, b)
    assert test.method == "asymptotic"
    assert test.p_value == pytest.approx(stats.ks_2samp(a, b, method="asymp").pvalue, rel=0.02, abs=2e-3)


@pytest.mark.parametrize("gap", [0.3, 0.9, 0.99, 1.0, 1.3, 2.0, 4.0])
def test_the_limit_is_kolmogorovs(gap: float) -> None:
    n = 40_000
    root = math.sqrt(n / 2)
    shifted = math.ceil(gap / (root + 0.12) * n)  # so many rows of `a` lie below all of `b`
    a, b = np.arange(n) - shifted, np.arange(n)
    argument = (root + 0.12 + 0.11 / root) * shifted / n
    assert ks_two_sample(a, b).p_value == pytest.approx(stats.kstwobign.sf(argument), rel=1e-9)


def test_ks_is_conservative_with_ties() -> None:
    """Rejections at 0.05 without a difference stay below 5 %, far below where scores tie."""
    rng = np.random.default_rng(4)
    p_values = [ks_two_sample(rng.integers(0, 3, 60), rng.integers(0, 3, 60)).p_value for _ in range(300)]
    assert np.mean(np.array(p_values) <= 0.05) < 0.03


def test_psi_by_hand() -> None:
    """Ten and ten rows; smoothed shares (5½, 5½)/11 of the reference against (2½, 8½)/11."""
    index = population_stability_index(np.arange(10), np.arange(10) + 3, n_bins=2)
    assert index is not None
    assert (index.edges.tolist(), index.reference_counts.tolist(), index.counts.tolist()) == ([4.0], [5, 5], [2, 8])
    expected = (2.5 - 5.5) / 11 * math.log(2.5 / 5.5) + (8.5 - 5.5) / 11 * math.log(8.5 / 5.5)
    assert index.value == pytest.approx(expected, rel=1e-14)


def test_psi_by_hand_of_uneven_bins() -> None:
    """Smoothed shares (3½, 1½)/5 of the reference against (1½, 3½)/5: ⅖·log(7/3) from either bin."""
    index = population_stability_index([1, 1, 1, 2], [1, 2, 2, 2], n_bins=2)
    assert index is not None
    assert (index.reference_counts.tolist(), index.counts.tolist()) == ([3, 1], [1, 3])
    assert index.value == pytest.approx(0.8 * math.log(7 / 3), rel=1e-14)


def test_psi_bins_are_quantiles_of_the_reference() -> None:
    rng = np.random.default_rng(5)
    reference = rng.exponential(size=1003)
    index = population_stability_index(reference, reference)
    assert index is not None
    assert index.value == 0.0
    assert len(index.counts) == 10
    assert set(index.reference_counts.tolist()) <= {100, 101}
    assert index.reference_counts.sum() == 1003


def test_psi_cuts_at_the_borders_nearest_to_the_quantiles() -> None:
    """Written out: of all places between different scores the one nearest to j·n/B rows, of two as near the lower."""
    rng = np.random.default_rng(9)
    for _ in range(60):
        scores = [*sorted(rng.integers(-3, 4, rng.integers(4, 25)).tolist()), 5]
        n, n_bins = len(scores), int(rng.integers(2, 7))
        borders = [k for k in range(1, n) if scores[k] != scores[k - 1]]
        wanted = [Fraction(j * n, n_bins) for j in range(1, n_bins)]
        nearest = sorted({min(borders, key=lambda k, rows=rows: (abs(k - rows), k)) for rows in wanted})
        index = population_stability_index(rng.permutation(scores), [0.0], n_bins=n_bins)
        assert index is not None
        assert index.edges.tolist() == [scores[k - 1] for k in nearest]
        assert index.reference_counts.cumsum().tolist() == [*nearest, n]


def test_psi_edges_at_zero_are_plain_zeros() -> None:
    index = population_stability_index([-0.0, 1.0], [0.5])
    assert index is not None
    assert [math.copysign(1.0, edge) for edge in index.edges] == [1.0]


def test_psi_keeps_ties_whole() -> None:
    """Equal scores never fall into two bins, and a block of them at either end is a bin of its own."""
    for spike in (0.0, 1.0):
        reference = np.append(np.full(950, spike), np.linspace(0.2, 0.8, 50))
        index = population_stability_index(reference, np.full(100, spike))
        assert index is not None
        block = int(np.argmax(index.reference_counts))
        assert index.counts[block] == 100
        assert index.reference_counts[block] == 950


def test_psi_of_an_empty_bin_is_finite() -> None:
    index = population_stability_index(np.arange(100), np.full(50, -3.0))
    assert index is not None
    assert index.counts.tolist() == [50] + [0] * 9
    assert math.isfinite(index.value)
    assert index.value > 1


def test_psi_of_a_constant_reference_is_undefined() -> None:
    assert population_stability_index([0.5, 0.5], [0.1, 0.9]) is None


@pytest.mark.parametrize("bins", [2, 3, 4, 10, 51, 1200])
def test_psi_by_chance_is_chi_square(bins: int) -> None:
    n, m = 3000, 700
    index = population_stability_index(np.arange(n), np.arange(m), n_bins=bins)
    assert index is not None
    scale = 1 / n + 1 / m
    assert index.mean_if_same == pytest.approx((bins - 1) * scale, rel=1e-14)
    assert index.p95_if_same == pytest.approx(stats.chi2.ppf(0.95, bins - 1) * scale, rel=1e-10)


def test_psi_without_drift_is_what_it_says() -> None:
    """Simulated: the mean and the 95th percentile of 600 comparisons; the chi-square form is approximate."""
    rng = np.random.default_rng(6)
    found = [population_stability_index(rng.random(800), rng.random(500)) for _ in range(600)]
    values = np.array([index.value for index in found if index is not None])
    index = found[0]
    assert index is not None
    assert values.mean() == pytest.approx(index.mean_if_same, rel=0.1)
    assert np.mean(values > index.p95_if_same) == pytest.approx(0.05, abs=0.025)


def test_proportion_difference_is_newcombes() -> None:
    """Newcombe 1998, table II, method 10: 56/70 − 48/80, 0.0524 to 0.3339, and 9/10 − 3/10, 0.1705 to 0.8090."""
    found = proportion_difference(56, 70, 48, 80).interval
    assert found is not None
    assert (round(found.lower, 4), round(found.upper, 4)) == (0.0524, 0.3339)
    found = proportion_difference(9, 10, 3, 10).interval
    assert found is not None
    assert (round(found.lower, 4), round(found.upper, 4), found.method) == (0.1705, 0.8090, "Newcombe")


@pytest.mark.parametrize("counts", [(3, 17, 9, 40), (0, 6, 7, 7)])
def test_newcombes_interval_is_of_the_confidence_asked_for(counts: tuple[int, int, int, int]) -> None:
    k1, n1, k2, n2 = counts
    one, two = (stats.binomtest(k, n).proportion_ci(0.8, "wilson") for k, n in ((k1, n1), (k2, n2)))
    p1, p2 = k1 / n1, k2 / n2
    found = proportion_difference(*counts, confidence=0.8).interval
    assert found is not None
    assert found.lower == pytest.approx(p1 - p2 - math.hypot(p1 - one.low, two.high - p2), rel=1e-12)
    assert found.upper == pytest.approx(p1 - p2 + math.hypot(one.high - p1, p2 - two.low), rel=1e-12)
    assert found.confidence == 0.8


def test_proportion_p_value_is_fishers() -> None:
    rng = np.random.default_rng(7)
    for _ in range(150):
        n1, n2 = (int(n) for n in rng.integers(1, 60, 2))
        k1, k2 = int(rng.integers(0, n1 + 1)), int(rng.integers(0, n2 + 1))
        expected = stats.fisher_exact([[k1, n1 - k1], [k2, n2 - k2]]).pvalue
        assert proportion_difference(k1, n1, k2, n2).p_value == pytest.approx(expected, rel=1e-10)


def test_fisher_holds_for_a_million_rows() -> None:
    counts = (30_000, 1_000_000, 31_000, 1_000_000)
    expected = stats.fisher_exact([[30_000, 970_000], [31_000, 969_000]]).pvalue
    assert proportion_difference(*counts).p_value == pytest.approx(expected, rel=1e-7)


def test_few_tables_of_many_rows_are_summed() -> None:
    """Some 15 tables, of a million successes."""
    expected = stats.fisher_exact([[600_000, 10], [600_000, 5]]).pvalue
    assert proportion_difference(600_000, 600_010, 600_000, 600_005).p_value == pytest.approx(expected, rel=1e-7)


def test_beyond_that_the_score_test_agrees() -> None:
    k1, k2, n = 2_000_000, 2_002_000, 10_000_000
    table = [[k1, n - k1], [k2, n - k2]]
    expected = stats.chi2_contingency(table, correction=False).pvalue
    assert proportion_difference(k1, n, k2, n).p_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("counts", [(0, 5, 0, 9), (5, 5, 9, 9)])
def test_equal_extreme_shares_still_have_an_interval(counts: tuple[int, int, int, int]) -> None:
    difference = proportion_difference(*counts)
    assert difference.interval is not None
    assert difference.interval.lower < 0 < difference.interval.upper
    assert (difference.value, difference.p_value) == (0.0, 1.0)


def test_swapping_the_sides_mirrors_everything() -> None:
    there, back = proportion_difference(3, 17, 9, 40), proportion_difference(9, 40, 3, 17)
    assert there.interval is not None
    assert back.interval is not None
    assert there.interval.lower == pytest.approx(-back.interval.upper, rel=1e-12)
    assert there.p_value == pytest.approx(back.p_value, rel=1e-12)
    a, b = samples(1, 1)
    assert ks_two_sample(a, b).p_value == pytest.approx(ks_two_sample(b, a).p_value, rel=1e-12)


@pytest.mark.parametrize("bad", [[], [[1.0]], [math.nan], ["a"]])
def test_bad_samples_are_refused(bad: ArrayLike) -> None:
    with pytest.raises(ValueError, match="a must"):
        ks_two_sample(bad, [1.0])
    with pytest.raises(ValueError, match=r"^b must"):
        ks_two_sample([1.0], bad)
    with pytest.raises(ValueError, match=r"^reference must"):
        population_stability_index(bad, [1.0, 2.0])
    with pytest.raises(ValueError, match="current must"):
        population_stability_index([1.0, 2.0], bad)
    with pytest.raises(ValueError, match=r"^n_bins must be at least 2"):
        population_stability_index([1.0, 2.0], [1.0], n_bins=1)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((6, 5, 1, 2), "successes must not exceed the rows, got 6 of 5 and 1 of 2"),
        ((1, 5, 3, 2), "successes must not exceed the rows, got 1 of 5 and 3 of 2"),
        ((1, 0, 1, 2), "n1 must be at least 1"),
        ((1, 2, 1, 0), "n2 must be at least 1"),
        ((-1, 5, 1, 2), "k1 must be at least 0"),
        ((1, 5, -1, 2), "k2 must be at least 0"),
        ((1.5, 5, 1, 2), "k1 must be an integer"),
    ],
)
def test_bad_counts_are_refused(counts: tuple[int, int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        proportion_difference(*counts)
