"""Logistic regression by Newton's method, which for this loss is iteratively reweighted least squares (IRLS).

With z = Xa w and p = sigmoid(z), where Xa is X with a last column of ones when there is an intercept:

    L(w) = Σ s (softplus(z) − y z) + (l2/2) ‖w_feat‖²
    g(w) = Xaᵀ s (p − y) + l2 w_feat
    H(w) = Xaᵀ diag(s p (1 − p)) Xa + l2 I_feat

The intercept is the last entry of w and is never penalised; s are row weights, all one unless given.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray
from headeval.core.stable import sigmoid, softplus

STEP_TOLERANCE = 1e-12  # of the contract: stop once max|δ| ≤ 1e-12 · max(1, max|w|)
GRADIENT_TOLERANCE = 1e-9
MOST_HALVINGS = 60
LARGEST_FEATURE = 1e140  # a sum of squares of larger ones would leave the range of float64
# Where the loss has no minimum the gradient vanishes too, but every Newton step still moves some logit by
# about 1; near a minimum the step that brings the gradient to its tolerance moves none by more than 1e-3.
SETTLED = 0.1


class Reason(Enum):
    """Why a fit ended; the text is the user's message."""

    CONVERGED = "the gradient vanished: this is the optimum"
    STEP_LIMIT = "the step limit was reached before the gradient vanished"
    SEPARABLE = (
        "the loss has no finite minimum: the classes are perfectly separated and l2 is 0 (use l2 > 0), "
        "or there is only one class"
    )
    SINGULAR = "the Hessian is singular: columns are constant or depend on each other and l2 is too small"
    STALLED = "no step along the Newton direction lowers the loss any further"


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """Weights and the story of how they were found.

    Attributes
    ----------
    w : (d,) or, with an intercept, (d+1,) with the intercept last.
    converged : whether ‖g‖∞ ≤ `gradient_tolerance` at w, and w was not still on its way to infinity.
    steps : Newton steps taken.
    gradient_norm : ‖g‖∞ at w.
    gradient_tolerance : 1e-9, or the rounding error of the gradient's own sum where that is larger.
    loss : L(w).
    reason : why the fit ended.
    """

    w: FloatArray
    converged: bool
    steps: int
    gradient_norm: float
    gradient_tolerance: float
    loss: float
    reason: Reason


def fit_logistic(
    X: ArrayLike,
    y: ArrayLike,
    *,
    l2: float,
    iters: int = 100,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
) -> LogisticFit:
    """Minimise the penalised logistic loss from w = 0 and tell how it went.

    Parameters
    ----------
    X : (n, d) features, finite.
    y : (n,) labels in {0, 1}.
    l2 : ridge penalty on the feature weights, ≥ 0; scikit-learn's C = 1/l2.
    iters : most Newton steps, ≥ 1.
    sample_weight : (n,) row weights ≥ 0; a weight of 2 equals the row twice.

    Raises
    ------
    ValueError
        When an argument breaks the above. A fit that does not converge is returned, not raised.

    References
    ----------
    McCullagh and Nelder, Generalized Linear Models, 2nd ed. 1989, section 2.5.

    Examples
    --------
    >>> fit = fit_logistic([[1.0], [-1.0]], [1, 0], l2=1.0, fit_intercept=False)
    >>> round(float(fit.w[0]), 4), fit.reason.name
    (0.6748, 'CONVERGED')
    """
    problem = _checked_problem(X, y, l2, fit_intercept, sample_weight)
    return _newton(problem, checks.whole_number("iters", iters, minimum=1), stop_if_separated=True)


