"""What is drawn of an evaluation: ROC and precision–recall with bands, histograms, and a sweep over thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.cells import merged
from headeval.core.checks import FloatArray, IntArray
from headeval.core.curve_bands import pr_band, roc_band
from headeval.core.ranked import RankedCounts, RankedWeights
from headeval.evidence import MOST_ROWS_DRAWN
from headeval.measuring import ranked_scores
from headeval.scored_rows import ScoredRows, ScoreKind
from headeval.sweep import Sweep, sweep

TOLERANCE = 9e-4
"""How far a corner may lie from a drawn curve: with the rounding of what is drawn, below 1e-3."""

_MANY_CORNERS, _OUTLINE = 2**18, 2e-5
_BINS, _BINS_OF_FEW_ROWS, _FEW_ROWS = 50, 20, 5000
_MOST_RESAMPLES, _FEWEST_RESAMPLES = 400, 100
_ROWS_OF_ALL_RESAMPLES = 20_000_000  # a band is looked at, not calculated with: seconds must do
_ROC_STREAM, _PR_STREAM = 2, 3  # of random numbers, so that a band does not depend on what else was drawn


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve as it is drawn, with straight lines from corner to corner.

    Attributes
    ----------
    x, y : (k,) in [0, 1]; x never decreases.
    lower, upper : (k,) bounds of the pointwise band at each x; None where none was asked for.
    """

    x: FloatArray
    y: FloatArray
    lower: FloatArray | None
    upper: FloatArray | None


@dataclass(frozen=True, slots=True)
class Histogram:
    """Rows by predicted probability and class.

    Attributes
    ----------
    edges : (B+1,) from 0 to 1; a bin covers [lower, upper), the last one 1 as well.
    negatives, positives : (B,) rows.
    """

    edges: FloatArray
    negatives: IntArray
    positives: IntArray


@dataclass(frozen=True, slots=True)
class Curves:
    """Everything that is drawn.

    Attributes
    ----------
    roc : x is the false-positive rate, y recall; None unless both classes are present.
    pr : x is recall, y precision, as a staircase; None unless both classes are present.
    """

    roc: Curve | None
    pr: Curve | None
    histogram: Histogram
    sweep: Sweep


def curves(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    kind: ScoreKind,
    threshold: float,
    confidence: float | None = 0.95,
    seed: int = 0,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    prevalence: float | None = None,
    per_day: float | None = None,
) -> Curves:
    """Return what is drawn of these rows; curves are thinned, counts and rates never.

    Parameters
    ----------
    scores, labels, kind, threshold, confidence, seed, weights, groups, prevalence, per_day : as for `evaluate`.

    Raises
    ------
    ValueError
        When an argument breaks what `evaluate` asks.

    Examples
    --------
    >>> drawn = curves([0.9, 0.7, 0.6, 0.4], [1, 0, 1, 0], kind="prob", threshold=0.5, confidence=None)
    >>> drawn.roc.x.tolist(), drawn.roc.y.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    >>> drawn.sweep.outcomes[drawn.sweep.outcome[drawn.sweep.in_use]].counts.false_positives
    1
    """
    rows = ScoredRows.in_order(scores, labels, kind=kind, weights=weights, groups=groups)
    threshold = checks.real_number("threshold", threshold, minimum=0.0, maximum=1.0)
    roc = pr = None
    ranked = ranked_scores(rows)
    if ranked.true_positives[-1] > 0 and ranked.false_positives[-1] > 0:
        drawn = None if confidence is None else _Drawn.of(rows, ranked, confidence, seed)
        roc = _roc(ranked, drawn)
        pr = _pr(ranked, drawn)
    swept = sweep(rows, threshold, confidence=confidence, prevalence=prevalence, per_day=per_day)
    return Curves(roc, pr, _histogram(rows), swept)


def thin(x: FloatArray, y: FloatArray, *, tolerance: float = TOLERANCE) -> IntArray:
    """Return the indices of the corners that are enough to draw a line through (x, y), first and last included.

    No point that is left out lies further than `tolerance` from the line drawn through those kept: the corner furthest
    from a straight line is kept, and both sides are looked at again.

    References
    ----------
    Douglas and Peucker, Algorithms for the reduction of the number of points required to represent a digitized line,
    Cartographica 10 (1973).

    Examples
    --------
    >>> thin(np.array([0.0, 0.5, 1.0, 1.0]), np.array([0.0, 0.5001, 1.0, 2.0])).tolist()
    [0, 2, 3]
    """
    if x.shape[0] > _MANY_CORNERS:
        few = _outline(x, y)
        return few[_kept(x[few], y[few], tolerance - _OUTLINE)]
    return _kept(x, y, tolerance)


def _kept(x: FloatArray, y: FloatArray, tolerance: float) -> IntArray:
    kept = np.zeros(x.shape[0], dtype=bool)
    kept[[0, -1]] = True
    open_parts = [(0, x.shape[0] - 1)]
    while open_parts:
        first, last = open_parts.pop()
        if last - first < 2:
            continue
        distances = _distances(x[first : last + 1], y[first : last + 1])
        furthest = int(np.argmax(distances))
        if distances[furthest] > tolerance:
            kept[first + furthest] = True
            open_parts += [(first, first + furthest), (first + furthest, last)]
    return np.flatnonzero(kept)


