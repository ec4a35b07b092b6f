"""The regularisation path: penalties tried on the same folds in the same passes, and one of them chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from typing import Any, Literal

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.newton import Reason
from headeval.solver.descent import begun, descend, hessian_of, search
from headeval.solver.exact import newton_on
from headeval.solver.lbfgs import Search
from headeval.solver.optimum import Start
from headeval.solver.problems import Problem, null_weights, problem_of, total_weight
from headeval.solver.rows import Rows, scratch, tile_rows
from headeval.solver.sample import Sampled, sample_of
from headeval.solver.source import Summable
from headeval.solver.sums import GROUP_TILES, tile_logits

AUTO = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
Rule = Literal["best", "one-se"]
# Nats a row of the training loss that may be left to gain. The held-out loss moves by up to a hundred times as much:
# listed penalties are told apart to five digits, and of a grid the curve is enough.
CLOSE_ENOUGH, CLOSE_ON_A_GRID = 1e-9, 3e-6
_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class PathPoint:
    """Attributes: the penalty; the out-of-fold log loss, a mean over rows, in nats; its standard error over folds."""

    l2: float
    log_loss: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class Path:
    """What was tried.

    Attributes
    ----------
    points : from the smallest penalty to the largest.
    rule : "best" took the least log loss, "one-se" the largest penalty whose loss is within one standard error of it.
    chosen : the penalty taken.
    left_out : those of a grid that would have taken too many passes.
    rough : whether the losses are of fits that end early, as those of a grid are.
    """

    points: tuple[PathPoint, ...]
    rule: Rule
    chosen: float
    left_out: tuple[float, ...] = ()
    rough: bool = False

    @property
    def at_edge(self) -> bool:
        """Whether the least loss lies at an end of several penalties, so that one beyond it may be better."""
        best = min(self.points, key=lambda point: point.log_loss)
        return len(self.points) > 1 and best in {self.points[0], self.points[-1]}

    def document(self) -> dict[str, Any]:
        """Return the path as JSON-able values, for the head's own record."""
        return {"rule": self.rule, "points": [asdict(point) for point in self.points]}


