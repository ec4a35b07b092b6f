import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from headeval.core.delong import auc_difference, auc_interval, delong_variance, weighted_auc
from headeval.core.ranking import roc_auc

ROUNDING = 1e-9  # of variances: squares of differences of placements


def psi(scores, labels):
    """(P, N) of 1 where the positive is above, 1/2 where tied: every pair looked at."""
    scores, labels = np.asarray(scores, float), np.asarray(labels)
    x, y = scores[labels == 1][:, None], scores[labels == 0][None, :]
    return (x > y) + 0.5 * (x == y)


def literal_covariance(columns, labels):
    """DeLong 1988, equations 4 to 6, as printed: V10, V01, S10, S01 and S = S10/P + S01/N."""
    tables = [psi(column, labels) for column in columns]
    areas = [table.mean() for table in tables]
    p, n = tables[0].shape
    s10, s01 = np.zeros((2, len(tables), len(tables)))
    for r in range(len(tables)):
        for s in range(len(tables)):
            v10 = [tables[k].mean(axis=1) - areas[k] for k in (r, s)]
            v01 = [tables[k].mean(axis=0) - areas[k] for k in (r, s)]
            s10[r, s] = sum(a * b for a, b in zip(*v10, strict=True)) / (p - 1)
            s01[r, s] = sum(a * b for a, b in zip(*v01, strict=True)) / (n - 1)
    return s10 / p + s01 / n


def literal_freedom(values, labels):
    """Welch's degrees of freedom with k − 1 for each class, k = (Σd)²/Σd²."""
    parts, rests = [], []
    for label in (1, 0):
        v = values[labels == label]
        parts.append(v.var(ddof=1) / v.size)
        rests.append(np.abs(v).sum() ** 2 / (v**2).sum() - 1)
    return sum(parts) ** 2 / sum(part**2 / rest for part, rest in zip(parts, rests, strict=True))


def sample(rng, p=20, n=60, shift=1.0, ties=False):
    labels = rng.permutation(np.r_[np.ones(p, int), np.zeros(n, int)])
    scores = rng.normal(size=p + n) + shift * labels
    return (np.round(scores, 1) if ties else scores), labels


@pytest.mark.parametrize("ties", [False, True])
def test_the_variance_is_the_printed_formula(ties):
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, labels = sample(rng, int(rng.integers(2, 15)), int(rng.integers(2, 40)), ties=ties)
        expected = literal_covariance([scores], labels)[0, 0]
        assert delong_variance(scores, labels) == pytest.approx(expected, rel=ROUNDING, abs=1e-15)


def test_a_variance_by_hand():
    """Positives 4, 2 and negatives 3, 1, 0: V10 = 1, 2/3; V01 = 1/2, 1, 1. S10 = 1/18, S01 = 1/12."""
    assert delong_variance([4, 2, 3, 1, 0], [1, 1, 0, 0, 0]) == pytest.approx(1 / 36 + 1 / 36)


@pytest.mark.parametrize("ties", [False, True])
def test_the_interval_is_delong_on_the_logit_scale_with_students_quantile(ties):
    rng = np.random.default_rng(1)
    for _ in range(10):
        scores, labels = sample(rng, 60, 90, ties=ties)
        table = psi(scores, labels)
        auc, variance = table.mean(), literal_covariance([scores], labels)[0, 0]
        losses = np.empty(labels.size)
        losses[labels == 1], losses[labels == 0] = 1 - table.mean(axis=1), 1 - table.mean(axis=0)
        reach = stats.t.ppf(0.95, literal_freedom(losses, labels)) * math.sqrt(variance) / (auc * (1 - auc))
        expected = 1 / (1 + np.exp(-np.log(auc / (1 - auc)) + np.array([reach, -reach])))
        bounds = auc_interval(scores, labels, confidence=0.9)
        assert (bounds.lower, bounds.upper) == pytest.approx(tuple(expected), rel=1e-9)
        assert (bounds.method, bounds.confidence) == ("DeLong", 0.9)


def test_many_rows_have_the_normal_quantile():
    rng = np.random.default_rng(2)
    scores, labels = sample(rng, 4000, 4000)
    auc, error = roc_auc(scores, labels), math.sqrt(delong_variance(scores, labels))
    reach = stats.norm.ppf(0.975) * error / (auc * (1 - auc))
    assert auc_interval(scores, labels).lower == pytest.approx(
        1 / (1 + np.exp(reach - np.log(auc / (1 - auc)))), abs=1e-5
    )


