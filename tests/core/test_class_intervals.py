"""Intervals of averages over classes: what every row does to an average, by finite differences of scikit-learn."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import special, stats
from sklearn import metrics

from headeval.core.class_counts import ClassCounts
from headeval.core.class_influence import rate_variances
from headeval.core.class_intervals import Variances, average_interval
from headeval.core.intervals import Interval, wilson
from headeval.core.placed_precision import average_precision_interval, placed_precision

RNG = np.random.default_rng(4)
N, C, STEP = 80, 3, 1e-5
Y = np.concatenate([np.arange(C), RNG.choice(C, size=N - C, p=[0.6, 0.3, 0.1])])
CALLED = np.where(RNG.random(N) < 0.6, Y, RNG.integers(C, size=N))
S = RNG.normal(size=N) + (Y == 0)
W = RNG.uniform(0.5, 2, size=N)
UNITS = RNG.integers(25, size=N)
NAMES = ("precision", "recall", "f1")


def measured(w: np.ndarray) -> np.ndarray:
    """Precision, recall and F1 of each class, and then the average by rows of each, (3, C + 1)."""
    *three, held = (np.asarray(part) for part in metrics.precision_recall_fscore_support(Y, CALLED, sample_weight=w))
    return np.array([[*part, part @ held / held.sum()] for part in three])


@cache
def derivatives(*, weighted: bool) -> np.ndarray:
    """By how much a small change of the weight of each row moves these, times that weight, (3, C + 1, N)."""
    w, found = W if weighted else np.ones(N), []
    for row in range(N):
        change = np.where(np.arange(N) == row, STEP, 0.0)
        found.append((measured(w * (1 + change)) - measured(w * (1 - change))) / (2 * STEP))
    return np.moveaxis(np.array(found), 0, -1)


def by_units(influence: np.ndarray, units: np.ndarray | None) -> float:
    total = influence if units is None else np.bincount(units, influence)
    return float((total**2).sum())


@pytest.mark.parametrize("units", [None, UNITS])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_variances_are_those_of_finite_differences(name: str, weighted: bool, units: np.ndarray | None) -> None:
    weights = W if weighted else None
    found = rate_variances(Y, CALLED, weights, units, ClassCounts.of_rows(Y, CALLED, weights, n_classes=C))
    *own, by_rows = derivatives(weighted=weighted)[NAMES.index(name)]
    macro, both = found[f"macro_{name}"], found[f"weighted_{name}"]
    assert macro.average == pytest.approx(by_units(np.mean(own, axis=0), units), rel=1e-5)
    assert macro.apart == pytest.approx(sum(by_units(part, units) for part in own) / C**2, rel=1e-5)
    assert macro.shares == 0.0
    held = np.bincount(Y, weights) / np.sum(W if weighted else np.ones(N))
    apart = sum(share**2 * by_units(part, units) for share, part in zip(held, own, strict=True))
    assert both.apart == pytest.approx(apart, rel=1e-5)
    assert both.average + both.shares == pytest.approx(max(both.average, by_units(by_rows, units)), rel=1e-5)
    assert macro.independent is both.independent is (units is None and name != "f1")


@pytest.mark.parametrize("name", NAMES)
def test_rows_without_weight_and_the_unit_of_the_weights_move_nothing(name: str) -> None:
    """A fourth class has one row, and another is taken for it; neither has a weight. Of a fifth there is nothing."""
    labels, called, weights = np.append(Y, [C, 0]), np.append(CALLED, [0, C]), np.append(W / 1000, [0.0, 0.0])
    counts = ClassCounts.of_rows(labels, called, weights, n_classes=C + 2)
    found = rate_variances(labels, called, weights, None, counts)
    expected = rate_variances(Y, CALLED, W, None, ClassCounts.of_rows(Y, CALLED, W, n_classes=C))
    for average, share in (("weighted", 1.0), ("macro", C / (C + 2))):
        one, other = found[f"{average}_{name}"], expected[f"{average}_{name}"]
        assert one.average == pytest.approx(share**2 * other.average, rel=1e-12)
        assert one.apart == pytest.approx(share**2 * other.apart, rel=1e-12)
        assert one.shares == pytest.approx(other.shares, rel=1e-9)


def test_many_rows_have_the_interval_of_the_delta_method() -> None:
    """Wilson's distances become z standard errors, so that all of it becomes z·√variance."""
    n = 200_000
    y = RNG.choice(C, size=n, p=[0.6, 0.3, 0.1])
    called = np.where(RNG.random(n) < 0.7, y, RNG.integers(C, size=n))
    counts = ClassCounts.of_rows(y, called, None, n_classes=C)
    variances = rate_variances(y, called, None, None, counts)["macro_recall"]
    own = [
        (float(r), wilson(float(h), float(a)))
        for r, h, a in zip(counts.recall, counts.hits, counts.actual, strict=True)
    ]
    value = float(counts.recall.mean())
    found = average_interval(value, own, np.full(C, 1 / C), variances, confidence=0.95)
    reach = 1.959964 * math.sqrt(sum(r * (1 - r) / a for r, a in zip(counts.recall, counts.actual, strict=True))) / C
    assert found.lower == pytest.approx(value - reach, rel=1e-4)
    assert found.upper == pytest.approx(value + reach, rel=1e-4)


