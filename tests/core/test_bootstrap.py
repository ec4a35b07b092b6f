"""Resamples as counts that must add up, intervals against scipy and by hand, and how often they cover the truth."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from headeval.core import weighted
from headeval.core.bootstrap import bootstrap_interval, ece_interval, replicates
from headeval.core.bootstrap_bounds import (
    Support,
    degenerate_interval,
    normal_bounds,
    percentile_bounds,
    student_reach,
    unseen_rows,
)
from headeval.core.calibration import Convention, ReliabilityTable, reliability_table
from headeval.core.checks import FloatArray, IntArray
from headeval.core.intervals import Interval
from headeval.core.weighted import SortedRows

Y = np.array([1] * 7 + [0] * 13)


def drawn(labels: IntArray, *, seed: int = 1, n_resamples: int = 50, **options: Any) -> FloatArray:
    """The weights of the resamples themselves, (n_resamples, n)."""
    return replicates(lambda w: w, labels, n_resamples=n_resamples, rng=np.random.default_rng(seed), **options)


def prepared(z: FloatArray, y: IntArray, conventions: dict[Convention, int] | None = None) -> SortedRows:
    """Rows of logits z, sorted first as the caller of `replicates` does."""
    p = special.expit(z)
    tables: dict[str, ReliabilityTable] = {
        name: reliability_table(p, y, convention=name, n_bins=b) for name, b in (conventions or {}).items()
    }
    return SortedRows.prepare(z, y, p, np.logaddexp(0, np.where(y == 1, -z, z)), tables)


def bounds(interval: Interval) -> list[float]:
    return [interval.lower, interval.upper]


# Drawing


def test_each_class_is_drawn_as_often_as_it_has_rows() -> None:
    w = drawn(Y)
    assert w.shape == (50, 20)
    assert (w[:, Y == 1].sum(axis=1) == 7).all()
    assert (w[:, Y == 0].sum(axis=1) == 13).all()
    assert (w == np.round(w)).all()
    assert np.unique(w, axis=0).shape[0] > 40  # and not the same draw again and again


def test_counts_are_multinomial() -> None:
    """Of m rows each is drawn once on average, with the variance 1 − 1/m, and two rows compete for the draws."""
    w = drawn(Y, n_resamples=20_000)
    for label, m in ((1, 7), (0, 13)):
        part = w[:, label == Y]
        # The fourth moment of such a count is below 5: a mean of 20,000 varies by 0.007, a variance by 0.015.
        assert np.abs(part.mean(axis=0) - 1).max() < 5 * 0.0071
        covariance = np.cov(part.T)
        assert np.abs(covariance - (np.eye(m) - 1 / m)).max() < 5 * 0.015
    between = np.asarray(np.corrcoef(w.T))[:7, 7:]
    assert np.abs(between).max() < 5 / math.sqrt(20_000)  # the classes are independent


def test_without_strata_the_class_counts_vary_as_in_a_sample() -> None:
    w = drawn(Y, n_resamples=20_000, stratified=False)
    assert (w.sum(axis=1) == 20).all()
    positives = w[:, Y == 1].sum(axis=1)
    # Binomial(20, 0.35): its variance 4.55 has the standard error 4.55·√(2/20,000).
    assert positives.var() == pytest.approx(20 * 0.35 * 0.65, abs=5 * 0.0455)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    assert drawn(Y).tobytes() == drawn(Y).tobytes()
    assert drawn(Y).tobytes() != drawn(Y, seed=2).tobytes()


@pytest.mark.parametrize("options", [{}, {"stratified": False}, {"groups": np.arange(20) // 3}])
@pytest.mark.parametrize("block", [1, 61, 20 * 50, 10**9])
def test_blocks_change_no_bit(block: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = drawn(Y, **options)
    monkeypatch.setattr(weighted, "BLOCK", block)
    assert drawn(Y, **options).tobytes() == expected.tobytes()


def test_each_stratum_draws_from_a_stream_of_its_own_seeded_by_four_numbers() -> None:
    """Also over 32-bit seeds, so that a later version draws for a seed what this one drew."""
    seeds = np.random.default_rng(1)
    counts = []
    for m in (7, 13):
        stream = np.random.default_rng(seeds.integers(2**32, size=4))
        counts.append([np.bincount(row, minlength=m) for row in stream.integers(m, size=(50, m))])
    assert drawn(Y).tolist() == np.concatenate(counts, axis=1).tolist()


def test_more_resamples_begin_with_the_fewer() -> None:
    assert drawn(Y, n_resamples=1).tobytes() == drawn(Y)[:1].tobytes()
    assert drawn(Y, n_resamples=80)[:50].tobytes() == drawn(Y).tobytes()


def test_a_group_is_drawn_whole() -> None:
    groups = np.array(list("abcabcabcabcabcabcab"))  # of both classes
    w = drawn(Y, groups=groups)
    for name in "abc":
        assert (w[:, groups == name] == w[:, groups == name][:, :1]).all()
    firsts = w[:, [0, 1, 2]]
    assert (firsts.sum(axis=1) == 3).all()
    assert firsts.max() > 1


def test_groups_of_one_class_each_are_drawn_by_class() -> None:
    groups = np.array([0, 0, 0, 1, 1, 2, 2] + [3] * 5 + [4] * 5 + [5, 6, 6])
    w = drawn(Y, groups=groups)
    firsts = w[:, [0, 3, 5, 7, 12, 17, 18]]
    assert (firsts[:, :3].sum(axis=1) == 3).all()
    assert (firsts[:, 3:].sum(axis=1) == 4).all()
    free = drawn(Y, groups=groups, stratified=False)[:, [0, 3, 5]].sum(axis=1)
    assert np.unique(free).size > 1


def test_groups_of_one_row_each_are_rows() -> None:
    assert drawn(Y, groups=np.arange(20)).tobytes() == drawn(Y).tobytes()


def test_weights_multiply_the_counts() -> None:
    weights = np.linspace(0, 3, 20)
    assert drawn(Y, weights=weights).tolist() == (drawn(Y) * weights).tolist()


def test_a_resample_that_lost_a_class_stays_undefined() -> None:
    z, y = np.array([-1.0, -0.5, 0.1, 2.0]), np.array([0, 0, 0, 1])
    rows = prepared(z, y)
    values = replicates(rows.measures, y, n_resamples=200, rng=np.random.default_rng(0), groups=[0, 0, 1, 1])
    auc = values[:, 0]
    assert 30 < np.isnan(auc).sum() < 70  # a quarter of the draws of two groups miss the one with the positive
    assert not np.isnan(values[:, 6]).any()  # the Brier score needs no class


def test_rows_sorted_first_give_the_same_bits_whatever_their_order() -> None:
    rng = np.random.default_rng(3)
    z, y = np.round(rng.normal(size=60), 1), (rng.random(60) < 0.4).astype(np.int64)
    seen = set()
    for _ in range(3):
        order = rng.permutation(60)
        z, y = z[order], y[order]
        first = np.lexsort((y, z))
        rows = prepared(z[first], y[first])
        values = replicates(rows.measures, y[first], n_resamples=20, rng=np.random.default_rng(5))
        seen.add(values.tobytes())
    assert len(seen) == 1


def test_a_paired_difference_is_that_of_the_same_resamples() -> None:
    rng = np.random.default_rng(4)
    y = (rng.random(50) < 0.4).astype(np.int64)
    one, other = prepared(rng.normal(size=50) + y, y), prepared(rng.normal(size=50) + y, y)

    def paired(w: FloatArray) -> FloatArray:
        return one.measures(w) - other.measures(w)

    options: dict[str, Any] = {"n_resamples": 30, "groups": np.arange(50) // 2}
    difference = replicates(paired, y, rng=np.random.default_rng(6), **options)
    apart = [replicates(rows.measures, y, rng=np.random.default_rng(6), **options) for rows in (one, other)]
    assert difference.tobytes() == (apart[0] - apart[1]).tobytes()


def test_the_spread_of_a_mean_is_its_standard_error() -> None:
    rng = np.random.default_rng(7)
    z, y = rng.normal(size=400), np.repeat([1, 0], [100, 300])
    error = np.square(special.expit(z) - y)
    values = replicates(prepared(z, y).measures, y, n_resamples=4000, rng=rng)[:, 6]
    within = sum(m * error[y == label].var() for label, m in ((1, 100), (0, 300)))
    assert values.std() == pytest.approx(math.sqrt(within) / 400, rel=5 / math.sqrt(2 * 4000))
    free = replicates(prepared(z, y).measures, y, n_resamples=4000, rng=rng, stratified=False)[:, 6]
    assert free.std() == pytest.approx(error.std() / 20, rel=5 / math.sqrt(2 * 4000))


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([0, 2], {}, "labels"),
        ([], {}, "at least one row"),
        ([0, 1], {"n_resamples": 0}, "n_resamples"),
        ([0, 1], {"groups": [1]}, "groups"),
        ([0, 1], {"weights": [0.0, 0.0]}, "not all zero"),
    ],
)
def test_wrong_arguments_are_refused(labels: list[int], options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"n_resamples": 5, "rng": np.random.default_rng(0)} | options
    with pytest.raises(ValueError, match=message):
        replicates(lambda w: w, labels, **arguments)


# Intervals


@pytest.mark.parametrize("m", [2, 3, 10, 80, 10_000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_reach_is_students_and_unbiased(m: int, confidence: float) -> None:
    expected = stats.t.ppf((1 + confidence) / 2, m - 1) * math.sqrt(m / (m - 1))
    assert student_reach(m, confidence) == pytest.approx(expected, rel=1e-9)


def test_percentiles_are_those_of_the_normal_reach() -> None:
    v = np.random.default_rng(8).random(999)
    low, high = stats.norm.cdf([-1.7, 1.7])
    assert percentile_bounds(v, 1.7) == pytest.approx(np.quantile(v, [low, high]), abs=1e-12)


def test_normal_bounds_by_hand() -> None:
    """Log odds −1, 0, 1 have the standard deviation 1; the bias widens one side only."""
    many = 10**12  # so many rows that half a one is nothing
    for estimate, low, high in ((0.0, -2.0, 2.0), (-0.5, -3.0, 1.5), (0.5, -1.5, 3.0)):
        found = normal_bounds(Support(0, 1, many), special.expit([-1, 0, 1]), float(special.expit(estimate)), 2.0)
        assert found == pytest.approx(special.expit([low, high]), abs=1e-9)
    for lower in (0.0, 3.0):
        found = normal_bounds(Support(lower, math.inf, 9), lower + np.exp([-1, 0, 1]), lower + 1, 2.0)
        assert found == pytest.approx(lower + np.exp([-2, 2]))
    found = normal_bounds(Support(-math.inf, math.inf, 9), np.array([-1.0, 0, 1]), 0.0, 2.0)
    assert found == pytest.approx((-2, 2))
    # (4·u + ½)/5 of u = 1 is 0.9
    share = Support(0, 1, 4)
    for values in ([0.0, 1.0], [-0.5, 1.5]):  # a value beyond a bound counts as at it
        assert share.unbounded(np.array(values)).tolist() == pytest.approx([-math.log(9), math.log(9)])
    assert [share.original(z) for z in (-50.0, -math.log(9), 0.0, math.log(9), 50.0)] == pytest.approx(
        [0, 0, 0.5, 1, 1]
    )
    assert share.original(50.0) == 1.0
    assert math.isfinite(Support(0, math.inf, 4).original(1e4))


@given(
    st.integers(2, 200),
    st.floats(0, 1),
    st.lists(st.floats(0, 1), min_size=20, max_size=60),
    st.sampled_from([(0.0, 1.0), (0.0, math.inf), (-1.0, 1.0), (-math.inf, math.inf)]),
    st.floats(0.5, 0.999),
)
def test_an_interval_holds_its_estimate_and_has_a_width(
    m: int, estimate: float, values: list[float], support: tuple[float, float], confidence: float
) -> None:
    lower, upper = support
    found = bootstrap_interval(values, estimate, smaller=m, confidence=confidence, lower=lower, upper=upper)
    if found is not None:
        assert lower <= found.lower <= estimate <= found.upper <= upper
        assert found.lower < found.upper
    else:
        assert np.abs(np.array(values) - estimate).max() < 1e-9
    ece = ece_interval(values, estimate, noise_quantile=0.01, bias_corrected=estimate / 2, confidence=confidence)
    if ece is not None:
        assert 0 <= ece.lower <= estimate / 2 <= estimate <= ece.upper <= 1
        assert ece.lower < ece.upper


def test_more_confidence_is_wider() -> None:
    v = np.random.default_rng(9).beta(30, 10, size=1000)
    widths = []
    for confidence in (0.5, 0.9, 0.95, 0.99):
        found = bootstrap_interval(v, 0.75, smaller=40, confidence=confidence)
        assert found is not None
        assert found.confidence == confidence
        widths.append(found.upper - found.lower)
    assert widths == sorted(widths)


def spread_interval(smaller: int, confidence: float, v: FloatArray) -> list[float]:
    """Bounds of an unbounded measure of estimate 0 and values without bias, with scipy's t and numpy's percentiles."""
    reach = stats.t.ppf((1 + confidence) / 2, smaller - 1) * math.sqrt(smaller / (smaller - 1))
    low, high = np.quantile(v, stats.norm.cdf([-reach, reach]))
    half = reach * v.std(ddof=1)
    return [min(low, -half), max(high, half)]


NO_BOUNDS: dict[str, Any] = {"lower": -math.inf, "upper": math.inf}


@pytest.mark.parametrize("smaller", [2, 3, 10**6])
@pytest.mark.parametrize(("rare", "size"), [(10, 1.0), (4, 10.0)], ids=["percentiles", "deviations"])
def test_the_wider_of_both_intervals_is_taken(smaller: int, rare: int, size: float) -> None:
    """Of 200 values 5 % lie further out than two deviations, or 2 % so far out that they make the deviation."""
    v = np.repeat([-size, 0.0, size], [rare, 200 - 2 * rare, rare])
    found = bootstrap_interval(v, 0.0, smaller=smaller, confidence=0.9, method="paired", **NO_BOUNDS)
    assert found is not None
    assert (found.confidence, found.method) == (0.9, "paired")
    assert bounds(found) == pytest.approx(spread_interval(smaller, 0.9, v), rel=1e-9)


def test_values_near_the_largest_float_have_the_interval_of_the_same_values_scaled() -> None:
    v = np.linspace(-0.9, 0.9, 200)
    for exponent in (1021, -3, 1021):
        values, estimate = np.ldexp(v + 0.125, exponent), math.ldexp(0.125, exponent)
        found = bootstrap_interval(values, estimate, smaller=9, confidence=0.9, method="paired", **NO_BOUNDS)
        assert found is not None
        assert (found.confidence, found.method) == (0.9, "paired")
        scaled = [math.ldexp(bound, -exponent) for bound in bounds(found)]
        assert scaled == pytest.approx([0.125 + bound for bound in spread_interval(9, 0.9, v)], rel=1e-9)
        assert scaled[1] > 1


@pytest.mark.parametrize(
    ("estimate", "v"),
    [
        (0.5, np.linspace(0.3, 0.8, 200)),
        (0.999, np.append(np.full(100, 1.0), np.full(100, 0.998))),
        (0.001, np.append(np.full(100, 0.0), np.full(100, 0.002))),
        (1.0, np.ones(200)),
        (0.0, np.zeros(200)),
    ],
)
def test_bounds_of_a_measure_between_2_and_5_are_those_of_a_share(estimate: float, v: FloatArray) -> None:
    share = bootstrap_interval(v, estimate, smaller=12, confidence=0.9)
    found = bootstrap_interval(2 + 3 * v, 2 + 3 * estimate, smaller=12, confidence=0.9, lower=2.0, upper=5.0)
    assert share is not None
    assert found is not None
    assert bounds(found) == pytest.approx([2 + 3 * bound for bound in bounds(share)], rel=1e-12)
    assert (found.confidence, found.method) == (0.9, share.method)


@pytest.mark.parametrize("scale", [0.5, 1.0, 1000.0])
def test_values_that_differ_by_rounding_alone_agree(scale: float) -> None:
    unit = 1e-12 * max(scale, 1.0)
    for apart, agree in ((0.8, True), (1.3, False)):
        v = scale + unit * apart * np.linspace(-1, 1, 50)
        assert (bootstrap_interval(v, scale, smaller=9, upper=math.inf) is None) == agree


def test_float32_values_are_computed_with_as_float64() -> None:
    v = np.random.default_rng(12).beta(30, 10, size=99).astype(np.float32)
    assert bootstrap_interval(v, 0.75, smaller=40) == bootstrap_interval(v.astype(np.float64), 0.75, smaller=40)


@pytest.mark.parametrize("m", [1, 2, 12, 1000])
def test_perfection_is_bounded_as_clopper_and_pearson_bound_m_of_m(m: int) -> None:
    expected = stats.beta.ppf(0.025, m, 1)
    found = bootstrap_interval(np.ones(200), 1.0, smaller=m)
    assert found is not None
    assert bounds(found) == pytest.approx([expected, 1.0])
    assert (found.upper, found.method) == (1.0, "exact, smaller class")
    found = bootstrap_interval(np.zeros(200), 0.0, smaller=m)
    assert found is not None
    assert found.lower == 0.0
    assert bounds(found) == pytest.approx([0.0, 1 - expected])
    for estimate in (0.0, 1.0):
        exact = degenerate_interval(estimate, m, confidence=0.8)
        assert exact is not None
        assert exact == bootstrap_interval(np.full(200, estimate), estimate, smaller=m, confidence=0.8)
        width = 1 - stats.beta.ppf(0.1, m, 1)
        assert bounds(exact) == pytest.approx([1 - width, 1] if estimate else [0, width])
        assert (exact.confidence, exact.method) == (0.8, "exact, smaller class")


def test_resamples_that_agree_elsewhere_tell_nothing() -> None:
    assert bootstrap_interval(np.full(200, 0.3), 0.3, smaller=50) is None
    assert bootstrap_interval(np.zeros(200), 0.0, smaller=50, upper=math.inf) is None  # log loss
    assert bootstrap_interval(np.zeros(200), 0.0, smaller=50, lower=-1.0) is None  # a difference of equals
    assert degenerate_interval(1.0, 0) is None
    assert bootstrap_interval(np.ones(200), 1.0, smaller=0) is None  # without rows not even perfection tells
    for estimate in (-1.0, 1.0):  # for a difference these are no perfection
        assert degenerate_interval(estimate, 50, lower=-1.0) is None


def test_too_few_usable_resamples_give_none() -> None:
    v = np.random.default_rng(10).random(100)
    assert bootstrap_interval(v[:19], 0.5, smaller=50) is None
    assert bootstrap_interval(v[:20], 0.5, smaller=50) is not None
    for undefined, known in ((10, True), (11, False)):
        w = v.copy()
        w[:undefined] = math.nan
        assert (bootstrap_interval(w, 0.5, smaller=50) is not None) == known
        assert (ece_interval(w, 0.5, noise_quantile=0.1) is not None) == known
    assert bootstrap_interval(v, 0.5, smaller=1) is None
    for estimate in (math.nan, math.inf):
        assert bootstrap_interval(v, estimate, smaller=50, upper=math.inf) is None
        assert ece_interval(v, estimate, noise_quantile=0.1) is None


def test_undefined_resamples_change_nothing_else() -> None:
    v = np.random.default_rng(11).random(100)
    assert bootstrap_interval(np.append(v, math.nan), 0.5, smaller=50) == bootstrap_interval(v, 0.5, smaller=50)


def test_where_perfection_is_possible_its_bound_is_taken_in_proportion() -> None:
    """A value that resamples cannot tell from 1 may not be bounded closer than 1 itself."""
    v = np.append(np.full(100, 1.0), np.full(100, 0.998))
    found = bootstrap_interval(v, 0.999, smaller=12)
    assert found is not None
    assert found.lower == pytest.approx(0.999 * 0.025 ** (1 / 12))
    assert found.upper == 1.0
    mirrored = bootstrap_interval(1 - v, 0.001, smaller=12)
    assert mirrored is not None
    assert bounds(mirrored) == pytest.approx([0.0, 1 - found.lower])
    rare = bootstrap_interval(np.append(np.full(4, 1.0), np.linspace(0.99, 0.999, 196)), 0.995, smaller=12)
    assert rare is not None
    assert rare.lower > 0.9  # 2 % of the resamples are no reason
    difference = bootstrap_interval(v, 0.999, smaller=12, lower=-1.0)
    assert difference is not None
    assert difference.lower > 0.9  # for a difference 1 is no perfection


def test_unseen_rows_by_hand() -> None:
    """From 250 rows a kind of row with a share of 1 − 0.025^(1/250) = 1.4648 % is missing with probability 2.5 %."""
    share = 1 - math.exp(math.log(0.025) / 250)
    assert unseen_rows(0.1, 1.0, 250, 0.95) == pytest.approx(0.1 * (1 - share) + share)
    v = np.linspace(0.0099, 0.0101, 200)
    plain, safe = (bootstrap_interval(v, 0.01, smaller=80, rows=rows) for rows in (None, 250))
    assert plain is not None
    assert safe is not None
    assert plain.upper < 0.0105
    assert safe.upper == pytest.approx(0.01 * (1 - share) + share)


def test_an_unresolved_measure_is_bounded_from_above_alone() -> None:
    v = np.linspace(0.4, 0.6, 200)
    whole, open_below = (bootstrap_interval(v, 0.5, smaller=80, resolved=resolved) for resolved in (True, False))
    assert whole is not None
    assert open_below is not None
    assert (open_below.lower, open_below.upper) == (0.0, whole.upper)
    assert whole.lower > 0.3
    # A recall of 1 at a rate that no threshold of the sample is known to have says nothing.
    perfect = bootstrap_interval(np.ones(200), 1.0, smaller=20, resolved=False)
    assert perfect is not None
    assert bounds(perfect) == [0.0, 1.0]


def test_ece_interval_by_hand() -> None:
    v = np.linspace(0.1, 0.2, 101)  # mean 0.15, 2.5 % and 97.5 % at 0.1025 and 0.1975
    found = ece_interval(v, 0.14, noise_quantile=0.02)
    assert found is not None
    assert bounds(found) == pytest.approx([0.1025 - 0.02, 0.1975 - 0.005])
    found = ece_interval(v, 0.14, noise_quantile=0.1)
    assert found is not None
    assert found.lower == pytest.approx(0.04)  # not closer than chance
    found = ece_interval(v, 0.14, noise_quantile=0.14)
    assert found is not None
    assert found.lower == 0.0  # chance alone explains it
    found = ece_interval(v, 0.14, noise_quantile=0.02, bias_corrected=0.01)
    assert found is not None
    assert found.lower == 0.01
    found = ece_interval(v, 0.14, noise_quantile=0.02, confidence=0.8)
    assert found is not None
    assert bounds(found) == pytest.approx([0.11 - 0.02, 0.19 - 0.005])
    assert (found.confidence, found.method) == (0.8, "bootstrap")
    found = ece_interval(np.repeat([0.9, 1.0 + 1e-12], [20, 80]), 0.98, noise_quantile=0.02)
    assert found is not None
    assert found.upper == 1.0  # whatever sums of weights round to


def test_an_ece_of_zero_on_few_rows_is_not_certain() -> None:
    assert ece_interval(np.zeros(100), 0.0, noise_quantile=0.0) is None
    found = ece_interval(np.zeros(100), 0.0, noise_quantile=0.0, rows=30)
    assert found is not None
    assert bounds(found) == pytest.approx([0.0, 1 - 0.025 ** (1 / 30)])


def test_wrong_levels_are_refused() -> None:
    for confidence in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="confidence"):
            bootstrap_interval(np.ones(50), 1.0, smaller=5, confidence=confidence)
        with pytest.raises(ValueError, match="confidence"):
            ece_interval(np.ones(50), 1.0, noise_quantile=0.1, confidence=confidence)
    with pytest.raises(ValueError, match="smaller"):
        bootstrap_interval(np.ones(50), 1.0, smaller=-1)


# How often the truth is inside

SAMPLES = 200
# At a true coverage of 93 %, fewer of 300 samples are covered less than once in a thousand times.
LEAST_COVERED = int(stats.binom.ppf(0.001, SAMPLES, 0.93))


def binormal_truth(shift: float, prevalence: float) -> dict[str, float]:
    """Measures of endless rows: negatives N(0, 1), positives N(shift, 1), probabilities by Bayes' theorem."""
    t = np.linspace(12, -10, 40_001)
    tpr, fpr = stats.norm.sf(t - shift), stats.norm.sf(t)
    precision = prevalence * tpr / (prevalence * tpr + (1 - prevalence) * fpr)
    z = shift * t - shift**2 / 2 + math.log(prevalence / (1 - prevalence))
    p, positive, negative = (
        special.expit(z),
        prevalence * stats.norm.pdf(t - shift),
        (1 - prevalence) * stats.norm.pdf(t),
    )
    grid = np.linspace(0, 0.1, 20_001)
    area = integrate.trapezoid(stats.norm.sf(stats.norm.isf(np.maximum(grid, 1e-300)) - shift), grid)

    def mean(penalty_positive: FloatArray, penalty_negative: FloatArray) -> float:
        return float(integrate.trapezoid((positive * penalty_positive + negative * penalty_negative)[::-1], t[::-1]))

    return {
        "ap": float(integrate.trapezoid(precision, tpr)),
        "partial_auc": float(0.5 * (1 + (area - 0.005) / (0.1 - 0.005))),
        "recall_at_1pct_fpr": float(stats.norm.sf(stats.norm.isf(0.01) - shift)),
        "best_f1": float((2 * prevalence * tpr / (prevalence * tpr + (1 - prevalence) * fpr + prevalence)).max()),
        "brier": mean((1 - p) ** 2, p**2),
        "log_loss": mean(np.logaddexp(0, -z), np.logaddexp(0, z)),
    }


