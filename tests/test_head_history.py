"""What a head remembers of its rows, and that a stranger's metrics never mislead or break it."""

import json
from typing import Any

import numpy as np
import pytest

from headeval.core.intervals import Interval
from headeval.core.logistic import fit_logistic
from headeval.core.scaling import Scaling
from headeval.core.thresholds import DecisionChanges
from headeval.head_history import (
    SKETCH_ROWS,
    RowsSeen,
    RowsUsed,
    SeenCounter,
    calibration_history,
    fit_history,
    fit_label_column,
    rows_seen,
)

STORY = fit_logistic([[1.0], [-1.0]], [1, 0], l2=1.0)
SCALING = Scaling("temperature", 0.5, 0.0, 0.4, 0.3)


def digests(start: int, stop: int) -> Any:
    """Well-spread 64-bit numbers that stand for rows start to stop."""
    return np.random.default_rng(0).integers(0, 2**64, 10_000, dtype=np.uint64)[start:stop]


def used(start: int, stop: int) -> RowsUsed:
    return RowsUsed(stop - start, 4, f"{start}-{stop}", 2, digests(start, stop))


def through_a_file(history: dict[str, Any]) -> Any:
    return json.loads(json.dumps(history))


def test_rows_of_the_fit_and_of_a_calibration_are_counted() -> None:
    fitted = fit_history(used(0, 100), STORY, l2=1.0, weight=None)
    calibrated = through_a_file(calibration_history(fitted, used(100, 150), SCALING, DecisionChanges(1, 2)))
    assert rows_seen(calibrated, digests(0, 100)) == RowsSeen(100, 100, 0, 100, 100)
    assert rows_seen(calibrated, digests(90, 160)) == RowsSeen(70, 10, 50, 60, 70)
    assert rows_seen(calibrated, digests(200, 300)) == RowsSeen(100, 0, 0, 0, 100)


@pytest.mark.parametrize(
    ("fitted", "calibrated", "either", "in_sample"),
    [
        (50, 0, 50, "fitted"),
        (49, 0, 49, None),
        (0, 50, 50, "calibrated"),
        (60, 100, 100, "calibrated"),
        (40, 40, 80, "fitted"),  # neither alone is half of them, both together are
        (40, 40, 40, None),
        (None, 70, 70, "calibrated"),
        (0, 0, 0, None),
    ],
)
def test_rows_are_in_sample_when_half_of_them_made_the_head(
    fitted: int | None, calibrated: int, either: int, in_sample: str | None
) -> None:
    assert RowsSeen(100, fitted, calibrated, either, 100).in_sample == in_sample


def test_two_calibrations_on_different_rows_add_up() -> None:
    fitted = fit_history(used(0, 100), STORY, l2=1.0, weight=None)
    once = calibration_history(fitted, used(100, 150), SCALING, DecisionChanges(0, 0))
    twice = through_a_file(calibration_history(once, used(140, 200), SCALING, DecisionChanges(0, 0)))
    assert rows_seen(twice, digests(100, 300)) == RowsSeen(200, 0, 100, 100, 200)


def test_of_many_rows_a_sample_is_kept_and_the_count_is_scaled_up() -> None:
    history = through_a_file(fit_history(used(0, 5000), STORY, l2=1.0, weight=None))
    assert len(history["fit"]["row_digests"]) == 12 * SKETCH_ROWS
    seen = rows_seen(history, digests(0, 10_000))
    assert seen is not None
    assert not seen.exact
    # 1,000 of 5,000 are kept, so that half of 10,000 rows are found up to a few per cent.
    assert seen.fitted == pytest.approx(5000, rel=0.1)
    nothing = rows_seen(history, digests(5000, 10_000))
    assert nothing is not None
    assert nothing.fitted == 0


def test_counts_of_several_files_add_up() -> None:
    total = RowsSeen(10, 1, 2, 3, 10) + RowsSeen(5, 3, 0, 3, 2)
    assert total == RowsSeen(15, 4, 2, 6, 12)
    assert (total + RowsSeen(5, None, 5, 5, 5)).fitted is None


def test_the_evaluation_of_the_fit_is_not_left_to_describe_the_calibrated_head() -> None:
    fitted = fit_history(used(0, 10), STORY, l2=3.0, weight="w") | {"evaluation": {"how": "out-of-fold"}}
    calibrated = calibration_history(fitted, used(0, 10), SCALING, DecisionChanges(1, 2))
    assert "evaluation" not in calibrated
    assert calibrated["evaluation_before_calibration"] == {"how": "out-of-fold"}
    entry = calibrated["calibrations"][0]
    assert (entry["temperature"], entry["newly_flagged"], entry["no_longer_flagged"]) == (2.0, 1, 2)
    assert (fitted["fit"]["prevalence"], fitted["fit"]["l2"], fitted["fit"]["weight_column"]) == (0.4, 3.0, "w")
    assert fitted["evaluation"] == {"how": "out-of-fold"}  # the history given is not changed


