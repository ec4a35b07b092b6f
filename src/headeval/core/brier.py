"""The Brier score taken apart: how much is miscalibration, how much separation, how much the data themselves."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.core.calibration import ReliabilityTable, binned_rows, unit_weights
from headeval.core.checks import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class BrierParts:
    """Brier = reliability − resolution + uncertainty + within_bin_variance − within_bin_covariance.

    With n_b rows, mean probability p̄_b and share of positives ȳ_b in bin b, and ȳ the share of positives of all rows:

    Attributes
    ----------
    reliability : Σ (n_b/n)(p̄_b − ȳ_b)², 0 where every bin means what it says.
    resolution : Σ (n_b/n)(ȳ_b − ȳ)², large where the bins tell positives from negatives; at most the uncertainty.
    uncertainty : ȳ(1 − ȳ), of the labels alone: the Brier score of always stating ȳ.
    within_bin_variance : mean of (p − p̄_b)² over all rows.
    within_bin_covariance : twice the mean of (p − p̄_b)(y − ȳ_b): what the probabilities still tell inside the bins.
    """

    reliability: float
    resolution: float
    uncertainty: float
    within_bin_variance: float
    within_bin_covariance: float

    @property
    def score(self) -> float:
        """The Brier score, up to rounding of the largest part."""
        return math.fsum(
            (
                self.reliability,
                -self.resolution,
                self.uncertainty,
                self.within_bin_variance,
                -self.within_bin_covariance,
            )
        )


def brier_parts(
    probs: ArrayLike, labels: ArrayLike, table: ReliabilityTable, *, weights: ArrayLike | None = None
) -> BrierParts:
    """Take the Brier score apart over the bins of a reliability table.

    Murphy's three parts add up to the Brier score only where every bin holds one probability; otherwise the rows
    differ inside their bin, and the two within-bin terms are what is missing. Both vanish where they do not differ.

    Parameters
    ----------
    probs : (n,) probability of class 1, n ≥ 1.
    labels : (n,) in {0, 1}.
    table : the positive-class table of these rows, in any binning.
    weights : (n,) those that `table` was made with: every n_b/n and every mean is weighted.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Murphy, A new vector partition of the probability score, Journal of Applied Meteorology 12 (1973).
    Stephenson, Coelho and Jolliffe, Two extra components in the Brier score decomposition, Weather and Forecasting 23
    (2008).

    Examples
    --------
    One bin: p̄ = ½ and ȳ = ½, while the probabilities stand ¼ away from p̄ on the right side.

    >>> from headeval.core.calibration import reliability_table
    >>> table = reliability_table([0.25, 0.75], [0, 1], convention="positive-class", n_bins=1)
    >>> parts = brier_parts([0.25, 0.75], [0, 1], table)
    >>> parts.uncertainty, parts.within_bin_variance, parts.within_bin_covariance, parts.score
    (0.25, 0.0625, 0.25, 0.0625)
    """
    if table.convention != "positive-class":
        raise ValueError(f"table must be a positive-class one, got {table.convention}")
    index, p, y = binned_rows(probs, labels, table)
    return _parts(index, p, y, unit_weights(weights, n=p.shape[0]), table.n_bins)


def _parts(index: IntArray, p: FloatArray, y: IntArray, w: FloatArray, n_bins: int) -> BrierParts:
    # Every difference is formed before it is summed, and every sum is exact until its end: the parts can be a million
    # times the score that they add up to.
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index, minlength=n_bins))[:-1]

    def by_bin(terms: FloatArray) -> FloatArray:
        return np.array([math.fsum(part.tolist()) for part in np.split(terms[order], ends)])

    ones, held = by_bin(w * y), by_bin(w)
    divisor = np.where(held > 0, held, 1.0)
    total, total_ones, total_zeros = math.fsum(held), math.fsum(ones), math.fsum((w * (1 - y)).tolist())
    gap = by_bin(w * (p - y)) / divisor
    lift = ones / divisor - total_ones / total
    off_p = p - (by_bin(w * p) / divisor)[index]
    # Once more, since a mean near 1 is rounded by more than probabilities near 1 can lie apart.
    off_p -= (by_bin(w * off_p) / divisor)[index]
    off_y = y - (ones / divisor)[index]
    return BrierParts(
        reliability=math.fsum(held * np.square(gap)) / total,
        resolution=math.fsum(held * np.square(lift)) / total,
        uncertainty=(total_ones / total) * (total_zeros / total),  # 1 − ȳ would cancel where ȳ is near 1
        within_bin_variance=math.fsum((w * np.square(off_p)).tolist()) / total,
        within_bin_covariance=2.0 * math.fsum((w * off_p * off_y).tolist()) / total,
    )