def test_the_difference_uses_the_covariance():
    rng = np.random.default_rng(3)
    for ties in (False, True):
        scores, labels = sample(rng, 60, 90, ties=ties)
        baseline = np.round(scores + rng.normal(size=150), 1)
        s = literal_covariance([scores, baseline], labels)
        error = math.sqrt(s[0, 0] + s[1, 1] - 2 * s[0, 1])
        tables = psi(scores, labels) - psi(baseline, labels)
        moved = np.empty(150)
        moved[labels == 1], moved[labels == 0] = tables.mean(axis=1), tables.mean(axis=0)
        freedom = literal_freedom(moved, labels)
        found = auc_difference(scores, baseline, labels)
        assert found.value == roc_auc(scores, labels) - roc_auc(baseline, labels)
        reach = stats.t.ppf(0.975, freedom) * error
        assert (found.interval.lower, found.interval.upper) == pytest.approx((found.value - reach, found.value + reach))
        assert found.p_value == pytest.approx(2 * stats.t.sf(abs(found.value) / error, freedom))
        other = auc_difference(baseline, scores, labels)
        assert other.value == -found.value
        assert other.p_value == pytest.approx(found.p_value)
        assert other.interval.lower == pytest.approx(-found.interval.upper)


def kish(shares):
    return shares.sum() ** 2 / (shares @ shares)


def literal_difference(scores, baseline, labels, confidence, weights, groups):
    """Every pair looked at, the rows of a group added up, bounds by scipy: value, lower, upper, p and whose bounds."""
    weights = np.ones(len(labels)) if weights is None else weights
    groups = np.arange(len(labels)) if groups is None else groups
    table, labels = psi(scores, labels) - psi(baseline, labels), np.asarray(labels)
    shares = [weights[labels == k] / weights[labels == k].sum() for k in (1, 0)]
    value = shares[0] @ table @ shares[1]
    pairs, influence, parts, rests, gains, losses = len(set(groups)) / 2, {}, [], [], [], []
    for k, share, moved in ((1, shares[0], table @ shares[1]), (0, shares[1], shares[0] @ table)):
        members = [groups[labels == k] == g for g in sorted(set(groups[labels == k]))]
        size = min(kish(share), len(members))
        own = [math.sqrt(size / (size - 1)) * (share * (moved - value))[rows].sum() for rows in members]
        carried = kish(np.array([(share * abs(moved))[rows].sum() for rows in members]))
        for g, part in zip(sorted(set(groups[labels == k])), own, strict=True):
            influence[g] = influence.get(g, 0) + part
        parts.append(sum(part**2 for part in own))
        rests.append(carried - 1)
        pairs = min(pairs, size)
        gains.append(share @ moved.clip(0, None))
        losses.append(share @ (-moved).clip(0, None))
    error = math.sqrt(sum(part**2 for part in influence.values()))
    freedom = min(sum(parts) ** 2 / sum(a**2 / b for a, b in zip(parts, rests, strict=True)), len(influence) - 1)
    tail = (1 - confidence) / 4
    gained, lost = (
        (stats.beta.ppf(tail, x, pairs - x + 1) if x else 0, stats.beta.isf(tail, x + 1, pairs - x))
        for x in (max(gains) * pairs, max(losses) * pairs)
    )
    lower, upper = gained[0] - lost[1], gained[1] - lost[0]
    reach = stats.t.ppf((1 + confidence) / 2, freedom) * error
    method = "exact, smaller class" if lower >= value - reach and upper <= value + reach else "DeLong"
    p_value = 2 * stats.t.sf(abs(value) / error, freedom)
    return value, max(lower, value - reach), min(upper, value + reach), p_value, method


SMALL = {  # whether the lower and the upper bound are DeLong's
    "neither": ([1, 0, 1, 0], [1, 0, 2, -2], [1, 1, 0, 0]),
    "both": ([2, 1, 3, 2, 1], [3, 2, 3, 2, 1], [1, 1, 0, 0, 0]),
    "upper": ([0, 2, 0, 0, 3, 2], [0, 4, 0, 0, 3, 0], [1, 1, 1, 0, 0, 0]),
    "lower": ([3, 2, 2, 0], [2, 2, 2, 2], [1, 1, 0, 0]),
    "neither, more moves among negatives": ([1, 0, 0, 3, 2, 0], [1, 0, 0, 3, 1, 1], [1, 1, 1, 0, 0, 0]),
}
SMALL |= {
    f"{case}, mirrored": (*(-np.array(side) for side in SMALL[case][:2]), 1 - np.array(SMALL[case][2]))
    for case in SMALL
}