def test_the_columns_of_the_labels_are_kept() -> None:
    fitted = fit_history(used(0, 10), STORY, l2=1.0, weight=None, label="hate")
    history = calibration_history(fitted, used(0, 10), SCALING, DecisionChanges(0, 0), label="label")
    assert fit_label_column(through_a_file(history)) == "hate"
    assert history["calibrations"][0]["label_column"] == "label"
    for stranger in ({}, {"fit": "label"}, {"fit": {"label_column": ["hate"]}}, {"fit": {"l2": 1.0}}):
        assert fit_label_column(stranger) is None


def test_a_calibration_keeps_its_intervals_and_null_stands_for_no_bound() -> None:
    slope, intercept = Interval(-0.5, 4.0, 0.95, "Wald"), Interval(-1.0, 2.0, 0.95, "Wald")

    def entry(scaling: Scaling) -> Any:
        return through_a_file(calibration_history({}, used(0, 5), scaling, DecisionChanges(0, 0)))["calibrations"][0]

    both = {"confidence": 0.95, "method": "Wald"}
    platt = entry(Scaling("platt", 2.0, 0.5, 0.4, 0.3, slope, intercept))
    assert platt["slope_interval"] == {"lower": -0.5, "upper": 4.0, **both}
    assert platt["intercept_interval"] == {"lower": -1.0, "upper": 2.0, **both}
    assert platt["temperature_interval"] is None
    temperature = entry(Scaling("temperature", 2.0, 0.0, 0.4, 0.3, slope))
    assert temperature["temperature_interval"] == {"lower": 0.25, "upper": None, **both}
    assert temperature["intercept_interval"] is None
    assert entry(SCALING)["temperature_interval"] is None


@pytest.mark.parametrize(
    "history",
    [
        {},
        {"fit": "yesterday"},
        {"fit": {"row_digests": 7, "distinct_rows": 3}},
        {"fit": {"row_digests": "zz" * 6, "distinct_rows": 1}},
        {"fit": {"row_digests": "abc", "distinct_rows": 1}},
        {"fit": {"row_digests": "-00000000001", "distinct_rows": 1}},
        {"fit": {"row_digests": "1_1_00000000", "distinct_rows": 1}},
        {"fit": {"row_digests": "0" * 12, "distinct_rows": True}},
        {"fit": {"row_digests": "0" * 12, "distinct_rows": -5}},
        {"fit": {"row_digests": "0" * 12, "distinct_rows": "many"}},
        {"fit": None, "calibrations": "two"},
        {"calibrations": [1, {"x": 2}]},
    ],
)
def test_a_strangers_metrics_are_unknown_and_harmless(history: dict[str, Any]) -> None:
    assert rows_seen(history, digests(0, 5)) is None
    assert calibration_history(history, used(0, 5), SCALING, DecisionChanges(0, 0))["calibrations"]


def test_counting_in_small_blocks_gives_the_same_estimate() -> None:
    history = through_a_file(fit_history(used(0, 5000), STORY, l2=1.0, weight=None))
    counter = SeenCounter(history)
    for start in range(0, 2000, 10):
        counter.add(digests(start, start + 10))
    assert counter.total() == rows_seen(history, digests(0, 2000))


def test_the_union_of_samples_is_estimated_too() -> None:
    """The case where each use alone is below half, and both together are above."""
    fitted = fit_history(used(0, 3000), STORY, l2=1.0, weight=None)
    history = through_a_file(calibration_history(fitted, used(3000, 7000), SCALING, DecisionChanges(0, 0)))
    looked_at = np.concatenate([digests(1000, 3000), digests(3000, 5000), digests(7000, 9000)])
    seen = rows_seen(history, looked_at)
    assert seen is not None
    assert (seen.n, seen.exact) == (6000, False)
    # A quarter of the rows can be told of, some 1,500: shares are known to about 0.013.
    assert seen.fitted == pytest.approx(2000, abs=6000 * 0.04)
    assert seen.calibrated == pytest.approx(2000, abs=6000 * 0.04)
    assert seen.either == pytest.approx(4000, abs=6000 * 0.04)
    assert seen.in_sample is not None


def test_rows_of_which_the_kept_digests_cannot_tell_are_not_called_new() -> None:
    history = through_a_file(fit_history(used(0, 10_000), STORY, l2=1.0, weight=None))
    large = np.sort(digests(0, 10_000))[-50:]  # all of them made the head, and none is kept
    assert rows_seen(history, large) is None
