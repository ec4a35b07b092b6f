"""How much of a calibration error is chance: what calibrated classifiers show, and the error less its bias."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.bins import BinnedRows, ReliabilityTable, unit_weights
from headeval.core.calibration import binned_rows
from headeval.core.checks import FloatArray, IntArray

# A bin's sum is drawn as a normal variable where its excess kurtosis, and with it the square of its skewness, is at
# most this (without weights: where its variance is at least 200), which moves a 95th percentile by less than 0.1 %.
NORMAL_KURTOSIS = 1 / 200
# Surprises less likely than this share one bound on their probability.
_RAREST = -30
_CELLS_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True)
class CalibrationNoise:
    """What chance does to the ECE of one reliability table.

    Attributes
    ----------
    mean, quantile_95 : of the ECEs that perfectly calibrated classifiers show on rows of these confidences.
    quantile : the same at the confidence that was asked for.
    n_simulations : how many of them were drawn.
    p_value : share of them with an ECE at or above the observed one, (1 + #)/(1 + n_simulations); small where the
        observed error is more than chance.
    ece_corrected : the observed ECE less what chance adds to it, ≥ 0.
    """

    mean: float
    quantile_95: float
    quantile: float
    n_simulations: int
    p_value: float
    ece_corrected: float


def calibration_noise(
    probs: ArrayLike,
    labels: ArrayLike,
    table: ReliabilityTable,
    *,
    rng: np.random.Generator,
    n_simulations: int = 1000,
    weights: ArrayLike | None = None,
    confidence: float = 0.95,
) -> CalibrationNoise:
    """Return the ECE that chance alone would show on these probabilities, and the observed one less its bias.

    In each simulation every row is right with the probability that its confidence states, independently of the
    others; convention, edges and bins are those of the table. Rows that come in groups, such as copies or turns of one
    conversation, vary more than that: their noise is larger than what is returned here.

    The gap g of a bin is uncertain by s, and the mean of |N(g, s²)| lies above |g|; that excess is taken from every
    bin. Here s² is accuracy·(1 − accuracy)/(n − 1) or, where that is larger, what the confidences state,
    Σ c(1 − c)/n²: the first alone would be 0 in a bin that is all right, all wrong, or one row. The correction removes
    nearly all of the bias where the gaps are larger than their noise, but only about two fifths of it where there is
    no gap at all (nothing estimates |gap| there without bias): for that question compare with `quantile_95`.

    Parameters
    ----------
    probs, labels, weights : those that `table` was made of.
    table : in any convention and binning.
    rng : the source of the simulations.
    n_simulations : ≥ 1.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Bröcker and Smith, Increasing the reliability of reliability diagrams, Weather and Forecasting 22 (2007), for the
    simulations (consistency resampling).
    Kumar, Liang and Ma, Verified uncertainty calibration, NeurIPS 2019, for the correction.

    Examples
    --------
    Certain and right: chance has no part in it.

    >>> from headeval.core.calibration import reliability_table
    >>> table = reliability_table([0.0, 1.0], [0, 1])
    >>> calibration_noise([0.0, 1.0], [0, 1], table, rng=np.random.default_rng(0)).quantile_95
    0.0
    """
    confidence = checks.confidence_level(confidence)
    n_simulations = checks.whole_number("n_simulations", n_simulations, minimum=1)
    index, stated, outcome = binned_rows(probs, labels, table)
    weight = None if weights is None else unit_weights(weights, n=index.shape[0])
    bins = BinnedRows(table.convention, table.binning, table.lower[1:], index, stated, outcome, weight, table.counts)
    total = float(index.shape[0] if weight is None else weight.sum()) or 1.0
    if not np.allclose(bins.held() / total, table.weight, atol=1e-9):
        raise ValueError("table must be made with these weights")
    return noise_of_bins(bins, table, rng=rng, n_simulations=n_simulations, confidence=confidence)


def noise_of_bins(
    bins: BinnedRows,
    table: ReliabilityTable,
    *,
    rng: np.random.Generator,
    n_simulations: int = 1000,
    confidence: float = 0.95,
) -> CalibrationNoise:
    """Return `calibration_noise` of rows that were put into the bins of their table already."""
    total = float(bins.index.shape[0] if bins.weights is None else bins.weights.sum()) or 1.0
    spread = bins.confidence * (1.0 - bins.confidence)
    if bins.weights is not None:
        spread = np.square(bins.weights) * bins.confidence * (1.0 - bins.confidence)
    variance = bins.sums(spread)
    # Σ w(outcome − c) over a bin is its share of weight times accuracy − confidence, times all weight.
    sums = _simulated_sums(bins, spread, variance, n_simulations, rng)
    errors = np.abs(sums).sum(axis=0) / total
    # Simulated and observed errors can be the same number, summed in another order.
    as_large = np.count_nonzero(errors >= table.ece * (1 - 1e-9) - 1e-12)
    return CalibrationNoise(
        mean=float(errors.mean()),
        quantile_95=float(np.quantile(errors, 0.95)),
        quantile=float(np.quantile(errors, confidence)),
        n_simulations=n_simulations,
        p_value=(1 + int(as_large)) / (1 + n_simulations),
        ece_corrected=_corrected(table, bins, variance),
    )


def _corrected(table: ReliabilityTable, bins: BinnedRows, variance: FloatArray) -> float:
    held = bins.held()
    held = np.where(held > 0, held, 1.0)
    squares = bins.counts if bins.weights is None else bins.sums(np.square(bins.weights))
    share = squares / held / held  # 1/n without weights
    stated = variance / held / held
    accuracy = np.clip(table.accuracy, 0.0, 1.0)
    alone = share >= 1.0 - 1e-12
    seen = np.where(alone, 0.0, accuracy * (1.0 - accuracy) * share / np.where(alone, 1.0, 1.0 - share))
    gap = np.abs(table.accuracy - table.confidence)
    excess = [_folded_excess(g, math.sqrt(v)) for g, v in zip(gap, np.maximum(seen, stated), strict=True)]
    return max(0.0, table.ece - float(table.weight @ np.array(excess)))


def _folded_excess(gap: float, s: float) -> float:
    """E|N(gap, s²)| − gap for gap ≥ 0."""
    if s == 0:
        return 0.0
    r = gap / s
    # s·2(φ(r) − r·Φ(−r)), which vanishes for large r; a ratio beyond the range of float64 is such a one.
    return s * (math.sqrt(2 / math.pi) * math.exp(-0.5 * r * r) - r * math.erfc(r / math.sqrt(2))) if r < 40 else 0.0


def _simulated_sums(
    bins: BinnedRows, spread: FloatArray, variance: FloatArray, n_simulations: int, rng: np.random.Generator
) -> FloatArray:
    """Return Σ w(X − c) of each bin, (n_bins, n_simulations), for X = 1 with probability c, else 0."""
    weights, confidence = bins.weights, bins.confidence
    # At least the fourth cumulant, and by Cauchy and Schwarz at least the squared third one over the variance.
    fourth = variance if weights is None else bins.sums(np.square(weights) * spread)
    large = fourth < NORMAL_KURTOSIS * np.square(variance)
    sums = np.empty((bins.n_bins, n_simulations))
    sums[large] = np.sqrt(variance[large])[:, None] * rng.standard_normal((np.count_nonzero(large), n_simulations))
    if weights is None:  # the number of rows that are right is a whole one
        expected = bins.sums(confidence)[large, None]
        sums[large] = np.rint(sums[large] + expected) - expected
    few = ~large & (bins.counts > 0)
    rows = np.flatnonzero(few[bins.index]) if few.any() else np.empty(0, dtype=np.int64)
    weight = np.ones(rows.size) if weights is None else weights[rows]
    small = _surprises(bins.index[rows], confidence[rows], weight, (bins.n_bins, n_simulations), rng)
    sums[~large] = small[~large]
    return sums


def _surprises(
    index: IntArray, confidence: FloatArray, weight: FloatArray, shape: tuple[int, int], rng: np.random.Generator
) -> FloatArray:
    """Return Σ w(X − c) of each bin and simulation, with every X drawn."""
    # Each row is first given its likelier outcome. The other one, its surprise, has a probability q ≤ ½, and drawing
    # only the surprises takes work in proportion to their number, where most probabilities are near 0 or 1 far less
    # than a draw for every row and simulation.
    likely = confidence >= 0.5
    sums = np.bincount(index, weights=weight * (likely - confidence), minlength=shape[0])
    total: FloatArray = np.repeat(sums, shape[1])
    q = np.minimum(confidence, 1.0 - confidence)
    step = np.where(likely, -weight, weight)
    octave = np.maximum(np.frexp(q)[1], _RAREST)
    for one in np.unique(octave[q > 0]):
        rows = np.flatnonzero((octave == one) & (q > 0))
        bound = max(float(q[rows].max()), 2.0**_RAREST)
        chance, target = q[rows] / bound, index[rows] * shape[1]
        for cell in _chosen_cells(rows.size * shape[1], bound, rng):
            simulation = cell // rows.size
            place = cell - simulation * rows.size
            kept = rng.random(place.size) < chance[place]
            place = place[kept]
            total += np.bincount(target[place] + simulation[kept], weights=step[rows[place]], minlength=total.size)
    return total.reshape(shape)


def _chosen_cells(n_cells: int, probability: float, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield, block by block, which of 0..n_cells−1 are chosen, each with this probability on its own."""
    rate = -math.log1p(-probability)
    last = -1.0
    while last < n_cells:
        # ⌊E/rate⌋ of an exponential variable E is how many cells are passed over before the next one is chosen.
        wanted = min(int((n_cells - last) * probability * 1.1) + 32, _CELLS_AT_ONCE)
        cells = last + np.cumsum(np.floor(rng.standard_exponential(wanted) / rate) + 1.0)
        last = float(cells[-1])
        yield cells[cells < n_cells].astype(np.int64)
