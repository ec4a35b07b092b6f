"""Temperature and Platt scaling: a monotone map of the logits that makes probabilities mean what they say."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray
from headeval.core.intervals import Interval
from headeval.core.logistic import fit_logistic
from headeval.core.proper_scores import log_loss_from_logits
from headeval.core.ranked import sorted_by_class
from headeval.core.scaling_intervals import CONFIDENCE, scaling_intervals
from headeval.core.stable import logit, sigmoid, softmax

Method = Literal["temperature", "platt"]

# Beyond these the column is hardly a logit: a temperature there says more about the file than about the model.
TEMPERATURE_BOUNDS = (0.01, 100.0)

_NO_TEMPERATURE = "the logits rank no better than chance, or stand off so far that it takes a shift (Platt scaling)"
_TOLERANCE, _EPS = 1e-12, float(np.finfo(np.float64).eps)
_ROUNDS_TO_ONE = 54 * float(np.log(2.0))  # from this logit on p is 1 in floats


class ScalingError(ValueError):
    """The data allow no usable scaling; the text says why."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The map z → slope·z + intercept with slope > 0, and what it did to the rows it was fitted on.

    Attributes
    ----------
    method : "temperature" (slope = 1/T, intercept = 0) or "platt".
    slope : > 0, so that the ranking stays.
    intercept : any finite number.
    log_loss_before, log_loss_after : nats a row, on the rows it was fitted on; after ≤ before.
    slope_interval, intercept_interval : see `scaling_intervals`; None where not known.
    as_they_are : whether the rows cannot tell that the map corrects anything: slope 1 and intercept 0 lie in their
        intervals and pass the likelihood ratio test of both together; None where not known.
    """

    method: Method
    slope: float
    intercept: float
    log_loss_before: float
    log_loss_after: float
    slope_interval: Interval | None = None
    intercept_interval: Interval | None = None
    as_they_are: bool | None = None

    @property
    def temperature(self) -> float:
        """T = 1/slope; above 1 the logits were overconfident."""
        return 1.0 / self.slope

    @property
    def temperature_interval(self) -> Interval | None:
        """That of 1/slope; without end where the slope's reaches 0."""
        slope = self.slope_interval
        upper = 1.0 / slope.lower if slope and slope.lower > 0 else math.inf
        return Interval(1.0 / slope.upper, upper, slope.confidence, slope.method) if slope else None

    def apply(self, logits: ArrayLike) -> FloatArray:
        """Return the calibrated logits, of the shape of `logits`, which may be any."""
        scaled: FloatArray = self.slope * np.asarray(logits, dtype=np.float64) + self.intercept
        return scaled

    def carry_threshold(self, threshold: float, before: ArrayLike, after: ArrayLike) -> float:
        """Return the threshold that decides calibrated probabilities as `threshold` decided those before.

        That is σ(slope·logit(t) + intercept), moved by the rounding error that would change the decision of one of
        these rows; 0 stays 0, and at 1 the rows are flagged whose probability rounds to it. Where rounding has made
        equal what a threshold must tell apart, rows that were flagged stay flagged.

        Parameters
        ----------
        threshold : in [0, 1], on the probabilities before.
        before, after : (n,) probabilities of the same rows, before and after the map.

        Raises
        ------
        ValueError
            When an argument breaks the above.

        Examples
        --------
        >>> scaling = Scaling("platt", 2.0, 1.0, 0.5, 0.4)
        >>> round(scaling.carry_threshold(0.5, [0.4, 0.6], [0.55, 0.86]), 6)
        0.731059
        """
        t = checks.real_number("threshold", threshold, minimum=0.0, maximum=1.0)
        was, now = checks.probabilities("before", before), checks.probabilities("after", after)
        if was.shape != now.shape:
            raise ValueError(f"before and after must have the same length, got {was.shape[0]} and {now.shape[0]}")
        moved = float(sigmoid(self.apply(_ROUNDS_TO_ONE if t == 1.0 else logit(t)))) if t else 0.0
        flagged = was >= t
        moved = max(moved, float(np.nextafter(now[~flagged].max(initial=-1.0), 2.0)))
        return min(moved, float(now[flagged].min(initial=1.0)))


