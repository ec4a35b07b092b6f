"""Curves and areas against pair counting in exact fractions, scikit-learn and scipy."""

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from headeval.core.checks import FloatArray, IntArray
from headeval.core.ranked import RankedCounts, rank_counts
from headeval.core.ranking import average_precision, pr_curve, ranked_auc, roc_auc, roc_curve

finite = st.floats(allow_nan=False, allow_infinity=False)
few = st.sampled_from([-1.5, -0.0, 0.0, 5e-324, 0.25, 1.0, 1e308, -1e308])  # ties, subnormals and the far ends


@st.composite
def ranked_rows(draw: st.DrawFn) -> list[tuple[float, int]]:
    """Scores and labels with both classes, often tied."""
    rows = draw(st.lists(st.tuples(st.one_of(few, finite), st.integers(0, 1)), min_size=2, max_size=30))
    assume(len({label for _, label in rows}) == 2)
    return rows


def columns(rows: list[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [score for score, _ in rows], [label for _, label in rows]


def exact_auc(scores: list[float], labels: list[int]) -> Fraction:
    positives = [s for s, y in zip(scores, labels, strict=True) if y]
    negatives = [s for s, y in zip(scores, labels, strict=True) if not y]
    twice_won = sum(2 * (p > n) + (p == n) for p in positives for n in negatives)
    return Fraction(twice_won, 2 * len(positives) * len(negatives))


def exact_average_precision(scores: list[float], labels: list[int]) -> Fraction:
    total, found = Fraction(0), 0
    for t in sorted(set(scores), reverse=True):
        flagged = [y for s, y in zip(scores, labels, strict=True) if s >= t]
        total += Fraction(sum(flagged) - found, sum(labels)) * Fraction(sum(flagged), len(flagged))
        found = sum(flagged)
    return total


def data(kind: str) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(11)
    y = (rng.random(500) < 0.3).astype(np.int64)
    scores = rng.normal(size=500) + y
    return {
        "continuous": scores,
        "tied": np.round(scores),
        "heavily tied": (scores > 0.5).astype(np.float64),
        "constant": np.full(500, 0.25),
        "extreme": np.sign(scores) * 10.0 ** np.clip(100 * np.abs(scores), 0, 300),
    }[kind], y


KINDS = ["continuous", "tied", "heavily tied", "constant", "extreme"]


@given(ranked_rows())
def test_auc_is_the_share_of_pairs_won(rows: list[tuple[float, int]]) -> None:
    # The quotient of two integers, divided once: nothing but the last rounding separates it from the fraction.
    assert roc_auc(*columns(rows)) == float(exact_auc(*columns(rows)))


@given(ranked_rows())
def test_auc_is_the_area_under_the_curve(rows: list[tuple[float, int]]) -> None:
    fpr, tpr, _ = roc_curve(*columns(rows))
    assert roc_auc(*columns(rows)) == pytest.approx(np.diff(fpr) @ (tpr[1:] + tpr[:-1]) / 2, abs=1e-14)


@given(ranked_rows())
def test_average_precision_is_the_step_sum(rows: list[tuple[float, int]]) -> None:
    assert average_precision(*columns(rows)) == pytest.approx(float(exact_average_precision(*columns(rows))), rel=1e-14)


@given(ranked_rows())
def test_curve_points_are_the_rates_at_their_thresholds(rows: list[tuple[float, int]]) -> None:
    scores, labels = columns(rows)
    fpr, tpr, thresholds = roc_curve(scores, labels)
    assert thresholds.tolist() == [math.inf, *sorted(set(scores), reverse=True)]
    for point in zip(fpr, tpr, thresholds, strict=True):
        flagged = [y for s, y in zip(scores, labels, strict=True) if s >= point[2]]
        positives = sum(labels)
        assert point[:2] == (flagged.count(0) / (len(labels) - positives), sum(flagged) / positives)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0.0, 0.0, 1.0, 1.0)


@given(ranked_rows())
def test_precision_recall_points_are_the_rates_at_their_thresholds(rows: list[tuple[float, int]]) -> None:
    scores, labels = columns(rows)
    curve = pr_curve(scores, labels)
    assert curve.thresholds.tolist() == sorted(set(scores), reverse=True)
    for precision, recall, t in zip(curve.precision, curve.recall, curve.thresholds, strict=True):
        flagged = [y for s, y in zip(scores, labels, strict=True) if s >= t]
        assert (precision, recall) == (sum(flagged) / len(flagged), sum(flagged) / sum(labels))


def everything(scores: list[float], labels: list[int]) -> tuple[object, ...]:
    fpr, tpr, thresholds = roc_curve(scores, labels)
    curve = pr_curve(scores, labels)
    arrays = (fpr, tpr, thresholds, curve.precision, curve.recall, curve.thresholds)
    return (roc_auc(scores, labels), average_precision(scores, labels), *(array.tobytes() for array in arrays))


@given(ranked_rows(), st.randoms(use_true_random=False))
def test_row_order_changes_no_bit(rows: list[tuple[float, int]], random: Random) -> None:
    shuffled = rows.copy()
    random.shuffle(shuffled)
    assert everything(*columns(shuffled)) == everything(*columns(rows))


@given(ranked_rows())
def test_strictly_increasing_maps_change_nothing_but_the_thresholds(rows: list[tuple[float, int]]) -> None:
    scores, labels = columns(rows)
    ranks = [sorted(set(scores)).index(s) for s in scores]  # every strictly increasing map gives the same ranks
    for mapped in ([float(r) for r in ranks], [math.exp(r) for r in ranks], [-1 / (1 + r) for r in ranks]):
        assert roc_auc(mapped, labels) == roc_auc(scores, labels)
        assert average_precision(mapped, labels) == average_precision(scores, labels)
        assert roc_curve(mapped, labels)[0].tolist() == roc_curve(scores, labels)[0].tolist()
        assert roc_curve(mapped, labels)[1].tolist() == roc_curve(scores, labels)[1].tolist()
        assert pr_curve(mapped, labels).precision.tolist() == pr_curve(scores, labels).precision.tolist()


@given(ranked_rows())
def test_flipping_labels_or_scores_mirrors_the_area(rows: list[tuple[float, int]]) -> None:
    scores, labels = columns(rows)
    mirrored = 1 - exact_auc(scores, labels)
    assert roc_auc(scores, [1 - y for y in labels]) == float(mirrored)
    assert roc_auc([-s for s in scores], labels) == float(mirrored)
    assert roc_auc([-s for s in scores], [1 - y for y in labels]) == roc_auc(scores, labels)


@pytest.mark.parametrize("kind", KINDS)
def test_roc_is_scikit_learns(kind: str) -> None:
    scores, y = data(kind)
    fpr, tpr, thresholds = roc_curve(scores, y)
    expected = metrics.roc_curve(y, scores, drop_intermediate=False)
    for ours, theirs in zip((fpr, tpr, thresholds), expected, strict=True):
        assert ours.tolist() == theirs.tolist()
    assert roc_auc(scores, y) == pytest.approx(metrics.roc_auc_score(y, scores), abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_auc_is_scipys_mann_whitney_u(kind: str) -> None:
    scores, y = data(kind)
    u = stats.mannwhitneyu(scores[y == 1], scores[y == 0]).statistic
    assert roc_auc(scores, y) == u / (y.sum() * (1 - y).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_precision_recall_is_scikit_learns(kind: str) -> None:
    scores, y = data(kind)
    curve = pr_curve(scores, y)
    precision, recall, thresholds = metrics.precision_recall_curve(y, scores, drop_intermediate=False)
    # scikit-learn goes the other way and adds a point (recall 0, precision 1) that no threshold has.
    assert curve.precision.tolist() == precision[-2::-1].tolist()
    assert curve.recall.tolist() == recall[-2::-1].tolist()
    assert curve.thresholds.tolist() == thresholds[::-1].tolist()
    assert average_precision(scores, y) == pytest.approx(metrics.average_precision_score(y, scores), rel=1e-13)


def test_reference_curve_of_five() -> None:
    fpr, tpr, thresholds = roc_curve([0.9, 0.7, 0.6, 0.4, 0.3], [1, 0, 1, 1, 0])
    assert fpr.tolist() == [0, 0, 1 / 2, 1 / 2, 1 / 2, 1]
    assert tpr.tolist() == [0, 1 / 3, 1 / 3, 2 / 3, 1, 1]
    assert thresholds.tolist() == [math.inf, 0.9, 0.7, 0.6, 0.4, 0.3]
    assert roc_auc([0.9, 0.7, 0.6, 0.4, 0.3], [1, 0, 1, 1, 0]) == 4 / 6


def test_reference_ten_scored_examples() -> None:
    scores = np.array([0.95, 0.90, 0.80, 0.70, 0.55, 0.45, 0.40, 0.30, 0.20, 0.10])
    y = np.array([1, 1, 0, 1, 0, 1, 0, 0, 0, 0])
    assert roc_auc(scores, y) == 21 / 24
    assert average_precision(scores, y) == pytest.approx((1 + 1 + 3 / 4 + 4 / 6) / 4, abs=1e-15)
    assert round(average_precision(scores, y), 4) == 0.8542
    assert roc_auc(scores, 1 - y) == 0.125
    assert roc_auc(1 - scores, y) == 1 - 21 / 24
    assert roc_auc(np.exp(scores), y) == 21 / 24


@pytest.mark.parametrize(
    ("scores", "labels"), [([0.5, 0.5], [1, 0]), ([0.5, 0.5], [0, 1]), ([0.7] * 5, [1, 0, 0, 1, 0])]
)
def test_reference_constant_scores_rank_nothing(scores: list[float], labels: list[int]) -> None:
    assert roc_auc(scores, labels) == 0.5


@pytest.mark.parametrize("n", [2, 3, 7, 49, 1000])
def test_perfect_and_reversed_rankings_are_exact(n: int) -> None:
    scores, y = np.arange(n) / 7, (np.arange(n) >= n // 3 + 1).astype(int)
    assert (roc_auc(scores, y), roc_auc(-scores, y), average_precision(scores, y)) == (1.0, 0.0, 1.0)


HALF = 2**31


@pytest.mark.parametrize(
    "groups",
    [
        [(0, HALF), (HALF, 0)],  # twice the pairs lost are 2⁶³, the first number that int64 does not hold
        [(0, HALF - 1), (HALF, 0)],
        [(HALF, 0), (0, HALF)],
        [(HALF, HALF)],
        [(3, 2**40), (2**40, 5), (7, 11), (2**41, 2**39)],
    ],
)
def test_pairs_beyond_64_bits_are_counted_exactly(groups: list[tuple[int, int]]) -> None:
    """Groups of (positives, negatives) of equal scores, the highest score first."""
    tp, fp = (np.cumsum(column) for column in zip(*groups, strict=True))
    below = int(fp[-1])
    twice_won = 0
    for positives, negatives in groups:
        below -= negatives
        twice_won += positives * (2 * below + negatives)
    counts = RankedCounts(-np.arange(len(groups), dtype=np.float64), tp, fp)
    assert ranked_auc(counts) == float(Fraction(twice_won, 2 * int(tp[-1]) * int(fp[-1])))


def test_scores_are_grouped_by_equality_alone() -> None:
    """The smallest differences separate and the largest do not overflow."""
    assert roc_auc([5e-324, 0.0], [1, 0]) == 1.0
    assert roc_auc([1.0 + 2.3e-16, 1.0], [1, 0]) == 1.0
    assert roc_auc([1.7e308, -1.7e308], [1, 0]) == 1.0
    assert roc_auc([0.0, -0.0], [1, 0]) == 0.5


def test_zero_has_one_spelling() -> None:
    for scores in ([0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]):
        assert math.copysign(1.0, roc_curve(scores, [1, 0])[2][1]) == 1.0
        assert math.copysign(1.0, pr_curve(scores, [1, 0]).thresholds[0]) == 1.0


def test_counts_are_integers_that_end_at_the_totals() -> None:
    ranked = rank_counts(np.array([0.1, 0.9, 0.4, 0.4]), np.array([0, 1, 1, 0]))
    assert ranked.thresholds.tolist() == [0.9, 0.4, 0.1]
    assert ranked.true_positives.tolist() == [1, 2, 2]
    assert ranked.false_positives.tolist() == [0, 1, 2]
    assert ranked.true_positives.dtype == ranked.false_positives.dtype == np.int64


def test_precision_without_negatives_is_one() -> None:
    assert average_precision([0.2, 0.1], [1, 1]) == 1.0
    assert pr_curve([0.2, 0.1], [1, 1]).precision.tolist() == [1.0, 1.0]