def binormal_rows(rng: np.random.Generator, positives: int, n: int, shift: float, prevalence: float) -> SortedRows:
    y = np.repeat([0, 1], [n - positives, positives])
    x = rng.normal(size=n) + shift * y
    return prepared(shift * x - shift**2 / 2 + math.log(prevalence / (1 - prevalence)), y)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["stratified", "free"])
@pytest.mark.parametrize(("positives", "n"), [(80, 250), (50, 1000)])
@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0, 3.0])
def test_bootstrap_intervals_cover(positives: int, n: int, shift: float, sampling: str) -> None:
    """At nominal 95 % no measure is missed by more than 7 % of the samples, whether the class counts vary or not."""
    prevalence, rng = positives / n, np.random.default_rng([positives, int(10 * shift)])
    truth = binormal_truth(shift, prevalence)
    covered = dict.fromkeys(truth, 0)
    for _ in range(SAMPLES):
        found = positives if sampling == "stratified" else int(rng.binomial(n, prevalence))
        rows = binormal_rows(rng, found, n, shift, prevalence)
        estimates = named(rows, rows.measures(np.ones(n)))
        y = np.repeat([0, 1], [n - found, found])
        values = replicates(rows.measures, y, n_resamples=300, rng=rng, stratified=sampling == "stratified")
        for name, value in truth.items():
            interval = bootstrap_interval(
                values[:, rows.names.index(name)],
                estimates[name],
                smaller=found,
                upper=math.inf if name == "log_loss" else 1.0,
                rows=n if name == "brier" else None,
            )
            covered[name] += interval is not None and interval.lower <= value <= interval.upper
    # The best F1 is no target of the choice of method, and of weak scores it is biased by more than resampling shows.
    least = {name: LEAST_COVERED - (10 if name == "best_f1" else 0) for name in covered}
    assert not {name: count / SAMPLES for name, count in covered.items() if count < least[name]}


