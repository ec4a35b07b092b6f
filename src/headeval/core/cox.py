"""Calibration slope and intercept: are the logits too extreme, are they too high (Cox's recalibration model)."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.calibration import unit_weights
from headeval.core.checks import FloatArray, IntArray
from headeval.core.cox_many import Line, blocks_of_rows, refined
from headeval.core.intervals import Interval
from headeval.core.newton import LogisticProblem, newton
from headeval.core.stable import logsumexp, sigmoid, softplus

# A row this far on its own side has lost all influence on a slope near 1, and hides all others from a fit.
_FAR = 2000.0
_NO_INFLUENCE = 746.0  # e^(−746) is 0 in float64
_LARGEST = 1e300  # the sum of two larger logits would leave the range of float64
_LEAST_INFORMATION = 1e-120  # the square of its inverse must stay in the range of float64
_STEP_TOLERANCE = 1e-13
_MOST_STEPS = 200  # Newton takes a handful; what takes more leaves no information
_TOO_FAR_APART = "the logits lie so far apart, or from 0, that the rows tell nothing about it in float64"


class CoxError(ValueError):
    """The data allow no such estimate; the text says why."""


@dataclass(frozen=True, slots=True)
class CoxCalibration:
    """How the true log-odds follow the stated ones; a calibrated classifier has slope 1 and intercept 0.

    Attributes
    ----------
    slope : b of logit P(y=1) = a + b·z, both fitted; below 1 the logits are too extreme. None where undefined.
    slope_interval : None where the slope is, or where no spread can be seen, as with a single group.
    slope_reason : why there is no slope, else empty.
    intercept : calibration in the large, a of logit P(y=1) = a + z, with the slope fixed to 1 and not the a that is
        fitted beside b; below 0 the probabilities are too high on the whole. None where undefined.
    intercept_interval, intercept_reason : as for the slope.
    """

    slope: float | None
    slope_interval: Interval | None
    slope_reason: str
    intercept: float | None
    intercept_interval: Interval | None
    intercept_reason: str


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of positive weight; `groups` None where the information alone gives the variance."""

    z: FloatArray
    y: IntArray
    s: FloatArray
    groups: IntArray | None
    blocks: "_Rows | None" = None  # of very many rows that all count once and are alike within them


