"""Every exponential of the project, in the form that neither overflows nor loses small probabilities."""

import numpy as np
from numpy.typing import ArrayLike

from headeval.core.checks import FloatArray


def sigmoid(z: ArrayLike) -> FloatArray:
    """Return 1 / (1 + e^(−z)), elementwise.

    Only e^(−|z|) ≤ 1 is ever formed and the formula is chosen by the sign of z, so nothing overflows
    and small probabilities keep their full relative precision.

    Parameters
    ----------
    z : finite or infinite numbers, of any shape.

    Returns
    -------
    p : in [0, 1], of the shape of `z`.

    Examples
    --------
    >>> sigmoid([-1000.0, 0.0, 1000.0]).tolist()
    [0.0, 0.5, 1.0]
    """
    z = np.asarray(z, dtype=np.float64)
    e = _exp(-np.abs(z))
    p: FloatArray = np.where(z >= 0, 1.0, e) / (1.0 + e)
    return p


def logit(p: ArrayLike) -> FloatArray:
    """Return log(p / (1 − p)), elementwise: the inverse of `sigmoid`; infinite at 0 and 1.

    Parameters
    ----------
    p : in [0, 1], of any shape.

    Returns
    -------
    z : of the shape of `p`.

    Examples
    --------
    >>> logit([0.0, 0.5]).tolist()
    [-inf, 0.0]
    """
    p = np.asarray(p, dtype=np.float64)
    with np.errstate(divide="ignore"):
        value: FloatArray = np.log(p) - np.log1p(-p)
    return value


def softplus(z: ArrayLike) -> FloatArray:
    """Return log(1 + e^z), elementwise: the negative log of sigmoid(−z).

    Parameters
    ----------
    z : finite numbers, of any shape.

    Returns
    -------
    value : ≥ 0, of the shape of `z`.

    Examples
    --------
    >>> softplus([-1000.0, 1000.0]).tolist()
    [0.0, 1000.0]
    """
    z = np.asarray(z, dtype=np.float64)
    value: FloatArray = np.maximum(z, 0.0) + np.log1p(_exp(-np.abs(z)))
    return value


def logsumexp(z: ArrayLike) -> FloatArray:
    """Return log Σ e^z over the last axis.

    Parameters
    ----------
    z : (…, C) finite, C ≥ 1.

    Returns
    -------
    total : (…), without the last axis.

    Examples
    --------
    >>> logsumexp([[1000.0, 1000.0]]).round(4).tolist()
    [1000.6931]
    """
    z = np.asarray(z, dtype=np.float64)
    top = z.max(axis=-1, keepdims=True)
    total: FloatArray = np.log(_exp_below(z, top).sum(axis=-1)) + top[..., 0]
    return total


def softmax(z: ArrayLike) -> FloatArray:
    """Return e^z / Σ e^z over the last axis.

    Parameters
    ----------
    z : (…, C) finite, C ≥ 1.

    Returns
    -------
    p : (…, C) in [0, 1], with sum 1 over the last axis.

    Examples
    --------
    >>> softmax([0.0, -1.0]).round(6).tolist()
    [0.731059, 0.268941]
    """
    z = np.asarray(z, dtype=np.float64)
    e = _exp_below(z, z.max(axis=-1, keepdims=True))
    p: FloatArray = e / e.sum(axis=-1, keepdims=True)
    return p


def _exp(z: FloatArray) -> FloatArray:
    """e^z for z ≤ 0, where an underflow to zero is the right answer and not an error."""
    with np.errstate(under="ignore"):
        return np.exp(z)


def _exp_below(z: FloatArray, top: FloatArray) -> FloatArray:
    """e^(z − top) for z ≤ top, where a gap beyond the range of float64 is −∞ and its exponential 0."""
    with np.errstate(over="ignore"):
        return _exp(z - top)
