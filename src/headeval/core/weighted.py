"""Measures of weighted rows: sorted and prepared once, then evaluated for many weight vectors in one go."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.calibration import ReliabilityTable, binned_rows
from headeval.core.checks import FloatArray, IntArray

FPR_LIMITS = {"recall_at_1pct_fpr": 0.01, "recall_at_0_1pct_fpr": 0.001}
PARTIAL_AUC_FPR = 0.1
RANKING = ("auc", "ap", "partial_auc", *FPR_LIMITS, "best_f1")
# Temporaries of this many numbers, a mebibyte, stay in the cache of one core.
BLOCK = 2**17
# Sums of fractional weights round; counts of rows differ from a limit by more than one part in their number.
FPR_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class _Steps:
    """Runs of sorted rows that can be summed before any curve is drawn.

    A run is the positives of one score, the negatives tied with them, or all negatives between two scores that
    have positives. No ranking measure can tell the rows of a run apart: only a step with positives is a candidate
    for a best threshold, and between two of them the curves are straight.
    """

    starts: IntArray | None  # first row of each run, lowest score first; None where each row is its own run
    columns: IntArray  # the runs from the highest score down; of tied ones the negatives first
    positive: FloatArray  # 1.0 where the run in that order is of positives
    tied: IntArray  # places in that order of negatives whose tied positives follow


@dataclass(frozen=True, slots=True)
class _Bins:
    """The bins of a calibration table as runs of sorted rows."""

    starts: IntArray  # first row of each run of rows in one bin and with one predicted class
    sign: FloatArray  # of correct − confidence against y − p
    columns: IntArray  # the runs by bin
    bins: IntArray  # first of `columns` in each bin


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows prepared for measuring under any weights.

    Attributes
    ----------
    names : the measures, in the order in which `measures` returns them: auc, ap, partial_auc, recall_at_1pct_fpr,
        recall_at_0_1pct_fpr, best_f1, brier, log_loss, and the ECE of each table under the table's name.
    order : (n,) the given rows from the lowest score up, negatives first among equals; None where they came so.
    """

    names: tuple[str, ...]
    order: IntArray | None
    _steps: _Steps
    _residual: FloatArray
    _losses: FloatArray
    _loss_scale: float
    _impossible: IntArray
    _tables: tuple[_Bins, ...]

    @classmethod
    def prepare(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        probs: ArrayLike,
        losses: ArrayLike,
        tables: Mapping[str, ReliabilityTable],
    ) -> Self:
        """Sort the rows and compute all that does not depend on weights.

        Parameters
        ----------
        scores : (n,) finite, n ≥ 1; anything that ranks, larger meaning more positive.
        labels : (n,) in {0, 1}.
        probs : (n,) probability of class 1.
        losses : (n,) −log(probability of the true class) ≥ 0, infinite where that probability is 0.
        tables : name of a measure → table of these rows; its edges and its convention stay fixed, whatever the weights.

        Raises
        ------
        ValueError
            When an argument breaks the above.
        """
        s = checks.finite_array("scores", scores, ndim=1)
        y, p = checks.binary_labels(labels, n=s.shape[0]), checks.probabilities("probs", probs)
        loss = np.asarray(losses, dtype=np.float64)
        if not s.size:
            raise ValueError("scores must hold at least one row")
        if p.shape != s.shape or loss.shape != s.shape or not (loss >= 0).all():
            raise ValueError(f"probs and losses must be {s.shape[0]} numbers, and losses not below 0")
        order = np.lexsort((y, s))
        s, y, p, loss = s[order], y[order], p[order], loss[order]
        finite = np.where(np.isinf(loss), 0.0, loss)
        # Logits near the largest float have losses near it, whose sum would overflow; a power of two costs no bit.
        scale = float(2.0 ** max(np.frexp(finite.max())[1] - 500, 0))
        return cls(
            names=(*RANKING, "brier", "log_loss", *tables),
            order=None if np.array_equal(order, np.arange(order.size)) else order,
            _steps=_steps(s, y),
            _residual=y - p,
            _losses=finite / scale,
            _loss_scale=scale,
            _impossible=np.flatnonzero(np.isinf(loss)),
            _tables=tuple(_bins(table, p, y) for table in tables.values()),
        )

    def measures(self, weights: ArrayLike) -> FloatArray:
        """Return every measure under each weight vector; rows weighted m count as m equal rows.

        Parameters
        ----------
        weights : (R, n) or (n,) finite and ≥ 0, in the order of the rows given to `prepare`.

        Returns
        -------
        values : (R, k) or (k,) for the k `names`. Ranking measures are NaN where a class has no weight, all are NaN
            where no row has any; the log loss is infinite where a row of weight has an infinite one. Recall at a false-
            positive rate is that of the last threshold whose rate is at or below it, never interpolated; the partial
            AUC is the area up to a rate of 0.1, standardised so that chance is ½ and perfection 1; each row of the
            result has the same bits whichever other weight vectors it comes with.

        Raises
        ------
        ValueError
            When `weights` breaks the above.

        References
        ----------
        McClish, Analyzing a portion of the ROC curve, Medical Decision Making 9 (1989).

        Examples
        --------
        >>> rows = SortedRows.prepare([0.9, 0.4, 0.4], [1, 1, 0], [0.9, 0.4, 0.4], [0.11, 0.92, 0.51], {})
        >>> rows.measures([[1, 1, 1], [1, 1, 2]])[:, :2].round(4).tolist()
        [[0.75, 0.8333], [0.75, 0.75]]
        """
        w = np.asarray(weights, dtype=np.float64)
        n = self._residual.shape[0]
        if w.ndim not in {1, 2} or w.shape[-1] != n:
            raise ValueError(f"weights must have shape ({n},) or (R, {n}), got {w.shape}")
        rows = np.atleast_2d(w)
        values = np.empty((rows.shape[0], len(self.names)))
        size = block_size(n)
        for first in range(0, rows.shape[0], size):
            self._measure_block(rows[first : first + size], values[first : first + size])
        return values[0] if w.ndim == 1 else values

    def ranking_measures(self, weights: ArrayLike) -> FloatArray:
        """Return the measures of `RANKING` alone, (R, k); weights as for `measures`."""
        w = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        values = np.empty((w.shape[0], len(RANKING)))
        _rank(self._steps, w if self.order is None else w.take(self.order, axis=1), values)
        return values

    def calibration_measures(self, weights: ArrayLike) -> FloatArray:
        """Return Brier score, log loss and the ECE of each table alone, (R, 2 + tables); weights as for `measures`."""
        w = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        if self.order is not None:
            w = w.take(self.order, axis=1)
        values = np.empty((w.shape[0], 2 + len(self._tables)))
        self._measure_calibration(w, w.sum(axis=1), values)
        return values

    def _measure_block(self, w: FloatArray, out: FloatArray) -> None:
        if self.order is not None:
            w = w.take(self.order, axis=1)
        total = w.sum(axis=1)
        if not (w.min() >= 0 and np.isfinite(total).all()):  # so written that NaN is caught
            raise ValueError("weights must be finite and not negative")
        m = len(RANKING)
        _rank(self._steps, w, out[:, :m])
        self._measure_calibration(w, total, out[:, m:])

    def _measure_calibration(self, w: FloatArray, total: FloatArray, out: FloatArray) -> None:
        with np.errstate(invalid="ignore", divide="ignore"):  # 0/0 is the NaN promised
            weighted = w * self._residual
            out[:, 0] = (weighted * self._residual).sum(axis=1) / total
            out[:, 1] = (w * self._losses).sum(axis=1) / total * self._loss_scale
            for place, table in enumerate(self._tables, start=2):
                out[:, place] = _binned_error(table, weighted) / total
        if self._impossible.size:
            out[w[:, self._impossible].any(axis=1), 1] = np.inf


