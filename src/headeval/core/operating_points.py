"""Single points of the ROC curve that a deployment is decided on."""

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray
from headeval.core.ranked import BLOCK, RankedCounts, RankedWeights, rank_counts, rank_weights

# Sums of weights carry rounding errors; a rate this much above the bound is the bound.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class BestF1:
    """The largest F1 that any threshold reaches on these very rows.

    Attributes
    ----------
    f1 : in [0, 1].
    threshold : where it is reached, one of the scores; of several the highest.
    above : the next lower score, or −∞: all thresholds above it, up to `threshold`, flag the same rows.
    """

    f1: float
    threshold: float
    above: float


def recall_at_fpr(scores: ArrayLike, labels: ArrayLike, *, max_fpr: float, weights: ArrayLike | None = None) -> float:
    """Return the largest recall that a threshold reaches with a false-positive rate of at most `max_fpr`.

    It is the recall of a corner of the ROC curve, never of a point between two corners that no threshold reaches, nor
    of the nearest corner beyond the rate.

    Parameters
    ----------
    scores : (n,) finite; anything that ranks, larger meaning more positive.
    labels : (n,) in {0, 1}, both present.
    max_fpr : in [0, 1].
    weights : (n,) not negative, both classes with a weight above zero; None counts every row once.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    The corners are (0, 1/2), (1/2, 1/2), (1/2, 1), (1, 1).

    >>> [recall_at_fpr([0.9, 0.7, 0.6, 0.4], [1, 0, 1, 0], max_fpr=rate) for rate in (0.49, 0.5)]
    [0.5, 1.0]
    """
    max_fpr = checks.real_number("max_fpr", max_fpr, minimum=0.0, maximum=1.0)
    ranked = _ranked_with_both(scores, labels, weights)
    return _recall(ranked, max_fpr if weights is None else max_fpr * (1 + _ROUNDING))


def ranked_recall_at_fpr(ranked: RankedCounts, *, max_fpr: float) -> float:
    """Return `recall_at_fpr` of rows that were ranked already; both classes are present."""
    return _recall(ranked, max_fpr)


def recalls_at_fprs(
    scores: ArrayLike, labels: ArrayLike, *, max_fprs: ArrayLike, weights: ArrayLike | None = None
) -> FloatArray:
    """Return `recall_at_fpr` for each of several rates, (k,), from one sort; parameters and errors as there.

    Examples
    --------
    >>> recalls_at_fprs([0.9, 0.7, 0.6, 0.4], [1, 0, 1, 0], max_fprs=[0.0, 0.5, 1.0]).tolist()
    [0.5, 1.0, 1.0]
    """
    rates = checks.probabilities("max_fprs", max_fprs)
    return ranked_recalls_at_fprs(_ranked_with_both(scores, labels, weights), max_fprs=rates)


def ranked_recalls_at_fprs(ranked: RankedCounts | RankedWeights, *, max_fprs: FloatArray) -> FloatArray:
    """Return `recalls_at_fprs` of rows that were ranked already; both classes are present, with some weight."""
    return np.array([_recall(ranked, rate) for rate in (max_fprs * (1 + _ROUNDING)).tolist()])


def partial_auc(
    scores: ArrayLike, labels: ArrayLike, *, max_fpr: float = 0.1, weights: ArrayLike | None = None
) -> float:
    """Return the area under the ROC curve up to `max_fpr`, standardised so that 0.5 is chance and 1 is perfect.

    The curve is cut at `max_fpr` on the line between its two corners there. With A the area up to F and m = F²/2 that
    of chance, the value is (1 + (A − m)/(F − m))/2.

    Parameters
    ----------
    scores, labels, weights : as for `recall_at_fpr`.
    max_fpr : in (0, 1]; 1 gives the whole area.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    McClish, Analyzing a portion of the ROC curve, Medical Decision Making 9 (1989).

    Examples
    --------
    >>> partial_auc([0.9, 0.7, 0.6, 0.4], [1, 1, 0, 0]), partial_auc([0.9, 0.7, 0.6, 0.4], [1, 0, 1, 0], max_fpr=1)
    (1.0, 0.75)
    """
    max_fpr = checks.real_number("max_fpr", max_fpr, minimum=0.0, maximum=1.0)
    if max_fpr == 0.0:
        raise ValueError("max_fpr must be greater than 0")
    return ranked_partial_auc(_ranked_with_both(scores, labels, weights), max_fpr=max_fpr)


