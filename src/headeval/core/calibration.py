"""When the classifier says 0.9, is it right 90 % of the time: reliability bins and calibration errors.

Three conventions of the expected calibration error are in use; each is reached by name only.

| name             | confidence                            | at p = ½   | bins                  | bins by default |
|------------------|---------------------------------------|------------|-----------------------|-----------------|
| top-label        | max(p, 1 − p) against being correct   | predicts 1 | (lo, hi]              | 15              |
| top-label-left   | of the predicted class, the same      | predicts 0 | [lo, hi), last closed | 10              |
| positive-class   | p against the fraction of positives   | –          | (lo, hi]              | 10              |
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray

Convention = Literal["top-label", "top-label-left", "positive-class"]
Binning = Literal["equal-width", "equal-mass"]

DEFAULT_BINS: dict[Convention, int] = {"top-label": 15, "top-label-left": 10, "positive-class": 10}


@dataclass(frozen=True, slots=True)
class ReliabilityTable:
    """Rows of a reliability diagram, with the errors that sum them up.

    Attributes
    ----------
    convention, binning : how the rows were made.
    lower, upper : (B,) edges of each bin; which side is closed is the convention's.
    counts : (B,) rows in the bin, whatever their weights.
    confidence : (B,) mean confidence, 0.0 in an empty bin.
    accuracy : (B,) share correct (positive-class: share of positives), 0.0 in an empty bin.
    weight : (B,) share of all weight that is in the bin; counts/n where rows are not weighted.
    ece : Σ weight·|accuracy − confidence|.
    mce : the largest |accuracy − confidence| of a bin that is not empty.
    """

    convention: Convention
    binning: Binning
    lower: FloatArray
    upper: FloatArray
    counts: IntArray
    confidence: FloatArray
    accuracy: FloatArray
    weight: FloatArray
    ece: float
    mce: float

    @property
    def n_bins(self) -> int:
        """Return the number of bins, empty ones included."""
        return int(self.counts.shape[0])


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
    if convention not in get_args(Convention):
        raise ValueError(f"convention must be one of {', '.join(get_args(Convention))}, got {convention!r}")
    if binning not in get_args(Binning):
        raise ValueError(f"binning must be one of {', '.join(get_args(Binning))}, got {binning!r}")
    n_bins = checks.whole_number("n_bins", DEFAULT_BINS[convention] if n_bins is None else n_bins, minimum=1)
    confidence, correct = _confidence(probs, labels, convention)
    weight = unit_weights(weights, n=confidence.shape[0])
    if binning == "equal-width":
        inner = np.arange(1, n_bins) / n_bins
    else:
        inner = _equal_mass_edges(confidence, n_bins, closed_left=convention == "top-label-left")
    index = _index(inner, confidence, convention)
    return _table(index, confidence, correct, weight, inner, convention, binning)


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
    confidence, correct = _confidence(probs, labels, table.convention)
    index = _index(table.lower[1:], confidence, table.convention)
    counts = np.bincount(index, minlength=table.n_bins)
    if not np.array_equal(counts, table.counts):
        raise ValueError(f"table must be made of these rows, got counts {table.counts.tolist()} for {counts.tolist()}")
    return index, confidence, correct


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


def _confidence(probs: ArrayLike, labels: ArrayLike, convention: Convention) -> tuple[FloatArray, IntArray]:
    """Return the confidence of each row and whether it was borne out."""
    p = checks.probabilities("probs", probs, ndim=(1, 2) if convention == "top-label" else (1,))
    if p.shape[0] == 0 and convention != "top-label-left":
        raise ValueError("probs must hold at least one row")
    if p.ndim == 2:
        if p.shape[1] < 2:
            raise ValueError(f"probs must have a column for each of at least 2 classes, got shape {p.shape}")
        y = checks.class_labels(labels, n=p.shape[0], n_classes=p.shape[1])
        return p.max(axis=1), (p.argmax(axis=1) == y).astype(np.int64)
    y = checks.binary_labels(labels, n=p.shape[0])
    if convention == "positive-class":
        return p, y
    predicted = p >= 0.5 if convention == "top-label" else p > 0.5
    return np.where(predicted, p, 1.0 - p), (predicted == (y == 1)).astype(np.int64)


def unit_weights(weights: ArrayLike | None, *, n: int) -> FloatArray:
    """Return weights below 2, the largest at least 1, so that neither their sum nor their squares overflow."""
    s = checks.sample_weights(weights, n=n)
    # A power of two moves no digit, so that the unit of the weights changes nothing; nor does a weight of 1, even of
    # the smallest confidence there is.
    return np.ones(n) if s is None else np.ldexp(s, 1 - np.frexp(s.max())[1])


def _index(inner: FloatArray, confidence: FloatArray, convention: Convention) -> IntArray:
    # Comparing with the edges themselves, b/B, is clip(ceil(c·B) − 1, 0, B − 1) without the rounding of
    # the product c·B, which for some B puts an edge into the bin above.
    return np.searchsorted(inner, confidence, side="right" if convention == "top-label-left" else "left")


def _equal_mass_edges(confidence: FloatArray, n_bins: int, *, closed_left: bool) -> FloatArray:
    """Return inner edges at the k/B quantiles; edges are values that occur, so ties stay together."""
    n = confidence.shape[0]
    if n == 0:
        return np.empty(0)
    ordered = np.sort(confidence)
    position = np.arange(1, n_bins) * n // n_bins
    if closed_left:
        return np.unique(ordered[position][ordered[position] > ordered[0]])
    edges = ordered[np.maximum(position - 1, 0)]
    return np.unique(edges[edges < ordered[-1]])


def _table(
    index: IntArray,
    confidence: FloatArray,
    correct: IntArray,
    weight: FloatArray,
    inner: FloatArray,
    convention: Convention,
    binning: Binning,
) -> ReliabilityTable:
    n_bins = inner.shape[0] + 1
    held = np.bincount(index, weights=weight, minlength=n_bins)
    divisor, total = np.where(held > 0, held, 1.0), float(weight.sum()) or 1.0  # no rows: every sum is 0
    mean_confidence = np.bincount(index, weights=weight * confidence, minlength=n_bins) / divisor
    mean_accuracy = np.bincount(index, weights=weight * correct, minlength=n_bins) / divisor
    gap = np.abs(mean_accuracy - mean_confidence)
    return ReliabilityTable(
        convention=convention,
        binning=binning,
        lower=np.append(0.0, inner),
        upper=np.append(inner, 1.0),
        counts=np.bincount(index, minlength=n_bins),
        confidence=mean_confidence,
        accuracy=mean_accuracy,
        weight=held / total,
        ece=float(held @ gap) / total,
        mce=float(gap[held > 0].max(initial=0.0)),
    )
