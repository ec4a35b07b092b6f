"""Newton's method for the loss of C classes on sums over blocks, where the quicker way does not arrive."""

from dataclasses import dataclass, replace

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.multinomial import BLOCK_NEWTON
from headeval.core.newton import SETTLED, LogisticFit, newton_step
from headeval.solver.exact import newton_on
from headeval.solver.problems import Problem
from headeval.solver.softmax_hessians import HessianTimes, SoftmaxHessian, zero_sum_basis
from headeval.solver.softmax_plan import Form, form_for
from headeval.solver.softmax_preconditioner import curvature_at
from headeval.solver.softmax_sums import ClassRowsMoved, SoftmaxLossAndGradient
from headeval.solver.source import Sum, Summable

NEWTON_CG = "Newton (conjugate gradients)"
_MOST_PRODUCTS = 200  # for one step
_LOOSEST = 0.1  # of the gradient may be left over by a step far from the optimum


def class_newton_on(source: Summable, problem: Problem, W: FloatArray) -> LogisticFit:
    """Take Newton steps from W (C, d+1), whose rows sum to zero, with the whole Hessian while it may be formed.

    Returns
    -------
    fit : `fit.w` is flat, (C(d+1),).
    """
    whole = form_for(source.d, len(W)) is Form.WHOLE
    kind = WholeHessian(len(W)) if whole else HessianProducts(len(W))
    fit = newton_on(source, problem, W.ravel(), kind)
    return replace(fit, method=BLOCK_NEWTON if whole else NEWTON_CG)


@dataclass(frozen=True, slots=True)
class WholeHessian:
    """The loss of C classes, with steps from the whole Hessian in float64; a `headeval.solver.exact.Kind`."""

    classes: int

    def gradient(self, w: FloatArray, left_out: int | None) -> Sum:
        """Return the sum of loss, gradient and rows on the wrong side."""
        return SoftmaxLossAndGradient(w.reshape(1, self.classes, -1), (left_out,))

    def moved(self, change: FloatArray, left_out: int | None) -> Sum:
        """Return the sum of rows that a change of w moves by more than `SETTLED`."""
        return ClassRowsMoved(change.reshape(self.classes, -1), SETTLED, left_out)

    def step(self, source: Summable, problem: Problem, w: FloatArray, g: FloatArray) -> FloatArray | None:
        """Return the Newton step, whose rows sum to zero."""
        W, basis = w.reshape(self.classes, -1), zero_sum_basis(self.classes)
        H = source.total(SoftmaxHessian(W, problem.left_out))[0]
        penalised = np.arange(len(H)).reshape(self.classes - 1, -1)[:, :-1]
        H[penalised, penalised] += problem.l2
        # No penalty is named: with several intercepts it alone does not keep all columns apart.
        inner = newton_step(H, (basis.T @ g.reshape(W.shape)).ravel(), np.zeros(len(H)))
        return None if inner is None else (basis @ inner.reshape(self.classes - 1, -1)).ravel()


class HessianProducts(WholeHessian):
    """The same with steps from products with the Hessian, which is never formed: conjugate gradients.

    References
    ----------
    Nocedal and Wright, Numerical Optimization, 2nd ed. 2006, algorithms 5.3 and 7.1.
    """

    __slots__ = ()

    def step(self, source: Summable, problem: Problem, w: FloatArray, g: FloatArray) -> FloatArray | None:
        """Return about the Newton step, the nearer to it the smaller the gradient is."""
        W = w.reshape(self.classes, -1)
        solve = curvature_at(source, W).solver(problem.l2)
        if solve is None:
            return None
        left, delta = g.copy(), np.zeros_like(g)
        enough = min(_LOOSEST, np.sqrt(np.abs(g).max(initial=0.0))) * float(np.linalg.norm(g))
        solved = solve(left)
        direction, size = solved, float(left @ solved)
        for _ in range(_MOST_PRODUCTS):
            if np.linalg.norm(left) <= enough or not size > 0:
                break
            V = direction.reshape(W.shape)
            product = source.total(HessianTimes(W, V, problem.left_out))[0]
            product[:, :-1] += problem.l2 * V[:, :-1]
            along = float(direction @ product.ravel())
            if not along > 0:
                break
            share = size / along
            delta += share * direction
            left -= share * product.ravel()
            solved = solve(left)
            size, before = float(left @ solved), size
            direction = solved + size / before * direction
        return delta if delta.any() else None
