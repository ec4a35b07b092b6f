"""Rows grouped by the confidence that a classifier states: the bins under every calibration measure."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray

Convention = Literal["top-label", "top-label-left", "positive-class"]
Binning = Literal["equal-width", "equal-mass"]

_BLOCK = 2**13
_MOST_ONE_BY_ONE = 2**17  # more values are added up in pairs, run by run

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

    def holding(self, rows: "BinnedRows") -> "ReliabilityTable":
        """Return the table with the counts of other rows, such as cells of its own."""
        return replace(self, counts=rows.counts)


@dataclass(frozen=True, slots=True)
class BinnedRows:
    """Where each row stands in a reliability table; what every measure over bins is summed from.

    Attributes
    ----------
    convention, binning : how the bins were made.
    inner : (B−1,) edges between the bins.
    index : (n,) bin of the row, in 0..B−1.
    confidence : (n,) of the row, in the convention.
    outcome : (n,) 1 where the row was right (positive-class: is positive), else 0.
    weights : (n,) as of `unit_weights`; None counts every row once.
    counts : (B,) rows in the bin.
    starts : first row of each run of rows in one bin, where the rows are many and the runs few, as of sorted rows.
    """

    convention: Convention
    binning: Binning
    inner: FloatArray
    index: IntArray
    confidence: FloatArray
    outcome: IntArray
    weights: FloatArray | None
    counts: IntArray
    starts: IntArray | None = None

    @property
    def n_bins(self) -> int:
        """Return the number of bins, empty ones included."""
        return int(self.counts.shape[0])

    def weighted(self, values: FloatArray | IntArray) -> FloatArray | IntArray:
        """Return values (n,) times the weights of their rows."""
        return values if self.weights is None else self.weights * values

    def sums(self, values: FloatArray | IntArray) -> FloatArray:
        """Return the sum of values (n,) in each bin, (B,)."""
        if self.starts is None:
            return np.bincount(self.index, weights=values, minlength=self.n_bins).astype(np.float64, copy=False)
        runs = np.add.reduceat(values, self.starts)  # in pairs: faster, and more exact
        return np.bincount(self.index[self.starts], runs, self.n_bins).astype(np.float64, copy=False)

    def held(self) -> FloatArray:
        """Return the weight in each bin, (B,)."""
        return self.counts.astype(np.float64) if self.weights is None else self.sums(self.weights)

    def table(self) -> "ReliabilityTable":
        """Return what the bins say about the rows."""
        held = self.held()
        divisor = np.where(held > 0, held, 1.0)
        total = float(self.index.shape[0] if self.weights is None else self.weights.sum()) or 1.0  # no rows: all sums 0
        mean_confidence = self.sums(self.weighted(self.confidence)) / divisor
        mean_accuracy = self.sums(self.weighted(self.outcome)) / divisor
        gap = np.abs(mean_accuracy - mean_confidence)
        return ReliabilityTable(
            convention=self.convention,
            binning=self.binning,
            lower=np.append(0.0, self.inner),
            upper=np.append(self.inner, 1.0),
            counts=self.counts,
            confidence=mean_confidence,
            accuracy=mean_accuracy,
            weight=held / total,
            ece=float(held @ gap) / total,
            mce=float(gap[held > 0].max(initial=0.0)),
        )


def bins_of_rows(
    p: FloatArray,
    y: IntArray,
    weights: FloatArray | None,
    *,
    convention: Convention,
    n_bins: int | None = None,
    binning: Binning = "equal-width",
) -> BinnedRows:
    """Group rows that were checked already, as `reliability_table` does; `weights` are those of `unit_weights`.

    Raises
    ------
    ValueError
        When an option is none that `reliability_table` knows.
    """
    n_bins = checked_bins(convention, n_bins, binning)
    return bins_of_confidences(*confidences(p, y, convention), weights, convention, n_bins, binning)


def rows_of_table(p: FloatArray, y: IntArray, weights: FloatArray | None, table: ReliabilityTable) -> BinnedRows:
    """Put checked rows into the bins of a table, which need not be made of them."""
    confidence, outcome = confidences(p, y, table.convention)
    inner = table.lower[1:]
    index = _index(inner, confidence, table.convention)
    counts = np.bincount(index, minlength=table.n_bins)
    return BinnedRows(table.convention, table.binning, inner, index, confidence, outcome, weights, counts)


def checked_bins(convention: Convention, n_bins: int | None, binning: Binning) -> int:
    """Return the number of bins, the convention's own for None; refuse an option that is none.

    Raises
    ------
    ValueError
        Where one is none.
    """
    if convention not in get_args(Convention):
        raise ValueError(f"convention must be one of {', '.join(get_args(Convention))}, got {convention!r}")
    if binning not in get_args(Binning):
        raise ValueError(f"binning must be one of {', '.join(get_args(Binning))}, got {binning!r}")
    return checks.whole_number("n_bins", DEFAULT_BINS[convention] if n_bins is None else n_bins, minimum=1)


def confidences(p: FloatArray, y: IntArray, convention: Convention) -> tuple[FloatArray, IntArray]:
    """Return the confidence of each row and whether it was borne out."""
    if p.ndim == 2:
        return p.max(axis=1), (p.argmax(axis=1) == y).astype(np.int64)
    if convention == "positive-class":
        return p, y
    predicted = p >= 0.5 if convention == "top-label" else p > 0.5
    return np.where(predicted, p, 1.0 - p), (predicted == (y == 1)).astype(np.int64)


def bins_of_confidences(
    confidence: FloatArray,
    outcome: IntArray,
    weights: FloatArray | None,
    convention: Convention,
    n_bins: int,
    binning: Binning,
) -> BinnedRows:
    """Divide [0, 1] into bins, evenly or by the confidences (n,), and put the rows into them."""
    if binning == "equal-width":
        inner = np.arange(1, n_bins) / n_bins
    else:
        inner = _equal_mass_edges(confidence, n_bins, closed_left=convention == "top-label-left")
    index = _index(inner, confidence, convention)
    counts, starts = np.bincount(index, minlength=inner.shape[0] + 1), None
    if index.shape[0] > _MOST_ONE_BY_ONE:
        starts = np.append(0, np.flatnonzero(index[1:] != index[:-1]) + 1)
    few = starts is not None and starts.shape[0] * 16 < index.shape[0]
    return BinnedRows(convention, binning, inner, index, confidence, outcome, weights, counts, starts if few else None)


def unit_weights(weights: ArrayLike | None, *, n: int) -> FloatArray:
    """Return weights below 2, the largest at least 1, so that neither their sum nor their squares overflow."""
    s = checks.sample_weights(weights, n=n)
    # A power of two moves no digit, so that the unit of the weights changes nothing; nor does a weight of 1, even of
    # the smallest confidence there is.
    return np.ones(n) if s is None else np.ldexp(s, 1 - np.frexp(s.max())[1])


def _index(inner: FloatArray, confidence: FloatArray, convention: Convention) -> IntArray:
    # Comparing with the edges themselves, b/B, is clip(ceil(c·B) − 1, 0, B − 1) without the rounding of
    # the product c·B, which for some B puts an edge into the bin above.
    side: Literal["left", "right"] = "right" if convention == "top-label-left" else "left"
    n = confidence.shape[0]
    if n <= _MOST_ONE_BY_ONE:
        return np.searchsorted(inner, confidence, side=side)
    # Blocks whose extremes fall into one bin are in it as a whole: of sorted rows, all but a few.
    starts = np.arange(0, n, _BLOCK)
    low, high = (np.searchsorted(inner, part.reduceat(confidence, starts), side) for part in (np.minimum, np.maximum))
    index = np.repeat(low, np.diff(starts, append=n))
    for first in starts[low != high].tolist():
        index[first : first + _BLOCK] = np.searchsorted(inner, confidence[first : first + _BLOCK], side)
    return index


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