def fit_temperature(logits: ArrayLike, labels: ArrayLike, max_iter: int = 50) -> float:
    """Return the temperature T that minimises the log loss of softmax(logits / T).

    In β = 1/T the loss NLL(β) = mean(logsumexp(β zᵢ) − β z_{i,yᵢ}) is convex, with
    g(β) = mean(E_p[zᵢ] − z_{i,yᵢ}) and g′(β) = mean(Var_p[zᵢ]). Newton's method starts from β = 0,
    where p is uniform and the curvature cannot vanish, and keeps the bracket of the root it has seen: with many
    classes the first step can go too far.

    Parameters
    ----------
    logits : (n, C) finite, n ≥ 1, C ≥ 2; for a binary classifier the columns 0 and z.
    labels : (n,) in {0, …, C−1}.
    max_iter : most Newton steps, an integer ≥ 1.

    Returns
    -------
    T : > 0; above 1 the logits were overconfident. The argmax never changes.

    Raises
    ------
    ValueError
        When an argument breaks the above; when the logits rank no better than chance (β ≤ 0); when they
        separate the labels perfectly, so that there is no minimum.
    RuntimeError
        When `max_iter` steps do not reach the root.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks, ICML 2017, section 4.2.

    Examples
    --------
    Two of three right at logits (0, 1): σ(β) = 2/3, so β = ln 2.

    >>> round(fit_temperature([[0.0, 1.0]] * 3, [1, 1, 0]), 4)
    1.4427
    """
    z = checks.finite_array("logits", logits, ndim=2)
    max_iter = checks.whole_number("max_iter", max_iter, minimum=1)
    if z.shape[0] < 1 or z.shape[1] < 2:
        raise ValueError(f"logits must have at least 1 row and 2 columns, got shape {z.shape}")
    y = checks.class_labels(labels, n=z.shape[0], n_classes=z.shape[1])
    # In units of the largest entry nothing overflows; a shift of a row changes neither p nor the loss.
    unit = float(np.abs(z).max()) or 1.0
    z = z / unit
    z = z - z.max(axis=1, keepdims=True)
    own = z[np.arange(z.shape[0]), y]
    if float(_slope(0.0, z, own)[0]) >= -_EPS * float(np.abs(z).mean()):
        raise ScalingError(_NO_TEMPERATURE)
    if not own.any():
        raise ScalingError("the logits separate the labels perfectly: the log loss falls for ever as T goes to 0")
    return unit / _root(z, own, max_iter)


def fit_temperature_scaling(logits: ArrayLike, labels: ArrayLike) -> Scaling:
    """Fit one temperature to binary logits, and refuse one that should not be used.

    Parameters
    ----------
    logits : (n,) log-odds of class 1, finite.
    labels : (n,) in {0, 1}, both present.

    Raises
    ------
    ValueError
        When an argument breaks the above.
    ScalingError
        When `usable_temperature` refuses it, or the result is worse than leaving the logits alone.

    Examples
    --------
    >>> scaling = fit_temperature_scaling([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], [1, 1, 0, 0, 0, 1])
    >>> round(scaling.temperature, 4), scaling.intercept
    (1.4427, 0.0)
    """
    z, y = _binary_logits(logits, labels)
    temperature = usable_temperature(np.column_stack([np.zeros_like(z), z]), y)
    return _scaling("temperature", 1.0 / temperature, 0.0, z, y)


