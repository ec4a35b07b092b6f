"""Figures known from real and simulated data, to the digits in which they are known."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy import special
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from headeval.core.calibration import ece, reliability_table
from headeval.core.checks import FloatArray, IntArray
from headeval.core.logistic import logistic_regression_fit
from headeval.core.proper_scores import brier_score
from headeval.core.ranking import average_precision, roc_auc
from headeval.core.scaling import fit_temperature, fit_temperature_scaling
from headeval.core.stable import sigmoid
from headeval.core.thresholds import confusion_counts

Logits = Callable[[FloatArray], FloatArray]
SPLITS = 50


def naive_bayes(X: FloatArray, y: IntArray) -> Logits:
    model = GaussianNB().fit(X, y)

    def logits(rows: FloatArray) -> FloatArray:
        joint: FloatArray = model.predict_joint_log_proba(rows)
        return joint[:, 1] - joint[:, 0]

    return logits


def standardised_regression(X: FloatArray, y: IntArray) -> Logits:
    mean, spread = X.mean(axis=0), X.std(axis=0)
    w = logistic_regression_fit((X - mean) / spread, y, l2=1.0, iters=50)
    return lambda rows: (rows - mean) / spread @ w[:-1] + w[-1]


@cache
def breast_cancer(fit: Callable[[FloatArray, IntArray], Logits]) -> dict[str, FloatArray]:
    """Confidence, accuracy, Brier scores, T and kept decisions of 50 splits; malignant is class 1."""
    data = load_breast_cancer()
    X, y = data.data[:, :10], 1 - data.target
    rows = []
    for seed in range(SPLITS):
        X_rest, X_test, y_rest, y_test = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        X_fit, X_calib, y_fit, y_calib = train_test_split(
            X_rest, y_rest, test_size=1 / 3, random_state=seed, stratify=y_rest
        )
        logits = fit(X_fit, y_fit)
        calib, test = logits(X_calib), logits(X_test)
        T = fit_temperature(np.column_stack([np.zeros_like(calib), calib]), y_calib)
        before, after = sigmoid(test), sigmoid(test / T)
        rows.append(
            {
                "confidence": np.maximum(before, 1 - before).mean(),
                "accuracy": confusion_counts(before, y_test, threshold=0.5).accuracy,
                "brier before": brier_score(before, y_test),
                "brier after": brier_score(after, y_test),
                "T": T,
                "kept": ((before >= 0.5) == (after >= 0.5)).all(),
            }
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def test_naive_bayes_on_breast_cancer() -> None:
    splits = breast_cancer(naive_bayes)
    assert round(100 * splits["confidence"].mean(), 1) == 98.5
    assert round(100 * splits["accuracy"].mean(), 1) == 91.2
    assert round(splits["brier before"].mean(), 3) == 0.077
    assert round(splits["brier after"].mean(), 3) == 0.061
    assert round(splits["T"].mean(), 2) == 3.86
    assert (splits["brier after"] < splits["brier before"]).sum() == 50
    assert splits["kept"].sum() == 50


def test_standardised_logistic_regression_on_breast_cancer() -> None:
    splits = breast_cancer(standardised_regression)
    assert round(100 * splits["confidence"].mean(), 1) == 93.4
    assert round(100 * splits["accuracy"].mean(), 1) == 93.5
    assert round(splits["brier before"].mean(), 3) == 0.047
    assert round(splits["brier after"].mean(), 3) == 0.047
    assert round(splits["T"].mean(), 2) == 0.94
    assert (splits["brier after"] < splits["brier before"]).sum() == 17
    assert splits["kept"].sum() == 50


def test_rare_positives_flatter_the_auc() -> None:
    X, y = make_classification(4000, weights=[0.98, 0.02], n_informative=5, random_state=1)
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    scores = LogisticRegression(max_iter=2000).fit(X_fit, y_fit).decision_function(X_test)
    assert y_test.mean() == 0.0225
    assert round(roc_auc(scores, y_test), 3) == 0.736
    assert round(average_precision(scores, y_test), 3) == 0.111
    # The same from our own fit (C = 1 is l2 = 1).
    w = logistic_regression_fit(X_fit, y_fit, l2=1.0, iters=50)
    own = X_test @ w[:-1] + w[-1]
    assert round(roc_auc(own, y_test), 3) == 0.736
    assert round(average_precision(own, y_test), 3) == 0.111


@cache
def simulated() -> tuple[FloatArray, IntArray]:
    legacy = np.random.RandomState(0)  # the figures were drawn from this generator
    z = 1.5 * legacy.randn(4000)
    return z, (legacy.rand(4000) < special.expit(z)).astype(np.int64)


@pytest.mark.parametrize(("T", "expected"), [(1, 0.1448), (2, 0.0583), (3, 0.0176), (4, 0.0524), (5, 0.0830)])
def test_positive_class_error_is_least_at_the_true_factor(T: int, expected: float) -> None:
    z, y = simulated()
    table = reliability_table(sigmoid(3 * z / T), y, convention="positive-class", n_bins=10)
    assert round(table.ece, 4) == expected


def test_three_times_sharpened_logits_give_three_and_half_the_error() -> None:
    z, y = simulated()
    scaling = fit_temperature_scaling(3 * z, y)
    assert scaling.temperature == pytest.approx(3.0, abs=0.1)
    before, after = sigmoid(3 * z), sigmoid(scaling.apply(3 * z))
    assert ece(after, y) <= ece(before, y) / 2
    assert confusion_counts(after, y, threshold=0.5).accuracy == confusion_counts(before, y, threshold=0.5).accuracy
    assert roc_auc(scaling.apply(3 * z), y) == roc_auc(3 * z, y)


@pytest.mark.parametrize("seed", range(10))
def test_calibrated_scores_show_sampling_noise_and_sharpened_ones_an_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random(4000)
    y = rng.random(4000) < p
    sharpened = special.expit(3 * special.logit(p))
    for convention in ("top-label", "top-label-left", "positive-class"):
        calibrated = reliability_table(p, y, convention=convention, n_bins=10)
        assert 0 < calibrated.ece < 0.04
        assert reliability_table(sharpened, y, convention=convention, n_bins=10).ece > 0.1
