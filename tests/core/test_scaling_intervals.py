"""Wald intervals of a scaling against the numerical Hessian of the loss and against their promise to cover."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from headeval.core.checks import FloatArray, IntArray
from headeval.core.intervals import Interval
from headeval.core.proper_scores import log_loss_from_logits
from headeval.core.scaling import Scaling, ScalingError, fit_platt_scaling, fit_temperature_scaling
from headeval.core.scaling_intervals import scaling_intervals, temperature_slope_interval

Z95 = stats.norm.ppf(0.975)


def sample(rng: np.random.Generator, n: int, slope: float = 0.5, intercept: float = 0.0) -> tuple[FloatArray, IntArray]:
    z = 2 * rng.normal(size=n)
    return z, (rng.random(n) < special.expit(slope * z + intercept)).astype(np.int64)


def total_loss(z: FloatArray, y: IntArray) -> Any:
    """The negative log likelihood of all rows, in high precision."""
    rows = [(mpmath.mpf(v), int(label)) for v, label in zip(z.tolist(), y.tolist(), strict=True)]
    return lambda a, b: mpmath.fsum(mpmath.log1p(mpmath.exp((1 - 2 * label) * (a * v + b))) for v, label in rows)


@pytest.mark.parametrize("shift", [0.0, 5.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_half_widths_are_those_of_the_numerical_hessian(seed: int, shift: float) -> None:
    z, y = sample(np.random.default_rng(seed), 60)
    scaling = fit_platt_scaling(z + shift, y)
    with mpmath.workdps(40):
        loss = total_loss(z + shift, y)
        at = (scaling.slope, scaling.intercept)
        aa, ab, bb = (mpmath.diff(loss, at, order) for order in ((2, 0), (1, 1), (0, 2)))
        covariance = np.linalg.inv(np.array([[float(aa), float(ab)], [float(ab), float(bb)]]))
        temperature = fit_temperature_scaling(z, y)
        curvature = float(mpmath.diff(lambda a: total_loss(z, y)(a, 0), temperature.slope, 2))
    found = (
        (scaling.slope, scaling.slope_interval, math.sqrt(covariance[0, 0])),
        (scaling.intercept, scaling.intercept_interval, math.sqrt(covariance[1, 1])),
        (temperature.slope, temperature.slope_interval, 1 / math.sqrt(curvature)),
    )
    for value, interval, error in found:
        assert interval is not None
        assert interval.lower == pytest.approx(value - Z95 * error, rel=1e-9)
        assert interval.upper == pytest.approx(value + Z95 * error, rel=1e-9)
        assert (interval.confidence, interval.method) == (0.95, "Wald")
    assert temperature.intercept_interval is None


@pytest.mark.slow
def test_the_intervals_cover_what_made_the_rows() -> None:
    """Of 600 samples 95 % ± three standard errors (2.7 %) hold the truth."""
    rng = np.random.default_rng(11)
    covered = np.zeros(4)
    for _ in range(600):
        z, y = sample(rng, 300, 0.5, -0.4)
        platt = fit_platt_scaling(z, y)
        z0, y0 = sample(rng, 300, 0.5)
        temperature = fit_temperature_scaling(z0, y0)
        pairs = (
            (platt.slope_interval, 0.5),
            (platt.intercept_interval, -0.4),
            (temperature.slope_interval, 0.5),
            (temperature.temperature_interval, 2.0),
        )
        covered += [interval is not None and interval.lower <= truth <= interval.upper for interval, truth in pairs]
    assert np.abs(covered / 600 - 0.95).max() <= 0.027
    assert covered[2] == covered[3]


def test_logits_that_are_right_are_called_so_in_19_of_20_samples() -> None:
    """Within three standard errors of 400 samples; of Platt's three tests, each at 5 %, any can say otherwise."""
    rng = np.random.default_rng(12)
    said = [fit_temperature_scaling(*sample(rng, 300, 1.0)).as_they_are is True for _ in range(400)]
    assert np.mean(said) == pytest.approx(0.95, abs=0.033)
    said = [fit_platt_scaling(*sample(rng, 300, 1.0)).as_they_are is True for _ in range(400)]
    assert 0.85 - 0.033 <= np.mean(said) <= 0.95 + 0.033


def test_both_parameters_of_platt_are_tested_together() -> None:
    """Far from 0 slope and intercept vary together: each alone allows the identity, both together do not."""
    rng = np.random.default_rng(3)
    z = 2 + 0.3 * rng.normal(size=800)
    y = (rng.random(800) < special.expit(z - 0.4)).astype(np.int64)
    scaling = fit_platt_scaling(z, y)
    assert scaling.slope_interval is not None
    assert scaling.intercept_interval is not None
    assert scaling.slope_interval.lower < 1 < scaling.slope_interval.upper
    assert scaling.intercept_interval.lower < 0 < scaling.intercept_interval.upper
    ratio = 2 * 800 * (log_loss_from_logits(z, y) - log_loss_from_logits(scaling.apply(z), y))
    assert scaling.as_they_are is False
    assert stats.chi2.sf(ratio, 2) < 0.05


