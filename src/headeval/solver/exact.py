"""Newton's method on sums over blocks, with the whole Hessian in float64 at every step.

What IRLS does, wherever the rows live: for few dimensions, for no or next to no penalty, and wherever a cheaper way
does not arrive. It tells a loss without a minimum and a singular Hessian from the rest.
"""

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.newton import MOST_HALVINGS, SETTLED, STEP_TOLERANCE, LogisticFit, Reason, judged, newton_step
from headeval.solver.problems import Problem
from headeval.solver.source import Source
from headeval.solver.sums import Hessian, LossAndGradient, RowsMoved

MOST_STEPS = 100
# Near the optimum errors square with every step: after one of this size w is as good as the contract's last one.
_LAST_STEP = 1e-5
_LOSS_ROUNDING = 1e-13


def newton_on(source: Source, problem: Problem, w: FloatArray) -> LogisticFit:
    """Take Newton steps from w; each is halved only while it would raise the loss.

    Parameters
    ----------
    w : (d+1,) where to start, the intercept last.
    """
    penalty = np.append(np.full(source.d, problem.l2), 0.0)
    loss, g, wrong = _measured(source, problem, penalty, w)
    steps, reason, moved, last = 0, Reason.STEP_LIMIT, False, np.inf
    while steps < MOST_STEPS:
        if np.abs(g).max(initial=0.0) <= problem.tolerance and last <= _LAST_STEP and not moved:
            reason = Reason.CONVERGED
            break
        H = source.total(Hessian(w, problem.left_out))[0]
        H[np.diag_indices_from(H)] += penalty
        delta = newton_step(H, g, penalty)
        if delta is None:
            reason = Reason.SINGULAR
            break
        for _ in range(MOST_HALVINGS):
            loss_next, g_next, wrong = _measured(source, problem, penalty, w - delta)
            if loss_next <= loss + _LOSS_ROUNDING * abs(loss) + problem.loss_rounding:
                break
            delta = delta / 2
        else:
            reason = Reason.STALLED
            break
        steps += 1
        # Where there is no minimum the gradient vanishes, too, but steps go on moving logits.
        near = np.abs(g_next).max(initial=0.0) <= problem.tolerance
        moved = bool(near and source.total(RowsMoved(delta, SETTLED, problem.left_out))[0][0])
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


def _measured(source: Source, problem: Problem, penalty: FloatArray, w: FloatArray) -> tuple[float, FloatArray, int]:
    losses, gradients, wrong = source.total(LossAndGradient(w[None], (problem.left_out,)))
    return float(losses[0] + 0.5 * penalty @ np.square(w)), gradients[0] + penalty * w, int(wrong[0])