@pytest.mark.parametrize("columns", ["", "weights", "groups", "weights and groups"])
@pytest.mark.parametrize("case", [*SMALL, "many"])
def test_the_difference_by_the_book(case, columns):
    rng = np.random.default_rng(17)
    if case == "many":
        scores, labels = sample(rng, 30, 50, ties=True)
        baseline = np.round(scores + rng.normal(size=80), 1)
    else:
        scores, baseline, labels = SMALL[case]
    n = len(labels)
    options = {"weights": rng.uniform(0.5, 2, n)} if "weights" in columns else {}
    if "groups" in columns:
        options["groups"] = np.arange(n) if n < 9 else rng.integers(0, 30, n)
    confidence = 0.9 if case == "many" else 0.95
    expected = literal_difference(scores, baseline, labels, confidence, options.get("weights"), options.get("groups"))
    found = auc_difference(scores, baseline, labels, confidence=confidence, **options)
    assert (found.value, found.p_value) == pytest.approx((expected[0], expected[3]), rel=1e-9, abs=1e-14)
    assert (found.interval.lower, found.interval.upper) == pytest.approx(expected[1:3], rel=1e-9)
    assert (found.interval.method, found.interval.confidence) == (expected[4], confidence)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9))
def test_bounds_hold_the_area_and_have_width(seed, p, n):
    rng = np.random.default_rng(seed)
    labels = np.r_[np.ones(p, int), np.zeros(n, int)]
    scores, baseline = rng.integers(0, 4, (2, p + n))
    for options in ({}, {"weights": rng.random(p + n) + 0.01}, {"groups": rng.integers(0, 5, p + n)}):
        bounds = auc_interval(scores, labels, **options)
        auc = weighted_auc(scores, labels, options.get("weights"))
        assert 0 <= bounds.lower < bounds.upper <= 1
        assert bounds.lower - 1e-9 <= auc <= bounds.upper + 1e-9
        found = auc_difference(scores, baseline, labels, **options)
        assert -1 <= found.interval.lower < found.interval.upper <= 1
        assert found.interval.lower - 1e-9 <= found.value <= found.interval.upper + 1e-9


@pytest.mark.parametrize("options", [{}, {"weights": True}, {"groups": True}, {"weights": True, "groups": True}])
def test_only_the_ranking_counts_and_row_order_changes_no_bit(options):
    rng = np.random.default_rng(4)
    scores, labels = sample(rng, ties=True)
    baseline = np.round(scores + rng.normal(size=80), 1)
    columns = {"weights": rng.random(80), "groups": rng.integers(0, 30, 80)}
    columns = {name: columns[name] for name in options}
    expected = auc_interval(scores, labels, **columns), auc_difference(scores, baseline, labels, **columns)
    assert auc_interval(np.exp(scores), labels, **columns) == expected[0]
    for _ in range(10):
        order = rng.permutation(80)
        mixed = {name: column[order] for name, column in columns.items()}
        assert auc_interval(scores[order], labels[order], **mixed) == expected[0]
        assert auc_difference(scores[order], baseline[order], labels[order], **mixed) == expected[1]


def test_flipped_labels_and_flipped_scores_mirror_the_interval():
    rng = np.random.default_rng(5)
    for shift in (0.3, 4.0):
        scores, labels = sample(rng, shift=shift)
        bounds = auc_interval(scores, labels)
        for flipped in (auc_interval(scores, 1 - labels), auc_interval(-scores, labels)):
            assert (1 - flipped.upper, 1 - flipped.lower) == pytest.approx((bounds.lower, bounds.upper), abs=1e-12)
            assert flipped.method == bounds.method
        both = auc_interval(-scores, 1 - labels)
        assert (both.lower, both.upper) == pytest.approx((bounds.lower, bounds.upper), abs=1e-12)


@pytest.mark.parametrize(("p", "n"), [(12, 300), (300, 12), (1, 5), (1, 1)])
def test_a_perfect_area_is_as_sure_as_the_smaller_class(p, n):
    """All of min(P, N) pairs won: r^m = 0.025."""
    labels = np.r_[np.ones(p, int), np.zeros(n, int)]
    bounds = auc_interval(labels, labels)
    m = min(p, n)
    assert (bounds.upper, bounds.method) == (1.0, "exact, smaller class")
    assert bounds.lower == pytest.approx(0.025 ** (1 / m))
    worst = auc_interval(-labels, labels)
    assert (worst.lower, worst.upper) == (0.0, pytest.approx(1 - 0.025 ** (1 / m)))
    assert auc_interval(labels, labels, confidence=0.8).lower == pytest.approx(0.1 ** (1 / m))