def logistic_regression_fit(
    X: ArrayLike, y: ArrayLike, l2: float, iters: int, fit_intercept: bool = True
) -> FloatArray:
    """Return the weights after at most `iters` Newton steps from w = 0.

    Parameters
    ----------
    X : (n, d) features, finite.
    y : (n,) labels in {0, 1}.
    l2 : ridge penalty on the feature weights, finite and ≥ 0; scikit-learn's C = 1/l2.
    iters : most steps, an integer ≥ 1; fewer once max|δ| ≤ 1e-12 · max(1, max|w|).

    Returns
    -------
    w : (d+1,) with the intercept **last**, or (d,) without one.

    Raises
    ------
    ValueError
        When an argument breaks the above, or when the Hessian is singular.

    Examples
    --------
    One step from zero: g = −1, H = 2·¼ + 1, so w = 2/3.

    >>> logistic_regression_fit([[1.0], [-1.0]], [1, 0], 1.0, 1, fit_intercept=False).round(6).tolist()
    [0.666667]
    """
    problem = _checked_problem(X, y, l2, fit_intercept, None)
    fit = _newton(problem, checks.whole_number("iters", iters, minimum=1), stop_if_separated=False)
    if fit.reason is Reason.SINGULAR:
        raise ValueError(fit.reason.value)
    return fit.w


def logistic_predict_proba(X: ArrayLike, w: ArrayLike, fit_intercept: bool = True) -> FloatArray:
    """Return p = sigmoid(Xa w), the probability of class 1.

    Parameters
    ----------
    X : (n, d) features, finite.
    w : (d+1,) with the intercept last, or (d,) without one.

    Returns
    -------
    p : (n,) in [0, 1].

    Examples
    --------
    >>> logistic_predict_proba([[0.0], [1000.0]], [1.0, 0.0]).tolist()
    [0.5, 1.0]
    """
    Xa = _with_intercept(checks.finite_array("X", X, ndim=2), fit_intercept)
    w = checks.finite_array("w", w, ndim=1)
    if w.shape[0] != Xa.shape[1]:
        raise ValueError(f"w must have length {Xa.shape[1]}, got {w.shape[0]}")
    with np.errstate(over="ignore"):  # a logit beyond the range of float64 is p = 0 or 1
        return sigmoid(Xa @ w)


def _with_intercept(X: FloatArray, fit_intercept: bool) -> FloatArray:
    Xa = np.column_stack([X, np.ones(X.shape[0])]) if fit_intercept else X
    return np.ascontiguousarray(Xa)  # the order of the sums, and so the last bit, must not depend on the layout


def _checked_problem(
    X: ArrayLike, y: ArrayLike, l2: float, fit_intercept: bool, sample_weight: ArrayLike | None
) -> "_Problem":
    Xa = _with_intercept(checks.finite_array("X", X, ndim=2), fit_intercept)
    n = Xa.shape[0]
    if n == 0:
        raise ValueError("X must have at least one row")
    largest = max(Xa.max(initial=0.0), -Xa.min(initial=0.0))
    if largest > LARGEST_FEATURE:
        raise ValueError(f"X must not hold values beyond {LARGEST_FEATURE:g}, got {largest:g}")
    labels = checks.binary_labels(y, n=n).astype(np.float64)
    penalty = np.full(Xa.shape[1], checks.real_number("l2", l2, minimum=0.0))
    if fit_intercept:
        penalty[-1] = 0.0
    s = checks.sample_weights(sample_weight, n=n)
    return _Problem(Xa, labels, np.ones(n) if s is None else s, penalty)


@dataclass(frozen=True, slots=True)
class _Problem:
    """L, g and H of the module docstring for one data set."""

    Xa: FloatArray
    y: FloatArray
    s: FloatArray
    penalty: FloatArray  # (d,) or (d+1,): l2 for features, 0 for the intercept

    def loss(self, z: FloatArray, w: FloatArray) -> float:
        # softplus(−z) for y = 1 and softplus(z) for y = 0, never softplus(z) − z, which cancels.
        return float(self.s @ softplus(np.where(self.y > 0, -z, z)) + 0.5 * (self.penalty @ np.square(w)))

    def gradient(self, z: FloatArray, w: FloatArray) -> FloatArray:
        # p − y is p, or −(1 − p) = −sigmoid(−z): a difference would be 0 where p only rounds to 1.
        residual = np.where(self.y > 0, -sigmoid(-z), sigmoid(z))
        return self.Xa.T @ (self.s * residual) + self.penalty * w

    def hessian(self, z: FloatArray) -> FloatArray:
        # p(1 − p) as a product of two sigmoids: 1 − p would lose the small probabilities.
        B = np.sqrt(self.s * sigmoid(z) * sigmoid(-z))[:, None] * self.Xa
        H: FloatArray = B.T @ B  # numpy takes half the work of a general product for a matrix with its own transpose
        H[np.diag_indices_from(H)] += self.penalty
        return H

    def gradient_tolerance(self) -> float:
        # A sum of n rounded terms is uncertain by about eps·Σ|terms|: with large features or many rows
        # no method can bring the gradient below that, so convergence is not asked to.
        rounding = np.finfo(np.float64).eps * float((self.s @ np.abs(self.Xa)).max(initial=0.0))
        return max(GRADIENT_TOLERANCE, 4 * rounding)

    def separated(self, z: FloatArray) -> bool:
        """Whether these logits put every row on its own side, so that without a penalty no minimum exists."""
        return not self.penalty.any() and bool((np.where(self.y > 0, z, -z)[self.s > 0] > 0).all())


