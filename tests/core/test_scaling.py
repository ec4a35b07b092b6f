"""Temperature and Platt scaling against scipy, mpmath and scikit-learn, what they keep, and what they refuse."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression

from headeval.core.calibration import ece
from headeval.core.checks import FloatArray, IntArray
from headeval.core.proper_scores import brier_score, log_loss_from_logits
from headeval.core.ranking import roc_auc
from headeval.core.scaling import (
    TEMPERATURE_BOUNDS,
    Scaling,
    ScalingError,
    fit_platt_scaling,
    fit_temperature,
    fit_temperature_scaling,
)


def binary(seed: int, n: int = 400, sharpened: float = 1.0) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=n)
    return sharpened * z, (rng.random(n) < special.expit(z)).astype(np.int64)


def classes(seed: int, n: int = 200, C: int = 4) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, C))
    return z, np.array([rng.choice(C, p=row) for row in special.softmax(z / 1.7, axis=1)])


def mean_loss(beta: float, z: FloatArray, y: IntArray) -> float:
    return float(np.mean(special.logsumexp(beta * z, axis=1) - beta * z[np.arange(len(y)), y]))


@pytest.mark.parametrize("logits", [[0.0, 1.0], [0.0, 2.0], [5.0, 6.0], [-3.0, -1.0]])
def test_reference_three_items(logits: list[float]) -> None:
    expected = (logits[1] - logits[0]) / math.log(2)
    assert fit_temperature([logits] * 3, [1, 1, 0]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("C", [10, 100, 1000, 3000])
def test_a_first_step_far_beyond_the_root_is_called_back(C: int) -> None:
    # One logit above C − 1 equal ones, right half the time: 1/(1 + (C − 1)e^(−β)) = ½. At β = 0 the curvature is
    # about 1/C, so Newton's first step lands at about β = C/2, where there is no curvature left to come back by.
    assert fit_temperature([[1.0] + [0.0] * (C - 1)] * 2, [0, 1]) == pytest.approx(1 / math.log(C - 1), rel=1e-12)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_a_row_far_off_on_its_own_side_takes_no_digit_from_the_others(far: float) -> None:
    assert fit_temperature([[0.0, 1.0]] * 3 + [[0.0, far]], [1, 1, 0, 1]) == pytest.approx(1 / math.log(2), rel=1e-12)


@pytest.mark.parametrize("small", [1e-20, 1e-170])
def test_a_root_hidden_behind_a_large_logit_is_found_in_the_end(small: float) -> None:
    """The square of 1e-170 is 0, so that no curvature leads there: the bracket is doubled, and then halved."""
    logits = [[0.0, small]] * 3 + [[0.0, 1.0]]
    assert fit_temperature(logits, [1, 1, 0, 1], max_iter=1000) / small == pytest.approx(1 / math.log(2), rel=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("C", [2, 4, 10])
def test_temperature_is_scipys_minimum(seed: int, C: int) -> None:
    z, y = classes(seed, C=C)
    found = optimize.minimize_scalar(lambda beta: mean_loss(beta, z, y), bounds=(1e-3, 20), method="bounded")
    # A minimum is flat: scipy finds it to the square root of the precision only.
    assert fit_temperature(z, y) == pytest.approx(1 / found.x, rel=1e-4)
    assert mean_loss(1 / fit_temperature(z, y), z, y) <= found.fun + 1e-15


@pytest.mark.parametrize("C", [2, 3])
def test_temperature_is_the_root_in_forty_digit_arithmetic(C: int) -> None:
    z, y = classes(5, n=25, C=C)

    def loss(beta: Any) -> Any:
        total = mpmath.mpf(0)
        for row, label in zip(z, y, strict=True):
            total += mpmath.log(mpmath.fsum(mpmath.exp(beta * v) for v in row)) - beta * row[label]
        return total

    with mpmath.workdps(40):
        beta = mpmath.findroot(lambda b: mpmath.diff(loss, b), 1 / fit_temperature(z, y))
        assert fit_temperature(z, y) == pytest.approx(float(1 / beta), rel=1e-12)


@given(st.integers(0, 30), st.floats(-280, 280))
@settings(max_examples=60)
def test_temperature_scales_with_the_logits(seed: int, power: float) -> None:
    z, y = classes(seed)
    factor = 10.0**power
    assert fit_temperature(factor * z, y) == pytest.approx(factor * fit_temperature(z, y), rel=1e-11, abs=0)


@given(st.integers(0, 20), st.floats(-1e3, 1e3))
@settings(max_examples=30)
def test_temperature_ignores_what_is_added_to_a_row(seed: int, shift: float) -> None:
    z, y = classes(seed)
    shifts = shift * np.random.default_rng(seed).random((len(z), 1))
    assert fit_temperature(z + shifts, y) == pytest.approx(fit_temperature(z, y), rel=1e-9)


def test_temperature_is_the_binary_one_on_columns_zero_and_z() -> None:
    z, y = binary(3, sharpened=2.0)
    scaling = fit_temperature_scaling(z, y)
    table = np.column_stack([np.zeros_like(z), z])
    assert scaling.temperature == pytest.approx(fit_temperature(table, y), rel=1e-12)
    assert (scaling.method, scaling.intercept) == ("temperature", 0.0)
    assert scaling.slope == pytest.approx(1 / scaling.temperature, rel=1e-15)


def test_temperature_undoes_sharpening_and_keeps_every_decision() -> None:
    z, y = binary(0, n=4000, sharpened=3.0)
    scaling = fit_temperature_scaling(z, y)
    after = scaling.apply(z)
    assert scaling.temperature == pytest.approx(3.0, abs=0.2)
    assert ece(special.expit(after), y) <= ece(special.expit(z), y) / 2
    assert brier_score(special.expit(after), y) < brier_score(special.expit(z), y)
    assert ((special.expit(after) >= 0.5) == (special.expit(z) >= 0.5)).all()
    assert roc_auc(after, y) == roc_auc(z, y)


@given(st.integers(0, 200))
@settings(max_examples=40)
def test_temperature_never_changes_the_argmax(seed: int) -> None:
    z, y = classes(seed, n=40)
    T = fit_temperature(z, y)
    assert ((z / T).argmax(axis=1) == z.argmax(axis=1)).all()


@pytest.mark.parametrize("seed", range(4))
def test_platt_is_scikit_learns_unpenalised_fit(seed: int) -> None:
    z, y = binary(seed, sharpened=4.0)
    z = z - 2.5
    scaling = fit_platt_scaling(z, y)
    standard = (z - z.mean()) / z.std()
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=200).fit(standard[:, None], y)
    slope = model.coef_[0, 0] / z.std()
    assert scaling.slope == pytest.approx(slope, rel=1e-9)
    assert scaling.intercept == pytest.approx(model.intercept_[0] - slope * z.mean(), rel=1e-9)
    assert scaling.method == "platt"


@pytest.mark.parametrize("seed", range(4))
def test_platt_keeps_the_prevalence_and_the_ranking(seed: int) -> None:
    z, y = binary(seed)
    after = fit_platt_scaling(3 * z - 1, y).apply(3 * z - 1)
    assert special.expit(after).mean() == pytest.approx(y.mean(), abs=1e-11)
    assert roc_auc(after, y) == pytest.approx(roc_auc(z, y), abs=1e-15)


@given(st.integers(0, 30), st.floats(1e-3, 1e3), st.floats(-100, 100))
@settings(max_examples=60)
def test_platt_probabilities_are_blind_to_affine_maps_of_the_score(seed: int, factor: float, shift: float) -> None:
    z, y = binary(seed, n=60)
    plain, mapped = fit_platt_scaling(z, y), fit_platt_scaling(factor * z + shift, y)
    # Adding a shift rounds the scores to the precision of the sum.
    precision = 1e-10 * (1 + abs(shift) / factor)
    assert mapped.slope * factor == pytest.approx(plain.slope, rel=precision)
    assert mapped.intercept + mapped.slope * shift == pytest.approx(plain.intercept, abs=10 * precision)
    assert mapped.log_loss_after == pytest.approx(plain.log_loss_after, rel=precision)


@pytest.mark.parametrize("factor", [1e-300, 1e-100, 1e100, 1e300])
def test_platt_takes_scores_of_any_scale(factor: float) -> None:
    z, y = binary(1)
    assert fit_platt_scaling(factor * z, y).slope * factor == pytest.approx(fit_platt_scaling(z, y).slope, rel=1e-11)


def test_platt_takes_scores_at_both_ends_of_float64() -> None:
    z = np.array([1.7e308] * 30 + [-1.7e308] * 2)
    y = np.array([1] * 20 + [0] * 10 + [1, 0])
    # At the upper end 20 of 30 are right and at the lower end 1 of 2: log-odds ln 2 and 0.
    after = fit_platt_scaling(z, y).apply(z)
    assert after == pytest.approx(np.where(z > 0, math.log(2), 0.0), abs=1e-9)


def test_reference_platt_by_hand() -> None:
    # At 1 two of three are positive and at −1 one of three: log-odds ±ln 2; shifted up, p = 3/4 and 1/2.
    scaling = fit_platt_scaling([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], [1, 1, 0, 0, 0, 1])
    assert scaling.apply([1.0, -1.0]) == pytest.approx([math.log(2), -math.log(2)], abs=1e-12)
    scaling = fit_platt_scaling([5.0] * 4 + [3.0] * 4, [1, 1, 1, 0, 1, 1, 0, 0])
    assert scaling.apply([5.0, 3.0]) == pytest.approx([math.log(3), 0.0], abs=1e-12)


@pytest.mark.parametrize("fit", [fit_temperature_scaling, fit_platt_scaling])
@given(seed=st.integers(0, 500), sharpened=st.sampled_from([0.2, 1.0, 5.0]))
@settings(max_examples=40)
def test_the_loss_it_reports_is_the_loss_and_never_rises(fit: Any, seed: int, sharpened: float) -> None:
    z, y = binary(seed, n=100, sharpened=sharpened)
    scaling: Scaling = fit(z, y)
    assert scaling.log_loss_before == pytest.approx(log_loss_from_logits(z, y), rel=1e-15)
    assert scaling.log_loss_after == pytest.approx(log_loss_from_logits(scaling.apply(z), y), rel=1e-15)
    assert scaling.log_loss_after <= scaling.log_loss_before * (1 + 1e-12)
    assert scaling.slope > 0


@pytest.mark.parametrize("fit", [fit_temperature_scaling, fit_platt_scaling])
def test_scaling_the_scaled_changes_nothing(fit: Any) -> None:
    z, y = binary(9)
    again = fit(fit(z, y).apply(z), y)
    assert (again.slope, again.intercept) == (pytest.approx(1.0, abs=1e-9), pytest.approx(0.0, abs=1e-9))


def test_scaling_keeps_the_shape_it_is_applied_to() -> None:
    scaling = Scaling("platt", 2.0, 1.0, 0.5, 0.4)
    assert scaling.apply([[1.0, 2.0]]).tolist() == [[3.0, 5.0]]
    assert scaling.temperature == 0.5
    narrow = np.array([0.1, 1e30], dtype=np.float32)
    assert scaling.apply(narrow).tolist() == [2.0 * float(z) + 1.0 for z in narrow]


# Refusals


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        pytest.param([[0.0, 1.0]] * 2, [1, 0], id="exactly chance"),
        pytest.param([[0.0, 1.0]] * 3, [1, 0, 0], id="worse than chance"),
        pytest.param([[0.0, 1.0]], [0], id="always wrong"),
        pytest.param([[2.0, 2.0]] * 3, [1, 0, 1], id="constant rows"),
        pytest.param([[0.0, 0.0]] * 2, [1, 1], id="all zero"),
        pytest.param([[1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]], [2, 0], id="three classes"),
    ],
)
def test_logits_that_rank_no_better_than_chance_have_no_temperature(
    logits: list[list[float]], labels: list[int]
) -> None:
    with pytest.raises(ValueError, match="no better than chance"):
        fit_temperature(logits, labels)


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        pytest.param([[0.0, 1.0], [0.0, -1.0]], [1, 0], id="separated"),
        pytest.param([[0.0, 1.0], [0.0, 0.0]], [1, 0], id="but for a tie"),
        pytest.param([[3.0, 1.0, 2.0], [0.0, 1.0, 1.0]], [0, 2], id="three classes"),
        pytest.param([[0.0, 1.0]], [1], id="one row"),
        pytest.param([[0.0, 1e308]], [1], id="huge"),
        pytest.param([[0.0, 5e-324]], [1], id="subnormal"),
    ],
)
def test_separated_logits_have_no_minimum_and_are_told(logits: list[list[float]], labels: list[int]) -> None:
    with pytest.raises(ValueError, match="separate the labels perfectly"):
        fit_temperature(logits, labels)


def test_too_few_steps_are_an_error_of_their_own() -> None:
    z, y = classes(0)
    with pytest.raises(RuntimeError, match="did not converge within 1 steps"):
        fit_temperature(z, y, max_iter=1)
    assert fit_temperature(z, y, max_iter=20) == fit_temperature(z, y)


@given(st.integers(0, 2000), st.integers(2, 12), st.integers(2, 4))
@settings(max_examples=150)
def test_the_default_steps_suffice_or_the_refusal_is_right(seed: int, n: int, C: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, C)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
    y = rng.integers(0, C, size=n)
    own = z[np.arange(n), y]
    try:
        T = fit_temperature(z, y)
    except ValueError:
        assert own.mean() <= z.mean() + 1e-12 or (own == z.max(axis=1)).all()
        return
    losses = [mean_loss(beta, z, y) for beta in (1 / T, 0.99 / T, 1.01 / T)]
    assert losses[0] <= min(losses[1:]) + 1e-15


@pytest.mark.parametrize(("T", "side"), [(0.005, "below"), (200.0, "above")])
def test_temperatures_out_of_bounds_are_refused(T: float, side: str) -> None:
    assert TEMPERATURE_BOUNDS == (0.01, 100.0)
    z, y = binary(0)
    fitted = fit_temperature_scaling(z, y).temperature
    with pytest.raises(ScalingError, match=r"is not between 0.01 and 100"):
        fit_temperature_scaling(z * T / fitted, y)


def test_temperatures_just_inside_the_bounds_are_kept() -> None:
    z, y = binary(0)
    fitted = fit_temperature_scaling(z, y).temperature
    for T in (0.0101, 99.0):
        assert fit_temperature_scaling(z * T / fitted, y).temperature == pytest.approx(T, rel=1e-10)


@pytest.mark.parametrize("scale", [1e308, 5e-324])
def test_logits_at_the_ends_of_float64_are_refused_not_divided_by_zero(scale: float) -> None:
    with pytest.raises(ScalingError, match="is not between"):
        fit_temperature_scaling(scale * np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0]), [1, 1, 0, 0, 0, 1])


@pytest.mark.parametrize("fit", [fit_temperature_scaling, fit_platt_scaling])
@pytest.mark.parametrize(
    ("z", "y"),
    [
        pytest.param([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1], id="separated"),
        pytest.param([-1.0, 0.0, 0.0, 1.0], [0, 0, 1, 1], id="but for a tie"),
    ],
)
def test_separated_scores_are_refused(fit: Any, z: list[float], y: list[int]) -> None:
    with pytest.raises(ScalingError, match="separate the labels perfectly"):
        fit(z, y)


@pytest.mark.parametrize("fit", [fit_temperature_scaling, fit_platt_scaling])
@pytest.mark.parametrize(
    ("z", "y"),
    [
        pytest.param([1.0, 2.0, -1.0, -2.0], [0, 0, 1, 1], id="reversed"),
        pytest.param([1.0, 0.0, 0.0, -1.0], [0, 0, 1, 1], id="reversed but for a tie"),
        pytest.param([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], [0, 0, 1, 1, 1, 0], id="mostly reversed"),
        pytest.param([3.0, 3.0, 3.0], [0, 1, 0], id="constant"),
    ],
)
def test_scores_that_do_not_rank_are_refused(fit: Any, z: list[float], y: list[int]) -> None:
    with pytest.raises(ScalingError, match=r"no better than chance|slope would be negative|all scores are equal"):
        fit(z, y)


def test_platt_refuses_a_slope_of_exactly_zero() -> None:
    with pytest.raises(ScalingError, match=r"^the slope would be negative"):
        fit_platt_scaling([1.0, 1.0, -1.0, -1.0], [1, 0, 1, 0])


@pytest.mark.parametrize("shape", [(0, 2), (1, 1), (0, 0), (2, 1)])
def test_a_temperature_takes_a_row_and_two_classes(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"^logits must have at least 1 row and 2 columns"):
        fit_temperature(np.zeros(shape), np.zeros(shape[0]))


def test_platt_separation_in_high_places_is_seen_too() -> None:
    """Scores far from zero are separated at a threshold far from zero; temperature scaling has a minimum there."""
    with pytest.raises(ScalingError, match="separate the labels perfectly"):
        fit_platt_scaling([11.0, 12.0, 13.0], [0, 1, 1])


def test_platt_refuses_scores_whose_slope_is_beyond_float64() -> None:
    with pytest.raises(ScalingError, match="beyond the range of float64"):
        fit_platt_scaling(5e-324 * np.array([5, 3, -2, -4, 1, 6]), [1, 0, 1, 0, 0, 1])


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 1)), min_size=2, max_size=12))
@settings(max_examples=200)
def test_platt_either_improves_or_refuses(rows: list[tuple[int, int]]) -> None:
    z, y = [float(v) for v, _ in rows], [label for _, label in rows]
    assume(0 < sum(y) < len(y))
    try:
        scaling = fit_platt_scaling(z, y)
    except ScalingError:
        positive, negative = ([v for v, label in rows if label == k] for k in (1, 0))
        covariance = np.mean(positive) - np.mean(negative)  # its sign is the sign of the best slope
        assert min(positive) >= max(negative) or covariance <= 1e-12
        return
    assert scaling.slope > 0
    residual = special.expit(scaling.apply(z)) - np.array(y)
    assert abs(residual.sum()) <= 1e-8
    assert abs(residual @ np.array(z)) <= 1e-8


def test_a_result_worse_than_before_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headeval.core.scaling.fit_temperature", lambda *_, **__: 0.02)
    with pytest.raises(ScalingError, match="would be worse than before"):
        fit_temperature_scaling(*binary(0))


def test_a_result_a_little_worse_than_before_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    z, y = binary(0)
    z = z / fit_temperature_scaling(z, y).temperature  # best left alone
    monkeypatch.setattr("headeval.core.scaling.fit_temperature", lambda *_, **__: 0.9)
    with pytest.raises(ScalingError, match="would be worse than before"):
        fit_temperature_scaling(z, y)


def test_without_intervals_nothing_says_that_logits_are_right_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headeval.core.scaling.scaling_intervals", lambda *_, **__: (None, None))
    for fit in (fit_temperature_scaling, fit_platt_scaling):
        assert fit(*binary(0)).as_they_are is None


def test_a_search_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object, **__: object) -> float:
        raise RuntimeError("the temperature did not converge within 200 steps")

    monkeypatch.setattr("headeval.core.scaling.fit_temperature", endless)
    with pytest.raises(ScalingError, match="did not converge within 200 steps"):
        fit_temperature_scaling(*binary(0))