def test_the_method_is_that_of_the_bound_towards_one_half():
    """Of three pairs seven ninths are won: exact below, DeLong's above; and the other way round with scores negated."""
    scores, labels = np.array([0, 0, 1, -1, 0, 0]), [1, 1, 1, 0, 0, 0]
    bounds, mirrored = auc_interval(scores, labels), auc_interval(-scores, labels)
    assert bounds.lower == pytest.approx(stats.beta.ppf(0.025, 7 / 3, 5 / 3))
    assert bounds.upper < stats.beta.ppf(0.975, 10 / 3, 2 / 3) - 1e-3
    assert (mirrored.lower, mirrored.upper) == pytest.approx((1 - bounds.upper, 1 - bounds.lower))
    assert bounds.method == mirrored.method == "exact, smaller class"


def test_one_lost_pair_is_no_reason_for_a_narrower_interval_than_none():
    """One of 25 · 225 pairs lost: DeLong's formula alone would put the lower bound near 0.997."""
    labels = np.r_[np.ones(25, int), np.zeros(225, int)]
    scores = np.arange(250)[::-1].astype(float)
    perfect = auc_interval(scores, labels)
    scores[[24, 25]] = scores[[25, 24]]
    one = auc_interval(scores, labels)
    assert roc_auc(scores, labels) == 1 - 1 / (25 * 225)
    assert one.lower < perfect.lower + 0.001 < 0.9
    assert one.method == "exact, smaller class"


def test_constant_scores_are_one_half_as_sure_as_the_smaller_class():
    labels = np.r_[np.ones(9, int), np.zeros(30, int)]
    bounds = auc_interval(np.ones(39), labels)
    expected = stats.beta.ppf(0.025, 4.5, 5.5), stats.beta.ppf(0.975, 5.5, 4.5)
    assert (bounds.lower, bounds.upper) == pytest.approx(expected)
    third = auc_interval(np.ones(39), labels, weights=np.full(39, 1 / 3))
    assert (third.lower, third.upper) == pytest.approx(expected)


def test_integer_weights_are_repeated_rows():
    rng = np.random.default_rng(6)
    scores, labels = sample(rng, ties=True)
    weights = rng.integers(0, 5, 80)
    repeated = roc_auc(np.repeat(scores, weights), np.repeat(labels, weights))
    assert weighted_auc(scores, labels, weights) == pytest.approx(repeated, abs=1e-14)
    assert weighted_auc(scores, labels, None) == roc_auc(scores, labels)
    assert weighted_auc(scores, labels, np.full(80, 0.1)) == pytest.approx(roc_auc(scores, labels), abs=1e-14)


def test_a_perfect_ranking_is_exactly_one_under_any_weights():
    rng = np.random.default_rng(7)
    for _ in range(50):
        labels = rng.integers(0, 2, 30)
        labels[:2] = 0, 1
        assert (
            weighted_auc(labels + rng.random(30) / 2, labels, rng.random(30) * 10.0 ** rng.integers(-300, 300)) == 1.0
        )


def test_equal_weights_and_groups_of_one_row_change_nothing():
    rng = np.random.default_rng(8)
    scores, labels = sample(rng)
    baseline = scores + rng.normal(size=80)
    for options in ({"weights": np.full(80, 3.7)}, {"groups": np.arange(80)}, {"groups": [f"g{i}" for i in range(80)]}):
        assert delong_variance(scores, labels, **options) == pytest.approx(delong_variance(scores, labels))
        bounds, plain = auc_interval(scores, labels, **options), auc_interval(scores, labels)
        assert (bounds.lower, bounds.upper) == pytest.approx((plain.lower, plain.upper))
        assert auc_difference(scores, baseline, labels, **options).p_value == pytest.approx(
            auc_difference(scores, baseline, labels).p_value
        )


