"""What a head remembers under `metrics`: how it was fitted, judged and calibrated, and on which rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headeval._version import __version__
from headeval.core.newton import LogisticFit
from headeval.core.scaling import Scaling
from headeval.core.thresholds import DecisionChanges

UNKNOWN_USE = "unknown"


@dataclass(frozen=True, slots=True)
class RowsUsed:
    """The rows a fit or a calibration used.

    Attributes
    ----------
    fingerprint : the same for the same rows in any order and any division into files.
    unlabelled : rows left out because they had no label.
    """

    n: int
    positives: int
    fingerprint: str
    unlabelled: int

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "n": self.n,
            "positives": self.positives,
            "prevalence": self.positives / self.n,
            "unlabelled_left_out": self.unlabelled,
            "data_fingerprint": self.fingerprint,
        }


def fit_history(
    rows: RowsUsed, story: LogisticFit, *, l2: float, weight: str | None, evaluation: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the `metrics` of a freshly fitted head.

    Parameters
    ----------
    weight : the column of row weights, if any.
    evaluation : the JSON form of the held-out evaluation; None when it was skipped.
    """
    history: dict[str, Any] = {
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
    if evaluation is not None:
        history["evaluation"] = dict(evaluation)
    return history


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


def use_of_rows(history: Mapping[str, Any], fingerprint: str) -> str | None:
    """Return what the head used exactly these rows for: "fitted", "calibrated", or None for neither.

    A head without a history, from another program or freshly built, gives `UNKNOWN_USE`. A part of the rows, or
    more than them, has another fingerprint and is not recognised.
    """
    fit, calibrations = history.get("fit"), history.get("calibrations")
    if not isinstance(fit, Mapping) or not isinstance(fit.get("data_fingerprint"), str):
        fit = None
    if fit is not None and fit["data_fingerprint"] == fingerprint:
        return "fitted"
    for entry in calibrations if isinstance(calibrations, list) else []:
        if isinstance(entry, Mapping) and entry.get("data_fingerprint") == fingerprint:
            return "calibrated"
    return UNKNOWN_USE if fit is None else None
