"""Temperature of many classes against scipy's minimiser and the curvature there; the threshold that follows it."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats
from scipy.optimize import minimize_scalar
from sklearn.metrics import log_loss

from headeval.core import class_scaling
from headeval.core.checks import FloatArray, IntArray
from headeval.core.class_scaling import closest_threshold, fit_class_temperature
from headeval.core.scaling import ScalingError, fit_temperature_scaling

Z95 = stats.norm.ppf(0.975)


def sample(seed: int, n: int = 400, classes: int = 4, temperature: float = 2.0) -> tuple[FloatArray, IntArray]:
    """Logits that are `temperature` times too large, with labels drawn from the right ones."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, classes)) * 1.5
    p = special.softmax(z, axis=1)
    return temperature * z, np.array([rng.choice(classes, p=row) for row in p])


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_is_the_minimiser_of_the_log_loss(classes: int, temperature: float) -> None:
    z, y = sample(classes, classes=classes, temperature=temperature)
    names = np.arange(classes)

    def loss(beta: float) -> float:
        return float(log_loss(y, special.softmax(beta * z, axis=1), labels=names))

    best = minimize_scalar(loss, bounds=(0.01, 20), method="bounded", options={"xatol": 1e-12}).x
    scaling = fit_class_temperature(z, y)
    assert scaling.temperature == pytest.approx(1 / best, rel=1e-6)
    assert scaling.log_loss_before == pytest.approx(loss(1.0), rel=1e-12)
    assert scaling.log_loss_after == pytest.approx(loss(1 / scaling.temperature), rel=1e-12)
    assert (scaling.method, scaling.intercept) == ("temperature", 0.0)


def test_the_interval_is_that_of_the_curvature_of_the_loss() -> None:
    z, y = sample(3, n=60, classes=3)
    scaling = fit_class_temperature(z, y)
    with mpmath.workdps(40):
        rows = [[mpmath.mpf(v) for v in row] for row in z.tolist()]

        def total(beta: mpmath.mpf) -> mpmath.mpf:
            return mpmath.fsum(
                mpmath.log(mpmath.fsum(mpmath.exp(beta * v) for v in row)) - beta * row[label]
                for row, label in zip(rows, y.tolist(), strict=True)
            )

        error = 1 / math.sqrt(float(mpmath.diff(total, scaling.slope, 2)))
    interval = scaling.slope_interval
    assert interval is not None
    assert interval.lower == pytest.approx(scaling.slope - Z95 * error, rel=1e-9)
    assert interval.upper == pytest.approx(scaling.slope + Z95 * error, rel=1e-9)
    assert (interval.confidence, interval.method) == (0.95, "Wald")


def test_of_two_classes_all_is_as_of_their_log_odds() -> None:
    z, y = sample(4, classes=2)
    many, two = fit_class_temperature(z, y), fit_temperature_scaling(z[:, 1] - z[:, 0], y)
    assert many.temperature == pytest.approx(two.temperature, rel=1e-10)
    assert many.log_loss_after == pytest.approx(two.log_loss_after, rel=1e-12)
    assert many.slope_interval is not None
    assert two.slope_interval is not None
    assert many.slope_interval.lower == pytest.approx(two.slope_interval.lower, rel=1e-9)
    assert many.as_they_are == two.as_they_are


@pytest.mark.parametrize("factor", [1e-300, 1e-60, 1e60, 1e300])
def test_the_unit_of_the_logits_overflows_nothing(factor: float) -> None:
    z, y = sample(5, n=100)
    with pytest.raises(ScalingError, match="not between"):
        fit_class_temperature(factor * z, y)


def test_right_logits_are_left_as_they_are_in_19_of_20_samples() -> None:
    """Within three standard errors of 300 samples."""
    said = [fit_class_temperature(*sample(seed, 200, 3, 1.0)).as_they_are is True for seed in range(300)]
    assert np.mean(said) == pytest.approx(0.95, abs=0.038)


def test_the_order_of_rows_with_the_same_logits_changes_no_bit() -> None:
    """They differ by their labels alone."""
    z, y = sample(8, n=120, classes=3)
    z = np.round(z)
    found = repr(fit_class_temperature(z, y))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(120)
        assert repr(fit_class_temperature(z[order], y[order])) == found


def test_a_class_without_rows_is_no_error() -> None:
    z, y = sample(6, classes=3)
    kept = y != 1
    assert fit_class_temperature(z[kept], y[kept]).temperature > 0


@pytest.mark.parametrize(
    ("logits", "labels", "why"),
    [
        ([[0.0, 0.0, 3.0], [3.0, 0.0, 0.0]], [2, 0], "separate"),
        ([[0.0, 0.0, 3.0], [3.0, 0.0, 0.0]], [0, 2], "no better than chance"),
    ],
)
def test_what_has_no_temperature_is_refused(logits: list[list[float]], labels: list[int], why: str) -> None:
    with pytest.raises(ScalingError, match=why):
        fit_class_temperature(logits, labels)


