"""Intervals of averages over classes: what every row does to an average, by finite differences of scikit-learn."""

import math
from functools import cache

import numpy as np
import pytest
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
    assert both.average + both.shares == pytest.approx(max(both.average, by_units(by_rows, units)), rel=1e-5)


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


@pytest.mark.parametrize("weights", [None, W])
def test_influence_on_average_precision_is_that_of_finite_differences(weights: np.ndarray | None) -> None:
    scores, positive = np.round(S, 1), Y == 0  # with ties
    found = placed_precision(scores, positive, weights)
    w = np.ones(N) if weights is None else weights
    assert found.value == pytest.approx(metrics.average_precision_score(positive, scores, sample_weight=weights))
    for row in range(0, N, 5):
        up, down = (w + side * STEP * w * (np.arange(N) == row) for side in (1, -1))
        moved = [metrics.average_precision_score(positive, scores, sample_weight=weight) for weight in (up, down)]
        assert found.influence[row] == pytest.approx((moved[0] - moved[1]) / (2 * STEP), abs=1e-8)


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
