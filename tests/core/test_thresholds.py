"""Counts and rates at a threshold, and what is undefined there."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from headeval.core.thresholds import (
    ConfusionCounts,
    DecisionChanges,
    confusion_counts,
    decision_changes,
    short_number,
)

counts = st.integers(0, 50)


def test_reference_ten_scored_examples() -> None:
    scores = [0.95, 0.90, 0.80, 0.70, 0.55, 0.45, 0.40, 0.30, 0.20, 0.10]
    found = confusion_counts(scores, [1, 1, 0, 1, 0, 1, 0, 0, 0, 0], threshold=0.5)
    assert found == ConfusionCounts(true_positives=3, false_positives=2, false_negatives=1, true_negatives=4)
    assert (found.recall, found.fpr, found.precision) == (0.75, 2 / 6, 0.6)


def test_reference_report() -> None:
    scores = [0.92, 0.15, 0.78, 0.85, 0.42, 0.23, 0.65, 0.55, 0.89, 0.11]
    found = confusion_counts(scores, [1, 0, 1, 1, 0, 0, 1, 0, 1, 0], threshold=0.5)
    assert (found.accuracy, found.precision, found.recall, found.specificity) == (0.9, 5 / 6, 1.0, 0.8)
    assert found.f1 == pytest.approx(10 / 11, abs=1e-15)


def test_reference_f1() -> None:
    found = ConfusionCounts(true_positives=6, false_positives=2, false_negatives=4, true_negatives=0)
    assert (found.precision, found.recall) == (0.75, 0.6)
    assert found.f1 == pytest.approx(2 / 3, abs=1e-15)
    # (1 + 4)·0.75·0.6 / (4·0.75 + 0.6) = 2.25/3.6
    assert found.f_beta(2.0) == pytest.approx(2.25 / 3.6, abs=1e-15)


@given(counts, counts, counts, counts, st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 10.0]))
def test_rates_are_scikit_learns(tp: int, fp: int, fn: int, tn: int, beta: float) -> None:
    found = ConfusionCounts(tp, fp, fn, tn)
    y = np.repeat([1, 0, 1, 0], [tp, fp, fn, tn])
    flagged = np.repeat([1, 1, 0, 0], [tp, fp, fn, tn])
    assert (found.n, found.positives, found.negatives, found.flagged) == (len(y), tp + fn, fp + tn, tp + fp)
    if found.n == 0:
        return
    assert found.accuracy == pytest.approx(metrics.accuracy_score(y, flagged), abs=1e-15)
    nan = {"zero_division": np.nan}
    for ours, theirs in (
        (found.precision, metrics.precision_score(y, flagged, **nan)),
        (found.recall, metrics.recall_score(y, flagged, **nan)),
        (found.specificity, metrics.recall_score(y, flagged, pos_label=0, **nan)),
        (found.fpr, 1 - metrics.recall_score(y, flagged, pos_label=0, **nan)),
    ):
        assert (ours is None) == math.isnan(theirs)
        assert ours is None or ours == pytest.approx(theirs, abs=1e-15)
    if found.flagged and found.positives:
        assert found.f_beta(beta) == pytest.approx(
            metrics.fbeta_score(y, flagged, beta=beta, zero_division=0), abs=1e-14
        )


def test_undefined_is_none_and_never_a_number() -> None:
    nothing = ConfusionCounts(0, 0, 0, 0)
    for name in ("accuracy", "precision", "recall", "specificity", "fpr", "f1"):
        assert getattr(nothing, name) is None
    assert ConfusionCounts(0, 0, 3, 4).precision is None
    assert ConfusionCounts(0, 3, 0, 4).recall is None
    assert ConfusionCounts(3, 0, 4, 0).specificity is None
    assert ConfusionCounts(3, 0, 4, 0).fpr is None
    assert ConfusionCounts(0, 0, 0, 4).f1 is None


def test_f1_without_hits_is_zero_and_defined() -> None:
    assert ConfusionCounts(0, 3, 0, 4).f1 == 0.0
    assert ConfusionCounts(0, 0, 3, 4).f1 == 0.0


def test_f_beta_runs_from_precision_to_recall() -> None:
    found = ConfusionCounts(true_positives=6, false_positives=2, false_negatives=4, true_negatives=0)
    assert found.f_beta(0.0) == found.precision
    for beta in (1e10, 1e200, 1.7e308):
        assert found.f_beta(beta) == pytest.approx(found.recall, rel=1e-15)


@pytest.mark.parametrize(
    ("threshold", "flagged"), [(math.inf, 0), (0.8000000000000002, 0), (0.8, 2), (0.5, 3), (0.0, 4), (-math.inf, 4)]
)
def test_a_score_at_the_threshold_is_flagged(threshold: float, flagged: int) -> None:
    assert confusion_counts([0.8, 0.8, 0.5, 0.1], [1, 0, 1, 0], threshold=threshold).flagged == flagged


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 1)), max_size=30), st.floats(-5, 5))
def test_counts_are_those_of_a_loop(rows: list[tuple[float, int]], threshold: float) -> None:
    expected = [[0, 0], [0, 0]]
    for score, label in rows:
        expected[label][score >= threshold] += 1
    found = confusion_counts([s for s, _ in rows], [y for _, y in rows], threshold=threshold)
    assert [[found.true_negatives, found.false_positives], [found.false_negatives, found.true_positives]] == expected


def test_a_single_class_or_no_row_is_counted_too() -> None:
    assert confusion_counts([0.9, 0.1], [1, 1], threshold=0.5) == ConfusionCounts(1, 0, 1, 0)
    assert confusion_counts([], [], threshold=0.5) == ConfusionCounts(0, 0, 0, 0)


def test_a_score_at_the_threshold_is_flagged_before_and_after() -> None:
    before, after = [0.5, 0.4, 0.4, 0.9, 0.1], [0.4, 0.5, 0.6, 0.9, 0.1]
    assert decision_changes(before, after, threshold=0.5) == DecisionChanges(newly_flagged=2, no_longer_flagged=1)
    assert decision_changes(after, before, threshold=0.5) == DecisionChanges(newly_flagged=1, no_longer_flagged=2)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.41, 0.43, 0.42),
        (0.2, 0.9, 0.6),  # the middle, 0.55, with one decimal
        (0.4, 0.44, 0.42),  # 0.4 is outside
        (0.36, 0.4, 0.4),  # and inside
        (0.2, 2.2, 1.2),  # one decimal at least
        (0.12341, 0.12349, 0.12345),
        (-0.3, 0.2, 0.1),  # the middle of what is not below 0
        (-math.inf, 0.0, 0.0),
        (0.0, 5e-324, 5e-324),  # no number of decimals reaches it
    ],
)
def test_a_short_number_has_the_fewest_decimals_near_the_middle(low: float, high: float, expected: float) -> None:
    assert short_number(low, high) == expected
