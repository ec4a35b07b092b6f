"""Calibration slope and intercept against scikit-learn, scipy and finite differences; coverage by simulation."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats
from sklearn.linear_model import LogisticRegression

from headeval.core.checks import FloatArray, IntArray
from headeval.core.cox import CoxCalibration, _fitted, _Rows, cox_calibration
from headeval.core.intervals import Interval


def drawn(seed: int, n: int = 400, slope: float = 1.0, intercept: float = 0.0) -> tuple[FloatArray, IntArray]:
    """Logits whose true log-odds are slope·z + intercept."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=n)
    return z, (rng.random(n) < special.expit(slope * z + intercept)).astype(np.int64)


def loss(a: float, b: float, z: FloatArray, y: IntArray, w: FloatArray) -> float:
    return float(w @ np.logaddexp(0, np.where(y == 1, -1, 1) * (a + b * z)))


def ends(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return interval.lower, interval.upper


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.4, -1.0), (3.0, 0.5), (-0.5, 0.0)])
def test_slope_is_scikit_learns_unpenalised_coefficient(slope: float, intercept: float, weighted: bool) -> None:
    z, y = drawn(1, slope=slope, intercept=intercept)
    w = np.random.default_rng(2).exponential(size=z.size) if weighted else None
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    model.fit(z[:, None], y, sample_weight=w)
    assert cox_calibration(z, y, weights=w).slope == pytest.approx(model.coef_[0, 0], rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.2, -3.0), (5.0, 2.0), (-2.0, 0.0)])
def test_intercept_is_scipys_root_with_the_slope_fixed_to_one(slope: float, intercept: float, weighted: bool) -> None:
    z, y = drawn(3, slope=slope, intercept=intercept)
    w = np.random.default_rng(2).exponential(size=z.size) if weighted else np.ones(z.size)
    root = optimize.brentq(lambda a: w @ (special.expit(a + z) - y), -50, 50, xtol=1e-14)
    cox = cox_calibration(z, y, weights=w if weighted else None)
    assert cox.intercept == pytest.approx(root, rel=1e-11, abs=1e-12)


def test_intercept_is_not_the_one_fitted_beside_the_slope() -> None:
    # True log-odds 2z + 1 on logits around 1: with the slope fixed at 1 the intercept takes up what the slope lacks.
    z, y = drawn(4, n=20000)
    z = z + 1
    y = (np.random.default_rng(0).random(z.size) < special.expit(0.3 * z)).astype(np.int64)
    cox = cox_calibration(z, y)
    assert cox.slope == pytest.approx(0.3, abs=0.05)
    assert cox.intercept is not None
    assert cox.intercept < -0.5  # while the fitted pair is about (0, 0.3)


def test_three_rows_a_side_by_hand() -> None:
    cox = cox_calibration([2.0, 2.0, 2.0, -2.0, -2.0, -2.0], [1, 1, 0, 0, 0, 1])
    assert cox.slope == pytest.approx(math.log(2) / 2, rel=1e-12)
    assert cox.intercept == pytest.approx(0, abs=1e-12)
    # Information of the slope: six rows of z² = 4 and p(1 − p) = 2/9; of the intercept: six rows at z = ±2 as stated.
    half = stats.norm.ppf(0.975) / math.sqrt(6 * 4 * 2 / 9)
    assert ends(cox.slope_interval) == pytest.approx((math.log(2) / 2 - half, math.log(2) / 2 + half), rel=1e-9)
    half = stats.norm.ppf(0.975) / math.sqrt(6 * special.expit(2) * special.expit(-2))
    assert ends(cox.intercept_interval) == pytest.approx((-half, half), rel=1e-9)
    assert cox.slope_interval == Interval(*ends(cox.slope_interval), confidence=0.95, method="Wald")


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_wald_intervals_come_from_the_curvature_of_the_loss(level: float) -> None:
    z, y = drawn(5, n=150, slope=0.7)
    cox = cox_calibration(z, y, confidence=level)
    one = np.ones(z.size)
    fitted = optimize.minimize(lambda v: loss(v[0], v[1], z, y, one), [0.0, 1.0], tol=1e-12).x
    h = 1e-3

    def second(f: Any) -> float:
        return float((f(h) - 2 * f(0.0) + f(-h)) / h**2)

    a, b = fitted
    haa = second(lambda t: loss(a + t, b, z, y, one))
    hbb = second(lambda t: loss(a, b + t, z, y, one))
    hab = (second(lambda t: loss(a + t, b + t, z, y, one)) - haa - hbb) / 2
    half = stats.norm.ppf((1 + level) / 2) * math.sqrt(np.linalg.inv([[haa, hab], [hab, hbb]])[1, 1])
    assert ends(cox.slope_interval) == pytest.approx((b - half, b + half), abs=2e-5)
    assert cox.intercept is not None
    at = cox.intercept
    half = stats.norm.ppf((1 + level) / 2) / math.sqrt(second(lambda t: loss(at + t, 1.0, z, y, one)))
    assert ends(cox.intercept_interval) == pytest.approx((at - half, at + half), abs=2e-5)