def named(rows: SortedRows, values: FloatArray) -> dict[str, float]:
    return dict(zip(rows.names, values.tolist(), strict=True))


CONVENTIONS: dict[Convention, int] = {"positive-class": 10, "top-label": 15}
# The truth has the log odds a·z + c where the classifier says z.
CALIBRATIONS = {"calibrated": (1.0, 0.0), "mild": (0.8, 0.1), "overconfident": (0.4, 0.3), "shifted": (1.0, 0.8)}


def true_binned_error(centre: float, spread: float, a: float, c: float, convention: Convention, n_bins: int) -> float:
    """Σ |∫ (share right − confidence)| over the bins, for logits N(centre, spread²), by quadrature."""
    z = np.linspace(centre - 9 * spread, centre + 9 * spread, 400_001)
    density = stats.norm.pdf(z, centre, spread) * (z[1] - z[0])
    p, q = special.expit(z), special.expit(a * z + c)
    turned = (p < 0.5) & (convention == "top-label")
    confidence, right = np.where(turned, 1 - p, p), np.where(turned, 1 - q, q)
    index = np.searchsorted(np.arange(1, n_bins) / n_bins, confidence)
    return float(np.abs(np.bincount(index, weights=density * (right - confidence))).sum())


def drawn_rows(
    rng: np.random.Generator, n: int, centre: float, spread: float, a: float, c: float
) -> tuple[FloatArray, IntArray]:
    z = np.sort(rng.normal(centre, spread, size=n))
    return z, (rng.random(n) < special.expit(a * z + c)).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize(
    ("n", "centre", "spread"),
    [(250, -1.0, 2.0), (1000, -1.0, 2.0), (4000, -1.0, 2.0), (250, -3.0, 1.2), (1000, -3.0, 1.2)],
)
def test_ece_intervals_cover_the_true_binned_error(n: int, centre: float, spread: float, calibration: str) -> None:
    a, c = CALIBRATIONS[calibration]
    rng = np.random.default_rng([n, int(spread * 10), len(calibration)])
    truth = {name: true_binned_error(centre, spread, a, c, name, b) for name, b in CONVENTIONS.items()}
    noise: dict[str, list[float]] = {name: [] for name in CONVENTIONS}
    for _ in range(400):
        z, y = drawn_rows(rng, n, centre, spread, 1.0, 0.0)
        for name, b in CONVENTIONS.items():
            noise[name].append(reliability_table(special.expit(z), y, convention=name, n_bins=b).ece)
    covered, samples = dict.fromkeys(CONVENTIONS, 0), 200 if n == 4000 else SAMPLES
    for _ in range(samples):
        z, y = drawn_rows(rng, n, centre, spread, a, c)
        rows = prepared(z, y, CONVENTIONS)
        estimates = named(rows, rows.measures(np.ones(n)))
        values = replicates(rows.measures, y, n_resamples=150, rng=rng, stratified=False)
        for name in CONVENTIONS:
            column, quantile = values[:, rows.names.index(name)], float(np.quantile(noise[name], 0.95))
            interval = ece_interval(column, estimates[name], noise_quantile=quantile, rows=n)
            covered[name] += (
                interval is not None and interval.lower <= truth[name] + 1e-12 and truth[name] <= interval.upper
            )
    assert min(covered.values()) >= stats.binom.ppf(0.001, samples, 0.93), covered
