"""Out-of-fold logits: every row is scored by a head that has not seen it."""

from collections.abc import Callable, Iterable

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.core.logistic import fit_logistic
from headeval.core.newton import LogisticFit


class FoldError(ValueError):
    """The rows cannot be divided into such folds; the text says why."""


def stratified_folds(
    labels: IntArray, n_folds: int, *, rng: np.random.Generator, groups: IntArray | None = None
) -> IntArray:
    """Return the fold of each row, with the classes divided as evenly as the rows allow.

    Parameters
    ----------
    labels : (n,) in {0, 1}.
    n_folds : ≥ 2.
    rng : source of the shuffle.
    groups : (n,) codes ≥ 0; rows of one group always share a fold.

    Returns
    -------
    folds : (n,) in 0..n_folds−1.

    Raises
    ------
    FoldError
        When a class (or the groups that hold it) does not reach into at least two folds, or there are more
        folds than rows of the smaller class.

    Examples
    --------
    >>> folds = stratified_folds(np.array([0, 0, 1, 1]), 2, rng=np.random.default_rng(0))
    >>> sorted(folds[:2].tolist()), sorted(folds[2:].tolist())
    ([0, 1], [0, 1])
    """
    folds = _deal_rows(labels, n_folds, rng) if groups is None else _deal_groups(labels, groups, n_folds, rng)
    for fold in range(n_folds):
        if np.unique(labels[folds != fold]).size < 2:
            raise FoldError("the rows of one class all fall into one fold, so nothing is left to fit on")
        if not (folds == fold).any():
            raise FoldError(f"there are fewer groups than the {n_folds} folds")
    return folds


def out_of_fold_logits(
    units: FloatArray,
    labels: IntArray,
    folds: IntArray,
    *,
    l2: float,
    sample_weight: FloatArray | None = None,
    track: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> tuple[FloatArray, list[LogisticFit]]:
    """Return the logit of each row from the fit on all other folds, and the story of each fit.

    Parameters
    ----------
    units : (n, d) unit vectors.
    labels : (n,) in {0, 1}.
    folds : (n,) from `stratified_folds`.
    track : wraps the fold numbers, for a progress bar.

    Returns
    -------
    logits : (n,).
    fits : one `LogisticFit` a fold.
    """
    logits = np.empty(units.shape[0])
    fits = []
    for fold in track(range(int(folds.max()) + 1)):
        held_out = folds == fold
        weights = None if sample_weight is None else sample_weight[~held_out]
        fit = fit_logistic(units[~held_out], labels[~held_out], l2=l2, sample_weight=weights)
        logits[held_out] = units[held_out] @ fit.w[:-1] + fit.w[-1]
        fits.append(fit)
    return logits, fits


def _deal_rows(labels: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Shuffle each class and deal it out in turn; the second class starts where the first ended."""
    smaller = int(min(np.count_nonzero(labels), np.count_nonzero(labels == 0)))
    if smaller < n_folds:
        raise FoldError(f"{n_folds} folds need at least {n_folds} rows of each class, the smaller has {smaller}")
    folds = np.empty(labels.shape[0], dtype=np.int64)
    dealt = 0
    for value in (1, 0):
        rows = rng.permutation(np.flatnonzero(labels == value))
        folds[rows] = (dealt + np.arange(rows.size)) % n_folds
        dealt += rows.size
    return folds


def _deal_groups(labels: IntArray, groups: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Give each group, the largest first, to the fold where the shares of both classes stay most even."""
    n_groups = int(groups.max()) + 1
    sizes = np.stack([np.bincount(groups[labels == value], minlength=n_groups) for value in (0, 1)], axis=1)
    shares = sizes / np.maximum(sizes.sum(axis=0), 1)
    order = rng.permutation(n_groups)
    order = order[np.argsort(-shares.max(axis=1)[order], kind="stable")]
    filled = np.zeros((n_folds, 2))
    fold_of_group = np.empty(n_groups, dtype=np.int64)
    for group in order:
        # Growth of the sum of squares when the group joins; the smallest keeps the folds most even.
        growth = (2 * filled + shares[group]) @ shares[group]
        fold_of_group[group] = int(np.argmin(growth))
        filled[fold_of_group[group]] += shares[group]
    return fold_of_group[groups]