ONE = (0.5, Interval(0.3, 0.8, 0.95, "any"))
HALVES = np.array([0.5, 0.5])


def test_classes_that_vary_fully_together_have_the_interval_of_one() -> None:
    """As the areas of two classes do; the factor is 2 = variance of the mean over half of the sum of both quarters."""
    found = average_interval(0.5, [ONE, ONE], HALVES, Variances(1.0, 0.5), confidence=0.95)
    assert (found.lower, found.upper) == pytest.approx((0.3, 0.8))


def test_classes_of_which_nothing_is_known_add_up() -> None:
    """A perfect result has no variance to tell how the classes vary together."""
    perfect = (1.0, Interval(0.4, 1.0, 0.95, "any"))
    found = average_interval(1.0, [perfect, perfect], HALVES, Variances(0.0, 0.0), confidence=0.95)
    assert (found.lower, found.upper) == pytest.approx((0.4, 1.0))
    apart = average_interval(1.0, [perfect, perfect], HALVES, Variances(0.0, 0.0, independent=True), confidence=0.95)
    assert apart.lower == pytest.approx(1 - 0.6 / math.sqrt(2))


def test_varying_shares_widen() -> None:
    found = average_interval(0.5, [ONE, ONE], HALVES, Variances(1.0, 1.0, 0.01), confidence=0.95)
    assert found.lower == pytest.approx(0.5 - math.sqrt(0.02 + 1.959964**2 * 0.01))


def test_an_interval_of_an_average_stays_within_its_range_and_says_what_it_is() -> None:
    found = average_interval(0.5, [ONE, ONE], HALVES, Variances(1.0, 1.0, 1.0), confidence=0.9)
    assert (found.lower, found.upper, found.confidence, found.method) == (0.0, 1.0, 0.9, "combined from the classes")


def test_a_confidence_of_nearly_one_has_a_finite_quantile() -> None:
    """(1 + confidence)/2 would round to 1; the tail is 2⁻⁵⁴."""
    found = average_interval(0.5, [ONE, ONE], HALVES, Variances(1.0, 1.0, 1e-4), confidence=1 - 2**-53)
    assert found.lower == pytest.approx(0.5 - math.hypot(math.sqrt(0.02), stats.norm.isf(2**-54) / 100), rel=1e-12)


# Small ones, and none for every fourth row, of which the last has the highest score.
TOPLESS = np.where(np.arange(N) % 4 == (N - 1) % 4, 0.0, W / 100)


@pytest.mark.parametrize("weights", [None, W, TOPLESS])
def test_influence_on_average_precision_is_that_of_finite_differences(weights: np.ndarray | None) -> None:
    scores, positive = np.round(S, 1), Y == 0  # with ties
    scores[-1] = 99
    found = placed_precision(scores, positive, weights)
    w = np.ones(N) if weights is None else weights
    assert found.value == pytest.approx(metrics.average_precision_score(positive, scores, sample_weight=weights))
    for row in range(0, N, 5):
        up, down = (w + side * STEP * w * (np.arange(N) == row) for side in (1, -1))
        moved = [metrics.average_precision_score(positive, scores, sample_weight=weight) for weight in (up, down)]
        assert found.influence[row] == pytest.approx((moved[0] - moved[1]) / (2 * STEP), abs=1e-8)


