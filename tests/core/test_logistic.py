"""The fit against scikit-learn, scipy and 40-digit arithmetic, and the story that it tells of itself."""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression

from headeval.core import newton
from headeval.core.checks import FloatArray, IntArray
from headeval.core.logistic import fit_logistic, logistic_predict_proba, logistic_regression_fit
from headeval.core.newton import GRADIENT_TOLERANCE, LogisticProblem, Reason, newton_step

# scikit-learn and scipy stop at a gradient of about 1e-10; w may differ by that divided by the curvature.
WEIGHTS_AGREE = 1e-8


@dataclass(frozen=True)
class Case:
    X: FloatArray
    y: IntArray
    l2: float
    fit_intercept: bool = True
    sample_weight: FloatArray | None = None

    @property
    def Xa(self) -> FloatArray:  # noqa: N802 - the letters of the mathematics
        return np.hstack([self.X, np.ones((len(self.X), 1))]) if self.fit_intercept else self.X

    @property
    def penalty(self) -> FloatArray:
        return np.append(np.full(self.X.shape[1], self.l2), [0.0] * self.fit_intercept)

    @property
    def s(self) -> FloatArray:
        return np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight

    def loss(self, w: FloatArray) -> float:
        z = self.Xa @ w
        return float(self.s @ (np.logaddexp(0.0, z) - self.y * z) + self.penalty @ w**2 / 2)

    def gradient(self, w: FloatArray) -> FloatArray:
        g: FloatArray = self.Xa.T @ (self.s * (special.expit(self.Xa @ w) - self.y)) + self.penalty * w
        return g

    def hessian(self, w: FloatArray) -> FloatArray:
        p = special.expit(self.Xa @ w)
        H: FloatArray = (self.Xa.T * (self.s * p * (1 - p))) @ self.Xa + np.diag(self.penalty)
        return H

    def fit(self, **options: Any) -> Any:
        return fit_logistic(
            self.X, self.y, l2=self.l2, fit_intercept=self.fit_intercept, sample_weight=self.sample_weight, **options
        )


@cache
def case(name: str) -> Case:
    rng = np.random.default_rng(7)
    n, d = {"more columns than rows": (20, 40), "imbalanced": (400, 3)}.get(name, (150, 5))
    X = rng.normal(size=(n, d))
    z = X @ rng.normal(size=d) - (4.0 if name == "imbalanced" else 0.3)
    y = (rng.random(n) < special.expit(z)).astype(np.int64)
    weights = rng.integers(0, 4, size=n).astype(np.float64)
    return {
        "ridge": Case(X, y, 1.0),
        "weak penalty": Case(X, y, 1e-4),
        "strong penalty": Case(X, y, 1e3),
        "no intercept": Case(X, y, 0.5, fit_intercept=False),
        "unpenalised": Case(X, y, 0.0),
        "unpenalised, no intercept": Case(X, y, 0.0, fit_intercept=False),
        "imbalanced": Case(X, y, 0.1),
        "more columns than rows": Case(X, y, 0.5),
        "large features": Case(1e3 * X, y, 1.0),
        "mixed scales": Case(X * 10.0 ** np.arange(-2, d - 2), y, 1e-3),
        "weighted": Case(X, y, 1.0, sample_weight=weights),
        "fractional weights": Case(X, y, 0.0, sample_weight=rng.random(n)),
        "one feature": Case(X[:, :1], y, 0.0),
    }[name]


NAMES = [
    "ridge",
    "weak penalty",
    "strong penalty",
    "no intercept",
    "unpenalised",
    "unpenalised, no intercept",
    "imbalanced",
    "more columns than rows",
    "large features",
    "mixed scales",
    "weighted",
    "fractional weights",
    "one feature",
]


@pytest.mark.parametrize("name", NAMES)
def test_optimum_is_scikit_learns(name: str) -> None:
    c = case(name)
    model = LogisticRegression(
        C=1 / c.l2 if c.l2 else np.inf,
        fit_intercept=c.fit_intercept,
        solver="newton-cholesky",
        tol=1e-11,
        max_iter=1000,
    )
    model.fit(c.X, c.y, sample_weight=c.sample_weight)
    expected = np.append(model.coef_[0], model.intercept_ if c.fit_intercept else [])
    assert c.fit().w == pytest.approx(expected, rel=WEIGHTS_AGREE, abs=WEIGHTS_AGREE * np.abs(expected).max())


