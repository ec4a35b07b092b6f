"""Fit a head on all rows and, beside it, score every row by a head that has not seen it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.core.logistic import fit_logistic
from headeval.core.newton import LogisticFit
from headeval.core.vectors import unit_vectors
from headeval.solver.folds import joined_groups, out_of_fold_logits, stratified_folds

FOLD_SEED = 0


@dataclass(frozen=True, slots=True)
class Training:
    """The weights from all rows and, unless there were no folds, each row's out-of-fold logit.

    Attributes
    ----------
    fit : of all rows; `fit.w` is (d+1,) with the intercept last, for unit vectors.
    out_of_fold : (n,) logits, or None without folds. Each fold's come from a fit of its own; judged together they
        say how such heads do on new rows, the head of all rows being one more of them.
    repeated : rows that repeat another's embedding, and were kept in its fold.
    """

    fit: LogisticFit
    out_of_fold: FloatArray | None
    repeated: int = 0


class NotConvergedError(ValueError):
    """A fit ended away from the optimum; the text is its reason."""


def train(
    embeddings: Any,
    labels: IntArray,
    *,
    l2: float,
    n_folds: int,
    identity: IntArray,
    groups: IntArray | None = None,
    sample_weight: FloatArray | None = None,
    track: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Training:
    """Fit on unit vectors, because a head is scored on unit vectors.

    Parameters
    ----------
    embeddings : (n, d), of any length; each row is brought to unit length first.
    labels : (n,) in {0, 1}, both present.
    n_folds : 0 for none, else ≥ 2; the shuffle has the fixed seed `FOLD_SEED`.
    identity : (n,) codes, equal for rows with the same embedding: copies of a row in another fold would give it away.
    groups : (n,) codes; rows of one group share a fold.
    l2, sample_weight : as for `fit_logistic`; the weights count in every fold too.
    track : wraps the fold numbers, for a progress bar.

    Raises
    ------
    NotConvergedError
        When the fit of all rows, or of a fold, ends away from the optimum.
    FoldError
        When the rows cannot be divided into such folds.
    """
    units = unit_vectors(embeddings)
    fit = _converged(fit_logistic(units, labels, l2=l2, sample_weight=sample_weight), "")
    if not n_folds:
        return Training(fit, None)
    repeated = int(labels.size - np.unique(identity).size)
    groups = identity if groups is None else joined_groups(groups, identity)
    folds = stratified_folds(labels, n_folds, rng=np.random.default_rng(FOLD_SEED), groups=groups)
    logits, fits = out_of_fold_logits(units, labels, folds, l2=l2, sample_weight=sample_weight, track=track)
    for number, fold_fit in enumerate(fits, start=1):
        _converged(fold_fit, f"without fold {number}: ")
    return Training(fit, logits, repeated)


def _converged(fit: LogisticFit, where: str) -> LogisticFit:
    if not fit.converged:
        raise NotConvergedError(f"{where}{fit.reason.value} (‖g‖∞ {fit.gradient_norm:.1e} after {fit.steps} steps)")
    return fit
