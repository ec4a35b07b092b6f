"""What a head remembers under `metrics`: how it was fitted, judged and calibrated, and on which rows."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval._version import __version__
from headeval.core.intervals import Interval
from headeval.core.newton import LogisticFit
from headeval.core.scaling import Scaling
from headeval.core.thresholds import DecisionChanges

# The smallest digests of the distinct rows are kept: all of them, or a fair sample that can be looked for later.
SKETCH_ROWS = 1000
_DIGITS = 12  # hexadecimal: 48 bits, which two of a million rows share by chance about once in 600 heads
_KEPT = re.compile(rf"([0-9a-f]{{{_DIGITS}}})+")


@dataclass(frozen=True, slots=True)
class RowsUsed:
    """The rows a fit or a calibration used.

    Attributes
    ----------
    n, positives : rows used, and those of the flagged class among them.
    fingerprint : the same for the same rows in any order and any division into files.
    unlabelled : rows left out because they had no label.
    digests : of each row, shape (n,).
    """

    n: int
    positives: int
    fingerprint: str
    unlabelled: int
    digests: NDArray[np.uint64]

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "n": self.n,
            "positives": self.positives,
            "prevalence": self.positives / self.n,
            "unlabelled_left_out": self.unlabelled,
            "data_fingerprint": self.fingerprint,
            **kept_digests(self.digests),
        }


def kept_digests(digests: NDArray[np.uint64]) -> dict[str, Any]:
    """Return what a head keeps of the digests of rows, shape (n,), as JSON values."""
    distinct = np.unique(_shortened(digests))
    return {
        "distinct_rows": int(distinct.size),
        "row_digests": "".join(f"{digest:0{_DIGITS}x}" for digest in distinct[:SKETCH_ROWS].tolist()),
    }


def fit_history(
    rows: RowsUsed,
    story: LogisticFit,
    *,
    l2: float,
    weight: str | None,
    label: str | None = None,
    passes: int | None = None,
    path: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the `metrics` of a freshly fitted head, before it is judged.

    Parameters
    ----------
    rows, story, passes : the rows of the fit, how it went, and how often it looked at all of them.
    l2, path, weight, label : the penalty, those tried where there were several, and the columns of weights and labels.
    """
    return {
        "headeval_version": __version__,
        "fit": {
            **rows.document(),
            "l2": l2,
            **({} if path is None else {"l2_path": dict(path)}),
            "label_column": label,
            "weight_column": weight,
            "solver": {
                "method": story.method,
                "converged": story.converged,
                "steps": story.steps,
                **({} if passes is None else {"passes": passes}),
                "gradient_norm": story.gradient_norm,
                "reason": story.reason.value,
            },
        },
    }


def calibration_history(
    before: Mapping[str, Any],
    rows: RowsUsed,
    scaling: Scaling,
    changes: DecisionChanges,
    *,
    thresholds: tuple[float, float] | None = None,
    label: str | None = None,
) -> dict[str, Any]:
    """Return the `metrics` of a calibrated head: the history so far and one more calibration.

    The held-out evaluation of the fit describes the uncalibrated head, so its key then says so.

    Parameters
    ----------
    before : the `metrics` of the head.
    rows : the rows of the calibration.
    scaling : what it found.
    changes : decisions that it changes on these rows.
    thresholds : of the head before and after; None where the threshold was not carried along.
    label : the column of the labels.
    """
    history = dict(before)
    if "evaluation" in history:
        history["evaluation_before_calibration"] = history.pop("evaluation")
    earlier = history.get("calibrations")
    this = {
        "headeval_version": __version__,
        "method": scaling.method,
        "temperature": scaling.temperature if scaling.method == "temperature" else None,
        "temperature_interval": _bounds(scaling.temperature_interval) if scaling.method == "temperature" else None,
        "slope": scaling.slope,
        "slope_interval": _bounds(scaling.slope_interval),
        "intercept": scaling.intercept,
        "intercept_interval": _bounds(scaling.intercept_interval),
        "label_column": label,
        **rows.document(),
        "log_loss_before": scaling.log_loss_before,
        "log_loss_after": scaling.log_loss_after,
        "newly_flagged": changes.newly_flagged,
        "no_longer_flagged": changes.no_longer_flagged,
        **dict(zip(("threshold_before", "threshold_after"), thresholds or (), strict=False)),
    }
    history["calibrations"] = [*(earlier if isinstance(earlier, list) else []), this]
    return history


def fit_label_column(history: Mapping[str, Any]) -> str | None:
    """Return the column whose labels the fit has learned, by the `metrics` of a head; None where they do not say."""
    fit = history.get("fit")
    column = fit.get("label_column") if isinstance(fit, Mapping) else None
    return column if isinstance(column, str) else None


