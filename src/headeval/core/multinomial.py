"""Softmax regression of C classes by Newton's method with the whole Hessian.

With z = Xa Wᵀ and p = softmax(z), row by row, where Xa is X with a last column of ones, T the labels as rows of the
identity, and row weights s, all one unless given:

    L(W)    = Σ s (logsumexp(z) − z_label) + (l2/2) ‖W_feat‖²
    g(W)    = (s (p − T))ᵀ Xa + l2 W_feat
    H_cc'   = Xaᵀ diag(s p_c (δ_cc' − p_c')) Xa + δ_cc' l2 I_feat

W is (C, d+1) with the intercepts last; they are never penalised. Every class has weights of its own and all of them are
penalised alike (the symmetric parametrisation): with a class of reference, whose weights are zero, the optimum would
depend on which class that is. It is also the penalty of scikit-learn's multinomial LogisticRegression with C = 1/l2.

Adding the same numbers to the weights of every class changes no probability. The penalty decides for the weights of
features: at the optimum they sum to zero over classes, because the gradient of their sum is l2 times that sum. Nothing
decides for the intercepts, whose sum is therefore fixed at zero. (With l2 = 0 that goes for all weights.) Beginning at
zero it is enough to add to H, for each such column, what makes steps along the sum impossible.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray
from headeval.core.logistic import LARGEST_FEATURE
from headeval.core.newton import (
    GRADIENT_TOLERANCE,
    MOST_HALVINGS,
    SETTLED,
    STEP_TOLERANCE,
    LogisticFit,
    Reason,
    judged,
    newton_step,
)
from headeval.core.stable import softmax

BLOCK_NEWTON = "Newton (block Hessian)"
_LOSS_SLACK = 1e-13  # rounding of the loss itself must not damp the last, smallest steps


def multinomial_fit(
    X: ArrayLike,
    y: ArrayLike,
    l2: float,
    *,
    n_classes: int,
    iters: int = 100,
    sample_weight: ArrayLike | None = None,
) -> LogisticFit:
    """Minimise the penalised softmax loss from W = 0 and tell how it went.

    Parameters
    ----------
    X : (n, d) features, n ≥ 1, finite, none beyond ±1e140; a column of ones is appended.
    y : (n,) labels in 0..C−1.
    l2 : ridge penalty on the feature weights of all classes, finite and ≥ 0; scikit-learn's C = 1/l2.
    n_classes : C ≥ 2.
    iters : most Newton steps, an integer ≥ 1.
    sample_weight : (n,) row weights ≥ 0, finite and not all zero; a weight of 2 equals the row twice. None is 1 each.

    Returns
    -------
    fit : `fit.w` is (C, d+1) with the intercepts **last**; its rows sum to zero.

    Raises
    ------
    ValueError
        When an argument breaks the above. A fit that does not converge is returned, not raised.

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2nd ed. 2009, section 4.4 and exercise 4.4.

    Examples
    --------
    One row of each class and no feature that tells them apart: three equal probabilities.

    >>> fit = multinomial_fit([[0.0], [0.0], [0.0]], [0, 1, 2], 1.0, n_classes=3)
    >>> fit.w.tolist(), round(fit.loss / 3, 6), fit.reason.name
    ([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], 1.098612, 'CONVERGED')

    Of four rows two are of class 0: probabilities ½, ¼, ¼, whose logarithms are log 2 apart.

    >>> fit = multinomial_fit([[0.0]] * 4, [0, 0, 1, 2], 1.0, n_classes=3)
    >>> (fit.w[:, 1] / np.log(2)).round(6).tolist()
    [0.666667, -0.333333, -0.333333]
    """
    Xa = _with_ones(checks.finite_array("X", X, ndim=2))
    C, n = checks.whole_number("n_classes", n_classes, minimum=2), Xa.shape[0]
    labels = checks.class_labels(y, n=n, n_classes=C)
    s = checks.sample_weights(sample_weight, n=n, name="sample_weight")
    l2 = checks.real_number("l2", l2, minimum=0.0)
    problem = MultinomialProblem(Xa, labels, np.ones(n) if s is None else s, l2, C)
    return class_newton(problem, checks.whole_number("iters", iters, minimum=1))


@dataclass(frozen=True, slots=True)
class MultinomialProblem:
    """L, g and H of the module docstring for one data set.

    Attributes
    ----------
    Xa : (n, d+1) features, with a last column of ones.
    y : (n,) labels in 0..C−1.
    s : (n,) row weights ≥ 0.
    l2 : penalty on all but the intercepts.
    C : how many classes.
    """

    Xa: FloatArray
    y: IntArray
    s: FloatArray
    l2: float
    C: int

    def gaps(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how far each logit (n, C) lies above that of the row's label, −∞ for itself, and the highest (n,)."""
        own = np.arange(len(self.y)), self.y
        gaps = z - z[own][:, None]
        gaps[own] = -np.inf
        return gaps, gaps.max(axis=1)

    def loss(self, z: FloatArray, W: FloatArray) -> float:
        """Return L(W), given W (C, d+1) and z = Xa Wᵀ (n, C)."""
        gaps, highest = self.gaps(z)
        top = np.maximum(highest, 0.0)
        with np.errstate(under="ignore"):
            # log Σ e^gap: where the label's own, e^0, is the largest, log1p keeps small others.
            others, own = np.exp(gaps - top[:, None]).sum(axis=1), np.exp(-top)
        return float(self.s @ (np.log1p(others + (own - 1.0)) + top) + 0.5 * self.l2 * np.square(W[:, :-1]).sum())

    def gradient(self, z: FloatArray, W: FloatArray) -> FloatArray:
        """Return g(W), shape (C, d+1), given W (C, d+1) and z = Xa Wᵀ (n, C)."""
        r = softmax(z)
        own = np.arange(len(self.y)), self.y
        r[own] = 0.0
        # p − 1 of the own class is minus the sum of all others: a difference would be 0 where p only rounds to 1.
        r[own] = -r.sum(axis=1)
        g: FloatArray = (self.s[:, None] * r).T @ self.Xa
        g[:, :-1] += self.l2 * W[:, :-1]
        return g

    def hessian(self, z: FloatArray) -> FloatArray:
        """Return H(W) with what fixes the sums over classes, shape (C(d+1), C(d+1)), given z = Xa Wᵀ (n, C)."""
        p, k = softmax(z), self.Xa.shape[1]
        H = np.empty((self.C, k, self.C, k))
        for c in range(self.C):
            rest = p.copy()
            rest[:, c] = 0.0
            for other in range(c):
                H[c, :, other] = H[other, :, c] = (self.Xa.T * (-self.s * p[:, c] * p[:, other])) @ self.Xa
            # p(1 − p) as a product with the sum of the others: 1 − p would lose the small probabilities.
            B = np.sqrt(self.s * p[:, c] * rest.sum(axis=1))[:, None] * self.Xa
            H[c, :, c] = B.T @ B
        classes, features, free = np.arange(self.C), np.arange(k - 1), np.arange(k - 1 if self.l2 else 0, k)
        H[classes[:, None], features, classes[:, None], features] += self.l2
        # As much curvature along a sum as its column has on average across it.
        level = np.einsum("cjcj->j", H)[free] / self.C**2
        for c in range(self.C):
            H[c, free[None], classes[:, None], free[None]] += level
        return H.reshape(self.C * k, self.C * k)

    def gradient_tolerance(self) -> float:
        """Return what ‖g‖∞ must fall below to count as zero: 1e-9, or its own rounding where that is more."""
        rounding = np.finfo(np.float64).eps * float((self.s @ np.abs(self.Xa)).max(initial=0.0))
        return max(GRADIENT_TOLERANCE, 4 * rounding)

    def separated(self, z: FloatArray) -> bool:
        """Whether these logits (n, C) put every row on its own side, so that without a penalty no minimum exists."""
        return not self.l2 and bool((self.gaps(z)[1][self.s > 0] < 0).all())