def sandwich(z: FloatArray, y: IntArray, w: FloatArray, groups: IntArray, cox: CoxCalibration) -> tuple[float, float]:
    """Standard errors of slope and intercept, group by group."""
    assert cox.slope is not None
    assert cox.intercept is not None
    b = cox.slope
    a = float(optimize.brentq(lambda a: w @ (special.expit(a + b * z) - y), -50, 50, xtol=1e-14))
    errors = []
    for eta, X in ((a + b * z, np.column_stack([z, np.ones_like(z)])), (cox.intercept + z, np.ones((z.size, 1)))):
        p = special.expit(eta)
        bread = np.linalg.inv(sum(w[i] * p[i] * (1 - p[i]) * np.outer(X[i], X[i]) for i in range(z.size)))
        names = np.unique(groups)
        meat: Any = 0
        for name in names:
            held = groups == name
            score = (w[held] * (p[held] - y[held])) @ X[held]
            meat = meat + np.outer(score, score)
        clustered = bread @ meat @ bread * len(names) / (len(names) - 1)
        independent = bread @ sum(w[i] ** 2 * p[i] * (1 - p[i]) * np.outer(X[i], X[i]) for i in range(z.size)) @ bread
        errors.append(math.sqrt(max(clustered[0, 0], independent[0, 0])))
    return errors[0], errors[1]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_and_groups_take_the_sandwich(weighted: bool, grouped: bool) -> None:
    z, y = drawn(6, n=120, slope=0.6)
    rng = np.random.default_rng(1)
    w = rng.exponential(size=120) if weighted else None
    groups = rng.integers(0, 15, 120) if grouped else None
    cox = cox_calibration(z, y, weights=w, groups=groups)
    if not (weighted or grouped):
        return
    expected = sandwich(z, y, np.ones(120) if w is None else w, np.arange(120) if groups is None else groups, cox)
    for interval, error in zip((cox.slope_interval, cox.intercept_interval), expected, strict=True):
        lower, upper = ends(interval)
        assert (upper - lower) / 2 == pytest.approx(stats.norm.ppf(0.975) * error, rel=1e-7)
        assert interval is not None
        assert interval.method == "Wald, sandwich"


def test_copies_of_rows_are_told_by_their_groups() -> None:
    """Every row four times is no more evidence than once: with groups the interval is about as wide as it was."""
    z, y = drawn(7, n=300)
    once = cox_calibration(z, y)
    copied = cox_calibration(np.repeat(z, 4), np.repeat(y, 4))
    grouped = cox_calibration(np.repeat(z, 4), np.repeat(y, 4), groups=np.repeat(np.arange(300), 4))
    for name in ("slope_interval", "intercept_interval"):
        lower, upper = ends(getattr(once, name))
        assert np.diff(ends(getattr(copied, name)))[0] == pytest.approx((upper - lower) / 2, rel=1e-6)
        assert np.diff(ends(getattr(grouped, name)))[0] == pytest.approx(upper - lower, rel=0.1)


