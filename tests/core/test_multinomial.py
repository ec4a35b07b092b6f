"""The reference fit of C classes ends at the optimum that others find, and tells truthfully how it went."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression

from headeval.core import multinomial, newton
from headeval.core.logistic import fit_logistic
from headeval.core.multinomial import MultinomialProblem, multinomial_fit
from headeval.core.newton import Reason


def some_rows(n: int = 240, d: int = 4, C: int = 3, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(d, C)) + rng.gumbel(size=(n, C))).argmax(axis=1)
    y[:C] = np.arange(C)
    return X, y


def probabilities(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    p: np.ndarray = special.softmax(X @ W[:, :-1].T + W[:, -1], axis=1)
    return p


def loss(W: np.ndarray, X: np.ndarray, y: np.ndarray, *, l2: float, s: np.ndarray) -> float:
    z = X @ W[:, :-1].T + W[:, -1]
    return float(s @ (special.logsumexp(z, axis=1) - z[np.arange(len(y)), y]) + 0.5 * l2 * np.square(W[:, :-1]).sum())


@pytest.mark.parametrize("C", [2, 3, 6])
@pytest.mark.parametrize("l2", [0.05, 1.0, 30.0])
def test_probabilities_are_those_of_scikit_learns_multinomial_regression(C: int, l2: float) -> None:
    X, y = some_rows(C=C)
    fit = multinomial_fit(X, y, l2 if C > 2 else 2 * l2, n_classes=C)
    # Of two classes scikit-learn penalises one weight vector w = w₁ − w₀, whose square is twice that of both rows.
    expected = LogisticRegression(C=1 / l2, solver="newton-cg", tol=1e-12, max_iter=10_000).fit(X, y)
    assert fit.converged
    np.testing.assert_allclose(probabilities(X, fit.w), expected.predict_proba(X), rtol=0, atol=1e-9)


def test_weights_are_those_that_scipy_finds_from_the_loss_alone() -> None:
    X, y = some_rows(n=90, d=2)
    s = np.random.default_rng(3).uniform(0.2, 2.0, len(y))
    fit = multinomial_fit(X, y, 0.5, n_classes=3, sample_weight=s)

    def gradient(w: np.ndarray) -> np.ndarray:
        W = w.reshape(3, 3)
        g = (s[:, None] * (probabilities(X, W) - np.eye(3)[y])).T @ np.column_stack([X, np.ones(len(X))])
        g[:, :-1] += 0.5 * W[:, :-1]
        flat: np.ndarray = g.ravel()
        return flat

    found = optimize.minimize(
        lambda w: loss(w.reshape(3, 3), X, y, l2=0.5, s=s),
        np.zeros(9),
        jac=gradient,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    W = found.x.reshape(3, 3)
    np.testing.assert_allclose(fit.w, W - W.mean(axis=0), rtol=0, atol=1e-8)
    assert fit.loss == pytest.approx(found.fun, rel=1e-12)


def test_gradient_and_hessian_are_the_differences_of_the_loss_and_of_the_gradient() -> None:
    X, y = some_rows(n=40, d=2)
    Xa, rng = np.column_stack([X, np.ones(len(X))]), np.random.default_rng(1)
    problem = MultinomialProblem(Xa, y, rng.uniform(0, 2, 40), 0.7, 3)
    W, step = rng.normal(size=(3, 3)), 1e-6
    g, H = problem.gradient(Xa @ W.T, W), problem.hessian(Xa @ W.T)
    for place in np.ndindex(3, 3):
        change = np.zeros((3, 3))
        change[place] = step
        up, down = W + change, W - change
        slope = (problem.loss(Xa @ up.T, up) - problem.loss(Xa @ down.T, down)) / (2 * step)
        assert slope == pytest.approx(g[place], abs=1e-7)
        bend = (problem.gradient(Xa @ up.T, up) - problem.gradient(Xa @ down.T, down)).ravel() / (2 * step)
        # The Hessian has something added along the sums of intercepts, which no step takes: it is left out here.
        across = (H[:, place[0] * 3 + place[1]]).reshape(3, 3)
        across[:, -1] -= across[:, -1].mean()
        bend = bend.reshape(3, 3)
        np.testing.assert_allclose(across, bend - [[0, 0, bend[:, -1].mean()]], rtol=0, atol=1e-6)


def newton_steps(X: np.ndarray, y: np.ndarray, l2: float) -> Iterator[np.ndarray]:
    """Yield the weights after each step of Newton's method, by the smallest solution of each system."""
    Xa, C = np.column_stack([X, np.ones(len(X))]), int(y.max()) + 1
    ridge = np.tile(np.append(np.full(X.shape[1], l2), 0.0), C)
    W = np.zeros((C, Xa.shape[1]))
    while True:
        p = probabilities(X, W)
        g = ((p - np.eye(C)[y]).T @ Xa).ravel() + ridge * W.ravel()
        between = p[:, :, None] * (np.eye(C) - p[:, None, :])
        H = np.einsum("nco,nj,nk->cjok", between, Xa, Xa).reshape(W.size, W.size) + np.diag(ridge)
        W = W - np.linalg.lstsq(H, g, rcond=1e-10)[0].reshape(W.shape)
        yield W