def class_newton(problem: MultinomialProblem, iters: int) -> LogisticFit:
    """Take Newton steps from W = 0; each is halved only while it would raise the loss.

    Parameters
    ----------
    iters : most steps, ≥ 1.
    """
    W, z = np.zeros((problem.C, problem.Xa.shape[1])), np.zeros((problem.Xa.shape[0], problem.C))
    loss = problem.loss(z, W)
    steps, reason, moved = 0, Reason.STEP_LIMIT, 0.0
    if not np.bincount(problem.y, weights=problem.s, minlength=problem.C).all():
        reason = Reason.SEPARABLE  # the intercept of a class without rows would go on for ever
    while steps < iters and reason is Reason.STEP_LIMIT:
        # No penalty is named: with several intercepts it alone does not keep all columns apart.
        delta = newton_step(problem.hessian(z), problem.gradient(z, W).ravel(), np.zeros(W.size))
        if delta is None:
            reason = Reason.SINGULAR
            break
        damped = _damp(problem, W, delta.reshape(W.shape), loss)
        if damped is None:
            reason = Reason.STALLED
            break
        steps += 1
        W_next, z_next, loss = damped
        step, moved = float(np.abs(W_next - W).max()), float(np.abs(z_next - z).max())
        W, z = W_next, z_next
        if problem.separated(z):
            reason = Reason.SEPARABLE
            break
        if step <= STEP_TOLERANCE * max(1.0, np.abs(W).max(initial=0.0)):
            reason = Reason.CONVERGED
            break
    gradient_norm = float(np.abs(problem.gradient(z, W)).max(initial=0.0))
    tolerance = problem.gradient_tolerance()
    if gradient_norm <= tolerance and moved > SETTLED and reason is not Reason.SINGULAR:
        reason = Reason.SEPARABLE
    return judged(W, loss, steps, gradient_norm, tolerance, reason, BLOCK_NEWTON)


def _damp(
    problem: MultinomialProblem, W: FloatArray, delta: FloatArray, loss: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """Return where the first of δ, δ/2, δ/4, … leads that does not raise the loss, with its logits and loss."""
    for _ in range(MOST_HALVINGS):
        W_next = W - delta
        W_next -= W_next.mean(axis=0)  # what rounding leaves of a sum
        z_next = problem.Xa @ W_next.T
        loss_next = problem.loss(z_next, W_next)
        if loss_next <= loss + _LOSS_SLACK * abs(loss):
            return W_next, z_next, loss_next
        delta = delta / 2
    return None


def _with_ones(X: FloatArray) -> FloatArray:
    if X.shape[0] == 0:
        raise ValueError("X must have at least one row")
    largest = max(X.max(initial=0.0), -X.min(initial=0.0))
    if largest > LARGEST_FEATURE:
        raise ValueError(f"X must not hold values beyond {LARGEST_FEATURE:g}, got {largest:g}")
    return np.column_stack([X, np.ones(X.shape[0])])