@dataclass(frozen=True, slots=True)
class RowsSeen:
    """How many of some rows a head, or the classifier behind a column of scores, has seen before.

    Attributes
    ----------
    n : the rows looked at.
    fitted : those among them that the fit has used; None where that is not known.
    calibrated : those that some calibration has used.
    either : those that either has used.
    checked : the rows of which the kept digests can tell; where these are not all, the counts are scaled up from them.
    """

    n: int
    fitted: int | None
    calibrated: int
    either: int
    checked: int

    @property
    def exact(self) -> bool:
        """Whether these are counts, not estimates."""
        return self.checked == self.n

    @property
    def in_sample(self) -> str | None:
        """What at least half of the rows were used for, "fitted" or "calibrated", whichever is more; else None."""
        if not self.either or 2 * self.either < self.n:
            return None
        return "fitted" if (self.fitted or 0) >= self.calibrated else "calibrated"

    def __add__(self, other: "RowsSeen") -> "RowsSeen":
        """Return the count for both sets of rows together."""
        known = self.fitted is not None and other.fitted is not None
        return RowsSeen(
            self.n + other.n,
            (self.fitted or 0) + (other.fitted or 0) if known else None,
            self.calibrated + other.calibrated,
            self.either + other.either,
            self.checked + other.checked,
        )


def rows_seen(history: Mapping[str, Any], digests: NDArray[np.uint64]) -> RowsSeen | None:
    """Return how many of the rows the head has seen, by the digests it keeps; None when it keeps none.

    Parameters
    ----------
    history : the `metrics` of a head, of whatever program.
    digests : of each row, shape (n,).
    """
    counter = SeenCounter(history)
    counter.add(digests)
    return counter.total()


def recognised(entry: object, digests: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows are among those of an entry, and of which rows its kept digests can tell, shape (n,) each.

    Parameters
    ----------
    entry : part of the `metrics` of a head that keeps digests; where it keeps none, it can tell of no row.
    digests : of each row, shape (n,).

    Examples
    --------
    >>> digests = np.array([1, 2, 3], dtype=np.uint64) << np.uint64(32)
    >>> known, told = recognised(kept_digests(digests[:2]), digests)
    >>> known.tolist(), told.tolist()
    ([True, True, False], [True, True, True])
    """
    sketch, short = _sketch(entry), _shortened(digests)
    if sketch is None:
        return np.zeros(short.shape, dtype=np.bool_), np.zeros(short.shape, dtype=np.bool_)
    kept, complete = sketch
    return np.isin(short, kept), np.ones(short.shape, dtype=np.bool_) if complete else short <= kept.max()


class SeenCounter:
    """Counts, block by block, the rows that made a head. Labels play no part: a row is seen whatever it is called now.

    Of more than `SKETCH_ROWS` distinct rows a head keeps the smallest digests only. Of a row whose digest is not larger
    than the largest of them it can still tell whether it was used; such rows are a fair sample of all that are looked
    at, and the counts among them are scaled up.

    Parameters
    ----------
    history : the `metrics` of a head, of whatever program.
    """

    def __init__(self, history: Mapping[str, Any]) -> None:
        calibrations = history.get("calibrations")
        entries = calibrations if isinstance(calibrations, list) else []
        self._fit = _sketch(history.get("fit"))
        self._calibrations = [sketch for sketch in map(_sketch, entries) if sketch is not None]
        sketches = [self._fit, *self._calibrations] if self._fit else []
        limits = [int(kept.max()) for kept, complete in sketches if not complete]
        self._limit = np.uint64(min(limits, default=2**64 - 1))
        self._n = self._checked = self._fitted = self._calibrated = self._either = 0

    def add(self, digests: NDArray[np.uint64]) -> None:
        """Count the rows with these digests, shape (n,)."""
        if self._fit is None:
            return
        short = _shortened(digests)
        self._n += int(short.shape[0])
        short = short[short <= self._limit]
        fitted = np.isin(short, self._fit[0])
        calibrated = np.zeros_like(fitted)
        for kept, _ in self._calibrations:
            calibrated |= np.isin(short, kept)
        self._checked += int(short.shape[0])
        self._fitted += int(np.count_nonzero(fitted))
        self._calibrated += int(np.count_nonzero(calibrated))
        self._either += int(np.count_nonzero(fitted | calibrated))

    def total(self) -> RowsSeen | None:
        """Return the count so far; None when the head keeps no digests of its fit, or can tell of none of the rows."""
        if self._fit is None or (self._n and not self._checked):
            return None
        scale = self._n / max(self._checked, 1)
        fitted, calibrated, either = (round(x * scale) for x in (self._fitted, self._calibrated, self._either))
        return RowsSeen(self._n, fitted, calibrated, either, self._checked)


def _bounds(interval: Interval | None) -> dict[str, Any] | None:
    """Return the JSON form; a bound that is infinite is null."""
    if interval is None:
        return None
    lower, upper = (bound if math.isfinite(bound) else None for bound in (interval.lower, interval.upper))
    return {"lower": lower, "upper": upper, "confidence": interval.confidence, "method": interval.method}


def _sketch(entry: object) -> tuple[NDArray[np.uint64], bool] | None:
    """Return the kept digests and whether they are of all rows; None where the entry has none of ours."""
    if not isinstance(entry, Mapping):
        return None
    text, distinct = entry.get("row_digests"), entry.get("distinct_rows")
    if not isinstance(text, str) or not _KEPT.fullmatch(text) or type(distinct) is not int or distinct < 1:
        return None
    parts = (text[start : start + _DIGITS] for start in range(0, len(text), _DIGITS))
    digests = np.array([int(part, 16) for part in parts], dtype=np.uint64)
    return digests, digests.size >= distinct


def _shortened(digests: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return digests >> np.uint64(64 - 4 * _DIGITS)
