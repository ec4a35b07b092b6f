"""Preconditioned L-BFGS for many problems that share every pass over the rows.

A step goes against d = B⁻¹ g, where B⁻¹ is the preconditioner's solve, corrected by the last differences of weights
and gradients (the two-loop recursion). It is shortened only where it would not lower the loss enough. With a
preconditioner near the Hessian a first step is nearly Newton's, and a dozen gradients reach what plain L-BFGS reaches
in a hundred.

References
----------
Nocedal and Wright, Numerical Optimization, 2nd ed. 2006, algorithms 7.4 and 3.1.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.newton import Reason
from headeval.solver.problems import Problem
from headeval.solver.source import Sum, Summable
from headeval.solver.sums import LossAndGradient

MEMORY = 16
SUFFICIENT = 1e-4  # of the slope must be gained by a step
LOSS_ROUNDING = 1e-12  # of the loss: differences below it are no evidence against a step
MOST_CUTS = 30

Solve = Callable[[FloatArray], FloatArray]
# Makes the sum of losses and gradients at weights (k, …) of k problems, from float32 products or not.
SumOf = Callable[[FloatArray, Sequence[Problem], bool], Sum]


@dataclass(slots=True)
class Search:
    """The way of one problem to its optimum: asks for loss and gradient at `trial`, and takes them.

    Attributes
    ----------
    classes : how many weight vectors, each with its intercept last, stand one after the other in w.
    w : (classes · (d+1),) the best weights so far, where `loss` and `g`, the gradient, were measured, penalty included.
    reason : why it ended, or None while it has not.
    """

    problem: Problem
    solve: Solve
    trial: FloatArray
    classes: int = 1
    w: FloatArray = field(init=False)
    loss: float = field(init=False, default=np.inf)
    g: FloatArray = field(init=False)
    steps: int = field(init=False, default=0)
    reason: Reason | None = field(init=False, default=None)
    _direction: FloatArray = field(init=False)
    _slope: float = field(init=False, default=0.0)
    _length: float = field(init=False, default=1.0)
    _cuts: int = field(init=False, default=0)
    _pairs: deque[tuple[FloatArray, FloatArray, float]] = field(
        init=False, default_factory=lambda: deque(maxlen=MEMORY)
    )

    def __post_init__(self) -> None:
        self.w, self.g = self.trial, np.zeros_like(self.trial)

    @property
    def gradient_norm(self) -> float:
        """‖g‖∞ at w."""
        return float(np.abs(self.g).max(initial=0.0))

    def take(self, loss: float, gradient: FloatArray) -> None:
        """Take what was measured at `trial`, the penalty not counted, and choose the next trial or end."""
        w = self.trial
        features = self._features(w)
        loss += 0.5 * self.problem.l2 * float(np.vdot(features, features))
        g = gradient.flatten()
        self._features(g)[...] += self.problem.l2 * features
        if np.isfinite(self.loss):
            enough = self.loss - SUFFICIENT * self._length * self._slope
            if not loss <= enough + LOSS_ROUNDING * abs(self.loss) + self.problem.loss_rounding:
                self._cut(loss)
                return
            self._remember(w - self.w, g - self.g)
            self.steps += 1
        self.w, self.loss, self.g = w, loss, g
        self._go_on()

    def resume(self, solve: Solve) -> None:
        """Go on from where it ended, with another preconditioner."""
        self.solve, self.reason = solve, None
        self._pairs.clear()
        self._go_on()

    def _features(self, w: FloatArray) -> FloatArray:
        """Return a view of what is penalised: all but the intercepts."""
        return w.reshape(self.classes, -1)[:, :-1]

    def _go_on(self) -> None:
        direction = self._corrected(self.g)
        slope = float(self.g @ direction)
        if self.gradient_norm <= self.problem.tolerance or 0 < slope <= self.problem.close_enough:
            self.reason = Reason.CONVERGED
            return
        if not slope > 0:  # the preconditioner is no longer positive to working precision
            self.reason = Reason.STALLED
            return
        self._direction, self._slope, self._length, self._cuts = direction, slope, 1.0, 0
        self.trial = self.w - direction

    def _cut(self, loss: float) -> None:
        self._cuts += 1
        if self._cuts > MOST_CUTS:
            self.reason = Reason.STALLED
            return
        # The minimum of the parabola through both losses and the slope, within bounds.
        rise = loss - self.loss + self._length * self._slope
        best = 0.5 * self._length * self._slope / rise if np.isfinite(rise) and rise > 0 else 0.5
        self._length *= float(np.clip(best, 0.1, 0.5))
        self.trial = self.w - self._length * self._direction

    def _remember(self, step: FloatArray, change: FloatArray) -> None:
        along = float(step @ change)
        if along > np.finfo(np.float64).tiny:
            self._pairs.append((step, change, 1.0 / along))

    def _corrected(self, g: FloatArray) -> FloatArray:
        q, shares = g.copy(), []
        for step, change, inverse in reversed(self._pairs):
            share = inverse * float(step @ q)
            q -= share * change
            shares.append(share)
        direction = self.solve(q)
        for (step, change, inverse), share in zip(self._pairs, reversed(shares), strict=True):
            direction += (share - inverse * float(change @ direction)) * step
        return direction


def loss_and_gradient(W: FloatArray, problems: Sequence[Problem], single: bool) -> LossAndGradient:
    """Return the sum for binary problems on the same labels."""
    return LossAndGradient(W, tuple(problem.left_out for problem in problems), single)


def run(
    source: Summable,
    searches: Sequence[Search],
    *,
    most_passes: int,
    single: bool = False,
    sum_of: SumOf = loss_and_gradient,
) -> None:
    """Let all searches go on until each has ended; those that pass the limit end as `Reason.STEP_LIMIT`.

    Parameters
    ----------
    single : whether gradients are summed from float32 products, for searches that need to come near only.
    sum_of : what is summed: losses and gradients first.
    """
    for _ in range(most_passes):
        active = [search for search in searches if search.reason is None]
        if not active:
            return
        W = np.stack([search.trial for search in active])
        losses, gradients, *_ = source.total(sum_of(W, [search.problem for search in active], single))
        for search, loss, gradient in zip(active, losses.tolist(), gradients, strict=True):
            search.take(loss, gradient)
    for search in searches:
        search.reason = search.reason or Reason.STEP_LIMIT
