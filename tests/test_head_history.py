"""What a head remembers of its rows, and that a stranger's metrics never mislead or break it."""

from typing import Any

import pytest

from headeval.core.logistic import fit_logistic
from headeval.core.scaling import Scaling
from headeval.core.thresholds import DecisionChanges
from headeval.head_history import UNKNOWN_USE, RowsUsed, calibration_history, fit_history, use_of_rows

ROWS = RowsUsed(n=10, positives=4, fingerprint="10:aa", unlabelled=2)
STORY = fit_logistic([[1.0], [-1.0]], [1, 0], l2=1.0)
SCALING = Scaling("temperature", 0.5, 0.0, 0.4, 0.3)


def test_rows_of_the_fit_and_of_a_calibration_are_recognised() -> None:
    fitted = fit_history(ROWS, STORY, l2=1.0, weight=None, evaluation=None)
    other = RowsUsed(n=5, positives=2, fingerprint="5:bb", unlabelled=0)
    calibrated = calibration_history(fitted, other, SCALING, DecisionChanges(1, 2))
    assert use_of_rows(calibrated, "10:aa") == "fitted"
    assert use_of_rows(calibrated, "5:bb") == "calibrated"
    assert use_of_rows(calibrated, "5:cc") is None
    assert use_of_rows(fitted, "5:bb") is None


def test_the_evaluation_of_the_fit_is_not_left_to_describe_the_calibrated_head() -> None:
    fitted = fit_history(ROWS, STORY, l2=1.0, weight="w", evaluation={"how": "out-of-fold"})
    calibrated = calibration_history(fitted, ROWS, SCALING, DecisionChanges(1, 2))
    assert "evaluation" not in calibrated
    assert calibrated["evaluation_before_calibration"] == {"how": "out-of-fold"}
    entry = calibrated["calibrations"][0]
    assert (entry["temperature"], entry["newly_flagged"], entry["no_longer_flagged"]) == (2.0, 1, 2)
    assert fitted["fit"]["prevalence"] == 0.4
    assert fitted["evaluation"] == {"how": "out-of-fold"}  # the history given is not changed


@pytest.mark.parametrize(
    "history",
    [
        {},
        {"fit": "yesterday"},
        {"fit": {"data_fingerprint": 7}},
        {"fit": None, "calibrations": "two"},
        {"calibrations": [1, {"x": 2}]},
    ],
)
def test_a_strangers_metrics_are_unknown_and_harmless(history: dict[str, Any]) -> None:
    assert use_of_rows(history, "10:aa") == UNKNOWN_USE
    assert calibration_history(history, ROWS, SCALING, DecisionChanges(0, 0))["calibrations"]