@pytest.mark.parametrize("units", [None, UNITS])
@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize(("smaller", "method"), [(3, "delta method"), (400, "exact, smaller class")])
def test_the_interval_of_average_precision_by_the_book(
    smaller: int, method: str, weights: np.ndarray | None, units: np.ndarray | None
) -> None:
    """The delta method on log odds with Student's t of as many rows or groups as carry the loss; scipy's quantiles."""
    scores, positive = np.round(S, 1), Y == 0
    w = np.ones(N) if weights is None else weights
    above = scores >= scores[:, None]
    precision = (above & positive) @ w / (above @ w)
    value = float(precision[positive] @ w[positive] / w[positive].sum())
    lost = np.bincount(np.arange(N) if units is None else units, w * positive * (1 - precision))
    found = placed_precision(scores, positive, weights)
    assert found.lost == pytest.approx(w * positive * (1 - precision), abs=1e-14)
    freedom = lost.sum() ** 2 / (lost @ lost) - 1
    error = math.sqrt(by_units(found.influence, units))
    reach = stats.t.ppf(0.95, freedom) * error / (value * (1 - value))
    bounds = special.expit(special.logit(value) + np.array([-reach, reach]))
    exact = stats.beta.ppf(
        [0.05, 0.95], [value * smaller, value * smaller + 1], [smaller * (1 - value) + 1, smaller * (1 - value)]
    )
    interval = average_precision_interval(found, units, smaller=smaller, confidence=0.9)
    assert interval.lower == pytest.approx(max(bounds[0], exact[0]), rel=1e-9)
    assert interval.upper == pytest.approx(min(bounds[1], exact[1]), rel=1e-9)
    assert (interval.method, interval.confidence) == (method, 0.9)


def test_two_positives_that_carry_all_the_loss_have_one_degree_of_freedom() -> None:
    """They tie with two negatives below 48 others: each has a precision of 50/52. One alone has no variance."""
    scores, positive = np.append(np.full(48, 1.0), np.zeros(4)), np.arange(52) < 50
    found = placed_precision(scores, positive, None)
    value = (48 + 2 * 50 / 52) / 50
    assert found.value == pytest.approx(value, rel=1e-14)
    interval = average_precision_interval(found, None, smaller=50, confidence=0.5)
    reach = math.sqrt(found.influence @ found.influence) / (value * (1 - value))  # Cauchy's quartile is 1
    assert interval.lower == pytest.approx(special.expit(special.logit(value) - reach), rel=1e-9)
    alone = placed_precision(np.append(np.full(49, 1.0), np.zeros(2)), np.arange(51) < 50, None)
    exact = stats.beta.ppf(0.25, alone.value * 50, 50 * (1 - alone.value) + 1)
    assert average_precision_interval(alone, None, smaller=50, confidence=0.5).lower == pytest.approx(exact)


def test_average_precision_of_constant_scores_has_a_width() -> None:
    """Every group has the same share of positives, so that nothing varies."""
    found = placed_precision(np.zeros(30), np.arange(30) % 3 == 0, None)
    interval = average_precision_interval(found, np.arange(30) // 6, smaller=5, confidence=0.95)
    assert interval.upper - interval.lower > 0.5


def test_a_perfect_average_precision_is_exactly_one_and_bounded_below_it() -> None:
    """The bound of twelve out of twelve: r¹² = 0.025."""
    scores, positive = np.arange(42.0), np.arange(42) >= 30
    found = placed_precision(scores, positive, RNG.uniform(0.1, 2, size=42))
    assert found.value == 1.0
    interval = average_precision_interval(found, None, smaller=12, confidence=0.95)
    assert interval.lower == pytest.approx(0.025 ** (1 / 12))
    assert interval.upper == 1.0
