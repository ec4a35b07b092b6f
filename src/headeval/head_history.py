"""What a head remembers under `metrics`: how it was fitted, judged and calibrated, and on which rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval._version import __version__
from headeval.core.newton import LogisticFit
from headeval.core.scaling import Scaling
from headeval.core.thresholds import DecisionChanges

# The smallest digests of the distinct rows are kept: all of them, or a fair sample that can be looked for later.
SKETCH_ROWS = 1000
_DIGITS = 12  # hexadecimal: 48 bits, which two of a million rows share by chance about once in 600 heads


@dataclass(frozen=True, slots=True)
class RowsUsed:
    """The rows a fit or a calibration used.

    Attributes
    ----------
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
        distinct = np.unique(_shortened(self.digests))
        return {
            "n": self.n,
            "positives": self.positives,
            "prevalence": self.positives / self.n,
            "unlabelled_left_out": self.unlabelled,
            "data_fingerprint": self.fingerprint,
            "distinct_rows": int(distinct.size),
            "row_digests": "".join(f"{digest:0{_DIGITS}x}" for digest in distinct[:SKETCH_ROWS].tolist()),
        }


def fit_history(rows: RowsUsed, story: LogisticFit, *, l2: float, weight: str | None) -> dict[str, Any]:
    """Return the `metrics` of a freshly fitted head, before it is judged.

    Parameters
    ----------
    l2 : the ridge penalty of the fit.
    weight : the column of row weights, if any.
    """
    return {
        "headeval_version": __version__,
        "fit": {
            **rows.document(),
            "l2": l2,
            "weight_column": weight,
            "solver": {
                "method": "Newton (IRLS)",
                "converged": story.converged,
                "steps": story.steps,
                "gradient_norm": story.gradient_norm,
                "reason": story.reason.value,
            },
        },
    }


def calibration_history(
    before: Mapping[str, Any], rows: RowsUsed, scaling: Scaling, changes: DecisionChanges
) -> dict[str, Any]:
    """Return the `metrics` of a calibrated head: the history so far and one more calibration.

    The held-out evaluation of the fit describes the uncalibrated head, so its key then says so.
    """
    history = dict(before)
    if "evaluation" in history:
        history["evaluation_before_calibration"] = history.pop("evaluation")
    earlier = history.get("calibrations")
    this = {
        "headeval_version": __version__,
        "method": scaling.method,
        "temperature": scaling.temperature if scaling.method == "temperature" else None,
        "slope": scaling.slope,
        "intercept": scaling.intercept,
        **rows.document(),
        "log_loss_before": scaling.log_loss_before,
        "log_loss_after": scaling.log_loss_after,
        "newly_flagged": changes.newly_flagged,
        "no_longer_flagged": changes.no_longer_flagged,
    }
    history["calibrations"] = [*(earlier if isinstance(earlier, list) else []), this]
    return history


@dataclass(frozen=True, slots=True)
class RowsSeen:
    """How many of some rows a head has seen before.

    Attributes
    ----------
    n : the rows looked at.
    fitted, calibrated : those among them that the fit, or a calibration, has used; estimated where `exact` is false.
    """

    n: int
    fitted: int
    calibrated: int
    exact: bool

    @property
    def in_sample(self) -> str | None:
        """What most of the rows were used for, "fitted" or "calibrated"; None where most are new."""
        return next((use for use in ("fitted", "calibrated") if 2 * getattr(self, use) >= max(self.n, 1)), None)

    def __add__(self, other: "RowsSeen") -> "RowsSeen":
        """Return the count for both sets of rows together."""
        return RowsSeen(
            self.n + other.n,
            self.fitted + other.fitted,
            self.calibrated + other.calibrated,
            self.exact and other.exact,
        )


def rows_seen(history: Mapping[str, Any], digests: NDArray[np.uint64]) -> RowsSeen | None:
    """Return how many of the rows the head has seen, by the digests it keeps; None when it keeps none.

    Of more than `SKETCH_ROWS` distinct rows a head keeps a sample, and the count is scaled up. Labels play no part:
    a row is seen whatever it is called now.

    Parameters
    ----------
    digests : of each row, shape (n,).
    """
    fit = history.get("fit")
    if not isinstance(fit, Mapping) or _sketch(fit) is None:
        return None
    calibrations = history.get("calibrations")
    uses = {
        "fitted": [fit],
        "calibrated": [e for e in calibrations if isinstance(e, Mapping)] if isinstance(calibrations, list) else [],
    }
    found, exact = {"fitted": 0, "calibrated": 0}, True
    for use, entries in uses.items():
        for sketch, share in filter(None, map(_sketch, entries)):
            found[use] = max(found[use], round(int(np.isin(_shortened(digests), sketch).sum()) / share))
            exact &= share == 1
    n = int(digests.shape[0])
    return RowsSeen(n, min(found["fitted"], n), min(found["calibrated"], n), exact)


def _sketch(entry: Mapping[str, Any]) -> tuple[NDArray[np.uint64], float] | None:
    """Return the kept digests and which share of the distinct rows they are; None where the entry has none of ours."""
    text, distinct = entry.get("row_digests"), entry.get("distinct_rows")
    if not isinstance(text, str) or not isinstance(distinct, int) or not text or len(text) % _DIGITS:
        return None
    try:
        digests = np.array([int(part, 16) for part in _parts(text)], dtype=np.uint64)
    except ValueError:
        return None
    return digests, min(1.0, digests.size / max(distinct, 1))


def _parts(text: str) -> Iterator[str]:
    return (text[start : start + _DIGITS] for start in range(0, len(text), _DIGITS))


def _shortened(digests: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return digests >> np.uint64(64 - 4 * _DIGITS)