@pytest.mark.parametrize(("l2", "unit"), [(0.0, 1.0), (0.5, 1.0), (0.0, 1e-6)])
def test_steps_are_newtons_and_end_with_the_first_that_is_next_to_nothing(l2: float, unit: float) -> None:
    """Without a penalty the unit of the features changes that of their weights alone."""
    X, y = some_rows(n=90, d=2)
    scale = np.array([1 / unit, 1 / unit, 1.0])
    before, steps = np.zeros((3, 3)), 0
    for step, W in enumerate(newton_steps(X, y, l2), start=1):
        if step <= 3:
            fit = multinomial_fit(unit * X, y, l2, n_classes=3, iters=step)
            np.testing.assert_allclose(fit.w / scale, W, rtol=0, atol=1e-11)
            assert (fit.converged, fit.steps, fit.reason) == (False, step, Reason.STEP_LIMIT)
            g = (probabilities(X, W) - np.eye(3)[y]).T @ np.column_stack([X, np.ones(90)])
            g[:, :-1] += l2 * W[:, :-1]
            assert fit.gradient_norm == pytest.approx(np.abs(g / scale).max(), rel=1e-7)
            assert fit.loss == pytest.approx(loss(W, X, y, l2=l2, s=np.ones(90)), rel=1e-12)
        if np.abs((W - before) * scale).max() <= 1e-12 * max(1.0, np.abs(W * scale).max()):
            steps = step
            break
        before = W
    fit = multinomial_fit(unit * X, y, l2, n_classes=3)
    assert (fit.converged, fit.steps, fit.reason) == (True, steps, Reason.CONVERGED)
    assert fit.method == multinomial.BLOCK_NEWTON


def test_a_fit_whose_loss_falls_no_further_is_judged_by_its_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multinomial, "_damp", lambda *_: None)
    fit = multinomial_fit([[1.0], [2.0], [3.0]], [0, 1, 2], 1.0, n_classes=3)
    assert (fit.converged, fit.steps, fit.reason) == (False, 0, Reason.STALLED)
    assert not fit.w.any()
    fit = multinomial_fit([[1.0]] * 3, [0, 1, 2], 1.0, n_classes=3)
    assert (fit.converged, fit.reason) == (True, Reason.CONVERGED)


def test_a_last_step_of_nothing_is_not_enough_where_the_gradient_is_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MultinomialProblem, "gradient_tolerance", lambda _: -1.0)
    fit = multinomial_fit([[1.0], [2.0], [3.0]], [0, 1, 2], 1.0, n_classes=3)
    assert (fit.converged, fit.reason) == (False, Reason.STALLED)
    assert fit.steps < 20


class Scripted:
    """A problem whose loss is read from a list."""

    Xa = np.array([[2.0], [1.0]])

    def __init__(self, *losses: float) -> None:
        self.losses = list(losses)

    def loss(self, z: np.ndarray, w: np.ndarray) -> float:
        return self.losses.pop(0)


@pytest.mark.parametrize("damp", [multinomial._damp, newton._damp])
def test_a_step_is_halved_until_the_loss_rises_by_no_more_than_its_own_rounding(damp: Any) -> None:
    """1e-13 of it: 1e-10 of a thousand; and no more than sixty times."""
    w, delta = np.array([[1.0], [-1.0]]), np.array([[8.0], [-8.0]])
    w, delta = (w, delta) if damp is multinomial._damp else (w[0], delta[0])
    problem = Scripted(1000 + 1.2e-10, 1001.0, 1000 + 0.8e-10)
    found, z, loss = damp(problem, w, delta, 1000.0)
    assert problem.losses == []
    assert loss == 1000 + 0.8e-10
    assert found.tolist() == ([[-1.0], [1.0]] if damp is multinomial._damp else [2.0])  # w − δ/4, and δ/4
    assert z.tolist() == ([[-2.0, 2.0], [-1.0, 1.0]] if damp is multinomial._damp else [-2.0, -1.0])
    problem = Scripted(*[1001.0] * 60, 0.0)
    assert damp(problem, w, delta, 1000.0) is None
    assert problem.losses == [0.0]


