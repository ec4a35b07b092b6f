"""The optimum of the head's loss, from sums over blocks of rows: the one entry to the solver.

1. Few rows are drawn and the loss is minimised on them, which costs next to nothing and ends near the optimum of all.
2. The Hessian of these rows there, in float32, is factored: it turns a gradient into nearly a Newton step.
3. From there L-BFGS with that preconditioner takes a dozen gradients over all rows, in float64, until ‖g‖∞ vanishes.
   Folds and penalties share the passes. Where a pass is dear, the first one forms the Hessian of all rows instead.

Whatever does not arrive that way (no penalty, columns that depend on each other beyond what the penalty cures) goes on
with Newton's method. The loss is convex, so both end at the same optimum, that of the contract's IRLS.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.newton import LogisticFit, LogisticProblem, newton
from headeval.core.vectors import unit_vectors
from headeval.solver.descent import PATIENCE, HessianAt, begun, descend, ended, hessian_of, search
from headeval.solver.exact import MOST_STEPS, newton_on
from headeval.solver.memory import ArraySource
from headeval.solver.preconditioner import Factor
from headeval.solver.problems import null_weights, problem_of, problem_of_a_sample, total_weight
from headeval.solver.sample import Sampled, sample_of
from headeval.solver.source import Summable
from headeval.solver.sums import LossAndGradient

FEW_DIMENSIONS = 24  # for which a whole Hessian costs no more than a gradient
FEW_PRODUCTS = 15_000_000  # of a Hessian and its factors, which take about as long as what a sample costs beforehand
# Passes over rows that are far away after which a Hessian of all of them, one pass more, spares others.
FAR_PATIENCE = 11
# Below this penalty a row, float32 cannot tell the smallest curvature from rounding.
LEAST_PENALTY = 1e-9


@dataclass(frozen=True, slots=True)
class Start:
    """Where to start.

    Attributes
    ----------
    w : (d+1,) weights.
    factor : about the Hessian there, in factors; None where only Newton's own will do.
    hessian : forms it elsewhere, about as well.
    patience : passes after which that is worth while.
    """

    w: FloatArray
    factor: Factor | None = None
    hessian: HessianAt | None = None
    patience: int = PATIENCE


def optima(
    source: Summable,
    *,
    l2: float,
    left_out: Sequence[int | None] = (None,),
    start: Start | None = None,
    near: Sequence[FloatArray] | None = None,
    close_enough: float = 0.0,
) -> list[LogisticFit]:
    """Minimise the loss of all rows, or of all but those of a fold, for each of `left_out`.

    Parameters
    ----------
    source : the rows.
    l2 : ridge penalty on the weights, not on the intercept, ≥ 0.
    left_out : None for all rows, or a fold's number; all share each pass.
    start : from `starting_point`; None finds one.
    near : weights (d+1,) for each of `left_out` that are nearer its optimum than `start.w`.
    close_enough : a fold's fit ends where less than about half of this loss is left to gain; 0 where the gradient
        vanishes, as it does for all rows.

    Returns
    -------
    fits : `fit.w` is (d+1,) with the intercept last, for unit vectors. One that has not converged is returned as well.
    """
    if is_small(source):
        return [_irls(source, l2, fold) for fold in left_out]
    problems = [problem_of(source.columns, l2, fold, 0.0 if fold is None else close_enough) for fold in left_out]
    start = start or starting_point(source, l2=l2)
    near = near or [start.w] * len(problems)
    if start.factor is None:
        return [newton_on(source, problem, w) for problem, w in zip(problems, near, strict=True)]
    if source.costly:
        ways = begun(source, problems, near)
    else:
        ways = [search(source.columns, problem, start.factor, w) for problem, w in zip(problems, near, strict=True)]
    descend(source, ways, start.hessian or hessian_of(source), patience=start.patience)
    return [ended(source, way) for way in ways]


def starting_point(source: Summable, *, l2: float) -> Start:
    """Return the optimum of a sample and the factors of its Hessian."""
    null = null_weights(source.columns, source.d)
    if is_small(source):
        return Start(null)
    if source.costly:
        return _from_far(source, l2)
    if source.d <= FEW_DIMENSIONS or l2 < LEAST_PENALTY * total_weight(source.columns, None):
        return Start(null)
    sampled = Sampled.of(source)
    factors = sampled.factors([l2], null)
    if not factors:
        return Start(null)
    w = sampled.minimised(factors, null)[l2]
    if sampled.plan.again:
        factors |= sampled.factors([l2], w)
    return Start(w, factors[l2], sampled.hessian, sampled.plan.patience)


def is_small(source: Summable) -> bool:
    """Whether the contract's own IRLS is the quickest way."""
    return not source.costly and (source.columns.n + source.d) * (source.d + 1) ** 2 <= FEW_PRODUCTS


def _irls(source: Summable, l2: float, left_out: int | None) -> LogisticFit:
    rows = source.rows_at(np.arange(source.columns.n))
    Xa = np.column_stack([unit_vectors(rows.embeddings), np.ones(rows.n)])
    penalty = np.append(np.full(source.d, l2), 0.0)
    y, s = rows.columns.labels.astype(np.float64), rows.columns.counted(left_out)
    return newton(LogisticProblem(Xa, y, s, penalty), MOST_STEPS, stop_if_separated=True)


def _from_far(source: Summable, l2: float) -> Start:
    """Start from as many rows as memory holds."""
    return start_from(sample_of(source, source.most_sampled), l2=l2)


def start_from(some: ArraySource, *, l2: float) -> Start:
    """Return the optimum of rows in memory that stand for more, and the factors of their Hessian."""
    near = starting_point(some, l2=l2)
    if near.factor is None:
        return _newton_on_sample(some, l2, near)
    way = search(some.columns, problem_of_a_sample(some.columns, l2, some.d), near.factor, near.w)
    descend(some, [way], near.hessian or hessian_of(some))
    return Start(way.w, near.factor, patience=FAR_PATIENCE)


def _newton_on_sample(some: Summable, l2: float, near: Start) -> Start:
    """Spare Newton's method its many passes over all rows where the sample shows that their loss has a minimum."""
    fit = newton_on(some, problem_of(some.columns, l2, None), near.w)
    _, _, wrong = some.total(LossAndGradient(fit.w[None], (None,)))
    if not fit.converged or (l2 < LEAST_PENALTY * total_weight(some.columns, None) and not wrong[0]):
        return near
    return Start(fit.w, Factor.of(hessian_of(some)(fit.w), l2=l2))
