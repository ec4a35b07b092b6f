"""The optimum of the loss of C classes, from sums over blocks of rows.

1. Few rows are drawn, and the loss is minimised on them: it ends near the optimum of all.
2. What stands for their Hessian there turns a gradient into nearly a Newton step.
3. From there L-BFGS with that preconditioner takes gradients over all rows, in float64, until ‖g‖∞ vanishes. Folds and
   penalties share the passes.

Whatever does not arrive that way goes on with Newton's method. Weights are (C, d+1), one row a class, intercepts last;
all rows are penalised alike, and they sum to zero (`headeval.core.multinomial` says why). Every start and every step
has that sum, so no search leaves it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.multinomial import MultinomialProblem, class_newton
from headeval.core.newton import LogisticFit, Reason, judged
from headeval.core.vectors import unit_vectors
from headeval.solver.descent import LATE, METHOD
from headeval.solver.exact import MOST_STEPS
from headeval.solver.lbfgs import Search, Solve, run
from headeval.solver.optimum import FAR_PATIENCE, FEW_PRODUCTS, LEAST_PENALTY
from headeval.solver.problems import Problem, problem_of, problem_of_a_sample, total_weight
from headeval.solver.rows import RowColumns
from headeval.solver.softmax_exact import class_newton_on
from headeval.solver.softmax_hessians import SoftmaxHessian
from headeval.solver.softmax_plan import Form, class_plan, form_on_a_disk
from headeval.solver.softmax_preconditioner import Curvature, Whole, curvature_at, solvers
from headeval.solver.softmax_sample import class_totals, null_class_weights, sample_of_classes
from headeval.solver.softmax_sums import SoftmaxLossAndGradient
from headeval.solver.source import Sum, Summable
from headeval.solver.sums import Together

# Passes after which a search gets another preconditioner, and how often. A product takes a hundred anyway.
PATIENCE, PATIENCE_WITH_PRODUCTS, ROUNDS = 25, 100, 3
_WARM_PATIENCE = 15

CurvatureAt = Callable[[FloatArray], Curvature]


@dataclass(frozen=True, slots=True)
class ClassStart:
    """Where to start.

    Attributes
    ----------
    W : (C, d+1) weights, whose rows sum to zero.
    curvature : about the Hessian there; None where only Newton's own will do.
    patience : passes after which it is worth while to form it anew, from all rows.
    """

    W: FloatArray
    curvature: Curvature | None = None
    patience: int = PATIENCE


def class_optima(
    source: Summable, problems: Sequence[Problem], start: ClassStart, near: Sequence[FloatArray] | None = None
) -> list[LogisticFit]:
    """Minimise the loss of each problem; all share each pass.

    Parameters
    ----------
    source : the rows; labels are codes of classes.
    problems : penalties, folds that are left out, tolerances.
    start : from `class_start`.
    near : weights (C, d+1) for each problem that are nearer its optimum than `start.W`.

    Returns
    -------
    fits : `fit.w` is (C, d+1), for unit vectors. One that has not converged is returned as well.
    """
    n_classes = len(start.W)
    if is_small(source, n_classes):
        return [_reference(source, problem, n_classes) for problem in problems]
    near = near or [start.W] * len(problems)
    if start.curvature is None:
        fits = [_newton(source, problem, W) for problem, W in zip(problems, near, strict=True)]
    else:
        ways = _begun(source, problems, near, start) if source.costly else _ways(source, problems, near, start)
        descend(source, ways, _forming(source, form_of(source, n_classes)), start.patience)
        fits = [_ended(source, way) for way in ways]
    return [replace(fit, w=fit.w.reshape(n_classes, -1)) for fit in fits]


def class_start(source: Summable, l2: float, n_classes: int) -> ClassStart:
    """Return the optimum of a sample and what stands for its Hessian."""
    if is_small(source, n_classes):
        return ClassStart(null_class_weights(source.columns, source.d, n_classes))
    return _from_far(source, l2, n_classes) if source.costly else _from_sample(source, l2, n_classes)


def _from_sample(source: Summable, l2: float, n_classes: int) -> ClassStart:
    null = null_class_weights(source.columns, source.d, n_classes)
    if l2 < LEAST_PENALTY * total_weight(source.columns, None):
        return ClassStart(null)
    plan = class_plan(source.columns.n, source.d, n_classes)
    some = source if plan.rows >= source.columns.n else sample_of_classes(source, plan.rows, n_classes)
    # At weights without features the Hessian is a product.
    found = solvers(curvature_at(some, null, Form.PRODUCT), [l2])
    if not found:
        return ClassStart(null)
    way = Search(problem_of_a_sample(some.columns, l2, source.d), found[l2], null.ravel(), n_classes)
    run(some, [way], most_passes=_WARM_PATIENCE, single=True, sum_of=sums_of(n_classes))
    W, form = way.w.reshape(null.shape), form_of(source, n_classes)
    return ClassStart(W, curvature_at(some, W, form), patience=_patience(form))


def _from_far(source: Summable, l2: float, n_classes: int) -> ClassStart:
    """Start from as many rows as memory holds."""
    some = sample_of_classes(source, source.most_sampled, n_classes)
    near, form = _from_sample(some, l2, n_classes), form_of(source, n_classes)
    if near.curvature is None:
        # Newton's method is spared its many passes over all rows where the sample shows that their loss has a minimum.
        fit = class_newton_on(some, problem_of(some.columns, l2, None), near.W)
        W = fit.w.reshape(near.W.shape)
        return ClassStart(W, curvature_at(some, W, form)) if fit.converged else near
    problem = problem_of_a_sample(some.columns, l2, source.d)
    ways = _ways(some, [problem], [near.W], near)
    descend(some, ways, _forming(some, form_of(some, n_classes)), near.patience)
    W = ways[0].w.reshape(near.W.shape)
    # The whole Hessian is formed from all rows in their first pass; anything else is left as the sample has it.
    curvature = near.curvature if form is Form.WHOLE else curvature_at(some, W, form)
    return ClassStart(W, curvature, patience=FAR_PATIENCE if form is Form.WHOLE else near.patience)


def sums_of(n_classes: int) -> Callable[[FloatArray, Sequence[Problem], bool], Sum]:
    """Return what makes the sum of losses and gradients at flat weights (k, C(d+1))."""

    def made(w: FloatArray, problems: Sequence[Problem], single: bool) -> Sum:
        left_out = tuple(problem.left_out for problem in problems)
        return SoftmaxLossAndGradient(w.reshape(len(w), n_classes, -1), left_out, single)

    return made


def descend(source: Summable, ways: Sequence[Search], again: CurvatureAt, patience: int) -> None:
    """Let searches go on until they have ended, or were given a new preconditioner often enough."""
    if not ways:
        return
    sums = sums_of(ways[0].classes)
    run(source, ways, most_passes=patience, sum_of=sums)
    for _ in range(ROUNDS):
        late = [way for way in ways if way.reason in LATE]
        if not late:
            return
        curvature = again(late[len(late) // 2].w.reshape(late[0].classes, -1))
        found = solvers(curvature, [way.problem.l2 for way in late])
        for way in late:
            if way.problem.l2 in found:
                way.resume(_share(source.columns, way.problem, found[way.problem.l2]))
        run(source, ways, most_passes=patience, sum_of=sums)


def form_of(source: Summable, n_classes: int) -> Form:
    """Return what stands for the Hessian of a source's rows."""
    if source.costly:
        return form_on_a_disk(source.d, n_classes)
    return class_plan(source.columns.n, source.d, n_classes).form


