"""Average precision with the influence of every row on it, and an interval from that without resamples."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headeval.core.bootstrap_bounds import EXACT_METHOD
from headeval.core.checks import FloatArray, IntArray
from headeval.core.class_intervals import sum_of_squares
from headeval.core.intervals import Interval, clopper_pearson, nonempty
from headeval.core.placements import kish_size
from headeval.core.stable import sigmoid
from headeval.core.student import student_quantile

METHOD = "delta method"
_ROUNDING = 1e-12  # what rounding leaves of equal values is no variance


@dataclass(frozen=True, slots=True)
class PlacedPrecision:
    """The average precision of the positives, and what it rests on.

    Attributes
    ----------
    value : the average precision.
    influence : (n,) by how much a row moves it, times its weight; they add up to 0.
    lost : (n,) what a positive lacks of a precision of 1, times its weight; 0 for the negatives.
    """

    value: float
    influence: FloatArray
    lost: FloatArray


def placed_precision(scores: FloatArray, positive: NDArray[np.bool_], weights: FloatArray | None) -> PlacedPrecision:
    """Return the average precision and the influence of every row on it.

    A positive contributes the precision at its place, and raises that of every positive at or below it; a negative
    lowers those. Both are sums from one end of the sorted rows.

    Parameters
    ----------
    scores : (n,) finite.
    positive : (n,); one of them has weight.
    weights : (n,) ≥ 0; None counts every row once.

    Examples
    --------
    >>> found = placed_precision(np.array([0.9, 0.4, 0.4]), np.array([True, True, False]), None)
    >>> round(found.value, 4), found.lost.round(4).tolist()
    (0.8333, [0.0, 0.3333, 0.0])
    """
    w = np.ones(positive.shape[0]) if weights is None else weights
    order = np.lexsort((w, positive, scores))[::-1]
    s, mine, w = scores[order], positive[order], w[order]
    ends = np.append(s[1:] != s[:-1], True)
    last = np.flatnonzero(ends)
    block = np.cumsum(ends) - ends
    hits, flagged = np.cumsum(w * mine)[last], np.cumsum(w)[last]
    divisor, gained = np.where(flagged > 0, flagged, 1.0), np.diff(hits, prepend=0.0)
    precision, total = hits / divisor, float(np.sum(gained))
    value = float(np.sum(gained * precision)) / total  # summed alike, so that a perfect one is exactly 1
    rise = gained / divisor
    below, below_lost = (np.cumsum(part[::-1])[::-1][block] for part in (rise, rise * precision))
    at = precision[block]
    influence, lost = np.empty(s.shape[0]), np.empty(s.shape[0])
    influence[order] = w / total * (mine * (at - value + below) - below_lost)
    lost[order] = w * mine * (1.0 - at)
    return PlacedPrecision(value, influence, lost)


def average_precision_interval(
    found: PlacedPrecision, units: IntArray | None, *, smaller: int, confidence: float
) -> Interval:
    """Return the interval of an average precision, on the scale of its log odds.

    Where only k positives carry what is lost, the variance is an estimate from k numbers and the quantile Student's of
    k − 1; the bounds never go beyond the exact ones of a share of m = min(P, N) rows, as for an AUC
    (`headeval.core.delong`), so that a perfect one has a bound below 1.

    Parameters
    ----------
    units : (n,) codes of rows that vary together; None where each is its own.
    smaller : m ≥ 1, independent rows or groups of the smaller class; it may be a real number.
    confidence : in (0, 1).

    Examples
    --------
    >>> perfect = placed_precision(np.array([2.0] * 12 + [1.0] * 30), np.array([True] * 12 + [False] * 30), None)
    >>> round(average_precision_interval(perfect, None, smaller=12, confidence=0.95).lower, 4)
    0.7354
    """
    value, exact = found.value, clopper_pearson(found.value * smaller, smaller, confidence=confidence)
    lower, upper = exact.lower, exact.upper
    lost = found.lost if units is None else np.bincount(units, found.lost).astype(np.float64)
    freedom, error = kish_size(lost) - 1.0, math.sqrt(sum_of_squares(found.influence, units))
    if 0.0 < value < 1.0 and freedom > 0.0 and error > _ROUNDING * value:
        logit = math.log(value) - math.log1p(-value)
        reach = student_quantile(confidence, freedom) * error / (value * (1.0 - value))
        low, high = (float(sigmoid(logit + side * min(reach, 1e4))) for side in (-1.0, 1.0))
        lower, upper = max(lower, low), min(upper, high)
    method = EXACT_METHOD if lower == exact.lower else METHOD
    return nonempty(min(lower, value), max(upper, value), confidence, method)
