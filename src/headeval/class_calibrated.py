"""What the probabilities of C classes are worth as such: calibration errors and proper scores, with intervals."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from headeval.class_rows import ClassRows
from headeval.core.batch_resamples import batches, drawn_batches, resampled_sums
from headeval.core.bins import BinnedRows, Binning, ReliabilityTable, bins_of_confidences, checked_bins
from headeval.core.bootstrap import bootstrap_interval, ece_interval
from headeval.core.calibration_evidence import CalibrationNoise, noise_of_bins
from headeval.core.checks import FloatArray, IntArray
from headeval.core.class_calibration import SimulatedLabels, class_bins, resampled_gaps
from headeval.core.class_scores import brier_of_rows
from headeval.core.intervals import Interval
from headeval.core.placements import kish_size
from headeval.core.proper_scores import mean_loss
from headeval.evidence import Resampling
from headeval.metric import Metric

_NOISE_STREAM, _BATCH_STREAM, _DRAW_STREAM, _LABEL_STREAM = 1, 3, 4, 5
_FEWEST_CARRIERS = 6  # Student's t of fewer degrees of freedom makes bounds that say nothing


@dataclass(frozen=True, slots=True)
class ClassCalibrated:
    """Calibration of all classes.

    Attributes
    ----------
    reliability, noise : of the top label.
    metrics : by the name of the field of `ClassEvaluation`.
    errors : the positive-class ECE of each class.
    """

    reliability: ReliabilityTable
    noise: CalibrationNoise
    metrics: dict[str, Metric]
    errors: tuple[Metric, ...]

    @classmethod
    def of(
        cls,
        rows: ClassRows,
        n_bins: int | None,
        binning: Binning,
        *,
        confidence: float | None,
        resampling: Resampling | None,
        seed: int,
    ) -> Self:
        """Measure rows; `resampling` None leaves the intervals out.

        Raises
        ------
        ValueError
            When an option is none that `reliability_table` knows.
        """
        n_bins = checked_bins("top-label", n_bins, binning)
        top = bins_of_confidences(rows.top.s, rows.top.y, rows.weights, "top-label", n_bins, binning)
        table = top.table()
        rng = np.random.default_rng([seed, _NOISE_STREAM, 0])
        noise = noise_of_bins(top, table, rng=rng, confidence=confidence or 0.95)
        drawn = None if confidence is None or resampling is None else _Drawn.of(rows, resampling, confidence)
        ece = Metric(table.ece)
        if drawn is not None:
            values, off = drawn.errors(top)
            quantile = _larger_quantile(np.array([noise.quantile]), off, drawn.confidence)
            ece = ece.with_interval(drawn.of_error(values, table.ece, quantile, noise.ece_corrected))
        errors, classwise = _classwise(rows, n_bins, binning, drawn, seed)
        metrics = {
            "top_label_ece": ece,
            "top_label_mce": Metric(table.mce),
            "classwise_ece": classwise,
            "multiclass_log_loss": _log_loss(rows, drawn),
            "multiclass_brier": _brier(rows, drawn),
        }
        return cls(table, noise, metrics, errors)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Resamples of the rows, drawn once for all measures."""

    rows: ClassRows
    batch: IntArray
    draws: FloatArray
    weight: FloatArray
    confidence: float
    units: int

    @classmethod
    def of(cls, rows: ClassRows, resampling: Resampling, confidence: float) -> Self:
        seed = resampling.seed
        batch = batches(rows.n, rows.groups, np.random.default_rng([seed, _BATCH_STREAM]))
        n_batches = int(batch.max()) + 1
        draws = drawn_batches(n_batches, resampling.n_resamples, np.random.default_rng([seed, _DRAW_STREAM]))
        held = np.bincount(batch, rows.weights, n_batches).astype(np.float64)
        return cls(rows, batch, draws, resampled_sums(draws, held[:, None])[:, 0], confidence, rows.top.units())

    def errors(self, bins: BinnedRows) -> tuple[FloatArray, FloatArray]:
        """The ECE of each resample, NaN where it has no weight; and what its bins differ from those of the rows.

        The latter, Σ|a − b|, is no less than the difference of the two errors. It is left at 0 for independent rows,
        since simulated labels say it better where bins are small; they know nothing of rows that vary together.
        """
        gaps = resampled_gaps(bins, self.batch, self.draws)
        errors = self._per_weight(np.abs(gaps).sum(axis=1))
        if self.rows.groups is None:
            return errors, np.zeros(1)
        own = bins.sums(np.asarray(bins.weighted(bins.outcome - bins.confidence), dtype=np.float64))
        share = self.weight / float(self.rows.counts.total)
        off = self._per_weight(np.abs(gaps - share[:, None] * own).sum(axis=1))
        return errors, off[np.isfinite(off)]

    def means(self, values: FloatArray) -> FloatArray:
        """The weighted mean of row values (n,) of each resample."""
        w = self.rows.weights
        carried = values if w is None else w * values
        sums = np.bincount(self.batch, carried, self.draws.shape[1]).astype(np.float64, copy=False)
        return self._per_weight(resampled_sums(self.draws, sums[:, None])[:, 0])

    def _per_weight(self, sums: FloatArray) -> FloatArray:
        found: FloatArray = np.divide(sums, self.weight, out=np.full(sums.shape, np.nan), where=self.weight > 0)
        return found

    def of_error(self, values: FloatArray, ece: float, noise: float, corrected: float | None = None) -> Interval | None:
        """The interval of a calibration error."""
        return ece_interval(
            values, ece, noise_quantile=noise, bias_corrected=corrected, confidence=self.confidence, rows=self.units
        )

    def of_mean(self, values: FloatArray, estimate: float, *, upper: float) -> Interval | None:
        """The interval of a mean of row values ≥ 0."""
        w, groups = self.rows.weights, self.rows.groups
        scale = 2.0 ** max(math.frexp(float(values.max()))[1] - 500, 0)  # sums of the largest floats would overflow
        near = values / scale
        carried = near if w is None else w * near
        carriers = kish_size(carried if groups is None else np.bincount(groups, carried).astype(np.float64))
        # A mean that a few rows carry is as uncertain as so few rows are.
        smaller = min(self.units, max(_FEWEST_CARRIERS, math.ceil(carriers))) if carriers else self.units
        return bootstrap_interval(
            self.means(near) * scale,
            estimate,
            smaller=smaller,
            confidence=self.confidence,
            upper=upper,
            rows=self.units if math.isfinite(upper) else None,
        )