@dataclass(frozen=True, slots=True)
class HeldOutLoss:
    """Sum: (k,) losses of the rows that each weight vector's fold holds out, and (k,) their weights.

    Attributes
    ----------
    W : (k, d+1) weight vectors, the intercepts last.
    folds : (k,) the fold of each.
    """

    W: FloatArray
    folds: tuple[int, ...]
    name = "held-out losses"
    large = False
    adds_in = np.float64

    def rows_at_once(self, d: int) -> int:
        """Return a few tiles: sums of this kind are small."""
        return GROUP_TILES * tile_rows(d)

    def of(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Return the sums over these rows."""
        losses, counted = np.zeros(len(self.W)), np.zeros(len(self.W))
        for tile in rows.tiles():
            z = tile_logits(scratch(tile.embeddings), tile.inverse_norms, self.W)
            z *= np.where(tile.columns.labels > 0, -1.0, 1.0)
            s = tile.columns.held_out(self.folds)
            with np.errstate(under="ignore"):
                losses += (s * np.logaddexp(0.0, z)).sum(axis=1)
            counted += s.sum(axis=1)
        return losses, counted


@dataclass(frozen=True, slots=True)
class Tried:
    """A path, and where the fits with the chosen penalty have come: of all rows, and of all but each fold's."""

    path: Path
    start: Start
    fold_weights: list[FloatArray]


def regularisation_path(
    source: Summable, penalties: Sequence[float], *, n_folds: int, rule: Rule, all_of_them: bool = True
) -> Tried:
    """Try penalties by the loss of rows that each fit has not seen.

    Parameters
    ----------
    source : rows that belong to folds.
    penalties : each > 0, no two equal.
    n_folds : ≥ 2.
    all_of_them : whether one that takes many passes is fitted all the same, or left out.

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2nd ed. 2009, section 7.10.
    """
    grid = sorted(penalties)
    fits = _of_a_sample(source, grid, all_of_them) if source.costly else _all_rows(source, grid, all_of_them)
    fold_fits = _folds(source, fits, n_folds, all_of_them)
    grid = [l2 for l2 in fits if l2 in fold_fits]
    if not grid:  # none arrived in few passes
        return regularisation_path(source, penalties, n_folds=n_folds, rule=rule)
    W = np.stack([w for l2 in grid for w in fold_fits[l2]])
    sums = source.total(HeldOutLoss(W, tuple(range(n_folds)) * len(grid)))
    losses, counted = (part.reshape(len(grid), n_folds) for part in sums)
    left_out = tuple(sorted(set(penalties) - set(grid)))
    path = path_of(grid, losses, counted, rule, left_out=left_out, rough=not all_of_them)
    chosen = path.chosen
    # The mean of the folds' optima is that of all rows but for terms of second order.
    middle = np.mean(fold_fits[chosen], axis=0)
    return Tried(path, replace(fits[chosen], w=middle), fold_fits[chosen])


def path_of(
    grid: Sequence[float],
    losses: FloatArray,
    counted: FloatArray,
    rule: Rule,
    *,
    left_out: tuple[float, ...] = (),
    rough: bool,
) -> Path:
    """Return the path, one of it chosen.

    Parameters
    ----------
    grid : the penalties, in increasing order.
    losses, counted : (penalties, folds) sums of the losses of the rows held out, and of their weights.
    left_out, rough : as of `Path`.
    """
    inside = counted[0] > 0  # where weights are 0, a fold may hold nothing out
    shares = losses[:, inside] / counted[:, inside]
    errors = shares.std(axis=1, ddof=1 if inside.sum() > 1 else 0) / np.sqrt(inside.sum())
    points = tuple(
        PathPoint(l2, float(total / count), float(error))
        for l2, total, count, error in zip(grid, losses.sum(axis=1), counted.sum(axis=1), errors, strict=True)
    )
    return Path(points, rule, _chosen(points, rule), left_out, rough)


def _chosen(points: Sequence[PathPoint], rule: Rule) -> float:
    best = min(points, key=lambda point: point.log_loss)
    if rule == "best":
        return best.l2
    return max(point.l2 for point in points if point.log_loss <= best.log_loss + best.standard_error)


def _all_rows(source: Summable, grid: Sequence[float], all_of_them: bool) -> dict[float, Start]:
    """Return for each penalty about the optimum of all rows, with its factor."""
    sampled, null = Sampled.of(source), null_weights(source.columns, source.d)
    # Each starts where the loss of a sample ends with it; all share one Hessian, to which they are added.
    middle = grid[len(grid) // 2]
    around = sampled.minimised(sampled.factors([middle], null), null).get(middle, null)
    factors = sampled.factors(grid, around)
    near = sampled.minimised(factors, around)
    found, ways = {}, {}
    for l2 in grid:
        problem = _near(source, l2, None, all_of_them)
        if l2 in factors:
            ways[l2] = (factors[l2], search(source.columns, problem, factors[l2], near[l2]))
        else:
            found[l2] = Start(newton_on(source, problem, null).w)
    descend(
        source,
        [way for _, way in ways.values()],
        sampled.hessian,
        rounds=_ROUNDS if all_of_them else 0,
        single=not all_of_them,
    )
    for l2, (factor, way) in ways.items():
        if way.reason is Reason.CONVERGED:
            found[l2] = Start(way.w, factor, sampled.hessian, sampled.plan.patience)
        elif all_of_them:
            found[l2] = Start(newton_on(source, way.problem, way.w).w, factor, sampled.hessian)
    return dict(sorted(found.items()))


def _of_a_sample(source: Summable, grid: Sequence[float], all_of_them: bool) -> dict[float, Start]:
    """Return for each penalty the optimum of as many rows as memory holds."""
    fits = _all_rows(sample_of(source, source.most_sampled), grid, all_of_them)
    return {l2: Start(start.w, start.factor) for l2, start in fits.items()}


def _folds(
    source: Summable, fits: Mapping[float, Start], n_folds: int, all_of_them: bool
) -> dict[float, list[FloatArray]]:
    """Return for each penalty about the optimum without each fold."""
    found: dict[float, list[FloatArray]] = {}
    ways: dict[float, list[Search]] = {}
    waiting: dict[float, tuple[list[Problem], list[FloatArray]]] = {}
    for l2, start in fits.items():
        problems = [_near(source, l2, fold, all_of_them) for fold in range(n_folds)]
        if source.costly:
            waiting[l2] = (problems, [start.w] * n_folds)
        elif start.factor is None:
            found[l2] = [newton_on(source, problem, start.w).w for problem in problems]
        else:
            ways[l2] = [search(source.columns, problem, start.factor, start.w) for problem in problems]
    if waiting:
        problems, near = (list(chain.from_iterable(column)) for column in zip(*waiting.values(), strict=True))
        started = iter(begun(source, problems, near, single=not all_of_them))
        ways = {l2: list(islice(started, n_folds)) for l2 in waiting}
    hessian = next((start.hessian for start in fits.values() if start.hessian), hessian_of(source))
    # Where passes are dear, a Hessian for each penalty is too; and what has not arrived may be left out of a grid.
    rounds = 0 if source.costly or not all_of_them else _ROUNDS
    descend(source, [way for some in ways.values() for way in some], hessian, rounds=rounds, single=not all_of_them)
    for l2, some in ways.items():
        late = [way.reason is not Reason.CONVERGED for way in some]
        if all_of_them or not any(late):
            found[l2] = [
                newton_on(source, way.problem, way.w).w if is_late else way.w
                for way, is_late in zip(some, late, strict=True)
            ]
    return found


def _near(source: Summable, l2: float, left_out: int | None, all_of_them: bool) -> Problem:
    enough = CLOSE_ENOUGH if all_of_them else CLOSE_ON_A_GRID
    return problem_of(source.columns, l2, left_out, enough * total_weight(source.columns, None))