def cox_calibration(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    confidence: float = 0.95,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> CoxCalibration:
    """Fit calibration slope and intercept by unpenalised maximum likelihood, with Wald intervals.

    Without weights and groups the variances come from the information. With either they are those of the sandwich
    over rows or groups, times G/(G − 1), and never less than independent rows would have.

    Parameters
    ----------
    logits : (n,) finite log-odds of class 1, n ≥ 1.
    labels : (n,) in {0, 1}. With one class alone nothing is defined; where the logits separate the classes, or are
        all equal, there is no slope.
    confidence : in (0, 1), of each interval.
    weights : (n,) ≥ 0, finite, not all zero; their unit changes nothing.
    groups : (n,) codes or names; rows of one group need not be independent of each other.

    Raises
    ------
    ValueError
        When an argument breaks the above. What the data leave undefined is returned with its reason, not raised.

    References
    ----------
    Cox, Two further applications of a model for binary regression, Biometrika 45 (1958).
    Van Calster et al., A calibration hierarchy for risk models was defined, Journal of Clinical Epidemiology 74 (2016).
    Van Calster et al., Calibration: the Achilles heel of predictive analytics, BMC Medicine 17 (2019).

    Examples
    --------
    At z = ±1 the odds are 2:1 and 1:2: the slope is ln 2, and on the whole the probabilities are right.

    >>> cox = cox_calibration([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], [1, 1, 0, 0, 0, 1])
    >>> round(cox.slope, 4), round(abs(cox.intercept), 4)
    (0.6931, 0.0)
    """
    z = checks.finite_array("logits", logits, ndim=1)
    y = checks.binary_labels(labels, n=z.shape[0])
    if not z.size:
        raise ValueError("logits must hold at least one row")
    confidence = checks.confidence_level(confidence)
    quantile = -NormalDist().inv_cdf((1.0 - confidence) / 2)
    rows = _rows(z, y, weights, groups)
    parts: list[tuple[float | None, Interval | None, str]] = []
    for estimate in (_slope, _intercept):
        try:
            value, error = estimate(rows)
        except CoxError as reason:
            parts.append((None, None, str(reason)))
        else:
            parts.append((value, _wald(value, quantile * error, confidence, rows.groups), ""))
    return CoxCalibration(*parts[0], *parts[1])


def _rows(z: FloatArray, y: IntArray, weights: ArrayLike | None, groups: ArrayLike | None) -> _Rows:
    if weights is None and groups is None:
        blocks = blocks_of_rows(z, y, largest=_FAR)
        ones = np.broadcast_to(1.0, z.shape)
        return _Rows(z, y, ones, None, None if blocks is None else _Rows(*blocks, groups=None))
    s = unit_weights(weights, n=z.shape[0])
    codes = np.arange(z.shape[0]) if groups is None else checks.group_codes(groups, n=z.shape[0])
    seen = s > 0
    return _Rows(z[seen], y[seen], s[seen], np.unique(codes[seen], return_inverse=True)[1])


def _wald(value: float, half_width: float, confidence: float, groups: IntArray | None) -> Interval | None:
    lower, upper = value - half_width, value + half_width
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        return None
    return Interval(lower, upper, confidence, "Wald" if groups is None else "Wald, sandwich")


def _both_classes(y: IntArray) -> None:
    positives = int(np.count_nonzero(y))
    if positives == 0:
        raise CoxError("no row is positive")
    if positives == y.shape[0]:
        raise CoxError("every row is positive")


def _slope(rows: _Rows) -> tuple[float, float]:
    """Return b and its standard error."""
    z, y = rows.z, rows.y
    _both_classes(y)
    found = _of_many(rows, fixed=False)
    if found is not None:
        return found.b, math.sqrt(found.variance)
    negative, positive = z[y == 0], z[y == 1]
    if z.min() == z.max():
        raise CoxError("all logits are equal, so no slope can be seen")
    if positive.min() >= negative.max():
        raise CoxError("the logits separate the classes perfectly: no finite slope is best")
    if positive.max() <= negative.min():
        raise CoxError("every negative has a higher logit than every positive: no finite slope is best")
    own_side = np.where(y == 1, z, -z) > _FAR
    if own_side.any():
        # Brought nearer, far rows of no influence leave the others visible; whether they had none is seen afterwards.
        fitted = _fitted(np.where(own_side, np.copysign(_FAR, z), z), rows)
        if fitted is not None and fitted[0] * _FAR - abs(fitted[1]) > _NO_INFLUENCE:
            return fitted[0], fitted[2]
    fitted = _fitted(z, rows)
    if fitted is None:
        raise CoxError("the logits differ too much in size, or too little, for a slope in float64")
    return fitted[0], fitted[2]


def _of_many(rows: _Rows, *, fixed: bool) -> Line | None:
    """Return the estimate from very many independent rows, or None where it must be found in the usual way."""
    if rows.blocks is None:
        return None
    try:
        line = (1.0, _offset(rows.blocks)) if fixed else _fitted(rows.blocks.z, rows.blocks)
    except CoxError:
        return None
    if line is None:
        return None
    center = float(np.average(rows.blocks.z, weights=rows.blocks.s))
    spread = math.sqrt(np.average(np.square(rows.blocks.z - center), weights=rows.blocks.s))
    return refined(rows.z, rows.y, line[0], line[1], scale=(center, spread), fixed=fixed)


def _fitted(z: FloatArray, rows: _Rows) -> tuple[float, float, float] | None:
    """Return b, a and the standard error of b."""
    # Centred and in units of the spread the two columns are about orthogonal and any unit of the logits is fitted
    # alike. In units of the largest one no difference of two logits overflows.
    unit = float(np.abs(z).max())
    center, spread = float(np.mean(z / unit)), float(np.std(z / unit))
    if spread == 0:
        return None
    x = (z / unit - center) / spread
    problem = LogisticProblem(np.column_stack([x, np.ones_like(x)]), rows.y.astype(np.float64), rows.s, np.zeros(2))
    fit = newton(problem, 200, stop_if_separated=True)
    if not fit.converged:
        return None
    error = math.sqrt(_variance(problem.Xa, problem.Xa @ fit.w, rows)[0])
    b, intercept = float(fit.w[0]) / spread, float(fit.w[1])
    slope = b / unit  # may leave the range of float64, and is infinite then
    return (slope, intercept - b * center, error / spread / unit) if math.isfinite(slope) else None


def _intercept(rows: _Rows) -> tuple[float, float]:
    """Return a of logit P(y=1) = a + z and its standard error."""
    _both_classes(rows.y)
    if np.abs(rows.z).max() > _LARGEST:
        raise CoxError(_TOO_FAR_APART)
    found = _of_many(rows, fixed=True)
    if found is not None:
        return found.a, math.sqrt(found.variance)
    a = _offset(rows)
    return a, math.sqrt(_variance(np.ones((rows.z.shape[0], 1)), a + rows.z, rows)[0])


def _offset(rows: _Rows) -> float:
    """Find a where the expected number of positives, Σ s·sigmoid(a + z), is the observed one."""
    # That is where Σ s·p over the negatives is Σ s·(1 − p) over the positives. The difference of their logarithms
    # increases with a, does not underflow, and is a straight line far out, where Newton's step then leads back.
    z0, z1 = rows.z[rows.y == 0], rows.z[rows.y == 1]
    log_s0, log_s1 = np.log(rows.s[rows.y == 0]), np.log(rows.s[rows.y == 1])
    odds = float(logsumexp(log_s1) - logsumexp(log_s0))
    lower, upper = odds - float(rows.z.max()), odds - float(rows.z.min())
    a = min(max(0.0, lower), upper)
    for _ in range(_MOST_STEPS):
        terms0, terms1 = log_s0 - softplus(-(a + z0)), log_s1 - softplus(a + z1)
        top0, top1 = float(logsumexp(terms0)), float(logsumexp(terms1))
        difference = top0 - top1
        if difference > 0:
            upper = a
        else:
            lower = a
        slope = float(np.exp(terms0 - top0) @ sigmoid(-(a + z0)) + np.exp(terms1 - top1) @ sigmoid(a + z1))
        step = difference / slope if slope > 0 else math.inf
        following = a - step
        if not lower < following < upper:  # Newton left the bracket
            following = lower / 2 + upper / 2
        if abs(following - a) <= _STEP_TOLERANCE * max(1.0, abs(a)):
            return following
        a = following
    raise CoxError(_TOO_FAR_APART)


def _variance(X: FloatArray, z: FloatArray, rows: _Rows) -> FloatArray:
    """Return the variances of the maximum likelihood estimates, (k,), with features X (n, k) at logits z (n,)."""
    curvature = sigmoid(z) * sigmoid(-z)
    information = (X.T * (rows.s * curvature)) @ X
    independent = (X.T * (np.square(rows.s) * curvature)) @ X
    if np.diag(information).min() < _LEAST_INFORMATION:
        raise CoxError(_TOO_FAR_APART)
    inverse = np.linalg.inv(information)  # of a fit that converged, and so regular
    variance: FloatArray = np.diag(inverse @ independent @ inverse)
    if rows.groups is None:
        return variance
    G = int(rows.groups.max()) + 1
    if G == 1:  # nothing tells how groups differ
        return np.full(X.shape[1], np.inf)
    scores = (rows.s * np.where(rows.y == 1, -sigmoid(-z), sigmoid(z)))[:, None] * X
    sums = np.column_stack([np.bincount(rows.groups, weights=column, minlength=G) for column in scores.T])
    clustered: FloatArray = np.diag(inverse @ (sums.T @ sums) @ inverse) * (G / (G - 1))
    # Sums that happen to cancel, as in two groups, are no evidence that the groups are alike.
    return np.maximum(variance, clustered)