@pytest.mark.parametrize("name", NAMES)
def test_optimum_is_scipys(name: str) -> None:
    c = case(name)
    unit = np.abs(c.Xa).max(axis=0)  # trust-exact needs columns of one scale
    found = optimize.minimize(
        lambda v: c.loss(v / unit),
        np.zeros(len(unit)),
        jac=lambda v: c.gradient(v / unit) / unit,
        hess=lambda v: c.hessian(v / unit) / np.outer(unit, unit),
        method="trust-exact",
        options={"gtol": 1e-10},
    )
    expected = found.x / unit
    assert c.fit().w == pytest.approx(expected, rel=WEIGHTS_AGREE, abs=WEIGHTS_AGREE * np.abs(expected).max())


@pytest.mark.parametrize("name", NAMES)
def test_gradient_vanishes_and_mean_probability_is_the_prevalence(name: str) -> None:
    c = case(name)
    w = logistic_regression_fit(c.X, c.y, c.l2, 50, c.fit_intercept) if c.sample_weight is None else c.fit().w
    assert np.abs(c.gradient(w)).max() <= 1e-9
    if c.fit_intercept:
        p = logistic_predict_proba(c.X, w)
        assert abs(np.average(p, weights=c.s) - np.average(c.y, weights=c.s)) <= 1e-11


