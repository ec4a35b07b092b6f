"""Mistakes that are easily made in this mathematics; `python tests/plant_faults.py` makes each and sees its test fail.

Pitfall 15 and the fitting half of 14 concern the head's file and the solver and are tested there.
"""

import math

import numpy as np
import pytest

from headeval.core.calibration import ece, reliability_bins
from headeval.core.logistic import logistic_predict_proba, logistic_regression_fit
from headeval.core.ranking import roc_auc, roc_curve
from headeval.core.scaling import fit_temperature
from headeval.core.stable import sigmoid
from headeval.core.thresholds import confusion_counts
from headeval.head import LinearHead


def test_pitfall_01_sigmoid_does_not_overflow() -> None:
    with np.errstate(all="raise", under="ignore"):
        assert sigmoid([-1000.0, 0.0, 1000.0]).tolist() == [0.0, 0.5, 1.0]
    assert sigmoid([-700.0])[0] == pytest.approx(math.exp(-700), rel=1e-13, abs=0)


def test_pitfall_02_intercept_is_not_penalised() -> None:
    # With a feature of zeros only the intercept can act; unpenalised it reaches the log-odds of 3 to 1.
    w = logistic_regression_fit(np.zeros((4, 1)), [1, 1, 1, 0], l2=100.0, iters=20)
    assert w == pytest.approx([0.0, math.log(3)], abs=1e-12)


def test_pitfall_03_gradient_points_uphill() -> None:
    w = logistic_regression_fit([[1.0], [-1.0]], [1, 0], 1.0, 1, fit_intercept=False)
    assert w[0] > 0
    assert w == pytest.approx([2 / 3], abs=1e-15)


def test_pitfall_04_hessian_holds_p_times_one_minus_p() -> None:
    # H = 2·¼ + 1 = 3/2 gives 2/3; without p(1 − p) it would be 3 and give 1/3.
    w = logistic_regression_fit([[1.0], [-1.0]], [1, 0], 1.0, 1, fit_intercept=False)
    assert w == pytest.approx([2 / 3], abs=1e-15)


@pytest.mark.parametrize("labels", [[1, 0], [0, 1]])
def test_pitfall_05_ties_enter_together(labels: list[int]) -> None:
    fpr, tpr, thresholds = roc_curve([0.5, 0.5], labels)
    assert (fpr.tolist(), tpr.tolist(), thresholds.tolist()) == ([0.0, 1.0], [0.0, 1.0], [math.inf, 0.5])
    assert roc_auc([0.5, 0.5], labels) == 0.5


def test_pitfall_06_highest_score_comes_first() -> None:
    _, tpr, thresholds = roc_curve([0.1, 0.9], [0, 1])
    assert thresholds.tolist() == [math.inf, 0.9, 0.1]
    assert tpr.tolist() == [0.0, 1.0, 1.0]
    assert roc_auc([0.1, 0.9], [0, 1]) == 1.0


def test_pitfall_07_curve_starts_at_the_origin() -> None:
    fpr, tpr, thresholds = roc_curve([0.9, 0.1], [1, 0])
    assert (fpr[0], tpr[0], thresholds[0]) == (0.0, 0.0, math.inf)


def test_pitfall_08_bins_count_by_their_rows() -> None:
    # Three rows 0.25 off and one exact: 3/4 · 0.25. A plain mean over the two bins would give 0.125.
    assert ece([0.75, 0.75, 0.75, 1.0], [1, 1, 1, 1], n_bins=4) == 0.1875


def test_pitfall_09_confidence_is_of_the_predicted_class() -> None:
    counts, confidence, accuracy = reliability_bins([0.25], [0], n_bins=2)
    assert (counts.tolist(), confidence.tolist(), accuracy.tolist()) == ([0, 1], [0.0, 0.75], [0.0, 1.0])


@pytest.mark.parametrize(("confidence", "n_bins", "expected"), [(0.5, 2, 0), (0.75, 4, 2), (1.0, 4, 3)])
def test_pitfall_10_upper_edge_belongs_to_the_bin(confidence: float, n_bins: int, expected: int) -> None:
    counts, _, _ = reliability_bins([confidence], [1], n_bins=n_bins)
    assert np.flatnonzero(counts).tolist() == [expected]


def test_pitfall_11_intercept_is_last() -> None:
    assert logistic_predict_proba([[0.0], [1.0]], [math.log(2), math.log(3)]) == pytest.approx([3 / 4, 6 / 7])
    w = logistic_regression_fit(np.zeros((4, 1)), [1, 1, 1, 0], l2=1.0, iters=20)
    assert w == pytest.approx([0.0, math.log(3)], abs=1e-12)


def test_pitfall_12_temperature_is_not_its_inverse() -> None:
    # Two of three right at logits (0, 1): σ(1/T) = 2/3.
    assert fit_temperature([[0.0, 1.0]] * 3, [1, 1, 0]) == pytest.approx(1 / math.log(2), rel=1e-12)


def test_pitfall_13_temperature_gradient_subtracts_the_labels_logit() -> None:
    assert fit_temperature([[0.0, 2.0]] * 3, [1, 1, 0]) == pytest.approx(2 / math.log(2), rel=1e-12)


@pytest.mark.parametrize("e", [(3.0, 4.0), (0.03, 0.04), (300.0, 400.0)])
def test_pitfall_14_scoring_brings_vectors_to_unit_length(e: tuple[float, float]) -> None:
    head = LinearHead("model", ("safe", "unsafe"), np.array([[0, 0], [1, 2]]), np.array([0, -1]), threshold=0.5)
    assert head.class_logits([e])[0] == pytest.approx([0.0, 1.2], abs=1e-14)


def test_pitfall_16_rates_are_taken_at_the_threshold() -> None:
    # At 0.3 all but the last are flagged: 2 of 3 right and 2 of 2 found; at 0.5 it would be 1 of 1 and 1 of 2.
    counts = confusion_counts([0.9, 0.4, 0.3, 0.1], [1, 1, 0, 0], threshold=0.3)
    assert (counts.precision, counts.recall) == (2 / 3, 1.0)
    stricter = confusion_counts([0.9, 0.6, 0.1], [1, 0, 1], threshold=0.8)
    assert (stricter.precision, stricter.recall) == (1.0, 0.5)
