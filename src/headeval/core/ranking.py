"""Does the classifier rank positives above negatives: measures and curves of rows that are ranked once."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray
from headeval.core.ranked import RankedCounts, rank_counts


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
    return ranked_roc_curve(rank_counts(*_checked(scores, labels)))


def ranked_roc_curve(ranked: RankedCounts) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `roc_curve` of rows that were ranked already; both classes are present."""
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
    return ranked_auc(rank_counts(*_checked(scores, labels)))


def ranked_auc(ranked: RankedCounts) -> float:
    """Return `roc_auc` of rows that were ranked already; both classes are present."""
    total_p, total_n = int(ranked.true_positives[-1]), int(ranked.false_positives[-1])
    # A positive wins against every negative below its group and ties with those inside it:
    # twice its wins are 2·(N − FP_here) + (FP_here − FP_above).
    twice_lost = sum(_twice_lost(tp, fp, fits=total_p * total_n < 2**62) for tp, fp in ranked.blocks())
    return (2 * total_p * total_n - twice_lost) / (2 * total_p * total_n)


def _twice_lost(tp: IntArray, fp: IntArray, *, fits: bool) -> int:
    """Return the pairs lost in a block, ties half, times two; `fits` says that int64 holds them."""
    if fits:
        return int(np.diff(tp) @ (fp[1:] + fp[:-1]))
    wins, corners = np.diff(tp).tolist(), fp.tolist()  # whole numbers of Python have no end
    return sum(won * (above + here) for won, above, here in zip(wins, corners[:-1], corners[1:], strict=True))


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
    return ranked_pr_curve(_ranked_with_positives(scores, labels))


def ranked_pr_curve(ranked: RankedCounts) -> PrecisionRecallCurve:
    """Return `pr_curve` of rows that were ranked already; a positive is present."""
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
    return ranked_average_precision(_ranked_with_positives(scores, labels))


def ranked_average_precision(ranked: RankedCounts) -> float:
    """Return `average_precision` of rows that were ranked already; a positive is present."""
    # numpy's sum in pairs rounds the same however many threads there are; a dot product of the BLAS does not.
    gained = [float(np.sum(np.diff(tp) * (tp[1:] / (tp[1:] + fp[1:])))) for tp, fp in ranked.blocks()]
    return math.fsum(gained) / int(ranked.true_positives[-1])


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
