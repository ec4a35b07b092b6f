"""Does the classifier rank positives above negatives: one sorted-and-cumulated primitive behind every curve."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class RankedCounts:
    """Cumulated counts at each distinct score, the highest first.

    Attributes
    ----------
    thresholds : (k,) distinct scores in decreasing order, grouped by exact equality.
    true_positives : (k,) positives with score ≥ thresholds[i].
    false_positives : (k,) negatives with score ≥ thresholds[i].
    """

    thresholds: FloatArray
    true_positives: IntArray
    false_positives: IntArray


@dataclass(frozen=True, slots=True)
class RankedWeights:
    """Cumulated weights at each distinct score, the highest first.

    Attributes
    ----------
    thresholds : (k,) distinct scores in decreasing order, grouped by exact equality.
    true_positives, false_positives : (k,) weight of the positives and negatives with score ≥ thresholds[i].
    """

    thresholds: FloatArray
    true_positives: FloatArray
    false_positives: FloatArray


@dataclass(frozen=True, slots=True)
class PrecisionRecallCurve:
    """Precision and recall when every score ≥ thresholds[i] is called positive.

    Attributes
    ----------
    precision, recall : (k,) one entry a distinct score; no point is invented for recall 0.
    thresholds : (k,) distinct scores in decreasing order, so that recall increases.
    """

    precision: FloatArray
    recall: FloatArray
    thresholds: FloatArray


def rank_counts(scores: FloatArray, labels: IntArray) -> RankedCounts:
    """Sort once and cumulate; tied scores enter together, so row order never matters.

    Parameters
    ----------
    scores : (n,) finite, n ≥ 1; not checked again here.
    labels : (n,) in {0, 1}.
    """
    order = np.argsort(scores)[::-1]
    scores, labels = scores[order], labels[order]
    last_of_group = _last_of_group(scores)
    true_positives = np.cumsum(labels, dtype=np.int64)[last_of_group]
    # −0.0 equals 0.0: adding 0.0 gives their group one spelling, whichever of its rows came last.
    return RankedCounts(scores[last_of_group] + 0.0, true_positives, last_of_group + 1 - true_positives)


def rank_weights(scores: FloatArray, labels: IntArray, weights: FloatArray) -> RankedWeights:
    """Cumulate weights instead of rows, as `rank_counts` does; tied scores enter together.

    Parameters
    ----------
    scores : (n,) finite, n ≥ 1; not checked again here.
    labels : (n,) in {0, 1}.
    weights : (n,) not negative.
    """
    order = np.lexsort((weights, labels, scores))[::-1]  # equal rows in one order, so that sums round the same
    scores, labels, weights = scores[order], labels[order], weights[order]
    last_of_group = _last_of_group(scores)
    true_positives = np.cumsum(weights * labels)[last_of_group]
    false_positives = np.cumsum(weights * (1 - labels))[last_of_group]
    return RankedWeights(scores[last_of_group] + 0.0, true_positives, false_positives)


def roc_curve(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (fpr, tpr, thresholds) of the receiver operating characteristic.

    The first point is (0, 0) at threshold +∞, then one point a distinct score in decreasing order; a row
    is called positive when score ≥ threshold. Tied scores enter together, as one diagonal step.

    Parameters
    ----------
    scores : (n,) finite; anything that ranks, larger meaning more positive.
    labels : (n,) in {0, 1}, both present.

    Returns
    -------
    fpr, tpr, thresholds : (k+1,) for k distinct scores.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Fawcett, An introduction to ROC analysis, Pattern Recognition Letters 27 (2006), algorithm 1.

    Examples
    --------
    >>> fpr, tpr, thresholds = roc_curve([0.9, 0.4, 0.4], [1, 1, 0])
    >>> fpr.tolist(), tpr.tolist(), thresholds.tolist()
    ([0.0, 0.0, 1.0], [0.0, 0.5, 1.0], [inf, 0.9, 0.4])
    """
    ranked = rank_counts(*_checked(scores, labels))
    fpr = np.append(0.0, ranked.false_positives / ranked.false_positives[-1])
    tpr = np.append(0.0, ranked.true_positives / ranked.true_positives[-1])
    return fpr, tpr, np.append(np.inf, ranked.thresholds)


