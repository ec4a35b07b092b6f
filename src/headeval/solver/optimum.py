"""The optimum of the head's loss, from sums over blocks of rows: the one entry to the solver.

1. Few rows are drawn and the loss is minimised on them, which costs next to nothing and ends near the optimum of all.
2. The Hessian of these rows there, in float32, is factored: it turns a gradient into nearly a Newton step.
3. From there L-BFGS with that preconditioner takes a dozen gradients over all rows, in float64, until ‖g‖∞ vanishes.
   Folds and penalties share the passes.

Whatever does not arrive that way (no penalty, columns that depend on each other beyond what the penalty cures) goes on
with Newton's method. The loss is convex, so both end at the same optimum, that of the contract's IRLS.
"""

import dataclasses
from collections.abc import Sequence
from typing import Self

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.core.newton import GRADIENT_TOLERANCE, LogisticFit, Reason, judged
from headeval.solver.exact import newton_on
from headeval.solver.lbfgs import Problem, Search, run
from headeval.solver.memory import ArraySource
from headeval.solver.plan import plan
from headeval.solver.preconditioner import Factor
from headeval.solver.rows import RowColumns
from headeval.solver.sums import Hessian, LossAndGradient, Source, Together

METHOD = "preconditioned L-BFGS"
FEW_DIMENSIONS = 24  # for which a whole Hessian costs no more than a gradient
# Below this penalty a row, float32 cannot tell the smallest curvature from rounding.
LEAST_PENALTY = 1e-9
MOST_PASSES = 60
_MEAN_AGREES = 5e-12  # half of what the contract asks for
_WARM_PASSES = 40
_WARM_ENOUGH = 0.1  # of a unit of loss a dimension: the sample is off by more than that anyway


