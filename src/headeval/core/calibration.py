"""When the classifier says 0.9, is it right 90 % of the time: reliability bins and calibration errors.

Three conventions of the expected calibration error are in use; each is reached by name only.

| name             | confidence                            | at p = ½   | bins                  | bins by default |
|------------------|---------------------------------------|------------|-----------------------|-----------------|
| top-label        | max(p, 1 − p) against being correct   | predicts 1 | (lo, hi]              | 15              |
| top-label-left   | of the predicted class, the same      | predicts 0 | [lo, hi), last closed | 10              |
| positive-class   | p against the fraction of positives   | –          | (lo, hi]              | 10              |
"""

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.bins import (
    DEFAULT_BINS,
    Binning,
    Convention,
    ReliabilityTable,
    bins_of_confidences,
    checked_bins,
    confidences,
    rows_of_table,
    unit_weights,
)
from headeval.core.checks import FloatArray, IntArray

__all__ = [
    "DEFAULT_BINS",
    "Binning",
    "Convention",
    "ReliabilityTable",
    "binned_rows",
    "ece",
    "reliability_bins",
    "reliability_table",
    "unit_weights",
]


def reliability_table(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    convention: Convention = "top-label",
    n_bins: int | None = None,
    binning: Binning = "equal-width",
    weights: ArrayLike | None = None,
) -> ReliabilityTable:
    """Group the rows by confidence and compare mean confidence with mean accuracy in each group.

    Parameters
    ----------
    probs : (n,) probability of class 1, or (n, C) one column a class (top-label only).
    labels : (n,) in {0, 1}, or in {0, …, C−1}.
    convention : see the table at the top of this module.
    n_bins : B ≥ 1; None takes the convention's default.
    binning : "equal-width" divides [0, 1] evenly; "equal-mass" puts about n/B rows in each bin and
        never divides tied confidences, so that there can be fewer than B bins.
    weights : (n,) ≥ 0, finite, not all zero: means and errors are weighted, in equal-width bins as if a row of
        weight 2 were there twice; counts and the edges of equal-mass bins stay those of the rows. A bin without
        weight counts as empty. None weighs all rows alike.

    Raises
    ------
    ValueError
        When an argument breaks the above, or n = 0 (top-label-left alone defines that as error 0).

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks, ICML 2017 (top-label).
    Nixon et al., Measuring calibration in deep learning, CVPR workshops 2019 (equal-mass bins).

    Examples
    --------
    >>> table = reliability_table([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], n_bins=5)
    >>> table.counts.tolist(), round(table.ece, 12)
    ([0, 0, 1, 2, 1], 0.25)
    """
    n_bins = checked_bins(convention, n_bins, binning)
    confidence, outcome = confidences(*_checked(probs, labels, convention), convention)
    s = checks.sample_weights(weights, n=confidence.shape[0])
    return bins_of_confidences(
        confidence, outcome, None if s is None else unit_weights(s, n=s.shape[0]), convention, n_bins, binning
    ).table()


def binned_rows(probs: ArrayLike, labels: ArrayLike, table: ReliabilityTable) -> tuple[IntArray, FloatArray, IntArray]:
    """Return where each row stands in its reliability table.

    Parameters
    ----------
    probs, labels : the rows that `table` was made of, in any order.

    Returns
    -------
    index : (n,) bin of the row, in 0..B−1.
    confidence : (n,) of the row, in the table's convention.
    outcome : (n,) 1 where the row was right (positive-class: is positive), else 0.

    Raises
    ------
    ValueError
        When the rows break what `reliability_table` asks of them, or are not those of the table.

    Examples
    --------
    >>> table = reliability_table([0.9, 0.2], [1, 1], n_bins=2)
    >>> index, confidence, outcome = binned_rows([0.9, 0.2], [1, 1], table)
    >>> index.tolist(), confidence.tolist(), outcome.tolist()
    ([1, 1], [0.9, 0.8], [1, 0])
    """
    rows = rows_of_table(*_checked(probs, labels, table.convention), None, table)
    if not np.array_equal(rows.counts, table.counts):
        raise ValueError(
            f"table must be made of these rows, got counts {table.counts.tolist()} for {rows.counts.tolist()}"
        )
    return rows.index, rows.confidence, rows.outcome


def reliability_bins(probs: ArrayLike, labels: ArrayLike, n_bins: int = 15) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return (counts, confidence, accuracy) of `n_bins` equal-width top-label bins.

    Parameters
    ----------
    probs : (n,) probability of class 1, or (n, C) one column a class; finite, in [0, 1], n ≥ 1.
        The confidence is max(p, 1 − p), with p ≥ ½ predicting 1; for (n, C) the first largest entry.
    labels : (n,) in {0, 1}, or in {0, …, C−1}.
    n_bins : B ≥ 1; bin b covers (b/B, (b+1)/B], and a confidence of 0 falls in bin 0. A confidence c is compared
        with the edges as floats b/B; in exact arithmetic its bin is clip(ceil(c·B) − 1, 0, B − 1).

    Returns
    -------
    counts, confidence, accuracy : (B,); an empty bin holds 0, 0.0, 0.0.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks, ICML 2017.

    Examples
    --------
    >>> counts, confidence, accuracy = reliability_bins([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], n_bins=5)
    >>> counts.tolist(), confidence.tolist(), accuracy.tolist()
    ([0, 0, 1, 2, 1], [0.0, 0.0, 0.6, 0.75, 0.9], [0.0, 0.0, 1.0, 0.5, 1.0])
    """
    n_bins = checks.whole_number("n_bins", n_bins, minimum=1)  # None means a default to `reliability_table` only
    table = reliability_table(probs, labels, convention="top-label", n_bins=n_bins)
    return table.counts, table.confidence, table.accuracy


def ece(probs: ArrayLike, labels: ArrayLike, n_bins: int = 15) -> float:
    """Return the expected calibration error Σ (n_b/n)·|acc_b − conf_b| of the top-label convention.

    Even a calibrated classifier shows an error of a few hundredths on a few hundred rows.

    Parameters
    ----------
    probs : (n,) probability of class 1, or (n, C) one column a class; finite, in [0, 1], n ≥ 1.
    labels : (n,) in {0, 1}, or in {0, …, C−1}.
    n_bins : B ≥ 1 equal-width bins, as in `reliability_bins`.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks, ICML 2017.

    Examples
    --------
    >>> round(ece([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], n_bins=5), 12)
    0.25
    """
    n_bins = checks.whole_number("n_bins", n_bins, minimum=1)  # None means a default to `reliability_table` only
    return reliability_table(probs, labels, convention="top-label", n_bins=n_bins).ece


def _checked(probs: ArrayLike, labels: ArrayLike, convention: Convention) -> tuple[FloatArray, IntArray]:
    p = checks.probabilities("probs", probs, ndim=(1, 2) if convention == "top-label" else (1,))
    if p.shape[0] == 0 and convention != "top-label-left":
        raise ValueError("probs must hold at least one row")
    if p.ndim == 2 and p.shape[1] < 2:
        raise ValueError(f"probs must have a column for each of at least 2 classes, got shape {p.shape}")
    return p, checks.class_labels(labels, n=p.shape[0], n_classes=p.shape[1] if p.ndim == 2 else 2)