def test_the_grouped_variance_adds_within_groups_before_squaring():
    """Obuchowski 1997 written out: sums of V10 − A and V01 − A over the rows of a group."""
    rng = np.random.default_rng(9)
    scores, labels = sample(rng, ties=True)
    groups = rng.integers(0, 12, 80)
    table = psi(scores, labels)
    auc, (p, n) = table.mean(), table.shape
    v10, v01 = table.mean(axis=1) - auc, table.mean(axis=0) - auc
    a = np.array([v10[groups[labels == 1] == g].sum() / p for g in range(12)])
    b = np.array([v01[groups[labels == 0] == g].sum() / n for g in range(12)])
    i10, i01 = len(set(groups[labels == 1])), len(set(groups[labels == 0]))
    f10, f01 = i10 / (i10 - 1), i01 / (i01 - 1)
    expected = f10 * a @ a + f01 * b @ b + 2 * math.sqrt(f10 * f01) * a @ b
    assert delong_variance(scores, labels, groups=groups) == pytest.approx(expected, rel=ROUNDING)


def test_the_weighted_variance_is_that_of_weighted_means():
    rng = np.random.default_rng(10)
    scores, labels = sample(rng, ties=True)
    weights = rng.random(80)
    wp, wn = weights[labels == 1], weights[labels == 0]
    wp, wn = wp / wp.sum(), wn / wn.sum()
    table = psi(scores, labels)
    auc = wp @ table @ wn
    expected = sum(
        1 / (1 - share @ share) * share**2 @ (v - auc) ** 2 for share, v in [(wp, table @ wn), (wn, wp @ table)]
    )
    assert weighted_auc(scores, labels, weights) == pytest.approx(auc)
    assert delong_variance(scores, labels, weights=weights) == pytest.approx(expected, rel=ROUNDING)


def test_groups_make_a_perfect_area_as_sure_as_pairs_of_groups():
    labels = np.r_[np.ones(40, int), np.zeros(60, int)]
    apart = np.r_[np.repeat(np.arange(8), 5), np.repeat(np.arange(10, 30), 3)]
    assert auc_interval(labels, labels, groups=apart).lower == pytest.approx(0.025 ** (1 / 8))
    # 20 groups that hold both classes: two groups a pair, so ten of them.
    both = np.arange(100) % 20
    assert auc_interval(labels, labels, groups=both).lower == pytest.approx(0.025 ** (1 / 10))
    one = auc_interval(labels, labels, groups=np.zeros(100))
    assert (one.lower, one.method) == (pytest.approx(0.025), "exact, smaller class")


def test_scores_that_rank_alike_differ_by_zero_but_not_for_certain():
    labels = np.r_[np.ones(12, int), np.zeros(40, int)]
    scores = np.random.default_rng(11).normal(size=52)
    found = auc_difference(scores, scores**3, labels)
    assert (found.value, found.p_value) == (0.0, 1.0)
    # A rate of change that shows in none of 12 pairs, a quarter of 5 % on each of four sides.
    change = 1 - 0.0125 ** (1 / 12)
    assert (found.interval.lower, found.interval.upper) == pytest.approx((-change, change))
    assert found.interval.method == "exact, smaller class"


def test_a_difference_without_variance_has_bounds_but_no_p_value():
    """From all pairs lost to all won: every placement moved by 1."""
    labels = np.r_[np.ones(12, int), np.zeros(40, int)]
    found = auc_difference(labels, -labels, labels)
    assert (found.value, found.p_value, found.interval.upper) == (1.0, None, 1.0)
    assert found.interval.lower == pytest.approx(0.0125 ** (1 / 12) - (1 - 0.0125 ** (1 / 12)))
    worse = auc_difference(-labels, labels, labels)
    assert (worse.value, worse.p_value) == (-1.0, None)
    assert (worse.interval.lower, worse.interval.upper) == (-1.0, pytest.approx(-found.interval.lower))
    alone = auc_difference([3, 1, 2], [1, 3, 2], [1, 0, 0])
    assert alone.p_value is None
    assert alone.interval.lower <= alone.value <= alone.interval.upper


def test_one_moved_row_is_no_evidence():
    labels = np.r_[np.ones(30, int), np.zeros(100, int)]
    baseline = labels * 100.0 + np.arange(130) / 1000
    baseline[0] = -1
    found = auc_difference(labels, baseline, labels)
    assert found.value == pytest.approx(1 / 30)
    assert found.p_value == 1.0
    assert found.interval.lower < 0 < found.interval.upper < 0.25


def permutation_p_value(rng, scores, baseline, labels, draws):
    """Under no difference the two scores of a row may be exchanged (their ranks, which share a scale)."""
    first, second = stats.rankdata(scores), stats.rankdata(baseline)
    observed = abs(roc_auc(first, labels) - roc_auc(second, labels))
    swaps = rng.random((draws, labels.size)) < 0.5
    hits = [
        abs(roc_auc(np.where(s, second, first), labels) - roc_auc(np.where(s, first, second), labels))
        >= observed - 1e-12
        for s in swaps
    ]
    return np.mean(hits)