@pytest.mark.parametrize("seed", range(60))
def test_platt_leaves_logits_alone_only_where_no_test_objects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = 2 + 0.3 * rng.normal(size=150)
    y = (rng.random(150) < special.expit(z - 0.08 * (seed % 8))).astype(np.int64)
    try:
        scaling = fit_platt_scaling(z, y)
    except ScalingError:  # these rows happen to rank no better than chance
        return
    ratio = 2 * 150 * (scaling.log_loss_before - scaling.log_loss_after)
    slope, intercept = scaling.slope_interval, scaling.intercept_interval
    assert slope is not None
    assert intercept is not None
    alone = slope.lower <= 1 <= slope.upper and intercept.lower <= 0 <= intercept.upper
    assert scaling.as_they_are == bool(alone and stats.chi2.sf(ratio, 2) >= 0.05)


@pytest.mark.parametrize("factor", [1e-300, 1e-100, 1e100, 1e300])
def test_the_unit_of_the_scores_changes_nothing(factor: float) -> None:
    z, y = sample(np.random.default_rng(5), 100)
    plain, scaled = fit_platt_scaling(z, y), fit_platt_scaling(factor * z, y)
    for one, other, unit in (
        (plain.slope_interval, scaled.slope_interval, factor),
        (plain.intercept_interval, scaled.intercept_interval, 1.0),
    ):
        assert one is not None
        assert other is not None
        assert other.lower * unit == pytest.approx(one.lower, rel=1e-9)
        assert other.upper * unit == pytest.approx(one.upper, rel=1e-9)


def test_the_temperatures_interval_is_the_slopes_turned_over() -> None:
    bounds = Scaling("temperature", 0.5, 0.0, 0.4, 0.3, Interval(0.25, 0.75, 0.95, "Wald")).temperature_interval
    assert bounds is not None
    assert bounds.lower == pytest.approx(4 / 3)
    assert bounds.upper == 4
    # Two of three right at |z| = 1: from so few rows the slope may be 0, and the temperature has no upper bound.
    open_ended = fit_temperature_scaling([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], [1, 1, 0, 0, 0, 1]).temperature_interval
    assert open_ended is not None
    assert open_ended.upper == math.inf
    assert open_ended.lower == pytest.approx(1 / (math.log(2) + Z95 * math.sqrt(3 / 4)))
    assert Scaling("temperature", 0.5, 0.0, 0.4, 0.3).temperature_interval is None


def test_rows_that_tell_nothing_give_no_interval() -> None:
    assert scaling_intervals(1.0, 0.0, np.array([1e4, -1e4]), intercept_fitted=True) == (None, None)
    assert scaling_intervals(1e308, 0.0, np.array([5e-324, -5e-324]), intercept_fitted=False) == (None, None)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("C", [2, 5])
def test_the_information_on_a_temperature_is_the_variance_of_the_logits(C: int, unit: float) -> None:
    """Summed over the rows, each under its own probabilities."""
    z, slope = np.random.default_rng(C).normal(size=(40, C)) + 3, 0.7
    p = special.softmax(slope * z, axis=1)
    information = sum(float(row @ v**2 - (row @ v) ** 2) for row, v in zip(p, z, strict=True))
    interval = temperature_slope_interval(slope / unit, unit * z)
    assert interval is not None
    half = Z95 / math.sqrt(information)
    assert (interval.lower * unit, interval.upper * unit) == pytest.approx((slope - half, slope + half), rel=1e-11)


def test_equal_or_saturated_logits_tell_no_temperature() -> None:
    for z in (np.zeros((3, 2)), np.full((2, 3), 7.0), np.array([[0.0, 1e4], [1e4, 0.0]])):
        assert temperature_slope_interval(1.0, z) is None


def test_three_rows_tell_what_the_inverse_of_their_information_says() -> None:
    """Their weights p(1 − p) add up to less than 1."""
    z, slope, intercept = np.array([1.0, 2.5, -1.0]), 0.8, -0.3
    v = special.expit(slope * z + intercept) * special.expit(-slope * z - intercept)
    covariance = np.linalg.inv([[v @ z**2, v @ z], [v @ z, v.sum()]])
    found = scaling_intervals(slope, intercept, z, intercept_fitted=True)
    for value, interval, variance in zip((slope, intercept), found, np.diag(covariance), strict=True):
        assert interval is not None
        half = Z95 * math.sqrt(variance)
        assert (interval.lower, interval.upper) == pytest.approx((value - half, value + half), rel=1e-12)


def test_an_interval_that_leaves_float64_at_one_end_is_none() -> None:
    """At z = ±1e-308 forty rows tell the slope, 1.2e308, to within about 0.7e308."""
    z = np.tile([1e-308, -1e-308], 20)
    assert scaling_intervals(1.2e308, 0.0, z, intercept_fitted=False) == (None, None)
    assert scaling_intervals(0.5e308, 0.0, z, intercept_fitted=False)[0] is not None