@pytest.mark.parametrize("setting", ["plain", "weighted", "grouped"])
def test_intervals_cover_the_truth(setting: str) -> None:
    rng = np.random.default_rng(8)
    slope, intercept, covered = 0.8, 0.4, np.zeros(2)
    # The slope-1 intercept of the whole population: E[sigmoid(a + z)] = E[sigmoid(0.8 z + 0.4)].
    grid = 1.5 * stats.norm.ppf((np.arange(20000) + 0.5) / 20000)
    truth = (
        slope,
        optimize.brentq(lambda a: np.mean(special.expit(a + grid) - special.expit(slope * grid + intercept)), -5, 5),
    )
    for _ in range(300):
        n, w, groups = 400, None, None
        z = 1.5 * rng.normal(size=n)
        y = rng.random(n) < special.expit(slope * z + intercept)
        if setting == "weighted":
            w = rng.exponential(size=n)
        if setting == "grouped":
            z, y, groups = np.repeat(z, 3), np.repeat(y, 3), np.repeat(np.arange(n), 3)
        cox = cox_calibration(z, y, weights=w, groups=groups)
        for k, interval in enumerate((cox.slope_interval, cox.intercept_interval)):
            lower, upper = ends(interval)
            covered[k] += lower <= truth[k] <= upper
    # 300 trials at 95 % are uncertain by 1.3 %.
    assert (covered / 300 >= 0.915).all()
    assert (covered / 300 <= 0.99).all()


@pytest.mark.parametrize(
    ("labels", "reason"), [([0, 0, 0], "no row is positive"), ([1, 1, 1], "every row is positive")]
)
def test_one_class_defines_nothing(labels: list[int], reason: str) -> None:
    cox = cox_calibration([1.0, 2.0, 3.0], labels)
    assert cox == CoxCalibration(None, None, reason, None, None, reason)


@pytest.mark.parametrize(
    ("logits", "labels", "reason"),
    [
        ([-1.0, -2.0, 1.0, 3.0], [0, 0, 1, 1], "separate the classes perfectly"),
        ([-1.0, 1.0, 1.0, 3.0], [0, 0, 1, 1], "separate the classes perfectly"),  # touching: still no finite slope
        ([1.0, 3.0, -1.0, -2.0], [0, 0, 1, 1], "every negative has a higher logit"),
        ([1.0, 3.0, 1.0, -2.0], [0, 0, 1, 1], "every negative has a higher logit"),
        ([0.7] * 4, [0, 1, 0, 1], "all logits are equal"),
    ],
)
def test_without_a_slope_the_intercept_remains(logits: list[float], labels: list[int], reason: str) -> None:
    cox = cox_calibration(logits, labels)
    assert (cox.slope, cox.slope_interval) == (None, None)
    assert reason in cox.slope_reason
    root = optimize.brentq(lambda a: np.sum(special.expit(a + np.array(logits))) - sum(labels), -50, 50, xtol=1e-14)
    assert cox.intercept == pytest.approx(root, abs=1e-12)
    assert cox.intercept_reason == ""
    lower, upper = ends(cox.intercept_interval)
    assert lower < root < upper


def test_one_crossing_pair_is_enough_for_a_slope() -> None:
    cox = cox_calibration([-3.0, -1.0, 0.1, -0.1, 1.0, 3.0], [0, 0, 0, 1, 1, 1])
    assert cox.slope is not None
    assert cox.slope > 1
    lower, upper = ends(cox.slope_interval)
    assert lower < 0 < upper