def usable_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return `fit_temperature`; a ScalingError for none, no convergence, or one outside `TEMPERATURE_BOUNDS`."""
    try:
        temperature = fit_temperature(logits, labels, max_iter=200)
    except RuntimeError as error:
        raise ScalingError(str(error)) from error
    low, high = TEMPERATURE_BOUNDS
    if not low < temperature < high:
        raise ScalingError(
            f"the best temperature, {temperature:.4g}, is not between {low:g} and {high:g}: "
            "these values do not look like logits of this classifier"
        )
    return temperature


def fit_platt_scaling(logits: ArrayLike, labels: ArrayLike) -> Scaling:
    """Fit slope and intercept of the logits by unpenalised maximum likelihood.

    The labels are used as they are, without Platt's smoothed targets, so that the mean probability
    equals the share of positives and the loss can only fall.

    Parameters
    ----------
    logits : (n,) finite; log-odds of class 1 or any score that ranks.
    labels : (n,) in {0, 1}, both present.

    Raises
    ------
    ValueError
        When an argument breaks the above.
    ScalingError
        When the slope is not positive, the scores are constant or separate the labels perfectly, the fit does
        not converge, or the result is worse than leaving the logits alone.

    References
    ----------
    Platt, Probabilistic outputs for support vector machines, in Advances in Large Margin Classifiers, 1999.

    Examples
    --------
    Three rows at 1 with two positives, three at −1 with one: logits ±ln 2.

    >>> scaling = fit_platt_scaling([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], [1, 1, 0, 0, 0, 1])
    >>> round(scaling.slope, 4), round(abs(scaling.intercept), 4)
    (0.6931, 0.0)
    """
    z, y = _binary_logits(logits, labels)
    negative, positive = z[y == 0], z[y == 1]
    if z.min() == z.max():
        raise ScalingError("all scores are equal, so there is nothing to scale")
    if positive.min() >= negative.max():
        raise ScalingError("the scores separate the labels perfectly: no finite slope is best")
    if positive.max() <= negative.min():
        raise ScalingError("every positive scores below every negative: the slope would be negative")
    # Centred and in units of the spread the two columns are orthogonal and any scale of score is fitted alike.
    # In units of the largest score no difference of two scores overflows.
    unit = float(np.abs(z).max())
    center, spread = float(np.mean(z / unit)), float(np.std(z / unit))
    fit = fit_logistic(((z / unit - center) / spread)[:, None], y, l2=0.0, iters=200)
    if not fit.converged:
        raise ScalingError(f"Platt scaling did not converge: {fit.reason.value}")
    slope = float(fit.w[0]) / spread / unit
    if not np.isfinite(slope):
        raise ScalingError("the scores lie so close together that the slope is beyond the range of float64")
    if slope <= 0:
        raise ScalingError(f"the slope would be negative ({slope:.4g}): the scores rank no better than chance")
    return _scaling("platt", slope, float(fit.w[1]) - float(fit.w[0]) / spread * center, z, y)


def _binary_logits(logits: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, IntArray]:
    z = checks.finite_array("logits", logits, ndim=1)
    y = checks.binary_labels(labels, n=z.shape[0])
    checks.both_classes(y)
    return sorted_by_class(z, y)  # so that the order of the rows changes no bit


def _scaling(method: Method, slope: float, intercept: float, z: FloatArray, y: IntArray) -> Scaling:
    before, after = log_loss_from_logits(z, y), log_loss_from_logits(slope * z + intercept, y)
    if not after <= before * (1 + 1e-12):  # equal up to rounding where the identity is already best
        raise ScalingError(f"the calibrated log loss, {after:.6g}, would be worse than before, {before:.6g}")
    intervals = scaling_intervals(slope, intercept, z, intercept_fitted=method == "platt")
    known = [(each, same) for each, same in zip(intervals, (1, 0), strict=True) if each is not None]
    as_they_are = all(each.lower <= same <= each.upper for each, same in known) if known else None
    if as_they_are and method == "platt":  # twice the gain is χ² of two degrees of freedom, whose quantile is −2 ln α
        as_they_are = z.shape[0] * (before - after) <= -math.log(1 - CONFIDENCE)
    return Scaling(method, slope, intercept, before, after, *intervals, as_they_are)


def _slope(beta: float, z: FloatArray, own: FloatArray) -> tuple[float, float]:
    """Return g(β) and g′(β)."""
    p = softmax(beta * z)
    mean = (p * z).sum(axis=1)
    return float(np.mean(mean - own)), float(np.mean((p * np.square(z - mean[:, None])).sum(axis=1)))


def _root(z: FloatArray, own: FloatArray, max_iter: int) -> float:
    """Find β > 0 with g(β) = 0; g increases, is negative at 0 and positive far out."""
    below, above, beta = 0.0, np.inf, 0.0
    for _ in range(max_iter):
        g, curvature = _slope(beta, z, own)
        if g < 0:
            below = beta
        else:
            above = beta
        step = -g / curvature if curvature > 0 else np.inf
        # The mean of n terms is not known better than its rounding: a root at that level is the root.
        rounding = 2 * _EPS * float(np.mean(np.abs(own)))
        if beta > 0 and (abs(step) <= _TOLERANCE * beta or abs(g) <= rounding):
            return beta
        beta += step
        if not below < beta < above:  # Newton left the bracket: halve it, or go further out
            beta = (below + above) / 2 if np.isfinite(above) else 2 * max(below, 1.0)
    raise RuntimeError(f"the temperature did not converge within {max_iter} steps")
