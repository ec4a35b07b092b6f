"""Brier score and log loss: the mean penalty of a stated probability, smallest when it is the true one."""

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray
from headeval.core.stable import softplus


def brier_score(probs: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of (p − y)²: 0 is perfect, ¼ is what a constant ½ scores.

    Parameters
    ----------
    probs : (n,) probability of class 1, in [0, 1], n ≥ 1.
    labels : (n,) in {0, 1}.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review 78 (1950),
    in the form with one term a row.

    Examples
    --------
    >>> brier_score([0.5, 1.0], [1, 1])
    0.125
    """
    return mean_square(*_binary(probs, labels))


def mean_square(p: FloatArray, y: IntArray) -> float:
    """Return `brier_score` of rows that were checked already."""
    off = p - y
    return float(np.mean(np.square(off, out=off)))


def log_loss(probs: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of −log(probability of the true class), in nats; infinite where one is 0.

    Where logits are known, `log_loss_from_logits` is exact also where the probability rounds to 0 or 1.

    Parameters
    ----------
    probs : (n,) probability of class 1, in [0, 1], n ≥ 1.
    labels : (n,) in {0, 1}.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Good, Rational decisions, Journal of the Royal Statistical Society B 14 (1952).

    Examples
    --------
    >>> round(log_loss([0.5, 0.5], [1, 0]), 4), log_loss([0.0], [1])
    (0.6931, inf)
    """
    p, y = _binary(probs, labels)
    with np.errstate(divide="ignore"):
        return float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))


def log_loss_from_logits(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of −log(probability of the true class), in nats, for p = sigmoid(logit).

    Parameters
    ----------
    logits : (n,) finite log-odds of class 1, n ≥ 1.
    labels : (n,) in {0, 1}.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Good, Rational decisions, Journal of the Royal Statistical Society B 14 (1952).

    Examples
    --------
    >>> log_loss_from_logits([1000.0, -1000.0], [1, 1])
    500.0
    """
    z = checks.finite_array("logits", logits, ndim=1)
    y = checks.binary_labels(labels, n=z.shape[0])
    if not z.size:
        raise ValueError("logits must hold at least one row")
    return mean_loss(softplus(np.where(y == 1, -z, z)))


def mean_loss(losses: FloatArray) -> float:
    """Return the mean of losses (n,) that can be as large as any float, n ≥ 1."""
    # Divided before they are added: the sum of logits near the largest float would overflow.
    return float(np.sum(losses / losses.size))


def _binary(probs: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, IntArray]:
    p = checks.probabilities("probs", probs)
    y = checks.binary_labels(labels, n=p.shape[0])
    if not p.size:
        raise ValueError("probs must hold at least one row")
    return p, y
