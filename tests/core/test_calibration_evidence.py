"""Chance's share in the ECE against brute force, exact binomials and folded normals; the correction by simulation."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from headeval.core import calibration_evidence
from headeval.core.bins import bins_of_rows
from headeval.core.calibration import Convention, reliability_table
from headeval.core.calibration_evidence import CalibrationNoise, calibration_noise, noise_of_bins
from headeval.core.checks import FloatArray, IntArray

CONVENTIONS: list[Convention] = ["top-label", "top-label-left", "positive-class"]


def calibrated(seed: int, n: int, spread: float = 1.5, shift: float = 0.0) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    p = special.expit(shift + spread * rng.normal(size=n))
    return p, (rng.random(n) < p).astype(np.int64)


def noise_of(p: Any, y: Any, seed: int = 0, n_simulations: int = 1000, weights: Any = None, **how: Any) -> Any:
    table = reliability_table(p, y, weights=weights, **how)
    rng = np.random.default_rng(seed)
    return calibration_noise(p, y, table, rng=rng, n_simulations=n_simulations, weights=weights)


def brute_force(
    p: FloatArray, convention: Convention, n_bins: int, weights: FloatArray | None, n_simulations: int
) -> Iterator[float]:
    """Simulate labels of the positive class row by row, and sum |Σ w(right − confidence)| over bins from scratch."""
    rng = np.random.default_rng(99)
    w = np.ones(p.size) if weights is None else weights
    predicted = p >= 0.5
    confidence = p if convention == "positive-class" else np.where(predicted, p, 1 - p)
    index = np.ceil(confidence * n_bins).astype(int) - 1  # off the edges all conventions agree
    for _ in range(n_simulations):
        y = rng.random(p.size) < p
        right = y if convention == "positive-class" else y == predicted
        yield float(np.abs(np.bincount(index, weights=w * (right - confidence))).sum() / w.sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize(("n", "spread", "shift"), [(300, 1.5, 0.0), (300, 3.0, -4.0), (3000, 1.5, 0.0)])
def test_noise_is_that_of_a_brute_force_simulation(
    n: int, spread: float, shift: float, convention: Convention, weighted: bool
) -> None:
    p, y = calibrated(n, n, spread, shift)
    weights = np.random.default_rng(1).exponential(size=n) if weighted else None
    noise = noise_of(p, y, n_simulations=4000, weights=weights, convention=convention, n_bins=10)
    errors = list(brute_force(p, convention, 10, weights, 2500))
    # The 95th percentile of 2,500 simulations is uncertain by about 1 % of itself, the mean by 0.7 %.
    assert noise.quantile_95 == pytest.approx(np.quantile(errors, 0.95), rel=0.04)
    assert noise.mean == pytest.approx(np.mean(errors), rel=0.025)
    assert noise.n_simulations == 4000


def poisson_binomial(p: FloatArray) -> FloatArray:
    """Exact probabilities of 0…n rows being positive."""
    pmf = np.ones(1)
    for one in p:
        pmf = np.append(pmf * (1 - one), 0.0) + np.append(0.0, pmf * one)
    return pmf


@pytest.mark.parametrize(
    "p",
    [
        np.full(50, 0.3),
        np.full(40, 0.5),
        np.linspace(0.001, 0.999, 120),
        10.0 ** -np.linspace(0.4, 12, 400),
        1 - 10.0 ** -np.linspace(0.4, 8, 300),
        np.full(3000, 1e-3),
        np.full(1001, 0.5),  # from here on drawn as a normal variable, rounded to whole rows
        np.full(2000, 0.4),
        np.linspace(0.05, 0.95, 3000),
    ],
    ids=["equal", "half", "spread", "rare", "common", "one in 1000", "half of 1001", "many", "many spread"],
)
def test_one_bin_has_the_exact_distribution(p: FloatArray) -> None:
    """Mean, 95th percentile and p-values of a sum of Bernoulli variables are its exact ones."""
    k, pmf = np.arange(p.size + 1), poisson_binomial(p)
    exact_errors = np.abs(k - p.sum()) / p.size
    n_simulations = 20000
    sd = math.sqrt(np.sum(p * (1 - p)))
    for positives in (round(p.sum()), round(p.sum() + sd / 2), round(p.sum() + 2 * sd + 0.5)):
        y = np.arange(p.size) < positives
        noise = noise_of(p, y, n_simulations=n_simulations, convention="positive-class", n_bins=1)
        as_large = min(1.0, pmf[exact_errors >= exact_errors[positives] - 1e-12].sum())
        assert noise.p_value == pytest.approx(
            as_large, abs=4 * math.sqrt(as_large * (1 - as_large) / n_simulations) + 3e-4
        )
        assert noise.mean == pytest.approx(pmf @ exact_errors, rel=0.03)
        # The percentile lies where the exact distribution passes 95 %, give or take its 1.5 per mille of noise.
        assert pmf[exact_errors <= noise.quantile_95 + 1e-12].sum() >= 0.95 - 0.008
        assert pmf[exact_errors < noise.quantile_95 - 1e-12].sum() <= 0.95 + 0.008


def test_blocks_of_draws_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a block of chosen cells ends, the next one goes on: none is passed over, none is chosen twice."""
    monkeypatch.setattr(calibration_evidence, "_CELLS_AT_ONCE", 1)
    p = np.array([0.3, 0.4, 0.45, 0.5, 0.75])
    noise = noise_of(p, p < 0.46, n_simulations=4000, convention="positive-class", n_bins=1)
    pmf = poisson_binomial(p)
    errors = np.abs(np.arange(6) - p.sum()) / 5
    assert noise.mean == pytest.approx(pmf @ errors, rel=0.03)
    assert noise.p_value == pytest.approx(pmf[errors >= errors[3] - 1e-12].sum(), abs=0.03)