@pytest.mark.parametrize("name", NAMES)
def test_story_is_true(name: str) -> None:
    c = case(name)
    fit = c.fit()
    assert (fit.converged, fit.reason) == (True, Reason.CONVERGED)
    assert fit.gradient_norm <= fit.gradient_tolerance
    # The fit's own gradient and an independent one differ by rounding alone, as does the loss.
    rounding = 1e-15 * float(c.s @ np.abs(c.Xa).max(axis=1))
    assert fit.gradient_norm == pytest.approx(np.abs(c.gradient(fit.w)).max(), abs=rounding)
    assert fit.loss == pytest.approx(c.loss(fit.w), rel=1e-13)
    assert 1 <= fit.steps <= 20


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("name", ["ridge", "no intercept", "weighted", "imbalanced", "mixed scales"])
def test_story_of_an_early_end_is_true(name: str, steps: int) -> None:
    c = case(name)
    fit = c.fit(iters=steps)
    assert (fit.converged, fit.reason, fit.steps) == (False, Reason.STEP_LIMIT, steps)
    assert fit.gradient_norm == pytest.approx(np.abs(c.gradient(fit.w)).max(), rel=1e-9)
    assert fit.gradient_norm > fit.gradient_tolerance
    assert fit.loss == pytest.approx(c.loss(fit.w), rel=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_both_doors_lead_to_the_same_weights(name: str) -> None:
    c = case(name)
    if c.sample_weight is None:
        assert logistic_regression_fit(c.X, c.y, c.l2, 100, c.fit_intercept).tobytes() == c.fit().w.tobytes()


def test_tolerance_of_the_gradient_is_the_contracts_and_grows_with_rounding_alone() -> None:
    assert GRADIENT_TOLERANCE == 1e-9
    for name in NAMES:
        c = case(name)
        rounding = 4 * np.finfo(np.float64).eps * float((c.s[:, None] * np.abs(c.Xa)).sum(axis=0).max())
        assert c.fit().gradient_tolerance == pytest.approx(max(1e-9, rounding), rel=1e-12, abs=0)
    problem = LogisticProblem(np.array([[1e9], [-3e9]]), np.array([0.0, 1.0]), np.array([0.5, 1.0]), np.ones(1))
    assert problem.gradient_tolerance() == pytest.approx(4 * 2.0**-52 * 3.5e9, rel=1e-15)
    huge = Case(1e9 * case("ridge").X, case("ridge").y, 1.0).fit()
    assert huge.gradient_tolerance > 1e-6
    assert huge.converged


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_newton_steps_are_those_of_forty_digit_arithmetic(fit_intercept: bool) -> None:
    """Gradient and Hessian are differentiated numerically from the loss, so neither formula is taken on trust."""
    X = [[0.5, -1.0], [1.5, 0.25], [-0.75, 0.5], [0.25, 1.0], [-1.0, -0.5]]
    y, s, l2 = [1, 0, 1, 1, 0], [1.0, 2.0, 0.5, 1.0, 1.5], 0.3
    size = 2 + fit_intercept

    def loss(*w: Any) -> Any:
        total = mpmath.mpf(l2) / 2 * (w[0] ** 2 + w[1] ** 2)
        for row, label, weight in zip(X, y, s, strict=True):
            z = sum(w[k] * v for k, v in enumerate([*row, 1.0][:size]))
            total += weight * (mpmath.log(1 + mpmath.exp(z)) - label * z)
        return total

    def derivative(w: Any, *indices: int) -> Any:
        return mpmath.diff(loss, tuple(w), tuple(indices.count(k) for k in range(size)))

    with mpmath.workdps(40):
        w = mpmath.zeros(size, 1)
        for steps in (1, 2, 3, 4):
            g = mpmath.matrix([derivative(w, i) for i in range(size)])
            H = mpmath.matrix([[derivative(w, i, j) for j in range(size)] for i in range(size)])
            w = w - mpmath.lu_solve(H, g)
            fit = fit_logistic(X, y, l2=l2, iters=steps, fit_intercept=fit_intercept, sample_weight=s)
            assert fit.w == pytest.approx([float(v) for v in w], rel=1e-13)
            expected_norm = max(abs(float(derivative(w, i))) for i in range(size))
            assert fit.gradient_norm == pytest.approx(expected_norm, rel=1e-9, abs=1e-14)
            assert fit.loss == pytest.approx(float(loss(*w)), rel=1e-14)


def test_reference_step_and_optimum() -> None:
    X, y = [[1.0], [-1.0]], [1, 0]
    assert logistic_regression_fit(X, y, 1.0, 1, fit_intercept=False) == pytest.approx([2 / 3], abs=1e-15)
    optimum = float(mpmath.findroot(lambda w: w - 2 * (1 - 1 / (1 + mpmath.exp(-w))), 0.67))
    assert 0.6748 <= optimum < 0.6749
    assert logistic_regression_fit(X, y, 1.0, 20, fit_intercept=False) == pytest.approx([optimum], rel=1e-14)


def test_eight_steps_equal_fifty() -> None:
    c = case("ridge")
    assert logistic_regression_fit(c.X, c.y, 1.0, 8) == pytest.approx(
        logistic_regression_fit(c.X, c.y, 1.0, 50), abs=1e-13
    )


def test_a_weight_is_the_row_so_many_times() -> None:
    c = case("weighted")
    repeated = fit_logistic(np.repeat(c.X, c.s.astype(int), axis=0), np.repeat(c.y, c.s.astype(int)), l2=c.l2)
    weighted = c.fit()
    assert weighted.w == pytest.approx(repeated.w, rel=1e-11)
    assert weighted.loss == pytest.approx(repeated.loss, rel=1e-13)
    assert weighted.steps == repeated.steps


def test_flipped_labels_flip_the_weights() -> None:
    c = case("ridge")
    assert Case(c.X, 1 - c.y, c.l2).fit().w == pytest.approx(-c.fit().w, rel=1e-12)


def test_scaling_a_column_scales_its_unpenalised_weight_back() -> None:
    c = case("unpenalised")
    scale = np.array([1e-6, 1e-3, 1.0, 1e3, 1e6])
    assert Case(c.X * scale, c.y, 0.0).fit().w[:-1] * scale == pytest.approx(c.fit().w[:-1], rel=1e-9)


# Undamped Newton steps from zero overshoot on these rows until every p(1 − p) underflows.
OVERSHOOTING = Case(
    np.array([[-11, 0], [-2, 49], [-1, -2], [0, 1], [1, -24], [-2, -3], [0, -1], [-8, -3]], dtype=np.float64),
    np.array([1, 0, 1, 0, 1, 1, 1, 1]),
    0.01,
)


def test_steps_that_overshoot_are_damped_to_the_optimum() -> None:
    c = OVERSHOOTING
    losses = [c.fit(iters=k).loss for k in range(1, 17)]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(losses))
    found = optimize.minimize(
        c.loss, np.zeros(3), jac=c.gradient, hess=c.hessian, method="trust-exact", options={"gtol": 1e-11}
    )
    assert c.fit().converged
    assert c.fit().w == pytest.approx(found.x, rel=1e-6)
    assert logistic_regression_fit(c.X, c.y, c.l2, 100) == pytest.approx(found.x, rel=1e-6)


