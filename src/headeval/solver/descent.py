"""Searches with a Hessian in factors, which is formed anew where they are slow."""

from collections.abc import Callable, Sequence

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.newton import LogisticFit, Reason, judged
from headeval.solver.exact import newton_on
from headeval.solver.lbfgs import Search, Solve, run
from headeval.solver.preconditioner import Factor
from headeval.solver.problems import Problem, one_class, total_weight
from headeval.solver.rows import RowColumns
from headeval.solver.source import Summable
from headeval.solver.sums import Hessian, LossAndGradient, Together

METHOD = "preconditioned L-BFGS"
# Passes after which a search that has not ended gets the Hessian of where it stands, and how often it does.
PATIENCE, ROUNDS = 14, 4
FEW_ROWS = 2**15  # whose products float32 adds up without a trace in a preconditioner
LATE = {Reason.STEP_LIMIT, Reason.STALLED}

HessianAt = Callable[[FloatArray], FloatArray]


def hessian_of(source: Summable) -> HessianAt:
    """Return what forms the Hessian of a source's rows, without a penalty, from float32 products."""
    few = source.columns.n <= FEW_ROWS
    return lambda w: source.total(Hessian(w, single=True, few=few))[0]


def solving(columns: RowColumns, problem: Problem, factor: Factor) -> Solve:
    """Return nearly the inverse Hessian: that of a share of the rows is about that share of the Hessian of all."""
    share = total_weight(columns, problem.left_out) / total_weight(columns, None) or 1.0  # 0 where no row counts
    return lambda g: factor.solve(g) / share


def search(columns: RowColumns, problem: Problem, factor: Factor, w: FloatArray) -> Search:
    """Return the search from w."""
    way = Search(problem, solving(columns, problem, factor), w)
    if one_class(columns, problem.left_out):
        way.reason = Reason.SEPARABLE
    return way


def begun(
    source: Summable, problems: Sequence[Problem], near: Sequence[FloatArray], *, single: bool = False
) -> list[Search]:
    """Return searches after one pass that forms their first gradients and, in the middle of them, the Hessian."""
    gradients = LossAndGradient(np.stack(near), tuple(problem.left_out for problem in problems), single)
    middle = Hessian(near[len(near) // 2], single=True)
    losses, g, _, H = source.total(Together((gradients, middle)))
    factors = {l2: Factor.of(H, l2=l2) for l2 in {problem.l2 for problem in problems}}
    ways = []
    for problem, w, loss, gradient in zip(problems, near, losses.tolist(), g, strict=True):
        factor = factors[problem.l2]
        if factor is None:
            way = Search(problem, np.copy, w)
            way.reason = Reason.SINGULAR
        else:
            way = search(source.columns, problem, factor, w)
            if way.reason is None:
                way.take(loss, gradient)
        ways.append(way)
    return ways


def descend(
    source: Summable,
    ways: Sequence[Search],
    hessian: HessianAt,
    *,
    patience: int = PATIENCE,
    rounds: int = ROUNDS,
    single: bool = False,
) -> None:
    """Let searches go on until they have ended, or were given a new Hessian often enough.

    Parameters
    ----------
    hessian : forms it, without a penalty, at weights (d+1,).
    patience, rounds : passes between two of them, and how many.
    single : as for `run`.
    """
    run(source, ways, most_passes=patience, single=single)
    for _ in range(rounds):
        late = [way for way in ways if way.reason in LATE]
        if not late:
            return
        for l2 in sorted({way.problem.l2 for way in late}):
            alike = [way for way in late if way.problem.l2 == l2]
            factor = Factor.of(hessian(alike[len(alike) // 2].w), l2=l2)
            if factor is not None:
                for way in alike:
                    way.resume(solving(source.columns, way.problem, factor))
        run(source, ways, most_passes=patience, single=single)


def ended(source: Summable, way: Search) -> LogisticFit:
    """Return the story of a search; one that has not arrived goes on with Newton's method."""
    if way.reason is not Reason.CONVERGED:
        return newton_on(source, way.problem, way.w)
    tolerance = max(way.problem.tolerance, way.gradient_norm)  # larger where it was close enough
    return judged(way.w, way.loss, way.steps, way.gradient_norm, tolerance, Reason.CONVERGED, METHOD)
