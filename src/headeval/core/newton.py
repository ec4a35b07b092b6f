"""Newton's method for the penalised logistic loss, from w = 0, with the story of how it ended.

With z = Xa w and p = sigmoid(z), where Xa is X with a last column of ones when there is an intercept:

    L(w) = Σ s (softplus(z) − y z) + (l2/2) ‖w_feat‖²
    g(w) = Xaᵀ s (p − y) + l2 w_feat
    H(w) = Xaᵀ diag(s p (1 − p)) Xa + l2 I_feat

The intercept is the last entry of w and is never penalised; s are row weights, all one unless given.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.stable import sigmoid, softplus

STEP_TOLERANCE = 1e-12  # of the contract: stop once max|δ| ≤ 1e-12 · max(1, max|w|)
GRADIENT_TOLERANCE = 1e-9
MOST_HALVINGS = 60
IRLS = "Newton (IRLS)"
# Where the loss has no minimum the gradient vanishes too, but every Newton step still moves some logit by
# about 1; near a minimum the step that brings the gradient to its tolerance moves none by more than 1e-3.
SETTLED = 0.1


class Reason(Enum):
    """Why a fit ended; the text is the user's message."""

    CONVERGED = "the gradient vanished: this is the optimum"
    STEP_LIMIT = "the step limit was reached before the gradient vanished"
    SEPARABLE = (
        "the loss has no finite minimum: the classes are perfectly separated and l2 is 0 or next to nothing "
        "(use a larger l2), or there is only one class"
    )
    SINGULAR = (
        "the Hessian is singular: l2 is too small where columns are constant or depend on each other, "
        "or where the classes are perfectly separated"
    )
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
    method : how it was found; steps are those of this method.
    """

    w: FloatArray
    converged: bool
    steps: int
    gradient_norm: float
    gradient_tolerance: float
    loss: float
    reason: Reason
    method: str = IRLS


@dataclass(frozen=True, slots=True)
class LogisticProblem:
    """L, g and H of the module docstring for one data set.

    Attributes
    ----------
    Xa : (n, k) features, with a last column of ones when there is an intercept.
    y : (n,) labels in {0, 1}.
    s : (n,) row weights ≥ 0.
    penalty : (k,) l2 for features and 0 for the intercept.
    """

    Xa: FloatArray
    y: FloatArray
    s: FloatArray
    penalty: FloatArray  # (d,) or (d+1,): l2 for features, 0 for the intercept

    def loss(self, z: FloatArray, w: FloatArray) -> float:
        """Return L(w), given w (k,) and z = Xa w (n,)."""
        # softplus(−z) for y = 1 and softplus(z) for y = 0, never softplus(z) − z, which cancels.
        return float(self.s @ softplus(np.where(self.y > 0, -z, z)) + 0.5 * (self.penalty @ np.square(w)))

    def gradient(self, z: FloatArray, w: FloatArray) -> FloatArray:
        """Return g(w), shape (k,), given w (k,) and z = Xa w (n,)."""
        # p − y is p, or −(1 − p) = −sigmoid(−z): a difference would be 0 where p only rounds to 1.
        residual = np.where(self.y > 0, -sigmoid(-z), sigmoid(z))
        return self.Xa.T @ (self.s * residual) + self.penalty * w

    def hessian(self, z: FloatArray) -> FloatArray:
        """Return H(w), shape (k, k), given z = Xa w (n,)."""
        # p(1 − p) as a product of two sigmoids: 1 − p would lose the small probabilities.
        B = np.sqrt(self.s * sigmoid(z) * sigmoid(-z))[:, None] * self.Xa
        H: FloatArray = B.T @ B  # numpy takes half the work of a general product for a matrix with its own transpose
        H[np.diag_indices_from(H)] += self.penalty
        return H

    def gradient_tolerance(self) -> float:
        """Return what ‖g‖∞ must fall below to count as zero."""
        # A sum of n rounded terms is uncertain by about eps·Σ|terms|: with large features or many rows
        # no method can bring the gradient below that, so convergence is not asked to.
        rounding = np.finfo(np.float64).eps * float((self.s @ np.abs(self.Xa)).max(initial=0.0))
        return max(GRADIENT_TOLERANCE, 4 * rounding)

    def separated(self, z: FloatArray) -> bool:
        """Whether these logits (n,) put every row on its own side, so that without a penalty no minimum exists."""
        return not self.penalty.any() and bool((np.where(self.y > 0, z, -z)[self.s > 0] > 0).all())


def newton(problem: LogisticProblem, iters: int, *, stop_if_separated: bool) -> LogisticFit:
    """Take Newton steps from w = 0; each is halved only while it would raise the loss.

    Parameters
    ----------
    iters : most steps, ≥ 1.
    stop_if_separated : whether to stop, as `Reason.SEPARABLE`, once all rows stand on their own side and l2 is 0.
    """
    w, z = np.zeros(problem.Xa.shape[1]), np.zeros(problem.Xa.shape[0])
    loss = problem.loss(z, w)
    steps, reason, moved = 0, Reason.STEP_LIMIT, 0.0
    while steps < iters:
        delta = newton_step(problem.hessian(z), problem.gradient(z, w), problem.penalty)
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
    return judged(w, loss, steps, gradient_norm, tolerance, reason)


def judged(
    w: FloatArray,
    loss: float,
    steps: int,
    gradient_norm: float,
    tolerance: float,
    reason: Reason,
    method: str = IRLS,
) -> LogisticFit:
    """Return the fit, judged by its gradient, whatever ended it."""
    converged = gradient_norm <= tolerance and reason not in {Reason.SEPARABLE, Reason.SINGULAR}
    if converged:
        reason = Reason.CONVERGED
    elif reason is Reason.CONVERGED:
        reason = Reason.STALLED
    return LogisticFit(w, converged, steps, gradient_norm, tolerance, loss, reason, method)


def newton_step(H: FloatArray, g: FloatArray, penalty: FloatArray) -> FloatArray | None:
    """Solve H δ = g, or return None where H is singular to working precision.

    Parameters
    ----------
    H : (k, k) Hessian, the penalty included.
    g : (k,) gradient.
    penalty : (k,) l2 for features and 0 for the intercept.
    """
    scale = np.sqrt(np.diag(H))
    if not (scale > 0).all():
        return None
    C = H / scale[:, None] / scale
    if not _kept_regular(H, penalty) and _has_redundant_column(C):
        return None
    delta: FloatArray = np.linalg.solve(C, g / scale) / scale
    return delta


def _redundant(n_columns: int) -> float:
    return 8 * n_columns * float(np.finfo(np.float64).eps)


def _kept_regular(H: FloatArray, penalty: FloatArray) -> bool:
    """Whether the penalty alone keeps every column apart, so that the look at the pivots can be spared."""
    # Whatever the other columns, at least l2 of a feature's diagonal and the share l2/(l2 + λ_max) of the
    # intercept's stay unexplained by them, and λ_max is at most the trace.
    # (the trace is at most the number of columns times the largest entry, which cannot overflow)
    l2, largest = float(penalty.max(initial=0.0)), float(np.diag(H).max(initial=0.0))
    return l2 > 0 and l2 / largest > _redundant(H.shape[0]) * H.shape[0]


def _has_redundant_column(C: FloatArray) -> bool:
    # On unit diagonal the square of a Cholesky pivot is the part of a column that the columns before
    # it do not explain. At the level of rounding there is no such part: the column is redundant.
    try:
        pivots = np.square(np.diag(np.linalg.cholesky(C)))
    except np.linalg.LinAlgError:
        return True
    return bool(pivots.min(initial=1.0) <= _redundant(C.shape[0]))


def _damp(
    problem: LogisticProblem, w: FloatArray, delta: FloatArray, loss: float
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
