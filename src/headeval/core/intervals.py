"""What a confidence interval is, and the intervals of a rate."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.binomial import beta_quantile
from headeval.core.checks import FloatArray, IntArray
from headeval.core.placements import kish_size
from headeval.core.student import student_quantile


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, never of zero width.

    Attributes
    ----------
    lower, upper : the bounds, lower < upper.
    confidence : in (0, 1), such as 0.95; of both sides together.
    method : how it was computed, as shown to people, such as "Wilson".
    """

    lower: float
    upper: float
    confidence: float
    method: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired comparison on the same rows: the value of one side minus that of the other.

    Attributes
    ----------
    value : the difference.
    interval : its confidence interval; None where it has none.
    p_value : two-sided, of "there is no difference"; None where it is not defined.
    """

    value: float
    interval: Interval | None
    p_value: float | None


def wilson(successes: float, n: float, *, confidence: float = 0.95) -> Interval:
    """Return the score interval of a rate: the values that a normal test does not reject.

    It covers close to `confidence` on average, also near 0 and 1; for a guarantee see `clopper_pearson`.
    It begins at exactly 0.0 without successes and ends at exactly 1.0 without failures.

    Parameters
    ----------
    successes : real, 0 ≤ successes ≤ n; not rounded, as effective sizes are no whole numbers.
    n : number of independent rows > 0, real.
    confidence : in (0, 1), of both sides together.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).

    Examples
    --------
    Without successes the upper bound is z²/(n + z²), with z = 1.96 nearly 4/(n + 4).

    >>> bounds = wilson(0, 12)
    >>> bounds.lower, round(bounds.upper, 3)
    (0.0, 0.242)
    """
    successes, n = _counts(successes, n)
    confidence = checks.confidence_level(confidence)
    z = _normal_quantile(confidence)
    # |√(z²)| is z to the last bit in binary floats, so that without failures this is exactly 1 (and the smaller root,
    # taken as the product of both over the larger, exactly 0 without successes); √ of other sums may pass 1 by a bit.
    larger = successes + z * (z / 2 + math.sqrt(successes * ((n - successes) / n) + z * z / 4))
    lower = successes * (successes / n) / larger if successes > 0 else 0.0
    upper = min(1.0, larger / (n + z * z))
    return nonempty(lower, upper, confidence, "Wilson")


def clopper_pearson(successes: float, n: float, *, confidence: float = 0.95) -> Interval:
    """Return the exact interval of a rate: it covers at least `confidence`, whatever the rate and n.

    Parameters
    ----------
    successes : real, 0 ≤ successes ≤ n. Real arguments read the beta quantiles between the whole numbers, which
        is how the interval is used with effective sizes.
    n : number of independent rows > 0, real.
    confidence : in (0, 1), of both sides together; half of the rest on either side, also at 0 and n.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Clopper and Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934); Korn and Graubard,
    Confidence intervals for proportions with small expected number of positive counts, Survey Methodology 24 (1998).

    Examples
    --------
    All of 12 found: the bound solves r¹² = 0.025.

    >>> bounds = clopper_pearson(12, 12)
    >>> round(bounds.lower, 4), bounds.upper, round(0.025 ** (1 / 12), 4)
    (0.7354, 1.0, 0.7354)
    """
    successes, n = _counts(successes, n)
    confidence = checks.confidence_level(confidence)
    tail = (1 - confidence) / 2
    return nonempty(_lower(successes, n, tail), _upper(successes, n, tail), confidence, "Clopper-Pearson")


def upper_bound(successes: float, n: float, *, confidence: float) -> float:
    """Return the exact one-sided bound that the rate stays below with at least `confidence`.

    Parameters
    ----------
    successes, n : as for `clopper_pearson`.
    confidence : in (0, 1), all of the rest on this side.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    The rule of three: none among n is evidence for less than about 3/n.

    >>> round(upper_bound(0, 300, confidence=0.95), 4)
    0.0099
    """
    successes, n = _counts(successes, n)
    return _upper(successes, n, 1 - checks.confidence_level(confidence))


def lower_bound(successes: float, n: float, *, confidence: float) -> float:
    """Return the exact one-sided bound that the rate stays above with at least `confidence`.

    Parameters
    ----------
    successes, n : as for `clopper_pearson`.
    confidence : in (0, 1), all of the rest on this side.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> round(lower_bound(1, 1, confidence=0.95), 4)
    0.05
    """
    successes, n = _counts(successes, n)
    return _lower(successes, n, 1 - checks.confidence_level(confidence))


def effective_size(values: ArrayLike, *, weights: ArrayLike | None = None, groups: ArrayLike | None = None) -> float:
    """Return how many independent, unweighted rows tell as much about the (weighted) mean of `values`.

    With it and mean·size successes, `clopper_pearson` and `wilson` serve weighted and grouped rows.

    Parameters
    ----------
    values : (n,) in {0, 1}, n ≥ 1.
    weights : (n,) finite, ≥ 0, not all 0; None counts every row once. Rows of weight 0 are as if absent.
    groups : (n,) names or numbers; rows that share one may be alike in any way. None: each row is its own.

    Returns
    -------
    size : in [1, n]; n without weights and groups, and where each row is a group of its own. It never exceeds
        Kish's (Σw)²/Σw². Where all values agree it is the number of groups, or Kish's size if that is less.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Notes
    -----
    The start is mean·(1 − mean)/variance with the linearised variance of Σwv/Σw over groups: n over the design effect.
    Three things keep it honest:

    - A design effect below 1, or below what the weights alone cost, is not believed: it comes from the luck of the
      sample (the heavy rows all agree) as easily as from a good design, and it would make rows count more than once.
    - The variance is as sure as the number of groups it rests on, and for a rare value these are not all groups but
      the k that hold it, k = (Σc)²/Σc² over the groups' weight c of the rarer value. The size shrinks by (z/t)², t of
      Student with k − 1 degrees of freedom. (Korn and Graubard take the number of groups; with 200 groups and a rate
      of 0.5 % in few of them their upper bound at 95 % is missed in up to 20 % of samples instead of 2.5 %, this one
      in at most 4 %.)
    - It shrinks no further than to the number of groups, which is what is left when the rows of a group say all the
      same. So one failure in ten groups of 100 rows counts as among some 10 rows, not 1000: without this the bound
      of no failure, which nobody can put on more than 10 independent observations, would be the wider one.

    References
    ----------
    Kish, Survey Sampling (1965), §§8.2 and 11.7; Korn and Graubard, Confidence intervals for proportions with small
    expected number of positive counts estimated from survey data, Survey Methodology 24 (1998).

    Examples
    --------
    Two groups whose rows say the same twice are two rows.

    >>> effective_size([1, 1, 1, 1], groups=["a", "a", "b", "b"])
    2.0
    """
    values = checks.finite_array("values", values, ndim=1)
    hits = checks.binary_labels(values, n=values.shape[0])
    if hits.size == 0:
        raise ValueError("values must hold at least one row")
    factor = checks.sample_weights(weights, n=hits.shape[0])
    units = None if groups is None else checks.group_codes(groups, n=hits.shape[0])
    # Sums of floats depend on the order of their terms: rows are put into one that their own values fix.
    order = np.lexsort([key for key in (hits, factor, units) if key is not None])
    if factor is not None:
        order = order[factor[order] > 0]
    share = np.ones(order.shape[0]) if factor is None else factor[order] / factor.max()
    codes = np.arange(order.shape[0]) if units is None else checks.group_codes(units[order], n=order.shape[0])
    n_groups = int(codes.max()) + 1
    if n_groups == order.shape[0] and share.min() == share.max():
        return float(n_groups)
    return _effective_size(hits[order], share / share.sum(), codes, n_groups)


def _effective_size(hits: IntArray, share: FloatArray, codes: IntArray, n_groups: int) -> float:
    """Return the size for rows of which each has a positive share of the whole."""
    most = kish_size(share)
    floor = min(most, float(n_groups))
    if n_groups == 1 or hits.min() == hits.max():
        return floor
    mean, n = float(share @ hits), hits.shape[0]
    whole: FloatArray = np.bincount(codes, share).astype(np.float64)
    hit: FloatArray = np.bincount(codes, share * hits).astype(np.float64)
    influence = hit - mean * whole
    variance = float(influence @ influence) * n_groups / (n_groups - 1)
    # The same estimate for n independent rows is mean·(1 − mean)/(n − 1).
    size = min(most, mean * (1 - mean) / variance * n / (n - 1)) if variance > 0 else most
    carriers = kish_size(hit if mean <= 0.5 else whole - hit)
    shrunk = size * (_normal_quantile(0.95) / student_quantile(0.95, max(carriers - 1, 0.0))) ** 2
    return max(1.0, min(size, floor), shrunk)


def nonempty(lower: float, upper: float, confidence: float, method: str) -> Interval:
    """Return the interval of a quantity in [0, 1]; bounds that rounding has made equal are moved one float apart."""
    if lower < upper:
        return Interval(lower, upper, confidence, method)
    return Interval(max(0.0, math.nextafter(upper, 0.0)), min(1.0, math.nextafter(lower, 1.0)), confidence, method)


def _normal_quantile(confidence: float) -> float:
    # From the lower tail: (1 + confidence)/2 may round to 1.
    return abs(NormalDist().inv_cdf((1 - confidence) / 2))


def _lower(successes: float, n: float, tail: float) -> float:
    return 0.0 if successes == 0 else beta_quantile(tail, successes, n - successes + 1)


def _upper(successes: float, n: float, tail: float) -> float:
    return 1.0 if successes == n else beta_quantile(1 - tail, successes + 1, n - successes)


def _counts(successes: float, n: float) -> tuple[float, float]:
    n = checks.real_number("n", n, minimum=0)
    if n == 0:
        raise ValueError("n must be greater than 0, got 0")
    return checks.real_number("successes", successes, minimum=0, maximum=n), n
