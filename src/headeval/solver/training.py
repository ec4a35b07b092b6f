"""Fit a head on all rows and, beside it, score every row by a head that has not seen it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray, IntArray
from headeval.core.newton import LogisticFit
from headeval.solver.folds import joined_groups, stratified_folds
from headeval.solver.optimum import Start, optima, starting_point
from headeval.solver.penalty_path import Path, Rule, regularisation_path
from headeval.solver.problems import weight_of_a_row
from headeval.solver.source import Source, Summable

FOLD_SEED = 0
# Of a fold's loss of all rows together, in units of a row's weight, may be left to gain: no logit moves by 1e-5.
FOLD_CLOSE_ENOUGH = 1e-12


@dataclass(frozen=True, slots=True)
class Training:
    """The weights from all rows and, unless there were no folds, each row's out-of-fold logit.

    Attributes
    ----------
    fit : of all rows; `fit.w` is (d+1,) with the intercept last, for unit vectors.
    l2 : the penalty of all fits.
    passes : how often all rows were looked at.
    out_of_fold : (n,) logits, or None without folds. Each fold's come from a fit of its own; judged together they
        say how such heads do on new rows, the head of all rows being one more of them.
    repeated : rows that repeat another's embedding, and were kept in its fold.
    path : the penalties tried, where there were several.
    """

    fit: LogisticFit
    l2: float
    passes: int
    out_of_fold: FloatArray | None = None
    repeated: int = 0
    path: Path | None = None


class NotConvergedError(ValueError):
    """A fit ended away from the optimum; the text is its reason."""


def train(
    source: Source,
    *,
    penalties: Sequence[float],
    n_folds: int,
    identity: IntArray,
    groups: IntArray | None = None,
    rule: Rule = "best",
    auto: bool = False,
    judged: bool = True,
) -> Training:
    """Fit on unit vectors, because a head is scored on unit vectors.

    Parameters
    ----------
    source : the rows, both classes present.
    penalties : l2; of several the one is taken that does best out of fold, by `rule`.
    n_folds : 0 for none, else ≥ 2; the shuffle has the fixed seed `FOLD_SEED`.
    identity : (n,) codes, equal for rows with the same embedding: copies of a row in another fold would give it away.
    groups : (n,) codes; rows of one group share a fold.
    auto : whether penalties that take too many passes may be passed over.
    judged : whether out-of-fold logits are wanted; otherwise folds only choose among penalties.

    Raises
    ------
    NotConvergedError
        When the fit of all rows, or of a fold, ends away from the optimum.
    FoldError
        When the rows cannot be divided into such folds.
    """
    if not n_folds:
        return Training(converged(optima(source, l2=penalties[0])[0], ""), penalties[0], source.passes)
    folds = dealt_folds(source.columns.labels, n_folds, identity=identity, groups=groups)
    source.hold_out(folds)
    trained = trained_with_folds(source, penalties, n_folds, rule=rule, auto=auto, judged=judged)
    return replace(trained, repeated=repeated_rows(identity) if judged else 0)


def dealt_folds(
    labels: NDArray[np.uint8], n_folds: int, *, identity: IntArray, groups: IntArray | None, n_classes: int = 2
) -> NDArray[np.int16]:
    """Return the fold of each row, (n,); labels are 0..C−1, other parameters and errors as for `train`."""
    groups = identity if groups is None else joined_groups(groups, identity)
    rng = np.random.default_rng(FOLD_SEED)
    folds = stratified_folds(labels.astype(np.int64), n_folds, rng=rng, groups=groups, n_classes=n_classes)
    return folds.astype(np.int16)


def repeated_rows(identity: IntArray) -> int:
    """Return how many rows repeat another's embedding."""
    return int(identity.size - np.unique(identity).size)


def trained_with_folds(
    source: Summable, penalties: Sequence[float], n_folds: int, *, rule: Rule, auto: bool, judged: bool
) -> Training:
    """Fit rows that belong to folds; parameters and errors as for `train`."""
    tried = None
    if len(penalties) > 1:
        tried = regularisation_path(source, penalties, n_folds=n_folds, rule=rule, all_of_them=not auto)
    l2 = tried.path.chosen if tried else penalties[0]
    start = tried.start if tried else starting_point(source, l2=l2)
    path = tried.path if tried else None
    if not judged:
        return Training(converged(optima(source, l2=l2, start=start)[0], ""), l2, source.passes, path=path)
    fit, fold_fits = _all_and_folds(source, l2, start, tried.fold_weights if tried else None, n_folds)
    (logits,) = source.logits(np.stack([fold_fit.w for fold_fit in fold_fits])[None])
    return Training(fit, l2, source.passes, logits, path=path)


def _all_and_folds(
    source: Summable, l2: float, start: Start, near: list[FloatArray] | None, n_folds: int
) -> tuple[LogisticFit, list[LogisticFit]]:
    folds, enough = range(n_folds), FOLD_CLOSE_ENOUGH * weight_of_a_row(source.columns)
    if source.costly:
        both = [start.w, *(near or [start.w] * n_folds)]
        fit, *fold_fits = optima(
            source,
            l2=l2,
            left_out=(None, *folds),
            start=start,
            near=both,
            close_enough=enough,
        )
        converged(fit, "")
    else:
        # By itself, so that folds change no bit of the head; and the folds' optima are near the one of all rows.
        fit = converged(optima(source, l2=l2, start=start)[0], "")
        near = near or [fit.w] * n_folds
        fold_fits = optima(
            source,
            l2=l2,
            left_out=folds,
            start=start,
            near=near,
            close_enough=enough,
        )
    for number, fold_fit in enumerate(fold_fits, start=1):
        converged(fold_fit, f"without fold {number}: ")
    return fit, fold_fits


def converged(fit: LogisticFit, where: str) -> LogisticFit:
    """Return a fit that has arrived.

    Raises
    ------
    NotConvergedError
        When it has not; `where` says which one.
    """
    if not fit.converged:
        raise NotConvergedError(f"{where}{fit.reason.value} (‖g‖∞ {fit.gradient_norm:.1e} after {fit.steps} steps)")
    return fit