def test_the_first_and_the_last_cell_are_chosen_like_any_other() -> None:
    """A single row in a single simulation is wrong as often as it says."""
    surprised = sum(
        noise_of([0.3], [0], seed=seed, n_simulations=1, convention="positive-class").mean == 0.7
        for seed in range(1500)
    )
    assert surprised / 1500 == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("c", [0.2, 0.5])
def test_weights_move_the_normal_draws_to_where_they_hold(c: float) -> None:
    """One row that outweighs ten thousand others is no normal variable: the error is its own distance, p or 1 − p."""
    p = np.full(10001, c)
    weights = np.append(np.ones(10000), 1e6)
    noise = noise_of(p, p < 0, weights=weights, convention="positive-class", n_bins=1, n_simulations=1000)
    assert noise.quantile_95 == pytest.approx(1 - c, abs=0.01)
    assert noise.mean == pytest.approx(2 * c * (1 - c), rel=0.12 if c < 0.5 else 0.02)


def test_certain_predictions_have_no_noise() -> None:
    right = noise_of([0.0, 1.0, 1.0], [0, 1, 1], n_simulations=99)
    assert (right.mean, right.quantile_95, right.p_value, right.ece_corrected) == (0.0, 0.0, 1.0, 0.0)
    wrong = noise_of([0.0, 1.0, 1.0], [0, 1, 0], n_simulations=99)
    assert (wrong.mean, wrong.quantile_95, wrong.p_value) == (0.0, 0.0, 0.01)
    for p in (0.0, 5e-324):  # chance has no part in it, and the error is all there
        assert noise_of([p], [1], n_simulations=99, convention="positive-class").ece_corrected == 1.0


def test_quantiles_are_those_of_the_level_that_is_asked_for() -> None:
    """One row is wrong by 0.3 with probability 0.7, and by 0.7 with probability 0.3."""
    table = reliability_table([0.3], [0], convention="positive-class")
    for confidence, quantile in ((0.5, 0.3), (0.8, 0.7)):
        rng = np.random.default_rng(0)
        noise = calibration_noise([0.3], [0], table, rng=rng, confidence=confidence)
        assert (noise.quantile, noise.quantile_95, noise.n_simulations) == (quantile, 0.7, 1000)
        bins = bins_of_rows(np.array([0.3]), np.array([0]), None, convention="positive-class")
        assert noise_of_bins(bins, table, rng=np.random.default_rng(0), confidence=confidence) == noise
    assert noise_of_bins(bins, table, rng=np.random.default_rng(0)).quantile == 0.7


def test_no_rows_are_no_noise() -> None:
    noise = noise_of([], [], convention="top-label-left")
    assert (noise.mean, noise.quantile_95, noise.p_value, noise.ece_corrected) == (0.0, 0.0, 1.0, 0.0)


def test_equal_mass_and_multi_class_tables_keep_their_bins() -> None:
    p, y = calibrated(3, 400)
    one = noise_of(p, y, convention="positive-class", binning="equal-mass", n_bins=1)
    assert one.mean == pytest.approx(math.sqrt(2 / math.pi * np.sum(p * (1 - p))) / 400, rel=0.08)
    both = np.column_stack([1 - p, p])
    # Two columns say what one says; only where p is ½ could the predicted class differ.
    assert noise_of(both, y) == noise_of(p, y)


def test_p_values_of_calibrated_classifiers_are_uniform() -> None:
    values = [noise_of(*calibrated(seed, 150), seed=seed, n_simulations=199).p_value for seed in range(300)]
    assert stats.kstest(values, "uniform").pvalue > 0.01
    p, y = calibrated(0, 2000)
    sharpened = special.expit(3 * special.logit(p))
    assert noise_of(sharpened, y).p_value == 1 / 1001


def test_equal_seeds_agree() -> None:
    p, y = calibrated(5, 300)
    assert noise_of(p, y, seed=1) == noise_of(p, y, seed=1)
    assert noise_of(p, y, seed=1).quantile_95 != noise_of(p, y, seed=2).quantile_95


@pytest.mark.parametrize("n", [200, 5000])
def test_the_unit_of_the_weights_changes_nothing(n: int) -> None:
    p, y = calibrated(6, n)
    weights = np.random.default_rng(2).integers(1, 9, n).astype(float)
    once = noise_of(p, y, weights=weights)
    assert noise_of(p, y, weights=weights * 2.0**900) == once
    assert noise_of(p, y, weights=weights * 2.0**-900) == once


