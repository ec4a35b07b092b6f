"""The solver ends where the contract's IRLS ends, on rows of every kind, and says so truthfully."""

import warnings
from collections.abc import Iterator
from unittest import mock

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from sklearn.linear_model import LogisticRegression

from headeval.core.logistic import fit_logistic
from headeval.core.newton import GRADIENT_TOLERANCE, IRLS, LogisticFit, Reason
from headeval.core.vectors import unit_vectors
from headeval.solver import optimum
from headeval.solver.descent import METHOD
from headeval.solver.memory import ArraySource
from headeval.solver.optimum import FEW_DIMENSIONS, optima
from headeval.solver.problems import gradient_tolerance
from headeval.solver.rows import RowColumns
from headeval.solver.sample import sample_rows

MEAN_AGREES = 1e-11  # of the contract: mean(p) − mean(y) with an intercept
ROUNDING = 1e-10  # of a weight, relative to the largest: what a Hessian of condition 1e6 leaves of float64


@pytest.fixture(autouse=True, scope="module")
def _as_if_large() -> Iterator[None]:
    """Few rows go straight to the contract's IRLS; here they take the way of many."""
    with mock.patch.object(optimum, "FEW_PRODUCTS", 0):
        yield


def fitted(X: np.ndarray, y: np.ndarray, *, l2: float, weights: np.ndarray | None = None) -> LogisticFit:
    return optima(ArraySource.of(X, RowColumns(y.astype(np.uint8), weights)), l2=l2)[0]


def contract(X: np.ndarray, y: np.ndarray, *, l2: float, weights: np.ndarray | None = None) -> LogisticFit:
    return fit_logistic(unit_vectors(X), y, l2=l2, sample_weight=weights)


def gradient(X: np.ndarray, y: np.ndarray, w: np.ndarray, *, l2: float, weights: np.ndarray | None) -> np.ndarray:
    """Return g(w) in extended precision, from unit vectors made there."""
    units = unit_vectors(X).astype(np.longdouble)
    units /= np.maximum(np.sqrt((units * units).sum(axis=1, keepdims=True)), np.finfo(np.float64).tiny)
    Xa = np.column_stack([units, np.ones(len(units), dtype=np.longdouble)])
    w = w.astype(np.longdouble)
    z = Xa @ w
    e = np.exp(-np.abs(z))
    # p for a negative and −(1 − p) for a positive, none of them as a difference
    residual = np.where(y > 0, -np.where(z < 0, 1, e), np.where(z >= 0, 1, e)) / (1 + e)
    if weights is not None:
        residual *= weights
    g = Xa.T @ residual
    g[:-1] += l2 * w[:-1]
    return g


def least_curvature(X: np.ndarray, w: np.ndarray, *, l2: float, weights: np.ndarray | None) -> float:
    Xa = np.column_stack([unit_vectors(X), np.ones(len(X))])
    p = special.expit(Xa @ w)
    s = p * (1 - p) if weights is None else p * (1 - p) * weights
    H = (Xa.T * s) @ Xa + np.diag([l2] * (Xa.shape[1] - 1) + [0.0])
    return float(np.linalg.eigvalsh(H)[0])


def check_same_optimum(X: np.ndarray, y: np.ndarray, *, l2: float, weights: np.ndarray | None = None) -> LogisticFit:
    """Compare with the contract's IRLS and the gradient with its own sum."""
    fit, expected = fitted(X, y, l2=l2, weights=weights), contract(X, y, l2=l2, weights=weights)
    assert fit.converged
    assert fit.reason is Reason.CONVERGED
    assert fit.method in (METHOD, IRLS)
    g = gradient(X, y, fit.w, l2=l2, weights=weights)
    # the gradient's own rounding lies an order below its tolerance
    assert float(np.abs(g).max()) <= 1.1 * fit.gradient_tolerance
    assert fit.gradient_norm <= fit.gradient_tolerance
    total = float(len(y) if weights is None else weights.sum())
    assert abs(float(g[-1])) / total <= MEAN_AGREES
    # ‖w − w*‖₂ ≤ ‖g‖₂ / λ with λ the least curvature between them, here that at the end and half of it allowed.
    curvature = least_curvature(X, expected.w, l2=l2, weights=weights)
    reach = 2 * np.sqrt(len(fit.w)) * (fit.gradient_tolerance + expected.gradient_norm) / curvature
    np.testing.assert_allclose(fit.w, expected.w, rtol=0, atol=reach + ROUNDING * np.abs(expected.w).max())
    return fit