SINGULAR: dict[str, Any] = {
    "constant feature": [[1.0, 0.1], [2.0, 0.1], [0.5, 0.1], [3.0, 0.1]],
    "feature of zeros": [[1.0, 0.0], [2.0, 0.0], [0.5, 0.0], [3.0, 0.0]],
    "duplicated column": [[0.1, 0.1], [0.7, 0.7], [0.3, 0.3], [0.2, 0.2]],
    "scaled column": [[0.1, 100.0], [0.7, 700.0], [0.3, 300.0], [0.2, 200.0]],
    "sum of columns": [[0.1, 0.2, 0.3], [0.7, -0.6, 0.1], [0.3, 0.4, 0.7], [-0.2, 0.3, 0.1]],
    "more columns than rows": np.random.default_rng(3).normal(size=(4, 6)),
    "as many columns as rows": np.random.default_rng(4).normal(size=(4, 4)),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_hessian_is_refused_and_told(name: str) -> None:
    y = [0, 1, 1, 0]
    with pytest.raises(ValueError, match="the Hessian is singular"):
        logistic_regression_fit(SINGULAR[name], y, 0.0, 10)
    fit = fit_logistic(SINGULAR[name], y, l2=0.0)
    assert (fit.converged, fit.reason, fit.steps) == (False, Reason.SINGULAR, 0)


@pytest.mark.parametrize("name", SINGULAR)
def test_a_penalty_makes_any_hessian_regular(name: str) -> None:
    c = Case(np.array(SINGULAR[name]), np.array([0, 1, 1, 0]), 0.1)
    assert c.fit().converged
    assert np.abs(c.gradient(c.fit().w)).max() <= 1e-9


def test_large_constant_tables_are_found_singular_too() -> None:
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=50_000), np.full(50_000, 1 / 3)])
    with pytest.raises(ValueError, match="singular"):
        logistic_regression_fit(X, np.arange(50_000) % 2, 0.0, 5)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_a_newton_step_solves_its_equations_unless_a_column_is_only_rounding(scale: float) -> None:
    """Of the second column (1 − r)(1 + r) is left by the first; 4·2⁻⁵² could be rounding, 40·2⁻⁵² is none."""
    unit, g = np.array([1.0, scale]), np.array([3.0, -2.0])
    for r, regular in ((0.5, True), (1 - 20 * 2**-52, True), (1 - 2 * 2**-52, False), (1.0, False), (1.5, False)):
        H = np.array([[1.0, r], [r, 1.0]]) * np.outer(unit, unit)
        delta = newton_step(H, g * unit, np.zeros(2))
        assert (delta is not None) == regular
        if delta is not None:
            exact = np.array([g[0] - r * g[1], g[1] - r * g[0]]) / ((1 - r) * (1 + r))
            assert delta * unit == pytest.approx(exact, rel=1e-14 / (1 - r))
        # A penalty that is lost in the rounding of the diagonal keeps no column apart, one of 1e-3 of it any.
        assert (newton_step(H, g * unit, 1e-18 * unit.max() ** 2 * np.ones(2)) is not None) == regular
    assert newton_step(np.diag([1.0, 0.0]), g, np.zeros(2)) is None
    assert newton_step(np.diag([0.0, 1.0]), g, np.zeros(2)) is None


def test_a_fit_whose_loss_falls_no_further_is_judged_by_its_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton, "_damp", lambda *_: None)
    fit = fit_logistic([[1.0], [2.0], [3.0]], [0, 1, 1], l2=1.0)
    assert (fit.converged, fit.steps, fit.reason, fit.method) == (False, 0, Reason.STALLED, "Newton (IRLS)")
    fit = fit_logistic([[1.0], [1.0]], [0, 1], l2=1.0)
    assert (fit.converged, fit.reason, fit.w.tolist()) == (True, Reason.CONVERGED, [0.0, 0.0])


def test_a_last_step_of_nothing_is_not_enough_where_the_gradient_is_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogisticProblem, "gradient_tolerance", lambda _: -1.0)
    fit = case("ridge").fit()
    assert (fit.converged, fit.reason) == (False, Reason.STALLED)
    assert fit.steps < 20
    assert fit_logistic(1e-9 * case("unpenalised").X, case("unpenalised").y, l2=0.0).steps < 20  # weights of 1e9


def test_rows_are_separated_where_all_that_count_are_on_their_own_side() -> None:
    y, z, some = np.array([1.0, 0.0, 1.0]), np.array([0.5, -0.5, -1.0]), np.array([1.0, 0.5, 0.0])
    ones, none = np.ones((3, 1)), np.zeros(1)
    assert LogisticProblem(ones, y, some, none).separated(z) is True
    assert LogisticProblem(ones, y, np.ones(3), none).separated(z) is False
    assert LogisticProblem(ones, y, some, np.array([0.1])).separated(z) is False
    assert LogisticProblem(ones, y, some, none).separated(np.array([0.5, 0.0, 0.0])) is False