def test_a_temperature_that_makes_the_log_loss_worse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the search hands over, and not where it is the identity, whose loss is the one before."""
    z, y = sample(7, temperature=1.0)
    monkeypatch.setattr(class_scaling, "usable_temperature", lambda *_: 0.25)
    with pytest.raises(ScalingError, match="would be worse than before"):
        fit_class_temperature(z, y)
    monkeypatch.setattr(class_scaling, "usable_temperature", lambda *_: 1.0)
    assert fit_class_temperature(z, y).temperature == 1.0


def test_rows_that_tell_nothing_leave_it_open_whether_they_are_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_scaling, "usable_temperature", lambda *_: 1.0)
    found = fit_class_temperature(np.zeros((4, 3)), [0, 1, 2, 2])
    assert (found.slope_interval, found.as_they_are) == (None, None)


def test_losses_of_large_logits_keep_their_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits 1e16 and 1e16 + 2: losses 2 + log(1 + e⁻²) and log(1 + e⁻²), however large what they share is."""
    monkeypatch.setattr(class_scaling, "usable_temperature", lambda *_: 1.0)
    found = fit_class_temperature([[1e16, 1e16 + 2, 0.0]] * 2, [0, 1])
    assert found.log_loss_before == pytest.approx(1 + math.log1p(math.exp(-2)), rel=1e-12)


def changes(was: np.ndarray, now: np.ndarray, threshold: float) -> int:
    return int((was != (now >= threshold)).sum())


few_values = arrays(
    np.float64, st.shared(st.integers(1, 12), key="n"), elements=st.sampled_from((np.arange(9) / 8).tolist())
)


@given(before=few_values, after=few_values, threshold=st.sampled_from([0.0, 0.3, 0.5, 0.625, 1.0]))
def test_no_threshold_changes_fewer_decisions(before: np.ndarray, after: np.ndarray, threshold: float) -> None:
    """Ties, 0 and 1 included. Of those that change as few, none flags more nearly as many; the highest is taken."""
    was = before >= threshold
    found = closest_threshold(threshold, before, after)
    tried = [t for t in np.arange(33) / 32 if changes(was, after, t) <= changes(was, after, found)]
    assert 0 <= found <= 1
    assert min(changes(was, after, t) for t in tried) == changes(was, after, found)
    flagged = int((after >= found).sum())
    others = [int((after >= t).sum()) for t in tried]
    assert min(abs(n - was.sum()) for n in others) == abs(flagged - was.sum())
    assert flagged == min(n for n in others if abs(n - was.sum()) == abs(flagged - was.sum()))


def test_the_threshold_stays_where_it_serves_as_well() -> None:
    p = np.array([0.1, 0.3, 0.6, 0.9])
    assert closest_threshold(0.47, p, p) == 0.47
    assert closest_threshold(0.0, p, p) == 0.0
    assert closest_threshold(1.0, p, p) == 1.0


@pytest.mark.parametrize(
    ("after", "low", "high"),
    [
        ([0.55, 0.3, 0.2], 0.55, 0.775),  # nothing was flagged: just above, and not near 1
        ([0.95, 0.3, 0.2], 0.95, 0.975),
        ([0.45, 0.3, 0.2], 0.5, 0.5),
    ],
)
def test_in_a_wide_gap_the_threshold_goes_no_further_than_need_be(after: list[float], low: float, high: float) -> None:
    assert low <= closest_threshold(0.5, [0.45, 0.3, 0.2], after) <= high


def test_a_threshold_comes_down_no_further_than_need_be() -> None:
    assert 0.2 < closest_threshold(0.5, [0.9, 0.3], [0.4, 0.0]) <= 0.4


def test_a_threshold_that_a_row_reaches_by_its_new_probability_moves_above_it() -> None:
    """At a threshold of just its probability a row is flagged; this one passed before."""
    before, after = np.array([0.4, 0.9]), np.array([0.5, 0.9])
    assert 0.5 < closest_threshold(0.5, before, after) <= 0.9


def test_of_thresholds_that_change_as_few_the_one_that_flags_as_many_is_taken() -> None:
    """Above 0.6 one flagged row passes and one more is flagged; above 0.7 two pass and none is flagged instead."""
    before, after = [0.9, 0.1, 0.1, 0.9, 0.1, 0.9, 0.9], [0.6, 0.6, 0.6, 0.7, 0.7, 0.8, 0.8]
    assert 0.6 < closest_threshold(0.5, before, after) <= 0.7


def test_without_rows_the_threshold_stays() -> None:
    assert closest_threshold(0.25, [], []) == 0.25


def test_a_monotone_map_changes_no_decision() -> None:
    p = np.random.default_rng(1).random(200)
    found = closest_threshold(0.7, p, p**3)
    np.testing.assert_array_equal(p >= 0.7, p**3 >= found)


@pytest.mark.parametrize(("before", "after"), [([0.5], [0.5, 0.6]), ([0.5], [1.5]), ([-0.1], [0.5])])
def test_what_are_no_probabilities_of_the_same_rows_is_refused(before: list[float], after: list[float]) -> None:
    with pytest.raises(ValueError, match=r"before|after"):
        closest_threshold(0.5, before, after)


def test_a_row_whose_probability_is_one_cannot_be_passed_by_any_threshold() -> None:
    """Three rows that passed have become certain: flagging the other two changes three, passing them all five."""
    before, after = np.array([0.2, 0.2, 0.2, 0.9, 0.9]), np.array([1.0, 1.0, 1.0, 0.5, 0.5])
    found = closest_threshold(0.5, before, after)
    assert changes(before >= 0.5, after, found) == 3
