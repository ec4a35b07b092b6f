"""Newton's method on sums over blocks, with the whole Hessian in float64 at every step.

What IRLS does, wherever the rows live: for few dimensions, for no or next to no penalty, and wherever a cheaper way
does not arrive. It tells a loss without a minimum and a singular Hessian from the rest.
"""

from typing import Protocol

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.newton import MOST_HALVINGS, SETTLED, STEP_TOLERANCE, LogisticFit, Reason, judged, newton_step
from headeval.solver.problems import Problem
from headeval.solver.source import Sum, Summable
from headeval.solver.sums import Hessian, LossAndGradient, RowsMoved

MOST_STEPS = 100
# Near the optimum errors square with every step: after one of this size w is as good as the contract's last one.
_LAST_STEP = 1e-5
_LOSS_ROUNDING = 1e-13


class Kind(Protocol):
    """The loss that is minimised: that of two classes, or of more, whose weights stand one after the other."""

    @property
    def classes(self) -> int:
        """How many weight vectors, each with its intercept last, stand in w."""

    def gradient(self, w: FloatArray, left_out: int | None) -> Sum:
        """Return the sum of loss, gradient and rows on the wrong side, each of one problem."""

    def moved(self, change: FloatArray, left_out: int | None) -> Sum:
        """Return the sum of rows that a change of w moves by more than `SETTLED`."""

    def step(self, source: Summable, problem: Problem, w: FloatArray, g: FloatArray) -> FloatArray | None:
        """Return the Newton step δ at w with the gradient g, None where the Hessian is singular."""


class Binary:
    """The loss of two classes."""

    classes = 1

    def gradient(self, w: FloatArray, left_out: int | None) -> Sum:
        """Return the sum of loss, gradient and rows on the wrong side."""
        return LossAndGradient(w[None], (left_out,))

    def moved(self, change: FloatArray, left_out: int | None) -> Sum:
        """Return the sum of rows that a change of w moves by more than `SETTLED`."""
        return RowsMoved(change, SETTLED, left_out)

    def step(self, source: Summable, problem: Problem, w: FloatArray, g: FloatArray) -> FloatArray | None:
        """Return the Newton step from the whole Hessian."""
        H = source.total(Hessian(w, problem.left_out))[0]
        penalty = _penalty(source, problem, 1)
        H[np.diag_indices_from(H)] += penalty
        return newton_step(H, g, penalty)


def newton_on(source: Summable, problem: Problem, w: FloatArray, kind: Kind | None = None) -> LogisticFit:
    """Take Newton steps from w; each is halved only while it would raise the loss.

    Parameters
    ----------
    w : (d+1,) where to start, the intercept last.
    kind : of loss; None for that of two classes.
    """
    kind = kind or Binary()
    loss, g, wrong = _measured(source, problem, kind, w)
    steps, reason, moved, last = 0, Reason.STEP_LIMIT, False, np.inf
    while steps < MOST_STEPS:
        if np.abs(g).max(initial=0.0) <= problem.tolerance and last <= _LAST_STEP and not moved:
            reason = Reason.CONVERGED
            break
        delta = kind.step(source, problem, w, g)
        if delta is None:
            reason = Reason.SINGULAR
            break
        for _ in range(MOST_HALVINGS):
            loss_next, g_next, wrong = _measured(source, problem, kind, w - delta)
            if loss_next <= loss + _LOSS_ROUNDING * abs(loss) + problem.loss_rounding:
                break
            delta = delta / 2
        else:
            reason = Reason.STALLED
            break
        steps += 1
        # Where there is no minimum the gradient vanishes, too, but steps go on moving logits.
        near = np.abs(g_next).max(initial=0.0) <= problem.tolerance
        moved = bool(near and source.total(kind.moved(delta, problem.left_out))[0][0])
        w, loss, g = w - delta, loss_next, g_next
        if not wrong and not problem.l2:
            reason = Reason.SEPARABLE
            break
        last = float(np.abs(delta).max(initial=0.0)) / max(1.0, float(np.abs(w).max(initial=0.0)))
        if last <= STEP_TOLERANCE:
            reason = Reason.CONVERGED
            break
    gradient_norm = float(np.abs(g).max(initial=0.0))
    if moved and gradient_norm <= problem.tolerance and reason is not Reason.SINGULAR:
        reason = Reason.SEPARABLE
    return judged(w, loss, steps, gradient_norm, problem.tolerance, reason)


def _measured(source: Summable, problem: Problem, kind: Kind, w: FloatArray) -> tuple[float, FloatArray, int]:
    losses, gradients, wrong = source.total(kind.gradient(w, problem.left_out))
    penalty = _penalty(source, problem, kind.classes)
    return float(losses[0] + 0.5 * penalty @ np.square(w)), gradients[0].ravel() + penalty * w, int(wrong[0])


def _penalty(source: Summable, problem: Problem, classes: int) -> FloatArray:
    return np.tile(np.append(np.full(source.d, problem.l2), 0.0), classes)