def _newton(problem: _Problem, iters: int, *, stop_if_separated: bool) -> LogisticFit:
    """Take Newton steps from w = 0; each is halved only while it would raise the loss."""
    w, z = np.zeros(problem.Xa.shape[1]), np.zeros(problem.Xa.shape[0])
    loss = problem.loss(z, w)
    steps, reason, moved = 0, Reason.STEP_LIMIT, 0.0
    while steps < iters:
        delta = _solve(problem.hessian(z), problem.gradient(z, w))
        if delta is None:
            reason = Reason.SINGULAR
            break
        damped = _damp(problem, w, delta, loss)
        if damped is None:
            reason = Reason.STALLED
            break
        steps += 1
        delta, z_next, loss = damped
        moved, z = float(np.abs(z_next - z).max()), z_next
        w = w - delta
        if stop_if_separated and problem.separated(z):
            reason = Reason.SEPARABLE
            break
        if np.abs(delta).max(initial=0.0) <= STEP_TOLERANCE * max(1.0, np.abs(w).max(initial=0.0)):
            reason = Reason.CONVERGED
            break
    gradient_norm = float(np.abs(problem.gradient(z, w)).max(initial=0.0))
    tolerance = problem.gradient_tolerance()
    if gradient_norm <= tolerance and moved > SETTLED and reason is not Reason.SINGULAR:
        reason = Reason.SEPARABLE
    return _story(w, loss, steps, gradient_norm, tolerance, reason)


def _story(
    w: FloatArray, loss: float, steps: int, gradient_norm: float, tolerance: float, reason: Reason
) -> LogisticFit:
    """Judge the end by the gradient, whatever ended the loop."""
    converged = gradient_norm <= tolerance and reason not in {Reason.SEPARABLE, Reason.SINGULAR}
    if converged:
        reason = Reason.CONVERGED
    elif reason is Reason.CONVERGED:
        reason = Reason.STALLED
    return LogisticFit(w, converged, steps, gradient_norm, tolerance, loss, reason)


def _solve(H: FloatArray, g: FloatArray) -> FloatArray | None:
    """Solve H δ = g, or return None where H is singular to working precision."""
    scale = np.sqrt(np.diag(H))
    if not (scale > 0).all():
        return None
    # On unit diagonal the square of a Cholesky pivot is the part of a column that the columns before
    # it do not explain. At the level of rounding there is no such part: the column is redundant.
    C = H / scale[:, None] / scale
    try:
        pivots = np.square(np.diag(np.linalg.cholesky(C)))
    except np.linalg.LinAlgError:
        return None
    if pivots.min(initial=1.0) <= 8 * C.shape[0] * np.finfo(np.float64).eps:
        return None
    delta: FloatArray = np.linalg.solve(C, g / scale) / scale
    return delta


def _damp(
    problem: _Problem, w: FloatArray, delta: FloatArray, loss: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """Return the first of δ, δ/2, δ/4, … that does not raise the loss, with its logits and loss."""
    slack = 1e-13 * abs(loss)  # rounding of the loss itself must not damp the last, smallest steps
    for _ in range(MOST_HALVINGS):
        z_next = problem.Xa @ (w - delta)
        loss_next = problem.loss(z_next, w - delta)
        if loss_next <= loss + slack:
            return delta, z_next, loss_next
        delta = delta / 2
    return None