def ranked_partial_auc(ranked: RankedCounts | RankedWeights, *, max_fpr: float = 0.1) -> float:
    """Return `partial_auc` of rows that were ranked already; both classes are present, with some weight."""
    inside = _corners_within(ranked, max_fpr)
    # Of the corners beyond, the first one gives the line that is cut.
    fpr, missed = _points(ranked, max(inside - 1, 0), inside + 1)
    cut = float(np.interp(max_fpr, fpr, missed))
    lost = []
    for first in range(0, inside + 1, BLOCK):
        x, above = _points(ranked, max(first - 1, 0), min(first + BLOCK, inside))
        if first + BLOCK > inside:
            x, above = np.append(x, max_fpr), np.append(above, cut)
        # The area above the curve is integrated, so that a perfect ranking loses exactly nothing.
        lost.append(float(np.sum(np.diff(x) * (above[1:] + above[:-1])) / 2))
    return 1 - math.fsum(lost) / (2 * max_fpr - max_fpr**2)


def _points(ranked: RankedCounts | RankedWeights, first: int, end: int) -> tuple[FloatArray, FloatArray]:
    """Return (fpr, 1 − recall) of some corners of the ROC curve, of the first ones with (0, 1) before them."""
    fpr = ranked.false_positives[first:end] / ranked.false_positives[-1]
    missed = 1 - ranked.true_positives[first:end] / ranked.true_positives[-1]
    return (fpr, missed) if first else (np.append(0.0, fpr), np.append(1.0, missed))


def best_f1(scores: ArrayLike, labels: ArrayLike, *, weights: ArrayLike | None = None) -> BestF1:
    """Return the largest F1 over all thresholds, and the highest threshold that reaches it.

    The threshold is chosen on the rows that measure it, so F1 on other rows is lower on average.

    Parameters
    ----------
    scores, weights : as for `recall_at_fpr`.
    labels : (n,) in {0, 1} with at least one positive (of a weight above zero).

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> best_f1([0.9, 0.7, 0.6, 0.4], [1, 0, 1, 0])
    BestF1(f1=0.8, threshold=0.6, above=0.4)
    """
    ranked = _ranked(scores, labels, weights)
    if not ranked.true_positives[-1] > 0:
        raise ValueError("labels must hold at least one positive (of a weight above zero)")
    return ranked_best_f1(ranked)


def ranked_best_f1(ranked: RankedCounts | RankedWeights) -> BestF1:
    """Return `best_f1` of rows that were ranked already; a positive is present, with some weight."""
    best, place, total = -1.0, 0, ranked.true_positives[-1]
    for first in range(0, ranked.thresholds.shape[0], BLOCK):
        tp, fp = (part[first : first + BLOCK] for part in (ranked.true_positives, ranked.false_positives))
        f1 = 2 * tp / (tp + fp + total)
        at = int(np.argmax(f1))  # the first of several: the highest threshold
        if f1[at] > best:
            best, place = float(f1[at]), first + at
    thresholds = [*ranked.thresholds[place : place + 2].tolist(), -np.inf]
    return BestF1(best, thresholds[0], thresholds[1])


def _ranked(scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None) -> RankedCounts | RankedWeights:
    s = checks.finite_array("scores", scores, ndim=1)
    y: IntArray = checks.binary_labels(labels, n=s.shape[0])
    if not s.size:
        raise ValueError("scores must hold at least one row")
    w = checks.sample_weights(weights, n=s.shape[0])
    return rank_counts(s, y) if w is None else rank_weights(s, y, w)


def _ranked_with_both(scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None) -> RankedCounts | RankedWeights:
    ranked = _ranked(scores, labels, weights)
    if not (ranked.true_positives[-1] > 0 and ranked.false_positives[-1] > 0):
        raise ValueError("labels must hold both classes (each with a weight above zero)")
    return ranked


def _corners_within(ranked: RankedCounts | RankedWeights, max_fpr: float) -> int:
    """Return how many corners of the ROC curve after (0, 0) have a false-positive rate of at most `max_fpr`."""
    total = ranked.false_positives[-1]
    # The rates are looked at in a few places only, by the division that a whole column of them would be made with.
    return bisect_right(ranked.false_positives, max_fpr, key=lambda count: count / total)


def _recall(ranked: RankedCounts | RankedWeights, max_fpr: float) -> float:
    inside = _corners_within(ranked, max_fpr)
    return float(ranked.true_positives[inside - 1] / ranked.true_positives[-1]) if inside else 0.0
