"""Scores of C classes: the log-odds of each class, losses of rows, and an order that only their contents decide."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray
from headeval.core.ranked import BLOCK
from headeval.core.stable import logsumexp, softmax

_LARGEST = float(np.finfo(np.float64).max)
_SLACK = 2e-3  # of the sum of the probabilities of a row: what float16 may cost
_DECIMALS, _NEARLY = (3, 2), 0.02  # digits that numbers may be rounded to, and how near to them float16 comes


def class_log_odds(logits: ArrayLike) -> FloatArray:
    """Return z_c − log Σ_{k≠c} e^{z_k}, the log-odds of each class against all others.

    It ranks as the probability of the class does, but neither saturates nor ties where that rounds to 0 or 1. For two
    classes it is exactly the difference of the logits.

    Parameters
    ----------
    logits : (n, C) finite, C ≥ 2.

    Returns
    -------
    log_odds : (C, n), the rows of one class beside each other, finite.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> class_log_odds([[1000.0, 0.0, 0.0]]).round(4).tolist()
    [[999.3069], [-1000.0], [-1000.0]]
    """
    z = _columns("logits", checks.finite_array("logits", logits, ndim=2))
    found = np.empty((z.shape[1], z.shape[0]))
    size = max(1, BLOCK // z.shape[1])
    for first in range(0, z.shape[0], size):
        found[:, first : first + size] = _log_odds(z[first : first + size]).T
    return found


def _log_odds(z: FloatArray) -> FloatArray:
    """Return the log-odds (n, C) of a block, by the logits of each row in descending order.

    So rows with the same logits in another order of the classes tie exactly, as they do in exact arithmetic.
    """
    order = np.argsort(-z, axis=1, kind="stable")
    s = np.take_along_axis(z, order, axis=1)
    # Equal logits stand where the first of them stands: each leaves the same others.
    places = np.broadcast_to(np.arange(z.shape[1]), z.shape)
    starts = np.maximum.accumulate(np.where(s == np.roll(s, 1, axis=1), 0, places), axis=1)
    with np.errstate(over="ignore", under="ignore"):  # a gap beyond the range of float64 is an infinite one
        e = np.exp(s - s[:, :1])
        # The others are added up without the class itself: taking it away again would cost the digits of the rest.
        rest = np.zeros_like(s)
        rest[:, 1:] = np.cumsum(e[:, :-1], axis=1)
        rest[:, :-1] += np.cumsum(e[:, :0:-1], axis=1)[:, ::-1]
        rest[:, 0] = 1.0
        odds = s - s[:, :1] - np.log(rest)
        odds[:, 0] = s[:, 0] - s[:, 1] - np.log(np.exp(s[:, 1:] - s[:, 1:2]).sum(axis=1))
    found = np.empty_like(z)
    np.put_along_axis(found, order, np.take_along_axis(odds, starts, axis=1), axis=1)
    return np.clip(found, -_LARGEST, _LARGEST)


def log_odds(class_logits: FloatArray) -> FloatArray:
    """Return z_last − logsumexp(all others), (n,), of finite class logits (n, C): the log-odds of the last class.

    The others are added up in the order of their size, so that rows that have the same ones in another order tie.
    """
    others = class_logits[:, :-1]
    if others.shape[1] > 1:
        others = np.sort(others, axis=1)
    with np.errstate(over="ignore"):
        odds = class_logits[:, -1] - logsumexp(others)  # of one other class: its logit, exactly
    return np.clip(odds, -_LARGEST, _LARGEST)


def class_probabilities(logits: FloatArray) -> FloatArray:
    """Return the softmax of logits (n, C), block by block."""
    found = np.empty_like(logits)
    size = max(1, BLOCK // logits.shape[1])
    for first in range(0, logits.shape[0], size):
        found[first : first + size] = softmax(logits[first : first + size])
    return found


def sums_are_off(probs: FloatArray) -> NDArray[np.bool_]:
    """Return which rows of probabilities (n, C) do not add up to 1, (n,), as far as their decimals tell.

    A row whose numbers are all rounded to two or three decimals may exceed 1 by half a unit of the last one for each
    number that is not 0, and fall short of it by as much for every class.

    Examples
    --------
    >>> sums_are_off(np.array([[0.33, 0.33, 0.33], [0.34, 0.34, 0.34], [0.5, 0.25, 0.2]])).tolist()
    [False, True, True]
    """
    n_classes, nonzero = probs.shape[1], np.count_nonzero(probs, axis=1)
    above, below = np.full(probs.shape[0], _SLACK), np.full(probs.shape[0], _SLACK)
    for digits in _DECIMALS:
        scaled = probs * 10.0**digits
        rounded = (np.abs(scaled - np.rint(scaled)) < _NEARLY).all(axis=1)
        half = 0.5 / 10.0**digits
        above[rounded], below[rounded] = half * nonzero[rounded] + _SLACK, half * n_classes + _SLACK
    sums = probs.sum(axis=1)
    off: NDArray[np.bool_] = (sums > 1 + above) | (sums < 1 - below) | (nonzero == 0)
    return off


def losses_from_logits(logits: FloatArray, labels: IntArray) -> FloatArray:
    """Return −log(probability of the true class) of each row, (n,) in nats, for checked logits (n, C)."""
    found, size = np.empty(logits.shape[0]), max(1, BLOCK // logits.shape[1])
    for first in range(0, logits.shape[0], size):
        z, y = logits[first : first + size], labels[first : first + size]
        # The logits are first taken relative to the true one: a difference of two large numbers would cost digits.
        with np.errstate(over="ignore"):
            relative = np.clip(z - z[np.arange(y.shape[0]), y][:, None], -_LARGEST, _LARGEST)
        found[first : first + size] = logsumexp(relative)
    return np.maximum(found, 0.0)


def losses_from_probabilities(probs: FloatArray, labels: IntArray) -> FloatArray:
    """Return −log(probability of the true class) of each row, (n,) in nats; infinite where that is 0."""
    with np.errstate(divide="ignore"):
        return -np.log(probs[np.arange(labels.shape[0]), labels]) + 0.0  # not −0.0


def brier_of_rows(probs: FloatArray, labels: IntArray) -> FloatArray:
    """Return Σ_c (p_c − 1{y = c})² of each row, (n,) in [0, 2].

    References
    ----------
    Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review 78 (1950): his own form
    with a term for every class, which for two classes is twice that with one term a row.

    Examples
    --------
    >>> brier_of_rows(np.array([[0.5, 0.25, 0.25]]), np.array([0])).tolist()
    [0.375]
    """
    found, size = np.empty(probs.shape[0]), max(1, BLOCK // probs.shape[1])
    for first in range(0, probs.shape[0], size):
        off = probs[first : first + size].copy()
        off[np.arange(off.shape[0]), labels[first : first + size]] -= 1.0
        found[first : first + size] = np.square(off, out=off).sum(axis=1)
    return found


def order_of_contents(scores: FloatArray, *keys: FloatArray | IntArray) -> IntArray:
    """Return positions (n,) that put rows into an order of their contents alone.

    Columns are compared one after the other, each only where all before it tie: of most tables that is one sort.

    Parameters
    ----------
    scores : (n, C).
    keys : (n,) further columns that tell rows apart; rows that tie in all of them are equal.

    Examples
    --------
    >>> order_of_contents(np.array([[2.0, 1.0], [1.0, 9.0], [1.0, 3.0]])).tolist()
    [2, 1, 0]
    """
    order: IntArray = np.argsort(scores[:, 0], kind="stable")
    new = np.append(True, scores[order[1:], 0] != scores[order[:-1], 0])
    for column in (*scores.T[1:], *keys):
        tied = np.flatnonzero(~new | ~np.append(new[1:], True))
        if not tied.size:
            break
        rows, run = order[tied], np.cumsum(new)[tied]
        order[tied] = rows[np.lexsort((column[rows], run))]
        again = tied[~new[tied]]
        new[again] = column[order[again]] != column[order[again - 1]]
    return order


def _columns(name: str, scores: FloatArray) -> FloatArray:
    if scores.shape[1] < 2:
        raise ValueError(f"{name} must have a column for each of at least 2 classes, got shape {scores.shape}")
    return scores
