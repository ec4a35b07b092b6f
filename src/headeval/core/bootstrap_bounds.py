"""The bounds that values on resamples give: on which scale, how far apart, and where resamples cannot know better."""

import math
from dataclasses import dataclass

import numpy as np

from headeval.core import checks
from headeval.core.checks import FloatArray
from headeval.core.intervals import Interval
from headeval.core.stable import logit, sigmoid
from headeval.core.student import student_quantile

EXACT_METHOD = "exact, smaller class"
# Differences of this size are rounding, of which no conclusion is drawn.
ROUNDING = 1e-12

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Support:
    """The bounds of a measure, and what turns it into a quantity without bounds.

    Attributes
    ----------
    lower, upper : lower < upper; either may be infinite.
    smaller : m ≥ 2. A share u is moved to (m·u + ½)/(m + 1) before its log odds are taken, as half a row of either
        kind would: values at the bounds stay finite, and weigh no more than the rows allow.
    """

    lower: float
    upper: float
    smaller: int

    @property
    def bounded(self) -> bool:
        """Whether both bounds are finite."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)

    def share(self, value: float) -> float:
        """Return where a value stands between two finite bounds."""
        return (value - self.lower) / (self.upper - self.lower)

    def unbounded(self, values: FloatArray) -> FloatArray:
        """Return values on the scale without bounds."""
        if self.bounded:
            share = (values - self.lower) / (self.upper - self.lower)
            return logit((np.clip(share, 0.0, 1.0) * self.smaller + 0.5) / (self.smaller + 1))
        if math.isfinite(self.lower):
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(np.maximum(values - self.lower, np.finfo(np.float64).tiny)))
        return values

    def original(self, value: float) -> float:
        """Return a value of the scale without bounds on the measure's own."""
        if self.bounded:
            share = (float(sigmoid(value)) * (self.smaller + 1) - 0.5) / self.smaller
            return self.lower + (self.upper - self.lower) * min(max(share, 0.0), 1.0)
        if math.isfinite(self.lower):
            return self.lower + math.exp(min(value, 700.0))
        return value


def student_reach(smaller: int, confidence: float) -> float:
    """Return Student's t of m − 1 degrees of freedom times √(m/(m − 1)), for m ≥ 2 rows of the smaller class.

    Resamples of m rows have the variance of m rows times (m − 1)/m.

    Examples
    --------
    >>> round(student_reach(10**9, 0.95), 4)
    1.96
    """
    return student_quantile(confidence, smaller - 1.0) * math.sqrt(smaller / (smaller - 1.0))


def percentile_bounds(values: FloatArray, reach: float) -> Bounds:
    """Return the percentiles that a normal variable has at ±`reach` standard deviations."""
    tail = 0.5 * math.erfc(reach / math.sqrt(2.0))
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def normal_bounds(support: Support, values: FloatArray, estimate: float, reach: float) -> Bounds:
    """Return ± `reach` standard deviations on the scale without bounds, moved by the bias where that widens."""
    v = support.unbounded(values)
    centre, half = float(support.unbounded(np.array([estimate]))[0]), reach * float(v.std(ddof=1))
    bias = float(np.median(v)) - centre
    return support.original(centre - max(bias, 0.0) - half), support.original(centre - min(bias, 0.0) + half)


def at_bounds(support: Support, values: FloatArray, estimate: float, bounds: Bounds, confidence: float) -> Bounds:
    """Return the bounds, widened where resamples cannot tell the estimate from a bound of a share.

    There the percentile interval holds the bound itself. What a value at the bound could hide is then taken from the
    estimate in proportion.
    """
    low, high = bounds
    if not support.bounded or support.lower < 0.0:  # 1 is perfection for a share, but nothing for a difference
        return bounds
    tail = (1.0 - confidence) / 2.0
    kept = tail ** (1.0 / support.smaller)
    width = support.upper - support.lower
    if (values >= support.upper - ROUNDING).mean() >= tail:
        low, high = min(low, support.lower + width * support.share(estimate) * kept), support.upper
    if (values <= support.lower + ROUNDING).mean() >= tail:
        low, high = support.lower, max(high, support.upper - width * (1.0 - support.share(estimate)) * kept)
    return low, high


def unseen_rows(estimate: float, upper: float, n: int, confidence: float) -> float:
    """Return what a mean of n row values could be if rows as bad as `upper` were missing by chance.

    A kind of row with the share 1 − (α/2)^(1/n) is missing from n rows with probability α/2.
    """
    kept: float = ((1.0 - confidence) / 2.0) ** (1.0 / n)
    return upper - (upper - estimate) * kept


def degenerate_interval(
    estimate: float, smaller: int, *, confidence: float = 0.95, lower: float = 0.0, upper: float = 1.0
) -> Interval | None:
    """Return the interval where all resamples agree: a rule of three for a share at one of its bounds.

    A perfect value can hide a flaw that shows in a share of 1 − (α/2)^(1/m) of the rows of either class: m rows of the
    smaller class are free of it with probability α/2. If the measure loses as much as that share, it is (α/2)^(1/m),
    which is the exact bound of Clopper and Pearson for a recall of m out of m.

    Parameters
    ----------
    estimate : the value of all resamples.
    smaller : m ≥ 0, rows or groups of the smaller class.
    confidence : 1 − α in (0, 1).
    lower, upper : the bounds of the measure.

    Returns
    -------
    interval : None where the estimate is not at a bound, the measure has none or is a difference (`lower` below 0), or
        m = 0. A value that no resample changes but that is no bound follows from the class counts alone, as the average
        precision of constant scores does: resampling cannot say how it would vary. A log loss has no largest value to
        be in proportion to.

    Raises
    ------
    ValueError
        When `confidence` or `smaller` breaks the above.

    Examples
    --------
    >>> round(degenerate_interval(1.0, 12).lower, 4)
    0.7354
    """
    confidence = checks.confidence_level(confidence)
    smaller = checks.whole_number("smaller", smaller, minimum=0)
    if not smaller or lower < 0.0 or not (math.isfinite(lower) and math.isfinite(upper)):
        return None
    kept = (upper - lower) * ((1.0 - confidence) / 2.0) ** (1.0 / smaller)
    if estimate >= upper - ROUNDING:
        return Interval(lower + kept, upper, confidence, EXACT_METHOD)
    if estimate <= lower + ROUNDING:
        return Interval(lower, upper - kept, confidence, EXACT_METHOD)
    return None
