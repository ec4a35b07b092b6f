"""Fit a head of more than two classes on all rows and, beside it, score every row by a head that has not seen it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.core.newton import LogisticFit
from headeval.solver.optimum import LEAST_PENALTY
from headeval.solver.penalty_path import Path, Rule
from headeval.solver.problems import problem_of, total_weight, weight_of_a_row
from headeval.solver.softmax import ClassStart, class_optima, class_start
from headeval.solver.softmax_path import class_path
from headeval.solver.softmax_plan import MOST_COORDINATES, Form, form_for
from headeval.solver.source import Source, Summable
from headeval.solver.training import (
    FOLD_CLOSE_ENOUGH,
    NotConvergedError,
    converged,
    dealt_folds,
    repeated_rows,
)


@dataclass(frozen=True, slots=True)
class ClassTraining:
    """The weights from all rows and, unless there were no folds, each row's out-of-fold logits.

    Attributes
    ----------
    fit : of all rows; `fit.w` is (C, d+1) with the intercepts last, for unit vectors; its rows sum to zero.
    l2 : the penalty of all fits.
    passes : how often all rows were looked at.
    out_of_fold : (n, C) logits, or None without folds; each row's from the fit without its fold.
    repeated : rows that repeat another's embedding, and were kept in its fold.
    path : the penalties tried, where there were several.
    """

    fit: LogisticFit
    l2: float
    passes: int
    out_of_fold: FloatArray | None = None
    repeated: int = 0
    path: Path | None = None


def train_classes(
    source: Source,
    *,
    n_classes: int,
    penalties: Sequence[float],
    n_folds: int,
    identity: IntArray,
    groups: IntArray | None = None,
    rule: Rule = "best",
    auto: bool = False,
    judged: bool = True,
) -> ClassTraining:
    """Fit on unit vectors, because a head is scored on unit vectors.

    Parameters
    ----------
    source : the rows; `source.columns.labels` are codes 0..C−1, each of them there.
    n_classes : C ≥ 2.
    penalties : l2; of several the one is taken that does best out of fold, by `rule`.
    n_folds : 0 for none, else ≥ 2; the shuffle has the fixed seed of `train`.
    identity : (n,) codes, equal for rows with the same embedding: copies of a row in another fold would give it away.
    groups : (n,) codes; rows of one group share a fold.
    auto : whether the penalties are a grid, whose fits may end early.
    judged : whether out-of-fold logits are wanted; otherwise folds only choose among penalties.

    Raises
    ------
    NotConvergedError
        When the fit of all rows, or of a fold, ends away from the optimum.
    FoldError
        When the rows cannot be divided into such folds.
    """
    _feasible(source, min(penalties), n_classes)
    if not n_folds:
        start = class_start(source, penalties[0], n_classes)
        return ClassTraining(_of_all(source, penalties[0], start), penalties[0], source.passes)
    source.hold_out(dealt_folds(source.columns.labels, n_folds, identity=identity, groups=groups, n_classes=n_classes))
    path, fold_weights, l2 = None, None, penalties[0]
    start = class_start(source, sorted(penalties)[len(penalties) // 2], n_classes)
    if len(penalties) > 1:
        path, fold_weights = class_path(source, start, penalties, n_folds=n_folds, rule=rule, rough=auto)
        l2 = path.chosen
        # The mean of the folds' optima is that of all rows but for terms of second order.
        start = replace(start, W=np.mean(fold_weights, axis=0))
    if not judged:
        return ClassTraining(_of_all(source, l2, start), l2, source.passes, path=path)
    fit, fold_fits = _all_and_folds(source, l2, start, fold_weights, n_folds)
    # One weight vector a class is a target of the source, and each row has the weights of its fold.
    logits = source.logits(np.stack([fold_fit.w for fold_fit in fold_fits], axis=1))
    return ClassTraining(fit, l2, source.passes, np.ascontiguousarray(logits.T), repeated_rows(identity), path)


def _of_all(source: Summable, l2: float, start: ClassStart) -> LogisticFit:
    return converged(class_optima(source, [problem_of(source.columns, l2, None)], start)[0], "")


def _all_and_folds(
    source: Summable, l2: float, start: ClassStart, near: list[FloatArray] | None, n_folds: int
) -> tuple[LogisticFit, list[LogisticFit]]:
    enough = FOLD_CLOSE_ENOUGH * weight_of_a_row(source.columns)
    problems = [problem_of(source.columns, l2, fold, enough) for fold in range(n_folds)]
    if source.costly:
        of_all = problem_of(source.columns, l2, None)
        both = [start.W, *(near or [start.W] * n_folds)]
        fit, *fold_fits = class_optima(source, [of_all, *problems], start, both)
        converged(fit, "")
    else:
        # By itself, so that folds change no bit of the head; and the folds' optima are near the one of all rows.
        fit = _of_all(source, l2, start)
        fold_fits = class_optima(source, problems, start, near or [fit.w] * n_folds)
    for number, fold_fit in enumerate(fold_fits, start=1):
        converged(fold_fit, f"without fold {number}: ")
    return fit, fold_fits


def _feasible(source: Summable, l2: float, n_classes: int) -> None:
    """Refuse what only the whole Hessian could decide where it is too large to form."""
    if form_for(source.d, n_classes) is not Form.WHOLE and l2 < LEAST_PENALTY * total_weight(source.columns, None):
        raise NotConvergedError(
            f"with {n_classes:,} classes of {source.d:,} dimensions a fit needs a penalty: use --l2 above 0 "
            f"(without one at most {MOST_COORDINATES:,} weights can be fitted)"
        )