def optima(
    source: Source,
    *,
    l2: float,
    left_out: Sequence[int | None] = (None,),
    start: "Start | None" = None,
    near: "Sequence[FloatArray] | None" = None,
    close_enough: float = 0.0,
    most_passes: int = MOST_PASSES,
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
    most_passes : after which Newton's method takes over.

    Returns
    -------
    fits : `fit.w` is (d+1,) with the intercept last, for unit vectors. One that has not converged is returned as well.
    """
    problems = [problem_of(source.columns, l2, fold, 0.0 if fold is None else close_enough) for fold in left_out]
    start = start or starting_point(source, l2=l2)
    near = near or [start.w] * len(problems)
    if start.factor is None:
        return [newton_on(source, problem, w) for problem, w in zip(problems, near, strict=True)]
    if source.costly:
        searches = begun(source, problems, near)
    else:
        searches = [search(source.columns, problem, start.factor, w) for problem, w in zip(problems, near, strict=True)]
    run(source, searches, most_passes=most_passes)
    return [ended(source, way) for way in searches]


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """Where to start, (d+1,), and about the Hessian there in factors; None where only Newton's own will do."""

    w: FloatArray
    factor: Factor | None


def starting_point(source: Source, *, l2: float) -> Start:
    """Return the optimum of a sample and the factors of its Hessian."""
    null = null_weights(source.columns, source.d)
    if source.costly:
        return _from_far(source, l2)
    if source.d <= FEW_DIMENSIONS or l2 < LEAST_PENALTY * source.columns.n:
        return Start(null, None)
    sampled = Sampled.of(source)
    factor = Factor.of(penalised(sampled.hessian(null), l2))
    if factor is None:
        return Start(null, None)
    w = sampled.minimised([l2], factor=factor)[0]
    if sampled.again:
        factor = Factor.of(penalised(sampled.hessian(w), l2)) or factor
    return Start(w, factor)


def _from_far(source: Source, l2: float) -> Start:
    """Start from as many rows as memory holds."""
    some = sample_of(source, source.most_sampled)
    near = starting_point(some, l2=l2)
    if near.factor is None and l2 >= LEAST_PENALTY * source.columns.n:
        # Few dimensions: Newton's method costs next to nothing on the sample, and far too many passes over all rows.
        w = newton_on(some, problem_of(some.columns, l2, None, 0.0), near.w).w
        return Start(w, Factor.of(penalised(some.total(Hessian(w, single=True))[0], l2)))
    if near.factor is None:
        return near
    way = Search(Problem(l2, None, 0.0, _WARM_ENOUGH * source.d), near.factor.solve, near.w)
    run(some, [way], most_passes=_WARM_PASSES)
    return Start(way.w, near.factor)


@dataclasses.dataclass(frozen=True, slots=True)
class Sampled:
    """A sample of a source's rows, in memory, with weights that make it stand for all rows.

    Attributes
    ----------
    rows : the sample; the source itself where that is small.
    again : whether it pays to form the Hessian once more where the sample's fit ends.
    """

    rows: Source
    again: bool

    @classmethod
    def of(cls, source: Source) -> Self:
        """Return the sample that the plan for a source's shape wants."""
        planned = plan(source.columns.n, source.d)
        small = planned.rows >= source.columns.n
        return cls(source if small else sample_of(source, planned.rows), planned.again)

    def minimised(
        self, penalties: Sequence[float], *, factor: Factor | None = None, around: FloatArray | None = None
    ) -> list[FloatArray]:
        """Return about where the loss of the sample is least with each penalty, (d+1,) each."""
        null = null_weights(self.rows.columns, self.rows.d) if around is None else around
        H = None if factor else self.hessian(null)
        ways = {}
        for l2 in penalties:
            own = factor if H is None else Factor.of(penalised(H, l2))
            if own is not None:
                ways[l2] = Search(Problem(l2, None, 0.0, _WARM_ENOUGH * self.rows.d), own.solve, null)
        run(self.rows, list(ways.values()), most_passes=_WARM_PASSES, single=True)
        return [ways[l2].w if l2 in ways else null for l2 in penalties]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return the sample's Hessian (d+1, d+1) at w, without a penalty, from float32 products."""
        return self.rows.total(Hessian(w, single=True))[0]


def penalised(H: FloatArray, l2: float) -> FloatArray:
    """Return a Hessian (d+1, d+1) with a penalty on all but the intercept."""
    H = H.copy()
    H[np.diag_indices(len(H) - 1)] += l2
    return H


def gradient_tolerance(columns: RowColumns, left_out: int | None) -> float:
    """Return what ‖g‖∞ must fall below to count as zero: 1e-9, or the rounding of its own sum where that is larger.

    Of less than a hundred rows less is asked for: the intercept's part, divided by them, is mean(p) − mean(y), which is
    promised to vanish to 1e-11.
    """
    # The largest sum of terms is that of the intercept, since entries of unit vectors are at most 1.
    total = total_weight(columns, left_out)
    rounding = 4 * float(np.finfo(np.float64).eps) * total
    return max(rounding, min(GRADIENT_TOLERANCE, _MEAN_AGREES * total))


def total_weight(columns: RowColumns, left_out: int | None) -> float:
    """Return the sum of the weights of the rows that count."""
    return float(columns.counted(left_out).sum())


def null_weights(columns: RowColumns, d: int) -> FloatArray:
    """Return the best weights (d+1,) without any feature: the log-odds of the positives as the intercept."""
    s = columns.counted(None)
    positive, total = float(s[columns.labels > 0].sum()), float(s.sum())
    w = np.zeros(d + 1)
    if 0 < positive < total:
        w[-1] = np.log(positive) - np.log(total - positive)
    return w


def sample_of(source: Source, most: int) -> ArraySource:
    """Return about `most` of the rows in memory, with weights that make them stand for all."""
    chosen, s = sample_rows(source.columns, most)
    rows = source.rows_at(chosen)
    return ArraySource(dataclasses.replace(rows, columns=RowColumns(rows.columns.labels, s)))


def sample_rows(columns: RowColumns, most: int) -> tuple[IntArray, FloatArray]:
    """Return increasing positions of about `most` rows and what each counts for.

    Each class gives in proportion to its rows, but at least a quarter of the sample as far as it has so many: of rare
    positives hardly any would be drawn otherwise. The draw is the same every time.
    """
    n, positions, counts = columns.n, [], []
    rng = np.random.default_rng(n)
    for value in (0, 1):
        rows = np.flatnonzero((columns.labels > 0) == bool(value))
        size = min(rows.size, max(round(most * rows.size / n), most // 4))
        positions.append(np.sort(rng.choice(rows, size=size, replace=False, shuffle=False)))
        counts.append(np.full(size, rows.size / max(size, 1)))
    both = np.concatenate(positions)
    order = np.argsort(both, kind="stable")
    s = np.concatenate(counts)[order]
    chosen = both[order]
    return chosen, s if columns.weights is None else s * columns.weights[chosen]


def problem_of(columns: RowColumns, l2: float, left_out: int | None, close_enough: float) -> Problem:
    """Return the problem of all rows, or of all but those of a fold."""
    tolerance = gradient_tolerance(columns, left_out)
    # log(1 + e) is exact to eps of a nat, not of itself, in every row.
    rounding = float(np.finfo(np.float64).eps) * max(1.0, total_weight(columns, left_out))
    return Problem(l2, left_out, tolerance, close_enough, rounding)


def search(columns: RowColumns, problem: Problem, factor: Factor, w: FloatArray) -> Search:
    """Return the search from w; the Hessian of a share of the rows is about that share of the Hessian of all."""
    share = total_weight(columns, problem.left_out) / total_weight(columns, None)
    return Search(problem, lambda g: factor.solve(g) / share, w)


def begun(
    source: Source, problems: Sequence[Problem], near: Sequence[FloatArray], *, single: bool = False
) -> list[Search]:
    """Return searches after one pass that forms their first gradients and, in the middle of them, the Hessian."""
    middle = near[len(near) // 2]
    gradients = LossAndGradient(np.stack(near), tuple(problem.left_out for problem in problems), single)
    losses, g, _, H = source.total(Together((gradients, Hessian(middle, single=True))))
    factors = {l2: Factor.of(penalised(H, l2)) for l2 in {problem.l2 for problem in problems}}
    ways = []
    for problem, w, loss, gradient in zip(problems, near, losses.tolist(), g, strict=True):
        factor = factors[problem.l2]
        if factor is None:
            way = Search(problem, lambda g: g, w)
            way.reason = Reason.SINGULAR
        else:
            way = search(source.columns, problem, factor, w)
            way.take(loss, gradient)
        ways.append(way)
    return ways


def ended(source: Source, way: Search) -> LogisticFit:
    """Return the story of a search; one that has not arrived goes on with Newton's method."""
    if way.reason is not Reason.CONVERGED:
        return newton_on(source, way.problem, way.w)
    tolerance = max(way.problem.tolerance, way.gradient_norm)  # larger where it was close enough
    fit = judged(way.w, way.loss, way.steps, way.gradient_norm, tolerance, Reason.CONVERGED)
    return dataclasses.replace(fit, method=METHOD)
