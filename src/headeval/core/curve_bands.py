"""Pointwise bounds of curves: where the ROC and the precision-recall curve of another sample like this could run."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headeval.core import checks
from headeval.core.bootstrap import FEWEST_USABLE, replicates
from headeval.core.checks import FloatArray, IntArray
from headeval.core.intervals import effective_size, wilson

Band = tuple[FloatArray, FloatArray]
# Sums of weights round; a position this much beyond a corner is the corner.
_ROUNDING = 1e-12


def roc_band(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    grid_fpr: ArrayLike,
    n_resamples: int,
    rng: np.random.Generator,
    confidence: float,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
) -> Band:
    """Return bounds of the recall at given false-positive rates, on the lines between the corners of the curve.

    At each rate by itself: the percentiles of a stratified bootstrap, widened to hold Wilson's interval of the recall
    there. Where no resample could differ, as beyond the last positive, Wilson's alone gives the band its width. At a
    vertical step the recall is the one at its top.

    Parameters
    ----------
    scores : (n,) finite; anything that ranks, larger meaning more positive.
    labels : (n,) in {0, 1}, both present (with a weight above zero).
    grid_fpr : (g,) in [0, 1].
    n_resamples, rng, weights, groups, sizes : as for `replicates`; the order of the rows changes nothing.
    confidence : in (0, 1), of each pair of bounds, not of the band as a whole.

    Returns
    -------
    lower, upper : (g,) with lower < upper.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).

    Examples
    --------
    Six of six positives are found before the first negative: nothing varies but what six can tell.

    >>> scores, labels = [9, 8, 7, 6, 5, 4, 3, 2], [1, 1, 1, 1, 1, 1, 0, 0]
    >>> rng = np.random.default_rng(0)
    >>> band = roc_band(scores, labels, grid_fpr=[0.0, 0.5], n_resamples=100, rng=rng, confidence=0.95)
    >>> band[0].round(2).tolist(), band[1].tolist()
    ([0.61, 0.61], [1.0, 1.0])
    """
    rows = _Rows.checked(scores, labels, weights, groups, sizes)
    grid = checks.probabilities("grid_fpr", grid_fpr)
    drawn = _resampled(rows, lambda tp, fp: _recall_at(grid, tp, fp), n_resamples, rng)
    own = _recall_at(grid, *rows.cumulated(rows.unit_weights)[:, 0])
    positive = rows.y == 1

    def safe(place: int) -> tuple[float, float]:
        # As many of the positives found as come closest; with weights their spread decides what the rows are worth.
        found = np.cumsum(rows.unit_weights[positive]) <= own[place] * rows.unit_weights[positive].sum() * (
            1 + _ROUNDING
        )
        return rows.wilson(own[place], positive, found, confidence)

    return _band(drawn, grid.size, safe, confidence)


def pr_band(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    grid_recall: ArrayLike,
    n_resamples: int,
    rng: np.random.Generator,
    confidence: float,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
) -> Band:
    """Return bounds of the precision at given recalls, each the precision of the first threshold that reaches it.

    Parameters
    ----------
    grid_recall : (g,) in [0, 1]; at 0 the precision of the first threshold that finds a positive.
    scores, labels, n_resamples, rng, confidence, weights, groups, sizes : as for `roc_band`.

    Returns
    -------
    lower, upper : (g,) with lower < upper, as in `roc_band`; Wilson's interval is that of the flagged rows.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> scores, labels = [9, 8, 7, 6, 5, 4, 3, 2], [1, 1, 1, 1, 1, 1, 0, 0]
    >>> rng = np.random.default_rng(0)
    >>> band = pr_band(scores, labels, grid_recall=[1.0], n_resamples=100, rng=rng, confidence=0.95)
    >>> band[0].round(2).tolist(), band[1].tolist()
    ([0.61], [1.0])
    """
    rows = _Rows.checked(scores, labels, weights, groups, sizes)
    grid = checks.probabilities("grid_recall", grid_recall)
    drawn = _resampled(rows, lambda tp, fp: _precision_at(grid, tp, fp), n_resamples, rng)
    tp, fp = rows.cumulated(rows.unit_weights)[:, 0]
    own, steps = _precision_at(grid, tp, fp), _first_reaching(grid, tp)

    def safe(place: int) -> tuple[float, float]:
        flagged = np.arange(rows.y.size) < rows.ends[steps[place]]
        return rows.wilson(own[place], flagged, rows.y[flagged] == 1, confidence)

    return _band(drawn, grid.size, safe, confidence)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows from the highest score down; equal ones in an order of their contents, so that draws are reproducible."""

    y: IntArray
    starts: IntArray  # first row of each distinct score
    ends: IntArray  # row after its last one
    weights: FloatArray | None
    groups: IntArray | None
    sizes: FloatArray | None  # of cells of rows

    @classmethod
    def checked(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        weights: ArrayLike | None,
        groups: ArrayLike | None,
        sizes: ArrayLike | None,
    ) -> "_Rows":
        s = checks.finite_array("scores", scores, ndim=1)
        y, w = checks.binary_labels(labels, n=s.size), checks.sample_weights(weights, n=s.size)
        checks.both_classes(y)
        if w is not None and not (w[y == 1].any() and w[y == 0].any()):
            raise ValueError("weights must leave both classes some weight")
        codes = None if groups is None else checks.group_codes(groups, n=s.size)
        cells = checks.sample_weights(sizes, n=s.size, name="sizes")
        keys = [key for key in (cells, codes, w, y, s) if key is not None]
        order = np.lexsort(keys)[::-1]
        s = s[order]
        starts = np.flatnonzero(np.append(True, s[1:] != s[:-1]))
        return cls(
            y=y[order],
            starts=starts,
            ends=np.append(starts[1:], s.size),
            weights=None if w is None else w[order],
            groups=None if codes is None else codes[order],
            sizes=None if cells is None else cells[order],
        )

    @property
    def unit_weights(self) -> FloatArray:
        if self.sizes is not None:
            return self.sizes
        return np.ones(self.y.size) if self.weights is None else self.weights

    def cumulated(self, w: FloatArray) -> FloatArray:
        """Return (2, R, k) weight of positives and negatives at or above each distinct score, for (R, n) weights."""
        positive = np.atleast_2d(w) * self.y
        gained = [np.add.reduceat(part, self.starts, axis=1) for part in (positive, w - positive)]
        return np.cumsum(gained, axis=2)

    def wilson(
        self, share: float, among: NDArray[np.bool_], hits: NDArray[np.bool_], confidence: float
    ) -> tuple[float, float]:
        """Wilson's bounds of a share of the rows `among`, of which `hits` are counted, by their effective number."""
        size = float(np.count_nonzero(among) if self.sizes is None else self.sizes[among].sum())
        if self.weights is not None or self.groups is not None:
            weights = None if self.weights is None else self.weights[among]
            groups = None if self.groups is None else self.groups[among]
            size = effective_size(hits.astype(np.float64), weights=weights, groups=groups)
        interval = wilson(min(share * size, size), size, confidence=confidence)
        return interval.lower, interval.upper