NO_MINIMUM = {
    "separated": Case(np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1]), 0.0),
    "separated, no intercept": Case(np.array([[-2.0], [1.0]]), np.array([0, 1]), 0.0, fit_intercept=False),
    "separated in two dimensions": Case(
        np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0, 0, 0, 1]), 0.0
    ),
    "separated but for ties": Case(np.array([[-1.0], [0.0], [0.0], [1.0]]), np.array([0, 0, 1, 1]), 0.0),
    "one class": Case(np.array([[2.0], [1.0]]), np.array([1, 1]), 0.0),
    "one class under a penalty": Case(np.array([[2.0], [1.0]]), np.array([1, 1]), 1.0),
    "other class under a penalty": Case(np.array([[2.0], [1.0]]), np.array([0, 0]), 1.0),
    "other class without weight": Case(
        np.array([[-2.0], [-1.0], [1.0], [-1.5]]), np.array([0, 0, 1, 1]), 0.0, sample_weight=np.array([1.0, 1, 1, 0])
    ),
}


@pytest.mark.parametrize("name", NO_MINIMUM)
def test_a_loss_without_minimum_is_never_called_converged(name: str) -> None:
    fit = NO_MINIMUM[name].fit()
    assert (fit.converged, fit.reason) == (False, Reason.SEPARABLE)
    assert "no finite minimum" in fit.reason.value
    if (name.startswith("separated") and "ties" not in name) or "weight" in name:
        assert fit.steps <= 10  # told as soon as every row that counts is on its side
    assert np.isfinite(fit.w).all()


def test_separated_classes_under_a_penalty_converge() -> None:
    c = NO_MINIMUM["separated"]
    assert Case(c.X, c.y, 1e-6).fit().converged


def test_contract_takes_its_steps_on_separated_classes_too() -> None:
    c = NO_MINIMUM["separated"]
    early, late = (logistic_regression_fit(c.X, c.y, 0.0, steps) for steps in (5, 25))
    assert 0 < early[0] < late[0]


def test_one_row_and_one_feature() -> None:
    # w = 2(1 − σ(2w)) for the row x = 2, y = 1, l2 = 1.
    expected = float(mpmath.findroot(lambda w: w - 2 / (1 + mpmath.exp(2 * w)), 0.5))
    assert fit_logistic([[2.0]], [1], l2=1.0, fit_intercept=False).w == pytest.approx([expected], rel=1e-14)


def test_no_feature_at_all_leaves_the_log_odds() -> None:
    fit = fit_logistic(np.zeros((3, 0)), [0, 1, 1], l2=0.0)
    assert fit.w == pytest.approx([np.log(2)], rel=1e-14)
    assert fit.converged


def test_neither_feature_nor_intercept_leaves_every_probability_at_one_half() -> None:
    fit = fit_logistic(np.zeros((3, 0)), [0, 1, 1], l2=0.0, fit_intercept=False)
    assert (fit.w.shape, fit.converged, fit.steps) == ((0,), True, 1)
    assert fit.loss == pytest.approx(3 * np.log(2), rel=1e-15)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_features_of_any_scale_give_the_same_probabilities_without_penalty(scale: float) -> None:
    c = case("unpenalised")
    w = fit_logistic(scale * c.X, c.y, l2=0.0).w
    assert logistic_predict_proba(scale * c.X, w) == pytest.approx(logistic_predict_proba(c.X, c.fit().w), rel=1e-9)


def test_prediction_is_the_sigmoid_of_the_logit() -> None:
    c = case("ridge")
    w = np.arange(1.0, 7.0)
    assert logistic_predict_proba(c.X, w) == pytest.approx(special.expit(c.Xa @ w), rel=1e-14)
    assert logistic_predict_proba(c.X, w[:5], fit_intercept=False) == pytest.approx(
        special.expit(c.X @ w[:5]), rel=1e-14
    )
    assert logistic_predict_proba(np.empty((0, 2)), [1.0, 1.0, 0.0]).shape == (0,)


def test_prediction_does_not_overflow() -> None:
    assert logistic_predict_proba([[1000.0], [-1000.0]], [1.0, 0.0]).tolist() == [1.0, 0.0]
    assert logistic_predict_proba([[1e308], [-1e308]], [10.0, 0.0]).tolist() == [1.0, 0.0]
    assert logistic_predict_proba([[-0.0]], [1.0], fit_intercept=False).tolist() == [0.5]
