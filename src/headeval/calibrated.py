"""What the probabilities of an evaluation are worth as such: bins and their errors, proper scores, Cox's model."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from headeval.core.bins import BinnedRows, Binning, Convention, ReliabilityTable, bins_of_rows
from headeval.core.brier import BrierParts, parts_of_bins
from headeval.core.calibration_evidence import CalibrationNoise, noise_of_bins
from headeval.core.checks import FloatArray
from headeval.core.cox import cox_calibration
from headeval.core.intervals import Interval, wilson
from headeval.core.proper_scores import mean_loss, mean_square
from headeval.metric import Metric
from headeval.scored_rows import ScoredRows

_NOISE_STREAM = 1


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Rows put into bins once, with all that is summed from them.

    Attributes
    ----------
    bins, tables, noise : one a convention, the chosen one first.
    positive : which of them is the positive-class one.
    brier_parts : of the positive-class bins.
    losses : (n,) of the rows.
    cox : calibration slope and intercept, by the name of their metric.
    """

    bins: tuple[BinnedRows, ...]
    tables: tuple[ReliabilityTable, ...]
    noise: tuple[CalibrationNoise, ...]
    positive: int
    brier_parts: BrierParts
    losses: FloatArray
    cox: Mapping[str, Metric]

    @classmethod
    def of(
        cls,
        rows: ScoredRows,
        conventions: Sequence[Convention],
        n_bins: int | None,
        binning: Binning,
        *,
        confidence: float | None,
        seed: int,
    ) -> Self:
        """Put rows into bins; where they are in order of their scores, many of them take little time.

        Raises
        ------
        ValueError
            When an option is none that `reliability_table` knows.
        """
        bins = tuple(
            bins_of_rows(rows.p, rows.y, rows.weights, convention=convention, n_bins=n_bins, binning=binning)
            for convention in conventions
        )
        tables, positive = tuple(part.table() for part in bins), list(conventions).index("positive-class")
        return cls(
            bins=bins,
            tables=tables,
            noise=_noise_of_tables(bins, tables, confidence=confidence or 0.95, seed=seed),
            positive=positive,
            brier_parts=parts_of_bins(bins[positive]),
            losses=rows.losses(),
            cox=_cox_metrics(rows, confidence=confidence),
        )

    @property
    def reliability(self) -> ReliabilityTable:
        """The positive-class table."""
        return self.tables[self.positive]


def calibration_metrics(rows: ScoredRows, calibrated: Calibrated, weighed: Mapping[str, float]) -> dict[str, Metric]:
    """Return calibration errors and proper scores; `weighed` holds the same of weighted rows."""
    chosen = calibrated.tables[0]
    return {
        "ece": Metric(chosen.ece),
        "ece_corrected": Metric(calibrated.noise[0].ece_corrected),
        "mce": Metric(chosen.mce),
        "ece_positive_class": Metric(calibrated.reliability.ece),
        "brier": Metric(mean_square(rows.p, rows.y) if rows.weights is None else weighed["brier"]),
        "log_loss": _log_loss(rows, calibrated.losses, weighed),
    }


def _log_loss(rows: ScoredRows, losses: FloatArray, weighed: Mapping[str, float]) -> Metric:
    if rows.weights is not None:
        loss = weighed["log_loss"]
    elif rows.kind == "logit":
        loss = mean_loss(losses)
    else:
        loss = float(np.mean(losses))
    if math.isfinite(loss):
        return Metric(loss)
    ruled_out = np.where(rows.y == 1, rows.s == 0, rows.s == 1)
    impossible = int(np.count_nonzero(ruled_out if rows.weights is None else ruled_out & (rows.weights > 0)))
    return Metric(math.inf, f"the true class was given probability 0 in {impossible} {_rows(impossible)}")


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def bin_intervals(rows: ScoredRows, calibrated: Calibrated, *, confidence: float | None) -> tuple[Interval | None, ...]:
    """Return Wilson's interval of the share of positives in each bin of the positive-class table."""
    table, bins = calibrated.reliability, calibrated.bins[calibrated.positive]
    if confidence is None:
        return (None,) * table.n_bins
    found: list[Interval | None] = []
    for place, (n, share) in enumerate(zip(table.counts.tolist(), table.accuracy, strict=True)):
        size = n if rows.independent or not n else rows.effective_size(rows.y == 1, bins.index == place)
        found.append(wilson(min(float(share) * size, size), size, confidence=confidence) if size else None)
    return tuple(found)


def _noise_of_tables(
    bins: tuple[BinnedRows, ...], tables: tuple[ReliabilityTable, ...], *, confidence: float, seed: int
) -> tuple[CalibrationNoise, ...]:
    """Return, for each table, the ECE that a perfectly calibrated classifier would show on these probabilities."""
    return tuple(
        noise_of_bins(rows, table, rng=np.random.default_rng([seed, _NOISE_STREAM, index]), confidence=confidence)
        for index, (rows, table) in enumerate(zip(bins, tables, strict=True))
    )


def _cox_metrics(rows: ScoredRows, *, confidence: float | None) -> dict[str, Metric]:
    """Return calibration slope and intercept, undefined where a probability of 0 or 1 has no logit."""
    names = ("calibration_slope", "calibration_intercept")
    z = rows.logits()
    if z is None:
        return dict.fromkeys(names, Metric(None, "a probability is exactly 0 or 1, so that its logit is infinite"))
    cox = cox_calibration(z, rows.y, confidence=confidence or 0.95, weights=rows.weights, groups=rows.groups)
    found = (
        Metric(cox.slope, cox.slope_reason, cox.slope_interval),
        Metric(cox.intercept, cox.intercept_reason, cox.intercept_interval),
    )
    shown = found if confidence is not None else (dataclasses.replace(metric, interval=None) for metric in found)
    return dict(zip(names, shown, strict=True))
