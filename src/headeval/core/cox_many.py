"""The calibration model on very many rows: from a start that blocks of rows give to their own optimum in two steps."""

import math
from dataclasses import dataclass

import numpy as np

from headeval.core.checks import FloatArray, IntArray

MANY = 200_000
_BLOCKS = 2**15
_AT_ONCE = 2**13  # stays in the fastest cache, and is summed by one thread of a BLAS
# In standard errors of the estimate. A Newton step leaves about the square of that, times the skewness of the
# likelihood, which is of the order of 1/√n: less than 1e-8 of a standard error.
_NEAR = 1e-3
_MOST_STEPS = 12
# Rows that tell less than this about the level are so far from it that the gradient is what rounding leaves of it.
_LEAST_INFORMATION = 1.0


@dataclass(frozen=True, slots=True)
class Line:
    """An optimum of logit P(y=1) = b·z + a, with the variance of b, or of a where b is fixed."""

    b: float
    a: float
    variance: float


def blocks_of_rows(z: FloatArray, y: IntArray, *, largest: float) -> tuple[FloatArray, IntArray, FloatArray] | None:
    """Return logits, labels and weights of blocks of neighbouring rows, or None where there is no need or no way.

    Parameters
    ----------
    z : (n,) finite logits; it needs many rows, in increasing order, so that a block holds nearly equal ones.
    y : (n,) in {0, 1}.
    largest : of the sizes of the logits that this is right for.
    """
    n = z.shape[0]
    if n <= MANY or max(-z[0], z[-1]) > largest or not (z[1:] >= z[:-1]).all():
        return None
    starts = np.linspace(0, n, _BLOCKS, endpoint=False).astype(np.int64)
    sizes = np.diff(starts, append=n).astype(np.float64)
    mean = np.add.reduceat(z, starts) / sizes
    positives = np.add.reduceat(y, starts).astype(np.float64)
    weights = np.concatenate([sizes - positives, positives])
    held = weights > 0
    return np.tile(mean, 2)[held], np.repeat([0, 1], _BLOCKS)[held], weights[held] / sizes.max()


def refined(z: FloatArray, y: IntArray, b: float, a: float, *, scale: tuple[float, float], fixed: bool) -> Line | None:
    """Return the maximum likelihood estimate near a start, by Newton's method on all rows.

    The last step is taken where the gradient, measured by the information, is within a thousandth of a standard error
    of zero; what that step leaves is beyond all digits shown.

    Parameters
    ----------
    z, y : (n,) logits and labels, both classes present.
    b, a : where to start.
    scale : about the mean and the standard deviation of z.
    fixed : leave b as it is.

    Returns
    -------
    line : None where it does not get there, as from a start that is too far, or where the rows hardly tell anything.
    """
    center, unit = scale
    if not (unit > 0 and math.isfinite(unit)):
        return None
    slope, level = b * unit, a + b * center  # of (z − center)/unit, so that the two hardly depend on each other
    for _ in range(_MOST_STEPS):
        gradient, information = _sums((center, unit), z, y, slope, level)
        if not information[2] >= _LEAST_INFORMATION:
            return None
        if fixed:
            variance = 1 / information[2]
            far = gradient[1] ** 2 * variance
            level -= gradient[1] * variance
        else:
            inverse = _inverse(information)
            if inverse is None:
                return None
            steps = inverse @ gradient
            far, variance = float(gradient @ steps), float(inverse[0, 0])
            slope, level = slope - float(steps[0]), level - float(steps[1])
        if far <= _NEAR**2:
            b = b if fixed else slope / unit
            return Line(b, float(level - b * center), float(variance if fixed else variance / unit**2))
    return None


def _inverse(information: FloatArray) -> FloatArray | None:
    squares, products, total = information.tolist()
    determinant = squares * total - products**2
    if not determinant > 1e-12 * squares * total:
        return None
    inverse: FloatArray = np.array([[total, -products], [-products, squares]]) / determinant
    return inverse


def _sums(
    scale: tuple[float, float], z: FloatArray, y: IntArray, slope: float, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return Σ(p − y)(x, 1) and Σp(1 − p)(x², x, 1) for x = (z − center)/unit and p = sigmoid(slope·x + level)."""
    center, unit = scale
    parts = []
    for first in range(0, z.shape[0], _AT_ONCE):
        x = z[first : first + _AT_ONCE] - center
        x /= unit
        t = slope * x
        t += level
        with np.errstate(under="ignore"):
            e = np.exp(-np.abs(t))
            whole = 1.0 + e
            p = np.where(t >= 0, 1.0, e)
            p /= whole
            p -= y[first : first + _AT_ONCE]
            e /= whole
            e /= whole
            vx = e * x
        parts.append((p @ x, p.sum(), vx @ x, vx.sum(), e.sum()))
    sums = np.array([math.fsum(column) for column in zip(*parts, strict=True)])
    return sums[:2], sums[2:]