def _classwise(
    rows: ClassRows, n_bins: int, binning: Binning, drawn: _Drawn | None, seed: int
) -> tuple[tuple[Metric, ...], Metric]:
    """Return the ECE of each class, and their mean."""
    simulated = None if drawn is None else SimulatedLabels.drawn(rows.p, np.random.default_rng([seed, _LABEL_STREAM]))
    total = float(rows.counts.total)
    found, resampled, chance, moved = [], np.zeros(1), np.zeros(1), np.zeros(1)
    for place in range(rows.n_classes):
        bins = class_bins(rows.p, rows.y, rows.weights, place, n_bins=n_bins, binning=binning)
        metric = Metric(bins.table().ece)
        if drawn is not None and simulated is not None:
            errors, off = drawn.errors(bins)
            alone = simulated.errors(bins, place, np.random.default_rng([seed, _LABEL_STREAM, place])) / total
            quantile = _larger_quantile(alone, off, drawn.confidence)
            metric = metric.with_interval(drawn.of_error(errors, float(metric.value or 0.0), quantile))
            resampled, chance, moved = resampled + errors, chance + alone, moved + off
        found.append(metric)
    mean = Metric(float(np.mean([metric.value for metric in found])))
    if drawn is not None:
        quantile = _larger_quantile(chance, moved, drawn.confidence) / rows.n_classes
        mean = mean.with_interval(drawn.of_error(resampled / rows.n_classes, float(mean.value or 0.0), quantile))
    return tuple(found), mean


def _larger_quantile(one: FloatArray, other: FloatArray, confidence: float) -> float:
    return float(max(np.quantile(one, confidence), np.quantile(other, confidence)))


def _log_loss(rows: ClassRows, drawn: _Drawn | None) -> Metric:
    losses, w = rows.losses(), rows.weights
    impossible = int(np.count_nonzero(np.isinf(losses) if w is None else np.isinf(losses) & (w > 0)))
    if impossible:
        what = "row" if impossible == 1 else "rows"
        return Metric(math.inf, f"the true class was given probability 0 in {impossible} {what}")
    if w is not None:
        losses = np.where(w > 0, losses, 0.0)
    metric = Metric(mean_loss(losses) if w is None else float(np.sum(losses * (w / w.sum()))))
    return metric if drawn is None else metric.with_interval(drawn.of_mean(losses, metric.value or 0.0, upper=math.inf))


def _brier(rows: ClassRows, drawn: _Drawn | None) -> Metric:
    values, w = brier_of_rows(rows.p, rows.y), rows.weights
    metric = Metric(float(np.mean(values) if w is None else np.sum(values * w) / w.sum()))
    return metric if drawn is None else metric.with_interval(drawn.of_mean(values, metric.value or 0.0, upper=2.0))
