"""Single points of the ROC curve that a deployment is decided on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray
from headeval.core.ranking import RankedCounts, RankedWeights, rank_counts, rank_weights

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
    fpr, recall = _corners(scores, labels, weights)
    within = fpr <= (max_fpr if weights is None else max_fpr * (1 + _ROUNDING))
    return float(recall[within][-1])


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
    fpr, recall = _corners(scores, labels, weights)
    reached: FloatArray = recall[np.searchsorted(fpr, rates * (1 + _ROUNDING), side="right") - 1]
    return reached


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
    fpr, recall = _corners(scores, labels, weights)
    inside = fpr <= max_fpr
    x = np.append(fpr[inside], max_fpr)
    # The area above the curve is integrated, so that a perfect ranking loses exactly nothing.
    above = np.append(1 - recall[inside], np.interp(max_fpr, fpr, 1 - recall))
    lost = float(np.sum(np.diff(x) * (above[1:] + above[:-1])) / 2)
    return 1 - lost / (2 * max_fpr - max_fpr**2)


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
    flagged = ranked.true_positives + ranked.false_positives
    f1 = 2 * ranked.true_positives / (flagged + ranked.true_positives[-1])
    best = int(np.argmax(f1))  # the first of several: the highest threshold
    thresholds = [*ranked.thresholds[best : best + 2].tolist(), -np.inf]
    return BestF1(float(f1[best]), thresholds[0], thresholds[1])


def _ranked(scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None) -> RankedCounts | RankedWeights:
    s = checks.finite_array("scores", scores, ndim=1)
    y: IntArray = checks.binary_labels(labels, n=s.shape[0])
    if not s.size:
        raise ValueError("scores must hold at least one row")
    w = checks.sample_weights(weights, n=s.shape[0])
    return rank_counts(s, y) if w is None else rank_weights(s, y, w)


def _corners(scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return (fpr, recall) of the corners of the ROC curve, (0, 0) first."""
    ranked = _ranked(scores, labels, weights)
    if not (ranked.true_positives[-1] > 0 and ranked.false_positives[-1] > 0):
        raise ValueError("labels must hold both classes (each with a weight above zero)")
    fpr = np.append(0.0, ranked.false_positives / ranked.false_positives[-1])
    return fpr, np.append(0.0, ranked.true_positives / ranked.true_positives[-1])