def roc_auc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Return the probability that a random positive outscores a random negative, ties counting one half.

    This is the area under `roc_curve` and the Mann–Whitney U divided by P·N. Pairs are counted in
    integers and divided once, so a perfect ranking gives exactly 1.0.

    Parameters
    ----------
    scores : (n,) finite; anything that ranks, larger meaning more positive.
    labels : (n,) in {0, 1}, both present.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Hanley and McNeil, The meaning and use of the area under a ROC curve, Radiology 143 (1982).

    Examples
    --------
    Of the pairs (0.9, 0.4) and (0.4, 0.4) the first is won and the second tied.

    >>> roc_auc([0.9, 0.4, 0.4], [1, 1, 0])
    0.75
    """
    ranked = rank_counts(*_checked(scores, labels))
    positives = np.diff(ranked.true_positives, prepend=0)
    total_p, total_n = int(ranked.true_positives[-1]), int(ranked.false_positives[-1])
    # A positive wins against every negative below its group and ties with those inside it:
    # twice its wins are 2·(N − FP_here) + (FP_here − FP_above).
    above = np.concatenate([[0], ranked.false_positives[:-1]])
    twice_won = int(positives @ (2 * total_n - ranked.false_positives - above))
    return twice_won / (2 * total_p * total_n)


def pr_curve(scores: ArrayLike, labels: ArrayLike) -> PrecisionRecallCurve:
    """Return precision and recall at each distinct score, in order of increasing recall.

    Parameters
    ----------
    scores : (n,) finite; anything that ranks, larger meaning more positive.
    labels : (n,) in {0, 1} with at least one positive.

    Returns
    -------
    curve : precision, recall and thresholds, each (k,) for k distinct scores.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Davis and Goadrich, The relationship between precision-recall and ROC curves, ICML 2006.

    Examples
    --------
    >>> curve = pr_curve([0.9, 0.4, 0.4], [1, 1, 0])
    >>> curve.precision.round(3).tolist(), curve.recall.tolist()
    ([1.0, 0.667], [0.5, 1.0])
    """
    ranked = _ranked_with_positives(scores, labels)
    flagged = ranked.true_positives + ranked.false_positives
    recall = ranked.true_positives / ranked.true_positives[-1]
    return PrecisionRecallCurve(ranked.true_positives / flagged, recall, ranked.thresholds)


def average_precision(scores: ArrayLike, labels: ArrayLike) -> float:
    """Return Σ (R_i − R_{i−1}) P_i over the points of `pr_curve`: a step sum, without interpolation.

    A random ranking scores about the prevalence, so the two belong side by side.

    Parameters
    ----------
    scores : (n,) finite; anything that ranks, larger meaning more positive.
    labels : (n,) in {0, 1} with at least one positive.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Davis and Goadrich, The relationship between precision-recall and ROC curves, ICML 2006, on why
    precision must not be interpolated linearly.

    Examples
    --------
    >>> round(average_precision([0.9, 0.4, 0.4], [1, 1, 0]), 4)
    0.8333
    """
    ranked = _ranked_with_positives(scores, labels)
    positives = np.diff(ranked.true_positives, prepend=0)
    precision = ranked.true_positives / (ranked.true_positives + ranked.false_positives)
    return float(positives @ precision / ranked.true_positives[-1])


def _last_of_group(scores: FloatArray) -> IntArray:
    """Return the position of the last row of each run of equal scores."""
    # Equality, not a difference: 1e308 − (−1e308) overflows, and subnormal gaps are real gaps.
    return np.append(np.flatnonzero(scores[1:] != scores[:-1]), scores.shape[0] - 1)


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, IntArray]:
    scores = checks.finite_array("scores", scores, ndim=1)
    labels = checks.binary_labels(labels, n=scores.shape[0])
    checks.both_classes(labels)
    return scores, labels


def _ranked_with_positives(scores: ArrayLike, labels: ArrayLike) -> RankedCounts:
    scores = checks.finite_array("scores", scores, ndim=1)
    labels = checks.binary_labels(labels, n=scores.shape[0])
    if not labels.any():
        raise ValueError("labels must hold at least one positive")
    return rank_counts(scores, labels)