def test_no_feature_at_all_leaves_the_shares_of_the_classes() -> None:
    fit = multinomial_fit(np.empty((6, 0)), [0, 1, 1, 2, 2, 2], 0.0, n_classes=3)
    assert fit.converged
    assert special.softmax(fit.w[:, 0]) == pytest.approx([1 / 6, 2 / 6, 3 / 6], rel=1e-12)


def test_classes_that_are_separated_but_for_ties_have_no_optimum() -> None:
    """The logits of the rows in the middle stay as they are; those of the others go on for ever."""
    fit = multinomial_fit([[-1.0], [0.0], [0.0], [1.0]], [0, 0, 1, 1], 0.0, n_classes=2)
    assert (fit.converged, fit.reason) == (False, Reason.SEPARABLE)
    assert fit.gradient_norm <= fit.gradient_tolerance


@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_along_a_sum_over_classes_the_hessian_has_the_mean_curvature_across_it(l2: float) -> None:
    """Without it the Hessian is 0 along a sum; of features under a penalty it is C times that, and nothing is added."""
    X, y = some_rows(n=40, d=2, C=4)
    Xa = np.column_stack([X, np.ones(40)])
    problem = MultinomialProblem(Xa, y, np.random.default_rng(1).uniform(0, 2, 40), l2, 4)
    W = np.random.default_rng(2).normal(size=(4, 3))
    H = problem.hessian(Xa @ W.T).reshape(4, 3, 4, 3)
    p = probabilities(X, W)
    across = [float((problem.s * np.square(column)) @ (p * (1 - p)).sum(axis=1)) for column in Xa.T]
    along = np.einsum("cjoj->j", H)
    np.testing.assert_allclose(along, [4 * l2 or across[0], 4 * l2 or across[1], across[2]], rtol=1e-12)


def test_the_tolerance_of_the_gradient_grows_with_the_rounding_of_its_sum() -> None:
    y, s = np.array([0, 1, 2]), np.array([0.5, 1.0, 2.0])
    for X, tolerance in (([1e9, -3e9, 2e9], 4 * 2.0**-52 * 7.5e9), ([1.0, -3.0, 2.0], 1e-9)):
        Xa = np.column_stack([X, np.ones(3)])
        assert MultinomialProblem(Xa, y, s, 1.0, 3).gradient_tolerance() == pytest.approx(tolerance, rel=1e-12)


def test_rows_are_separated_where_all_that_count_have_their_own_logit_above_all_others() -> None:
    y, z = np.array([0, 1, 2]), np.array([[2.0, 0.0, 1.0], [0.0, 0.5, 0.0], [5.0, 0.0, 0.0]])
    some, ones = np.array([1.0, 2.0, 0.0]), np.ones((3, 1))
    assert MultinomialProblem(ones, y, some, 0.0, 3).separated(z) is True
    assert MultinomialProblem(ones, y, np.ones(3), 0.0, 3).separated(z) is False
    assert MultinomialProblem(ones, y, some, 0.1, 3).separated(z) is False
    for other in (0.5, 1.0):  # a tie, and another class ahead by less than 1
        z[1, 2] = other
        assert MultinomialProblem(ones, y, some, 0.0, 3).separated(z) is False


def test_rows_of_the_weights_sum_to_zero_with_and_without_a_penalty() -> None:
    X, y = some_rows(C=5)
    for l2 in (0.0, 1.0):
        fit = multinomial_fit(X, y, l2, n_classes=5)
        assert fit.converged
        np.testing.assert_allclose(fit.w.sum(axis=0), 0.0, rtol=0, atol=1e-13)


def test_two_classes_are_the_binary_fit_with_half_the_penalty() -> None:
    """‖w₀‖² + ‖w₁‖² with w₁ = −w₀ = w/2 is ‖w‖²/2."""
    X, y = some_rows(C=2)
    fit, binary = multinomial_fit(X, y, 2.0, n_classes=2), fit_logistic(X, y, l2=1.0)
    np.testing.assert_allclose(fit.w[1] - fit.w[0], binary.w, rtol=0, atol=1e-11)


