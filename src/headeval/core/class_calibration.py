"""Class-wise calibration: does p_c mean the share of class c, for every class, and what chance alone would show."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.batch_resamples import resampled_sums
from headeval.core.bins import DEFAULT_BINS, BinnedRows, Binning, bins_of_rows, unit_weights
from headeval.core.checks import FloatArray, IntArray

CLASSWISE_BINS = DEFAULT_BINS["top-label"]
"""As many as the top-label error has; the positive-class error of a binary classifier has ten."""

_DRAWS, _MOST_SIMULATIONS, _FEWEST_SIMULATIONS = 4_000_000, 1000, 200
_LARGE_VARIANCE = 20.0  # a count of so much variance is drawn as a normal variable


def classwise_ece(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    n_bins: int = CLASSWISE_BINS,
    binning: Binning = "equal-width",
    weights: ArrayLike | None = None,
) -> float:
    """Return the mean over the classes of Σ_b share_b · |share of the class − mean p_c| over the bins of p_c.

    Parameters
    ----------
    probs : (n, C) in [0, 1], n ≥ 1, C ≥ 2.
    labels : (n,) in {0, …, C−1}.
    n_bins : B ≥ 1 of every class; bin b covers (b/B, (b+1)/B], and 0 falls into the first.
    binning, weights : as for `headeval.core.calibration.reliability_table`.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Kull et al., Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with Dirichlet
    calibration, NeurIPS 2019; they weigh every class alike.

    Examples
    --------
    Gaps of class 0 are 0.2 and 0.4, those of class 1 the same.

    >>> round(classwise_ece([[0.8, 0.2], [0.4, 0.6]], [0, 1]), 12)
    0.3
    """
    p = checks.probabilities("probs", probs, ndim=(2,))
    if not p.shape[0] or p.shape[1] < 2:
        raise ValueError(f"probs must have at least one row and a column for each of 2 classes, got shape {p.shape}")
    y = checks.class_labels(labels, n=p.shape[0], n_classes=p.shape[1])
    w = None if weights is None else unit_weights(weights, n=p.shape[0])
    bins = (class_bins(p, y, w, c, n_bins=n_bins, binning=binning) for c in range(p.shape[1]))
    return float(np.mean([part.table().ece for part in bins]))


def class_bins(
    probs: FloatArray, labels: IntArray, weights: FloatArray | None, place: int, *, n_bins: int, binning: Binning
) -> BinnedRows:
    """Return the positive-class bins of one class, for checked rows (n, C)."""
    outcome = (labels == place).astype(np.int64)
    return bins_of_rows(
        probs[:, place].copy(), outcome, weights, convention="positive-class", n_bins=n_bins, binning=binning
    )


def resampled_gaps(bins: BinnedRows, batch: IntArray, draws: FloatArray) -> FloatArray:
    """Return Σ weight · (outcome − confidence) of each bin on resamples of batches, (R, B)."""
    gaps = np.asarray(bins.weighted(bins.outcome - bins.confidence), dtype=np.float64)
    size = draws.shape[1] * bins.n_bins
    sums = np.bincount(batch * bins.n_bins + bins.index, gaps, size).astype(np.float64, copy=False)
    return resampled_sums(draws, sums.reshape(draws.shape[1], bins.n_bins))


@dataclass(frozen=True, slots=True)
class SimulatedLabels:
    """Labels that the probabilities themselves bring forth, for the errors that chance alone shows.

    Attributes
    ----------
    n_simulations : how often every row was given a label.
    cells : simulation · n + row, those of class 0 first; None for many rows, whose bins are then drawn as counts.
    ends : (C + 1,) where the cells of each class begin and end.
    """

    n_simulations: int
    cells: IntArray | None
    ends: IntArray

    @classmethod
    def drawn(cls, probs: FloatArray, rng: np.random.Generator) -> "SimulatedLabels":
        """Draw a class for every row of (n, C) from its probabilities, independently of the others."""
        n, n_classes = probs.shape
        n_simulations = min(_MOST_SIMULATIONS, max(_FEWEST_SIMULATIONS, _DRAWS // n))
        if n_simulations * n > _DRAWS:
            return cls(n_simulations, None, np.zeros(n_classes + 1, dtype=np.int64))
        # One search for all rows: the cumulated probabilities of row i lie in (i, i + 1].
        ends = np.cumsum(probs, axis=1)
        ends = ends / ends[:, -1:] + np.arange(n)[:, None]
        found = np.searchsorted(ends.ravel(), rng.random((n_simulations, n)) + np.arange(n), side="right")
        labels = np.clip(found - np.arange(n) * n_classes, 0, n_classes - 1).ravel()
        narrow = labels.astype(np.uint16) if n_classes <= 2**16 else labels  # so short numbers are sorted by counting
        sizes = np.bincount(labels, minlength=n_classes)
        return cls(n_simulations, np.argsort(narrow, kind="stable"), np.append(0, np.cumsum(sizes)))

    def errors(self, bins: BinnedRows, place: int, rng: np.random.Generator) -> FloatArray:
        """Return Σ_b |Σ weight · (outcome − confidence)| of one class in each simulation, (n_simulations,)."""
        n = bins.index.shape[0]
        w = np.ones(n) if bins.weights is None else bins.weights
        if self.cells is None:
            drawn = self._counted(bins, w, rng)
        else:
            simulation, row = np.divmod(self.cells[self.ends[place] : self.ends[place + 1]], n)
            sums = np.bincount(simulation * bins.n_bins + bins.index[row], w[row], self.n_simulations * bins.n_bins)
            drawn = sums.reshape(self.n_simulations, bins.n_bins) - bins.sums(w * bins.confidence)
        found: FloatArray = np.abs(drawn).sum(axis=1)
        return found

    def _counted(self, bins: BinnedRows, w: FloatArray, rng: np.random.Generator) -> FloatArray:
        variance = bins.sums(np.square(w) * bins.confidence * (1.0 - bins.confidence))
        drawn = np.sqrt(variance) * rng.standard_normal((self.n_simulations, bins.n_bins))
        rare = variance < _LARGE_VARIANCE
        if bins.weights is None and rare.any():  # few events, which come in whole numbers
            drawn[:, rare] = rng.poisson(variance[rare], (self.n_simulations, int(rare.sum()))) - variance[rare]
        return drawn