def _resampled(
    rows: _Rows,
    curve: Callable[[FloatArray, FloatArray], FloatArray],
    n_resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return (n_resamples, g) values of a curve; NaN where a class is missing."""

    def measure(w: FloatArray) -> FloatArray:
        return np.stack([curve(tp, fp) for tp, fp in zip(*rows.cumulated(w), strict=True)])

    return replicates(
        measure, rows.y, n_resamples=n_resamples, rng=rng, groups=rows.groups, weights=rows.weights, sizes=rows.sizes
    )


def _recall_at(grid: FloatArray, tp: FloatArray, fp: FloatArray) -> FloatArray:
    if not (tp[-1] > 0 and fp[-1] > 0):
        return np.full(grid.size, np.nan)
    x = grid * fp[-1] * (1 + _ROUNDING)
    after = np.searchsorted(fp, x, side="right")
    inside = np.minimum(after, fp.size - 1)
    left, below = np.append(0.0, fp)[after], np.append(0.0, tp)[after]
    run = np.where(after < fp.size, fp[inside] - left, 1.0)
    recall: FloatArray = (below + (tp[inside] - below) * np.maximum(x - left, 0.0) / run) / tp[-1]
    return np.minimum(np.where(after < fp.size, recall, 1.0), 1.0)


def _precision_at(grid: FloatArray, tp: FloatArray, fp: FloatArray) -> FloatArray:
    if not tp[-1] > 0:
        return np.full(grid.size, np.nan)
    steps = _first_reaching(grid, tp)
    precision: FloatArray = tp[steps] / (tp[steps] + fp[steps])
    return precision


def _first_reaching(grid: FloatArray, tp: FloatArray) -> IntArray:
    """Return the first step at which each share of the positives is found, and at least some."""
    wanted = np.maximum(grid * tp[-1] * (1 - _ROUNDING), np.nextafter(0.0, 1.0))
    steps: IntArray = np.minimum(np.searchsorted(tp, wanted, side="left"), tp.size - 1)
    return steps


def _band(drawn: FloatArray, size: int, safe: Callable[[int], tuple[float, float]], confidence: float) -> Band:
    lower, upper = np.array([safe(place) for place in range(size)]).reshape(size, 2).T
    usable = drawn[~np.isnan(drawn).any(axis=1)]
    if usable.shape[0] >= FEWEST_USABLE:
        tail = (1.0 - confidence) / 2.0
        low, high = np.quantile(usable, [tail, 1.0 - tail], axis=0)
        lower, upper = np.minimum(lower, low), np.maximum(upper, high)
    return lower, upper