def test_no_class_is_treated_otherwise() -> None:
    X, y = some_rows(C=4)
    order = np.array([2, 0, 3, 1])
    fit, other = multinomial_fit(X, y, 0.3, n_classes=4), multinomial_fit(X, order[y], 0.3, n_classes=4)
    np.testing.assert_allclose(other.w[order], fit.w, rtol=0, atol=1e-12)


def test_mean_probabilities_are_the_shares_of_the_classes() -> None:
    """The intercepts are not penalised."""
    X, y = some_rows()
    p = probabilities(X, multinomial_fit(X, y, 100.0, n_classes=3).w)
    np.testing.assert_allclose(p.mean(axis=0), np.bincount(y) / len(y), rtol=0, atol=1e-11)


def test_a_weight_of_two_is_the_row_twice() -> None:
    X, y = some_rows(n=60)
    twice = np.arange(60) % 3 == 0
    fit = multinomial_fit(X, y, 1.0, n_classes=3, sample_weight=1.0 + twice)
    repeated = multinomial_fit(np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]]), 1.0, n_classes=3)
    np.testing.assert_allclose(fit.w, repeated.w, rtol=0, atol=1e-12)


@pytest.mark.parametrize("d", [2, 5])
def test_separated_classes_without_a_penalty_have_no_optimum(d: int) -> None:
    X, _ = some_rows(d=d)
    y = (X @ np.random.default_rng(5).normal(size=(d, 3))).argmax(axis=1)
    fit = multinomial_fit(X, y, 0.0, n_classes=3)
    assert not fit.converged
    assert fit.reason is Reason.SEPARABLE
    assert multinomial_fit(X, y, 1e-3, n_classes=3).converged


def test_a_class_without_rows_has_no_optimum_and_columns_that_depend_on_each_other_are_named() -> None:
    X, y = some_rows()
    assert multinomial_fit(X, y, 1.0, n_classes=4).reason is Reason.SEPARABLE
    assert multinomial_fit(X, y, 1.0, n_classes=3, sample_weight=(y != 1) * 1.0).reason is Reason.SEPARABLE
    doubled = np.column_stack([X, X[:, :1]])
    assert multinomial_fit(doubled, y, 0.0, n_classes=3).reason is Reason.SINGULAR
    assert multinomial_fit(doubled, y, 1e-3, n_classes=3).converged


def test_rows_far_on_their_own_side_still_count() -> None:
    """p rounds to 1: 1 − p as a difference would be 0, and the gradient of a fit that has not ended with it."""
    problem = MultinomialProblem(np.array([[1.0]]), np.array([0]), np.ones(1), 0.0, 3)
    z = np.array([[50.0, 0.0, 0.0]])
    r = np.exp(-50.0)
    np.testing.assert_allclose(problem.gradient(z, np.zeros((3, 1)))[:, 0], [-2 * r, r, r], rtol=1e-12)
    assert problem.loss(z, np.zeros((3, 1))) == pytest.approx(2 * r, rel=1e-12, abs=0.0)
    with np.errstate(all="raise"):  # an underflow to zero is the right answer
        assert problem.loss(1000 * z, np.zeros((3, 1))) == 0.0
    assert problem.loss(-1000 * z, np.zeros((3, 1))) == pytest.approx(50_000 + np.log(2))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"X": [1.0, 2.0]}, "2-D"),
        ({"X": [[np.nan], [1.0]]}, "finite"),
        ({"X": np.empty((0, 2)), "y": []}, "at least one row"),
        ({"X": [[1e200], [0.0]]}, "1e\\+140"),
        ({"y": [0, 3]}, "0 to 2"),
        ({"y": [0]}, "length 2"),
        ({"l2": -1.0}, "l2"),
        ({"n_classes": 1}, "n_classes"),
        ({"iters": 0}, "iters"),
        ({"sample_weight": [-1.0, 1.0]}, "negative"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(change: dict[str, object], text: str) -> None:
    given = {"X": [[0.0], [1.0]], "y": [0, 1], "l2": 1.0, "n_classes": 3} | change
    with pytest.raises(ValueError, match=text):
        multinomial_fit(**given)  # type: ignore[arg-type]
