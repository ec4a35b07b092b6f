"""Resamples of sums over rows: the rows are added up in batches once, and batches are drawn instead of rows.

A resample of rows gives every row a whole weight, and a sum over the rows of a resample is a sum over all rows with
these weights. Where only sums count (the mean of a loss, the gaps of calibration bins), rows that were put into one of
G batches at random can be drawn batch by batch: the variance between G random batches estimates the same as that
between n rows, with a relative error of about √(2/G), and takes the work of G rows instead of n. Up to G rows, or
groups of rows, every one is a batch of its own, which is the ordinary bootstrap.
"""

import math

import numpy as np

from headeval.core.checks import FloatArray, IntArray

MOST_BATCHES = 1000


def batches(n: int, groups: IntArray | None, rng: np.random.Generator) -> IntArray:
    """Return the batch of each row, (n,) in 0 … G−1, with at most `MOST_BATCHES` of nearly equal size.

    Parameters
    ----------
    groups : (n,) codes 0 … m−1; rows of one group stay together. None lets every row stand for itself.
    rng : deals rows or groups into batches where there are more of them.

    Examples
    --------
    >>> batches(3, np.array([1, 0, 1]), np.random.default_rng(0)).tolist()
    [1, 0, 1]
    """
    units = np.arange(n) if groups is None else groups
    size = n if groups is None else int(units.max()) + 1
    if size <= MOST_BATCHES:
        return units
    dealt = rng.permutation(size) % MOST_BATCHES
    return dealt[units]


def drawn_batches(n_batches: int, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each of G batches was drawn, (n_resamples, G), G draws with replacement a resample."""
    drawn = rng.integers(n_batches, size=(n_resamples, n_batches))
    drawn += np.arange(0, n_resamples * n_batches, n_batches)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=n_resamples * n_batches)
    return counts.reshape(n_resamples, n_batches).astype(np.float64)


def resampled_sums(draws: FloatArray, sums: FloatArray) -> FloatArray:
    """Return draws · sums, (R, k), with the same bits however the product is divided among threads.

    Parameters
    ----------
    draws : (R, G) whole numbers ≥ 0, those of a row adding up to G.
    sums : (G, k) of the batches, finite.

    Examples
    --------
    >>> resampled_sums(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[0.5], [0.25]])).tolist()
    [[1.0], [0.75]]
    """
    largest = float(np.abs(sums).max(initial=0.0))
    if largest == 0.0:
        return np.zeros((draws.shape[0], sums.shape[1]))
    # Multiples of one power of two whose sum stays below 2^53 of it are added without rounding, in whatever order. That
    # takes from every batch at most 2^-52 of what G of the largest come to, far less than what resamples differ by.
    digits = 52 - math.frexp(largest)[1] - math.frexp(draws.shape[1])[1]
    product: FloatArray = np.ldexp(draws @ np.rint(np.ldexp(sums, digits)), -digits)
    return product
