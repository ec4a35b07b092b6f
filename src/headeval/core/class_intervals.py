"""Intervals of averages over classes, put together from the interval of each class.

Every class brings its own interval, whose method knows what so few rows allow: Wilson's of a share, DeLong's of an
area. The distances of its bounds from its value take the place of standard errors: for classes that vary
independently of each other the distance of the average is the root of the sum of their squares (Zou and Donner 2008).
Where classes vary together, as the areas of two classes do, the sum is multiplied by the ratio of the variance of the
average to what it would be without that, both from the influence of every row. With many rows this is the interval of
the delta method; with few it keeps the skewness and the width of the classes' own, so that a perfect average has a
bound below 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.core.intervals import Interval, nonempty

METHOD = "combined from the classes"
_ROUNDING = 1e-12  # what rounding leaves of equal values is no variance


@dataclass(frozen=True, slots=True)
class Variances:
    """How an average over classes varies.

    Attributes
    ----------
    average : variance of the average of the classes' values, at fixed shares of the classes.
    apart : what it would be if the classes varied independently of each other: Σ share² · variance.
    shares : what the varying shares of the classes add; 0 where every class counts alike.
    independent : whether the classes are known to vary independently, also where nothing varies.
    """

    average: float
    apart: float
    shares: float = 0.0
    independent: bool = False

    @property
    def together(self) -> float:
        """By how much varying together multiplies the variance, ≥ 1; infinite where nothing is known of that."""
        if self.apart > _ROUNDING**2:
            return max(1.0, self.average / self.apart)
        return 1.0 if self.independent else math.inf


def average_interval(
    value: float,
    classes: Sequence[tuple[float, Interval]],
    shares: FloatArray,
    variances: Variances,
    *,
    confidence: float,
) -> Interval:
    """Return the interval of Σ share · value, an average in [0, 1] over classes.

    Parameters
    ----------
    value : the average.
    classes : the value and the interval of each class.
    shares : of each class, adding up to 1.
    variances : of the average.
    confidence : of the intervals, and of the result.

    References
    ----------
    Zou and Donner, Construction of confidence limits about effect measures: a general approach, Statistics in Medicine
    27 (2008).

    Examples
    --------
    Two classes alike that know nothing of each other: the average of both is surer by √2.

    >>> one = (0.5, Interval(0.3, 0.7, 0.95, "Wilson"))
    >>> found = average_interval(0.5, [one, one], np.array([0.5, 0.5]), Variances(1.0, 1.0), confidence=0.95)
    >>> round(found.lower, 4), round(0.5 - 0.2 / 2**0.5, 4)
    (0.3586, 0.3586)
    """
    z = abs(NormalDist().inv_cdf((1.0 - confidence) / 2.0))
    below = shares * np.array([max(own - interval.lower, 0.0) for own, interval in classes])
    above = shares * np.array([max(interval.upper - own, 0.0) for own, interval in classes])
    low, high = (_reach(part, variances, z) for part in (below, above))
    return nonempty(max(value - low, 0.0), min(value + high, 1.0), confidence, METHOD)


def _reach(parts: FloatArray, variances: Variances, z: float) -> float:
    """How far a bound is from the average; classes that vary fully together add up, and nothing varies more."""
    squares, together = float(np.square(parts).sum()), variances.together
    most = float(parts.sum())
    own = most if math.isinf(together) else min(most, math.sqrt(together * squares))
    return math.sqrt(own**2 + z**2 * variances.shares)


def sum_of_squares(influence: FloatArray, units: IntArray | None) -> float:
    """Return Σ (Σ influence of a unit)² for rows (n,) that belong to units (n,), or are each its own."""
    total = influence if units is None else np.bincount(units, influence)
    return float(np.sum(np.square(total)))


def class_sums_of_squares(influence: FloatArray, classes: IntArray, units: IntArray, *, n_classes: int) -> FloatArray:
    """Return for each class, (C,), Σ (Σ influence of a unit on it)²; entries of one unit and class are added first.

    Parameters
    ----------
    influence, classes, units : (m,) entries: by how much a unit moves the value of a class.
    """
    found, inverse = np.unique(units * n_classes + classes, return_inverse=True)
    sums = np.bincount(inverse, influence)
    return np.bincount(found % n_classes, np.square(sums), n_classes).astype(np.float64, copy=False)