def _forming(source: Summable, form: Form) -> CurvatureAt:
    return lambda W: curvature_at(source, W, form)


def _patience(form: Form) -> int:
    return PATIENCE_WITH_PRODUCTS if form is Form.PRODUCT else PATIENCE


def is_small(source: Summable, n_classes: int) -> bool:
    """Whether the reference Newton method is the quickest way."""
    return not source.costly and (source.columns.n + source.d) * (n_classes * (source.d + 1)) ** 2 <= FEW_PRODUCTS


def _ways(source: Summable, problems: Sequence[Problem], near: Sequence[FloatArray], start: ClassStart) -> list[Search]:
    """Return searches that begin at `near`; those without a preconditioner have ended."""
    found = solvers(start.curvature, [problem.l2 for problem in problems]) if start.curvature else {}
    ways = []
    for problem, W in zip(problems, near, strict=True):
        solve = found.get(problem.l2)
        way = Search(problem, np.copy if solve is None else _share(source.columns, problem, solve), W.ravel(), len(W))
        if solve is None:
            way.reason = Reason.SINGULAR
        if not class_totals(source.columns, problem.left_out, len(W)).all():
            way.reason = Reason.SEPARABLE
        ways.append(way)
    return ways


def _begun(
    source: Summable, problems: Sequence[Problem], near: Sequence[FloatArray], start: ClassStart
) -> list[Search]:
    """Return searches after one pass that forms their first gradients and, where it may be formed, the Hessian."""
    C = len(start.W)
    if form_of(source, C) is not Form.WHOLE:
        return _ways(source, problems, near, start)
    gradients = SoftmaxLossAndGradient(np.stack(near), tuple(problem.left_out for problem in problems))
    middle = SoftmaxHessian(near[len(near) // 2], single=True)
    losses, g, _, H = source.total(Together((gradients, middle)))
    ways = _ways(source, problems, near, ClassStart(start.W, Whole(H, C)))
    for way, loss, gradient in zip(ways, losses.tolist(), g, strict=True):
        if way.reason is None:
            way.take(loss, gradient)
    return ways


def _share(columns: RowColumns, problem: Problem, solve: Solve) -> Solve:
    """Return nearly the inverse Hessian: that of a share of the rows is about that share of the Hessian of all."""
    share = total_weight(columns, problem.left_out) / total_weight(columns, None) or 1.0
    return lambda g: solve(g) / share


def _ended(source: Summable, way: Search) -> LogisticFit:
    if way.reason is not Reason.CONVERGED:
        return _newton(source, way.problem, way.w.reshape(way.classes, -1))
    tolerance = max(way.problem.tolerance, way.gradient_norm)  # larger where it was close enough
    return judged(way.w, way.loss, way.steps, way.gradient_norm, tolerance, Reason.CONVERGED, METHOD)


def _newton(source: Summable, problem: Problem, W: FloatArray) -> LogisticFit:
    if not class_totals(source.columns, problem.left_out, len(W)).all():
        # The intercept of a class without rows would go on for ever.
        return judged(W.ravel(), np.inf, 0, np.inf, problem.tolerance, Reason.SEPARABLE)
    return class_newton_on(source, problem, W)


def _reference(source: Summable, problem: Problem, n_classes: int) -> LogisticFit:
    rows = source.rows_at(np.arange(source.columns.n))
    Xa = np.column_stack([unit_vectors(rows.embeddings), np.ones(rows.n)])
    y, s = rows.columns.labels.astype(np.int64), rows.columns.counted(problem.left_out)
    return class_newton(MultinomialProblem(Xa, y, s, problem.l2, n_classes), MOST_STEPS)