def by_hand_corrected(p: FloatArray, y: IntArray, w: FloatArray, n_bins: int) -> float:
    """The correction of a positive-class table, bin by bin, with scipy's folded normal."""
    index = np.ceil(p * n_bins).astype(int) - 1
    error = 0.0
    for b in range(n_bins):
        held = index == b
        if not held.any():
            continue
        v, c, o = w[held] / w[held].sum(), p[held], y[held]
        n = 1 / np.sum(v**2)
        gap, accuracy = abs(v @ (c - o)), v @ o
        s = math.sqrt(max(accuracy * (1 - accuracy) / (n - 1) if n > 1.000001 else 0, v**2 @ (c * (1 - c))))
        error += w[held].sum() / w.sum() * (2 * gap - stats.foldnorm.mean(gap / s, scale=s))
    return max(0.0, error)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [12, 60, 3000])
def test_correction_takes_the_excess_of_a_folded_normal_from_each_bin(n: int, weighted: bool) -> None:
    for seed in range(5):
        p, y = calibrated(seed, n)
        sharpened = special.expit(2 * special.logit(p))
        w = np.random.default_rng(seed).exponential(size=n) if weighted else np.ones(n)
        noise = noise_of(sharpened, y, convention="positive-class", n_bins=10, weights=w if weighted else None)
        assert noise.ece_corrected == pytest.approx(by_hand_corrected(sharpened, y, w, 10), abs=1e-12)


def mean_errors(
    seed: int, n: int, sharpened: float, shift: float, convention: Convention, n_sets: int = 250
) -> tuple[float, float, float]:
    """The true binned ECE of fixed probabilities, and the means of the plain and the corrected one over labels."""
    rng = np.random.default_rng(seed)
    z = shift + 1.5 * rng.normal(size=n)
    p, truth = special.expit(sharpened * z), special.expit(z)
    predicted = p >= 0.5
    confidence = p if convention == "positive-class" else np.where(predicted, p, 1 - p)
    right = truth if convention == "positive-class" else np.where(predicted, truth, 1 - truth)
    n_bins = 15 if convention == "top-label" else 10
    index = np.ceil(confidence * n_bins).astype(int) - 1
    true = float(np.abs(np.bincount(index, weights=right - confidence)).sum() / n)
    plain, corrected = [], []
    for _ in range(n_sets):
        y = rng.random(n) < truth
        table = reliability_table(p, y, convention=convention)
        plain.append(table.ece)
        noise = calibration_noise(p, y, table, rng=rng, n_simulations=1)
        corrected.append(noise.ece_corrected)
    return true, float(np.mean(plain)), float(np.mean(corrected))


@pytest.mark.parametrize("convention", ["top-label", "positive-class"])
@pytest.mark.parametrize(("n", "sharpened", "shift"), [(100, 3.0, 0.0), (300, 2.0, 0.0), (300, 3.0, -1.0)])
def test_correction_removes_most_of_the_bias_where_there_are_gaps(
    n: int, sharpened: float, shift: float, convention: Convention
) -> None:
    true, plain, corrected = mean_errors(7, n, sharpened, shift, convention)
    assert true > 0.07
    assert plain - true > 0.008
    assert abs(corrected - true) < 0.5 * (plain - true)


@pytest.mark.parametrize("convention", ["top-label", "positive-class"])
def test_correction_removes_two_fifths_of_the_bias_where_there_is_no_gap(convention: Convention) -> None:
    true, plain, corrected = mean_errors(8, 300, 1.0, 0.0, convention)
    assert true == 0
    assert corrected == pytest.approx((2 - math.sqrt(2)) * plain, rel=0.08)  # 2 E|N| − E|N + N'|


def test_correction_is_never_negative_nor_above_the_error() -> None:
    for seed in range(40):
        p, y = calibrated(seed, 1 + seed)
        noise: CalibrationNoise = noise_of(p, y, n_simulations=1)
        assert 0 <= noise.ece_corrected <= reliability_table(p, y).ece


def test_the_table_must_be_that_of_the_rows_and_weights() -> None:
    p, y = calibrated(0, 50)
    rng = np.random.default_rng(0)
    table = reliability_table(p, y)
    with pytest.raises(ValueError, match="table must be made of these rows"):
        calibration_noise(p[1:], y[1:], table, rng=rng)
    with pytest.raises(ValueError, match="table must be made with these weights"):
        calibration_noise(p, y, table, rng=rng, weights=np.arange(50.0))
    with pytest.raises(ValueError, match="table must be made with these weights"):
        calibration_noise(p, y, reliability_table(p, y, weights=np.arange(50.0)), rng=rng)
    with pytest.raises(ValueError, match="n_simulations must be at least 1"):
        calibration_noise(p, y, table, rng=rng, n_simulations=0)
    with pytest.raises(ValueError, match="weights must have length 50"):
        calibration_noise(p, y, table, rng=rng, weights=[1.0])
