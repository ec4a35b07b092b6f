"""How far the rows pin down slope and intercept of a scaling: Wald intervals from the information at the optimum."""

import math
from statistics import NormalDist

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.intervals import Interval
from headeval.core.stable import sigmoid, softmax

CONFIDENCE = 0.95


def scaling_intervals(
    slope: float, intercept: float, logits: FloatArray, *, intercept_fitted: bool
) -> tuple[Interval | None, Interval | None]:
    """Return the intervals of slope and intercept of P(y = 1) = sigmoid(slope·z + intercept).

    With v = p(1 − p) the information of (slope, intercept) in n rows is [[Σvz², Σvz], [Σvz, Σv]], observed and expected
    alike. Its inverse has, with m = Σvz/Σv and S = Σv(z − m)², the diagonal 1/S and 1/Σv + m²/S, which lose no digits
    to logits far from 0. Rows that depend on each other need wider ones.

    Parameters
    ----------
    slope, intercept : of maximum likelihood.
    logits : (n,) z, finite and not all 0; the rows of the fit.
    intercept_fitted : False where the intercept was fixed to 0, which then has no interval.

    Returns
    -------
    None where the rows tell nothing that float64 could hold.

    References
    ----------
    McCullagh and Nelder, Generalized Linear Models, 2nd edition (1989), chapter 4.

    Examples
    --------
    Six rows at z = ±1 with p = 2/3 or 1/3: the information is 6 · 2/9 and the slope ln 2 ± 1.96 · sqrt(3/4).

    >>> slope, intercept = scaling_intervals(math.log(2), 0.0, np.array([1.0, -1.0] * 3), intercept_fitted=False)
    >>> round(slope.lower, 4), round(slope.upper, 4), intercept
    (-1.0042, 2.3905, None)
    """
    unit = float(np.abs(logits).max())  # in units of which no square overflows
    x, z = logits / unit, slope * logits + intercept
    v = sigmoid(z) * sigmoid(-z)
    total = float(v.sum())
    mean = float(v @ x) / total if intercept_fitted and total > 0 else 0.0
    information = float(v @ np.square(x - mean))
    if not information > 0:
        return None, None
    slopes = _wald(slope, 1 / math.sqrt(information) / unit)
    return slopes, _wald(intercept, math.sqrt(1 / total + mean * mean / information)) if intercept_fitted else None


def temperature_slope_interval(slope: float, logits: FloatArray) -> Interval | None:
    """Return the interval of β = 1/T of p = softmax(β z): the information is Σ Var_p[z] over the rows.

    Parameters
    ----------
    slope : β of maximum likelihood.
    logits : (n, C) z, finite; the rows of the fit.

    Returns
    -------
    None where the rows tell nothing that float64 could hold.

    Examples
    --------
    Of two classes it is that of `scaling_intervals`.

    >>> interval = temperature_slope_interval(math.log(2), np.array([[0.0, 1.0], [0.0, -1.0]] * 3))
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (-1.0042, 2.3905)
    """
    unit = float(np.abs(logits).max()) or 1.0  # in units of which no square overflows
    p, x = softmax(slope * logits), logits / unit
    centred = x - (p * x).sum(axis=1, keepdims=True)
    information = float((p * np.square(centred)).sum())
    return _wald(slope, 1 / math.sqrt(information) / unit) if information > 0 else None


def _wald(value: float, error: float) -> Interval | None:
    half = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * error
    lower, upper = value - half, value + half
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        return None
    return Interval(lower, upper, CONFIDENCE, "Wald")