def rows(n: int, d: int, kind: str = "plain", *, seed: int = 0, dtype: str = "f4") -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.exp(-np.arange(d) / d)
    if kind == "columns doubled":
        X[:, d // 2 :] = X[:, : d - d // 2]
    elif kind == "a constant column":
        X[:, 0] = 5.0
    elif kind == "zero rows":
        X[rng.random(n) < 0.3] = 0.0
    elif kind == "zero columns":
        X[:, rng.random(d) < 0.3] = 0.0
    elif kind == "one direction":
        X[:] = X[0]
    elif kind == "basis vectors":
        X = np.eye(d)[rng.integers(0, d, n)]
    elif kind == "nearly parallel":
        X += 30.0
    elif kind == "any length":
        X *= 10.0 ** rng.integers(-30, 31, size=(n, 1)) if dtype == "f4" else 10.0 ** rng.integers(-200, 201, (n, 1))
    return X.astype(dtype)


def labels_of(X: np.ndarray, kind: str = "half", *, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n, d = X.shape
    z = unit_vectors(X) @ rng.normal(size=d) * 5
    noisy = z + rng.logistic(size=n)
    y = {
        "half": noisy > np.median(noisy),
        "one in a hundred": noisy > np.quantile(noisy, 0.99),
        "separable": z > np.median(z),
        "one positive": np.zeros(n, dtype=bool),
        "noise": rng.random(n) < 0.5,
    }[kind].astype(np.int64)
    if kind == "one positive" or y.min() == y.max():
        y[:] = 0
        y[n // 2] = 1
    return y


KINDS = (
    "plain",
    "columns doubled",
    "a constant column",
    "zero rows",
    "zero columns",
    "one direction",
    "basis vectors",
    "nearly parallel",
    "any length",
)


@pytest.mark.parametrize("d", [1, 5, FEW_DIMENSIONS, FEW_DIMENSIONS + 1, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_that_of_the_contracts_irls_for_rows_of_every_kind(kind: str, d: int) -> None:
    X = rows(300, d, kind)
    fit = check_same_optimum(X, labels_of(X), l2=1.0)
    assert fit.method == (METHOD if d > FEW_DIMENSIONS else IRLS)


@pytest.mark.parametrize("l2", [1e-8, 1e-5, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("d", [6, 40])
def test_the_optimum_is_that_of_the_contracts_irls_for_every_penalty(l2: float, d: int) -> None:
    X = rows(400, d)
    check_same_optimum(X, labels_of(X), l2=l2)


@pytest.mark.parametrize("kind", ["plain", "a constant column"])
def test_next_to_no_penalty_leaves_the_weights_as_exact_as_irls_leaves_them(kind: str) -> None:
    """‖g‖∞ ≤ 1e-9 alone would leave them uncertain by 1e-9 / l2, a tenth."""
    X = rows(48, FEW_DIMENSIONS, kind)
    y = labels_of(X, "one positive")
    fit, expected = fitted(X, y, l2=1e-8), contract(X, y, l2=1e-8)
    assert fit.converged
    # the rounding of the gradient, some 1e-16, over l2, several times
    np.testing.assert_allclose(fit.w, expected.w, atol=1e-6 * np.abs(expected.w).max())


@pytest.mark.parametrize("n", [2, 3, 10, 29, 30, 31, 60, 1000, 5000])
@pytest.mark.parametrize("kind", ["half", "separable", "one positive"])
def test_the_optimum_is_that_of_the_contracts_irls_for_every_shape(n: int, kind: str) -> None:
    X = rows(n, 30)
    check_same_optimum(X, labels_of(X, kind), l2=0.1)


@pytest.mark.parametrize("kind", ["one in a hundred", "one positive", "noise"])
@pytest.mark.parametrize("d", [8, 50])
def test_rare_positives_end_at_the_same_optimum(kind: str, d: int) -> None:
    X = rows(2000, d)
    check_same_optimum(X, labels_of(X, kind), l2=0.5)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("d", [8, 50])
def test_lengths_of_any_size_count_for_nothing(dtype: str, d: int) -> None:
    X = rows(200, d, dtype="f8")
    long_and_short = rows(200, d, "any length", dtype=dtype)
    y = labels_of(X)
    fit = check_same_optimum(long_and_short, y, l2=0.3)
    # float32 keeps seven digits of each number
    np.testing.assert_allclose(fit.w, fitted(X, y, l2=0.3).w, atol=1e-5 if dtype == "f4" else 1e-9)


def weights_of(kind: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    return {
        "whole numbers": rng.integers(0, 4, n).astype(np.float64),
        "fractions": rng.random(n),
        "six orders of size": 10.0 ** rng.uniform(-3, 3, n),
        "very large": 1e9 * rng.random(n),
    }[kind]


@pytest.mark.parametrize("kind", ["whole numbers", "fractions", "six orders of size", "very large"])
@pytest.mark.parametrize("d", [8, 50])
def test_weighted_rows_end_at_the_same_optimum(kind: str, d: int) -> None:
    X = rows(300, d)
    check_same_optimum(X, labels_of(X, "noise"), l2=0.5, weights=weights_of(kind, 300))


@pytest.mark.parametrize("d", [8, 50])
@pytest.mark.parametrize("weight", [1e-30, 1e40, 1e100])
def test_weights_beyond_the_range_of_float32_are_no_trouble(d: int, weight: float) -> None:
    X = rows(200, d)
    y = labels_of(X)
    weights = np.full(200, weight)
    # Scaling the weights and the penalty together changes nothing, as long as they stay in the range of float64.
    fit = fitted(X, y, l2=weight, weights=weights)
    assert fit.converged
    if weight > 1:
        np.testing.assert_allclose(fit.w, contract(X, y, l2=1.0).w, atol=1e-6)


@pytest.mark.parametrize("d", [8, 50])
@pytest.mark.parametrize("l2", [1e39, 1e300])
def test_penalties_beyond_the_range_of_float32_leave_the_log_odds(d: int, l2: float) -> None:
    X = rows(200, d)
    y = labels_of(X, "one in a hundred")
    fit = fitted(X, y, l2=l2)
    assert fit.converged
    assert np.abs(fit.w[:-1]).max() < 1e-30
    assert fit.w[-1] == pytest.approx(special.logit(y.mean()), rel=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 60),
    d=st.sampled_from([1, 2, 3, 10, 24, 25, 30]),
    kind=st.sampled_from(KINDS),
    labelled=st.sampled_from(["half", "one in a hundred", "separable", "one positive", "noise"]),
    l2=st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e4]),
    dtype=st.sampled_from(["f4", "f8"]),
    weighted=st.booleans(),
)
@settings(max_examples=120, derandomize=True)
def test_small_rows_of_every_kind_end_at_the_same_optimum(
    seed: int, n: int, d: int, kind: str, labelled: str, l2: float, dtype: str, weighted: bool
) -> None:
    X = rows(n, d, kind, seed=seed, dtype=dtype)
    weights = np.random.default_rng(seed).uniform(0.1, 3.0, n) if weighted else None
    check_same_optimum(X, labels_of(X, labelled, seed=seed), l2=l2, weights=weights)


@pytest.mark.parametrize(("n", "d", "l2"), [(500, 6, 1.0), (500, 40, 0.1), (60, 40, 5.0), (3000, 100, 1.0)])
def test_the_optimum_is_scikit_learns(n: int, d: int, l2: float) -> None:
    X = rows(n, d)
    y = labels_of(X)
    model = LogisticRegression(C=1 / l2, tol=1e-12, solver="newton-cholesky", max_iter=1000).fit(unit_vectors(X), y)
    fit = fitted(X, y, l2=l2)
    # scikit-learn stops at a mean gradient of about 1e-10; the least curvature is l2.
    np.testing.assert_allclose(fit.w, np.append(model.coef_[0], model.intercept_), atol=1e-7)


def test_the_gradient_vanishes_in_forty_digits() -> None:
    X = rows(40, 26, dtype="f8")
    y, l2 = labels_of(X), 0.05
    fit = fitted(X, y, l2=l2)
    with mpmath.workdps(40):
        w = [mpmath.mpf(float(v)) for v in fit.w]
        g = [l2 * v for v in w[:-1]] + [mpmath.mpf(0)]
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            e = [mpmath.mpf(v) for v in row]
            norm = mpmath.sqrt(mpmath.fsum(v * v for v in e))
            u = [v / norm for v in e] + [mpmath.mpf(1)]
            p = 1 / (1 + mpmath.exp(-mpmath.fdot(u, w)))
            g = [part + (p - label) * v for part, v in zip(g, u, strict=True)]
        assert max(abs(part) for part in g) <= fit.gradient_tolerance
        assert abs(g[-1]) / len(y) <= MEAN_AGREES


@pytest.mark.parametrize("d", [3, 30])
def test_without_a_penalty_the_optimum_is_that_of_irls_where_there_is_one(d: int) -> None:
    X = rows(600, d)
    fit = check_same_optimum(X, labels_of(X, "noise"), l2=0.0)
    assert fit.method == IRLS


@pytest.mark.parametrize("d", [3, 30])
@pytest.mark.parametrize(
    ("kind", "labelled", "reason"),
    [
        ("plain", "separable", Reason.SEPARABLE),
        ("one direction", "noise", Reason.SINGULAR),
        ("columns doubled", "noise", Reason.SINGULAR),
        ("zero columns", "noise", Reason.SINGULAR),
    ],
)
def test_without_a_penalty_no_optimum_is_told_from_many(d: int, kind: str, labelled: str, reason: Reason) -> None:
    X = rows(200, d, kind, seed=3)
    y = labels_of(X, labelled)
    fit, expected = fitted(X, y, l2=0.0), contract(X, y, l2=0.0)
    assert (fit.converged, fit.reason) == (False, reason)
    assert expected.reason is reason
    assert fit.steps <= expected.steps + 1  # it ends as soon as all rows stand on their own side


def test_rows_that_only_touch_without_a_penalty_have_no_optimum() -> None:
    # Quasi-separated: a few rows stand on the plane between the classes, once with each label.
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), rng.normal(size=60)])
    y = (X[:, 0] > 0).astype(np.int64)
    X[:4], y[:4] = [[0.0, 1.0], [0.0, 1.0], [0.0, -1.0], [0.0, -1.0]], [0, 1, 0, 1]
    assert fitted(X, y, l2=0.0).reason is contract(X, y, l2=0.0).reason is Reason.SEPARABLE


@pytest.mark.parametrize("d", [3, 30])
def test_one_class_by_weight_has_no_optimum_whatever_the_penalty(d: int) -> None:
    X = rows(100, d)
    y = labels_of(X)
    for value in (0, 1):
        fit = fitted(X, y, l2=1.0, weights=np.where(y == value, 1.0, 0.0))
        assert (fit.converged, fit.reason) == (False, Reason.SEPARABLE)


def test_dependent_columns_with_a_penalty_take_no_newton_step() -> None:
    X = rows(3000, 64, "columns doubled")
    fit = check_same_optimum(X, labels_of(X), l2=1.0)
    assert (fit.method, fit.steps < 30) == (METHOD, True)


def test_it_takes_far_fewer_sums_than_there_are_dimensions() -> None:
    X = rows(8000, 200)
    source = ArraySource.of(X, RowColumns(labels_of(X).astype(np.uint8)))
    fit = optima(source, l2=1.0)[0]
    assert fit.method == METHOD
    assert source.passes < 25


def test_few_rows_are_given_to_the_contracts_irls() -> None:
    X = rows(300, 40)
    y, weights = labels_of(X), weights_of("fractions", 300)
    with mock.patch.object(optimum, "FEW_PRODUCTS", 10**9):
        fit = fitted(X, y, l2=0.3, weights=weights)
    expected = contract(X, y, l2=0.3, weights=weights)
    assert (fit.method, fit.w.tobytes()) == (IRLS, expected.w.tobytes())


def test_a_warm_start_ends_at_the_same_optimum_in_fewer_steps() -> None:
    X = rows(2000, 60)
    source = ArraySource.of(X, RowColumns(labels_of(X).astype(np.uint8)))
    cold = optima(source, l2=0.7)[0]
    warm = optima(source, l2=0.7, near=[cold.w + 1e-6])[0]
    assert warm.steps < cold.steps
    np.testing.assert_allclose(warm.w, cold.w, atol=1e-7)


def test_folds_are_fitted_as_if_their_rows_were_dropped() -> None:
    X = rows(900, 40)
    y = labels_of(X)
    folds = np.random.default_rng(0).integers(0, 3, 900)
    weights = weights_of("fractions", 900)
    source = ArraySource.of(X, RowColumns(y.astype(np.uint8), weights))
    source.hold_out(folds.astype(np.int16))
    fits = optima(source, l2=0.4, left_out=(None, 0, 1, 2))
    for fit, fold in zip(fits, (None, 0, 1, 2), strict=True):
        kept = np.ones(900, dtype=bool) if fold is None else folds != fold
        expected = contract(X[kept], y[kept], l2=0.4, weights=weights[kept])
        np.testing.assert_allclose(fit.w, expected.w, atol=1e-8)


def test_few_rows_are_asked_for_a_smaller_gradient_and_very_many_for_a_larger() -> None:
    def asked(n: int, weights: np.ndarray | None = None) -> float:
        return gradient_tolerance(RowColumns(np.zeros(n, dtype=np.uint8), weights), None)

    assert asked(1000) == GRADIENT_TOLERANCE
    assert asked(10) / 10 <= MEAN_AGREES  # the intercept's entry is n(mean(p) − mean(y))
    # the rounding of a sum of n numbers of size 1 is about n eps
    assert asked(2, np.full(2, 1e8)) == pytest.approx(4 * 2e8 * np.finfo(np.float64).eps)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.5])
def test_a_sample_of_the_rows_finds_the_rare_and_counts_like_all(share: float) -> None:
    labels = np.zeros(100_000, dtype=np.uint8)
    labels[:: round(1 / share)] = 1
    chosen, s = sample_rows(RowColumns(labels), 1000)
    assert (np.diff(chosen) > 0).all()
    positives = int(labels[chosen].sum())
    assert positives >= min(250, int(labels.sum()))
    assert chosen.size <= 1251
    assert s.sum() == pytest.approx(100_000)
    assert s[labels[chosen] > 0].sum() == pytest.approx(float(labels.sum()))
    weights = np.random.default_rng(0).random(100_000)
    again, weighted = sample_rows(RowColumns(labels, weights), 1000)
    assert again.tolist() == chosen.tolist()
    np.testing.assert_allclose(weighted, s * weights[chosen])


def test_no_warning_leaves_the_solver_even_where_all_are_errors() -> None:
    X = rows(200, 40, "any length")
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert fitted(X, labels_of(X, "separable"), l2=1e-6).converged