@pytest.mark.parametrize("shift", [0.3, 0.0])
def test_the_p_value_is_near_that_of_exchanging_the_scores_of_rows(shift):
    rng = np.random.default_rng(12)
    labels = np.r_[np.ones(60, int), np.zeros(90, int)]
    common = rng.normal(size=150)
    scores = common + 0.5 * rng.normal(size=150) + (1 + shift) * labels
    baseline = common + 0.5 * rng.normal(size=150) + labels
    expected = permutation_p_value(rng, scores, baseline, labels, 600)
    found = auc_difference(scores, baseline, labels).p_value
    assert found == pytest.approx(expected, abs=0.06)


def misses(rng, draws, p, n, auc, spread=1.0):
    """How often the lower and the upper bound at 95 % miss a binormal area."""
    shift = stats.norm.ppf(auc) * math.hypot(spread, 1)
    labels = np.r_[np.ones(p, int), np.zeros(n, int)]
    low = high = 0
    for _ in range(draws):
        bounds = auc_interval(np.r_[rng.normal(shift, spread, p), rng.normal(size=n)], labels)
        low, high = low + (bounds.lower > auc), high + (bounds.upper < auc)
    return low / draws, high / draws


@pytest.mark.parametrize(("p", "n", "auc"), [(25, 225, 0.9), (75, 175, 0.8), (25, 225, 0.99)])
def test_intervals_cover_binormal_areas(p, n, auc):
    low, high = misses(np.random.default_rng(13), 300, p, n, auc)
    assert low < 0.055  # 2.5 % and more than three standard errors
    assert high < 0.055


@pytest.mark.slow
@pytest.mark.parametrize("auc", [0.7, 0.9, 0.97, 0.99, 0.997])
@pytest.mark.parametrize("prevalence", [0.1, 0.3, 0.5])
def test_intervals_cover_binormal_areas_of_250_rows(prevalence, auc):
    p = round(250 * prevalence)
    low, high = misses(np.random.default_rng(14), 2000, p, 250 - p, auc)
    assert low < 0.045
    assert high < 0.045


@pytest.mark.slow
@pytest.mark.parametrize("auc", [0.9, 0.97, 0.99])
def test_wide_positives_near_one_are_missed_rarely(auc):
    """Twelve positives twice as spread as the negatives: the plain formula misses up to 29 %."""
    low, _ = misses(np.random.default_rng(15), 2000, 12, 300, auc, spread=2.0)
    assert low < 0.07


def test_ignoring_groups_covers_too_little_and_naming_them_enough():
    rng = np.random.default_rng(16)
    groups, auc = np.repeat(np.arange(100), 10), 0.8
    labels = (np.arange(100) < 20).astype(int)[groups]
    missed = np.zeros(2)
    for _ in range(150):
        scores = math.sqrt(2) * stats.norm.ppf(auc) * labels + math.sqrt(0.5) * (
            rng.normal(size=100)[groups] + rng.normal(size=1000)
        )
        for k, bounds in enumerate((auc_interval(scores, labels), auc_interval(scores, labels, groups=groups))):
            missed[k] += not bounds.lower <= auc <= bounds.upper
    ignoring, naming = missed / 150
    assert ignoring > 0.25
    assert naming < 0.11  # 5 % and three standard errors of 150 draws


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [1, 1]), {}, "both classes"),
        (([1, math.nan], [1, 0]), {}, "scores must be finite"),
        (([1, 2, 3], [1, 0]), {}, "labels must be 1-D of length 3"),
        (([1, 2], [1, 0]), {"weights": [1, 0]}, "both classes"),
        (([1, 2], [1, 0]), {"weights": [1, -1]}, "not be negative"),
        (([1, 2], [1, 0]), {"groups": [1]}, "groups must be 1-D of length 2"),
        (([1, 2], [1, 0]), {"confidence": 1}, "confidence must lie between 0 and 1"),
    ],
)
def test_impossible_arguments_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        auc_interval(*arguments, **options)


def test_what_has_no_variance_or_no_partner_is_refused():
    with pytest.raises(ValueError, match="at least two rows"):
        delong_variance([3, 1, 2], [1, 0, 0])
    with pytest.raises(ValueError, match="baseline must have length 3"):
        auc_difference([3, 1, 2], [1, 2], [1, 0, 0])