def _outline(x: FloatArray, y: FloatArray) -> IntArray:
    """Return the indices of the first, last, lowest and highest corner in each narrow strip of x.

    The line through them passes every height between the lowest and the highest, so that no other corner of the strip
    is further from it than the strip is wide. There can be millions of corners, but only so many strips.
    """
    strip = np.floor(x * (1 / _OUTLINE))
    starts = np.append(0, np.flatnonzero(strip[1:] != strip[:-1]) + 1)
    ends = np.append(starts[1:], x.shape[0])
    found = [starts, ends - 1]
    for extreme in (np.minimum, np.maximum):
        reached = np.flatnonzero(y == np.repeat(extreme.reduceat(y, starts), ends - starts))
        found.append(reached[np.searchsorted(reached, starts)])
    return np.unique(np.concatenate(found))


def _distances(x: FloatArray, y: FloatArray) -> FloatArray:
    """Distance of every point from the line between the first and the last."""
    dx, dy = x - x[0], y - y[0]
    length = np.hypot(dx[-1], dy[-1])
    ex, ey = (dx[-1] / length, dy[-1] / length) if length else (0.0, 0.0)
    along = np.clip(dx * ex + dy * ey, 0.0, length)
    distances: FloatArray = np.hypot(dx - along * ex, dy - along * ey)
    return distances


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Rows, or cells of very many of them, as the bands draw them."""

    scores: FloatArray
    labels: IntArray
    options: Mapping[str, Any]
    seed: int

    @classmethod
    def of(cls, rows: ScoredRows, ranked: RankedCounts | RankedWeights, confidence: float, seed: int) -> Self:
        scores, labels, sizes = rows.s, rows.y, None
        if rows.independent and isinstance(ranked, RankedCounts) and rows.n > MOST_ROWS_DRAWN:
            cells = merged(rows.y, rows.p, rows.p, ranked=ranked)
            scores, labels, sizes = cells.scores, cells.labels, cells.sizes
        resamples = max(_FEWEST_RESAMPLES, min(_MOST_RESAMPLES, _ROWS_OF_ALL_RESAMPLES // rows.n))
        options = {"n_resamples": resamples, "confidence": confidence, "weights": rows.weights, "groups": rows.groups}
        return cls(scores, labels, options | {"sizes": sizes}, seed)

    def rng(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, stream])


def _roc(ranked: RankedCounts | RankedWeights, drawn: _Drawn | None) -> Curve:
    x = np.append(0.0, ranked.false_positives / ranked.false_positives[-1])
    y = np.append(0.0, ranked.true_positives / ranked.true_positives[-1])
    # Closer near 0, where a filter of rare harm lives.
    grid = np.union1d(np.linspace(0, 1, 101), np.linspace(0, 0.05, 26))
    band = None
    if drawn is not None:
        band = roc_band(drawn.scores, drawn.labels, grid_fpr=grid, rng=drawn.rng(_ROC_STREAM), **drawn.options)
    return _with_band(x, y, grid, band)


def _pr(ranked: RankedCounts | RankedWeights, drawn: _Drawn | None) -> Curve:
    """Each precision holds from the recall before it on, as average precision sums it: no line between two points."""
    flagged = ranked.true_positives + ranked.false_positives
    found = flagged > 0  # rows of weight 0 may come first
    recall = ranked.true_positives[found] / ranked.true_positives[-1]
    precision = np.repeat(ranked.true_positives[found] / flagged[found], 2)
    stairs = np.append(0.0, np.repeat(recall, 2)[:-1])
    grid = np.linspace(0, 1, 101)
    band = None
    if drawn is not None:
        band = pr_band(drawn.scores, drawn.labels, grid_recall=grid, rng=drawn.rng(_PR_STREAM), **drawn.options)
    return _with_band(stairs, precision, grid, band)


def _with_band(x: FloatArray, y: FloatArray, grid: FloatArray, band: tuple[FloatArray, FloatArray] | None) -> Curve:
    """Thin a curve, and give it points wherever its band has them: on its own lines, so that nothing moves."""
    kept = thin(x, y)
    x, y = x[kept], y[kept]
    if band is None:
        return Curve(x, y, None, None)
    between = np.setdiff1d(grid, x)
    order = np.argsort(np.append(x, between), kind="stable")
    y = np.append(y, np.interp(between, x, y))[order]
    x = np.append(x, between)[order]
    return Curve(x, y, np.interp(x, grid, band[0]), np.interp(x, grid, band[1]))


def _histogram(rows: ScoredRows) -> Histogram:
    bins = _BINS if rows.n >= _FEW_ROWS else _BINS_OF_FEW_ROWS
    edges = np.arange(bins + 1) / bins
    # Probabilities of sorted scores are sorted, or so nearly that a stable sort has next to nothing to do.
    classes = (np.sort(rows.p[rows.y == label], kind="stable") for label in (0, 1))
    negatives, positives = (np.diff(np.searchsorted(part, edges[:-1]), append=part.shape[0]) for part in classes)
    return Histogram(edges, negatives, positives)