def test_rows_without_weight_are_not_there() -> None:
    z, y = drawn(9, n=60)
    w = np.random.default_rng(0).exponential(size=60)
    expected = cox_calibration(z, y, weights=w, groups=np.arange(60) // 3)
    more = cox_calibration(
        np.append(z, [9.0, -9.0]),
        np.append(y, [0, 1]),
        weights=np.append(w, [0, 0]),
        groups=np.append(np.arange(60) // 3, [77, 78]),
    )
    assert more == expected
    # Both classes must be seen with weight.
    assert cox_calibration([1.0, 2.0], [0, 1], weights=[0, 1]).slope_reason == "every row is positive"


@pytest.mark.parametrize("power", [-900, 900])
def test_the_unit_of_the_weights_changes_nothing(power: int) -> None:
    z, y = drawn(9, n=60)
    w = np.random.default_rng(0).exponential(size=60)
    assert cox_calibration(z, y, weights=w * 2.0**power) == cox_calibration(z, y, weights=w)


def test_a_single_group_has_no_interval() -> None:
    z, y = drawn(10, n=100)
    cox = cox_calibration(z, y, groups=["one"] * 100)
    assert (cox.slope, cox.intercept) == (cox_calibration(z, y).slope, cox_calibration(z, y).intercept)
    assert (cox.slope_interval, cox.intercept_interval) == (None, None)
    assert (cox.slope_reason, cox.intercept_reason) == ("", "")


def test_groups_whose_sums_cancel_do_not_make_an_interval_of_no_width() -> None:
    """In every group the residuals of equal logits add up to 0, so that the sandwich alone would see no spread."""
    z, y = np.tile([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], 4), np.tile([1, 1, 0, 0, 0, 1], 4)
    plain = cox_calibration(z, y)
    grouped = cox_calibration(z, y, groups=np.repeat(np.arange(4), 6))
    assert ends(grouped.slope_interval) == pytest.approx(ends(plain.slope_interval), rel=1e-9)
    assert ends(grouped.intercept_interval) == pytest.approx(ends(plain.intercept_interval), rel=1e-9)


@given(st.integers(0, 50), st.integers(-1000, 1000))
@settings(max_examples=60)
def test_slope_goes_with_the_unit_of_the_logits(seed: int, power: int) -> None:
    z, y = drawn(seed, n=60)
    once, scaled = cox_calibration(z, y), cox_calibration(np.ldexp(z, power), y)
    assert once.slope is not None
    assert scaled.slope is not None
    assert np.ldexp(scaled.slope, power) == pytest.approx(once.slope, rel=1e-9)
    assert np.ldexp(ends(scaled.slope_interval), power) == pytest.approx(ends(once.slope_interval), rel=1e-8)


@pytest.mark.parametrize("far", [50.0, 3000.0, 1e6, 1e12, 1e300])
def test_far_rows_on_their_own_side_hide_nothing(far: float) -> None:
    """A row of certainty that is right has no influence on either estimate, however far it lies."""
    z, y = drawn(11, n=200)
    expected = cox_calibration(z, y)
    cox = cox_calibration(np.append(z, [far, -far]), np.append(y, [1, 0]))
    assert cox.slope == pytest.approx(expected.slope, rel=1e-9)
    assert ends(cox.slope_interval) == pytest.approx(ends(expected.slope_interval), rel=1e-9)
    assert cox.intercept == pytest.approx(expected.intercept, rel=1e-9)
    assert ends(cox.intercept_interval) == pytest.approx(ends(expected.intercept_interval), rel=1e-9)


@pytest.mark.parametrize("shift", [-5000.0, -1999.0, 1999.0, 5000.0])
def test_slope_does_not_see_what_is_added_to_all_logits(shift: float) -> None:
    """Rows far from 0 count in full where the fitted log-odds are near 0 there."""
    z, y = drawn(14, n=300)
    once, shifted = cox_calibration(z, y), cox_calibration(z + shift, y)
    assert shifted.slope == pytest.approx(once.slope, rel=1e-9)
    assert ends(shifted.slope_interval) == pytest.approx(ends(once.slope_interval), rel=1e-9)
    assert once.intercept is not None
    assert shifted.intercept == pytest.approx(once.intercept - shift, rel=1e-12)


@pytest.mark.parametrize("far", [3000.0, 1e5])
def test_far_rows_on_the_wrong_side_count_in_full(far: float) -> None:
    z, y = drawn(12, n=200)
    z, y = np.append(z, [far, -far, far]), np.append(y, [0, 1, 1])
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-14, max_iter=1000)
    model.fit(z[:, None] / far, y)
    assert cox_calibration(z, y).slope == pytest.approx(model.coef_[0, 0] / far, rel=1e-4)


@given(st.lists(st.tuples(st.floats(-1e300, 1e300), st.integers(0, 1)), min_size=1, max_size=12), st.booleans())
def test_nothing_overflows_and_nothing_undefined_is_a_number(rows: list[tuple[float, int]], weighted: bool) -> None:
    z, y = [v for v, _ in rows], [label for _, label in rows]
    cox = cox_calibration(z, y, weights=[1.0 + k for k in range(len(z))] if weighted else None)
    for value, interval, reason in (
        (cox.slope, cox.slope_interval, cox.slope_reason),
        (cox.intercept, cox.intercept_interval, cox.intercept_reason),
    ):
        assert (value is None) == (reason != "")
        assert value is None or math.isfinite(value)
        assert interval is None or (value is not None and interval.lower < interval.upper)
        assert interval is None or value is None or interval.lower <= value <= interval.upper


@pytest.mark.parametrize("logits", [[-1e4, 1e4], [-1e300, 1e300], [1e300, -1e300], [-1.7e308, 1.7e308]])
def test_logits_that_leave_no_information_define_no_intercept(logits: list[float]) -> None:
    cox = cox_calibration(logits, [0, 1])
    assert (cox.intercept, cox.intercept_interval) == (None, None)
    assert "the rows tell nothing about it" in cox.intercept_reason


@pytest.mark.parametrize("shift", [0.0, 3.0, -40.0])
def test_what_is_fitted_beside_the_slope_is_the_intercept_of_the_pair(shift: float) -> None:
    z, y = drawn(15, n=200, slope=0.7, intercept=-0.5)
    found = _fitted(z + shift, _Rows(z + shift, y, np.ones(200), None))
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(z[:, None], y)
    assert found is not None
    slope, intercept = model.coef_[0, 0], model.intercept_[0]
    assert found[:2] == pytest.approx((slope, intercept - slope * shift), rel=1e-8)


def test_logits_too_small_for_a_slope_in_float64_have_none() -> None:
    found = cox_calibration(5e-324 * np.array([5, 3, -2, -4, 1, 6]), [1, 0, 1, 0, 0, 1])
    assert (found.slope, found.slope_interval) == (None, None)
    assert found.slope_reason == "the logits differ too much in size, or too little, for a slope in float64"
    assert found.intercept == pytest.approx(0.0, abs=1e-12)
    assert found.intercept_reason == ""


def test_an_interval_narrower_than_a_rounding_is_none() -> None:
    """At 1e20 neighbours are 16384 apart, and four rows tell the intercept to within 2."""
    cox = cox_calibration([1e20] * 4, [0, 1, 0, 1])
    assert (cox.intercept, cox.intercept_interval, cox.intercept_reason) == (-1e20, None, "")


def test_row_order_and_group_names_change_nothing_but_rounding() -> None:
    z, y = drawn(13, n=90)
    groups = np.arange(90) // 4
    order = np.random.default_rng(0).permutation(90)
    once = cox_calibration(z, y, groups=groups)
    again = cox_calibration(z[order], y[order], groups=[f"group {g}" for g in groups[order]])
    assert again.slope == pytest.approx(once.slope, rel=1e-11)
    assert ends(again.slope_interval) == pytest.approx(ends(once.slope_interval), rel=1e-10)
    assert ends(again.intercept_interval) == pytest.approx(ends(once.intercept_interval), rel=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"logits": []}, "logits must hold at least one row"),
        ({"logits": [math.inf, 1.0]}, "logits must be finite"),
        ({"labels": [0, 2]}, "labels must be integers from 0 to 1"),
        ({"confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({"weights": [1.0]}, "weights must have length 2"),
        ({"groups": [1]}, "groups must be 1-D of length 2"),
    ],
)
def test_broken_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"logits": [0.0, 1.0], "labels": [0, 1], **arguments}
    if not options["logits"]:
        options["labels"] = []
    with pytest.raises(ValueError, match=message):
        cox_calibration(options.pop("logits"), options.pop("labels"), **options)