def block_size(n: int) -> int:
    """Return how many weight vectors of n rows are worked on together."""
    return max(1, BLOCK // n)


def _steps(s: FloatArray, y: IntArray) -> _Steps:
    new_score = np.append(True, s[1:] != s[:-1])
    group = np.cumsum(new_score) - 1
    with_positives = np.bincount(group, weights=y) > 0
    new_run = np.append(True, y[1:] != y[:-1]) | (new_score & with_positives[group])
    starts = np.flatnonzero(new_run)
    positive, mixed = y[starts] == 1, with_positives[group[starts]]
    # The rows come with negatives first, so that reversing them puts the positives of a tied pair first.
    columns = np.arange(starts.size)[::-1].copy()
    tied_negatives = starts.size - 1 - np.flatnonzero(mixed & ~positive)
    columns[tied_negatives - 1], columns[tied_negatives] = columns[tied_negatives], columns[tied_negatives - 1]
    return _Steps(
        starts=None if starts.size == s.size else starts,
        columns=columns,
        positive=positive[columns].astype(np.float64),
        tied=np.sort(tied_negatives) - 1,
    )


def _rank(steps: _Steps, w: FloatArray, out: FloatArray) -> None:
    """Fill in (R, 6) ranking measures."""
    # Tied negatives enter before their positives: such a step lies below the corner that follows it at the same
    # false-positive rate, so that no maximum falls on it.
    runs = w if steps.starts is None else np.add.reduceat(w, steps.starts, axis=1)
    runs = runs.take(steps.columns, axis=1)
    gained = runs * steps.positive
    lost = runs - gained
    tp, fp = np.cumsum(gained, axis=1), np.cumsum(lost, axis=1)
    positives, negatives = tp[:, -1], fp[:, -1]
    with np.errstate(invalid="ignore", divide="ignore"):
        out[:, 0] = _area(lost, tp, gained, steps.tied, lost) / (positives * negatives)
        flagged = tp + fp
        # Summed in the same way as the numerator: where every precision is 1, so is their mean.
        precision = tp / np.maximum(flagged, np.finfo(np.float64).tiny)
        out[:, 1] = (gained * precision).sum(axis=1) / gained.sum(axis=1)
        limit = PARTIAL_AUC_FPR * negatives
        width = np.diff(np.minimum(fp, limit[:, None]), axis=1, prepend=0.0)
        share = _area(width, tp, gained, steps.tied, lost) / (positives * limit)
        out[:, 2] = _standardised(share)
        for place, rate in enumerate(FPR_LIMITS.values(), start=3):
            allowed = fp <= (rate * (1 + FPR_ROUNDING) * negatives)[:, None]
            out[:, place] = (tp * allowed).max(axis=1) / positives
        flagged += positives[:, None]
        out[:, 5] = 2.0 * (tp / flagged).max(axis=1)
    np.minimum(out, 1.0, out=out)
    out[(positives == 0) | (negatives == 0)] = np.nan


def _area(width: FloatArray, tp: FloatArray, gained: FloatArray, tied: IntArray, full: FloatArray) -> FloatArray:
    """Area under (fp, tp) over steps of `width`, which may end within one of `full` width, unstandardised."""
    area: FloatArray = (width * tp).sum(axis=1)
    if tied.size:
        cut, rise, whole = width[:, tied], gained[:, tied + 1], full[:, tied]
        # A tied step rises in proportion: over the part `cut` of it by the same part of its height.
        part = np.divide(cut, whole, out=np.zeros_like(cut), where=whole > 0)
        area += 0.5 * (cut * rise * part).sum(axis=1)
    return area


def _standardised(share: FloatArray) -> FloatArray:
    """McClish's scale of a share of the largest possible partial area."""
    least = 0.5 * PARTIAL_AUC_FPR**2
    scaled: FloatArray = 0.5 * (1.0 + (share * PARTIAL_AUC_FPR - least) / (PARTIAL_AUC_FPR - least))
    return scaled


def _bins(table: ReliabilityTable, p: FloatArray, y: IntArray) -> _Bins:
    index, _, outcome = binned_rows(p, y, table)
    upright = outcome == y  # class 1 is predicted, or meant by the convention; else both p and y are turned round
    starts = np.flatnonzero(np.append(True, (index[1:] != index[:-1]) | (upright[1:] != upright[:-1])))
    columns = np.argsort(index[starts], kind="stable")
    ordered = index[starts][columns]
    return _Bins(
        starts=starts,
        sign=np.where(upright[starts], 1.0, -1.0)[columns],
        columns=columns,
        bins=np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])),
    )


def _binned_error(table: _Bins, weighted: FloatArray) -> FloatArray:
    runs = np.add.reduceat(weighted, table.starts, axis=1).take(table.columns, axis=1)
    error: FloatArray = np.abs(np.add.reduceat(runs * table.sign, table.bins, axis=1)).sum(axis=1)
    return error
