"""Folds of rows, stratified and with groups kept whole."""

import numpy as np

from headeval.core.checks import IntArray


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
    smaller = int(min(np.count_nonzero(labels), np.count_nonzero(labels == 0)))
    if smaller < n_folds:
        raise FoldError(f"{n_folds} folds need at least {n_folds} rows of each class, the smaller has {smaller}")
    folds = _deal_groups(labels, np.arange(labels.size) if groups is None else groups, n_folds, rng)
    for fold in range(n_folds):
        if np.unique(labels[folds != fold]).size < 2:
            raise FoldError("the rows of one class all fall into one fold, so nothing is left to fit on")
        if not (folds == fold).any():
            raise FoldError(f"there are fewer groups than the {n_folds} folds")
    return folds


def joined_groups(groups: IntArray, others: IntArray) -> IntArray:
    """Return the finest grouping in which rows that share a group in either grouping are together.

    Parameters
    ----------
    groups, others : (n,) codes ≥ 0.

    Returns
    -------
    codes : (n,) codes ≥ 0.

    Examples
    --------
    >>> joined_groups(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])).tolist()
    [0, 0, 0, 1]
    """
    # Union-find over the groups of both kinds, which each row joins.
    first, second = (np.unique(codes, return_inverse=True)[1] for codes in (groups, others))
    n_first = int(first.max(initial=-1)) + 1
    parent = list(range(n_first + int(second.max(initial=-1)) + 1))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for a, b in zip(first.tolist(), (second + n_first).tolist(), strict=True):
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    roots = np.array([root(node) for node in range(n_first)], dtype=np.int64)
    return np.unique(roots[first], return_inverse=True)[1]


def _deal_groups(labels: IntArray, groups: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Give each group, the largest first, to the fold where the shares of both classes stay most even."""
    sizes = np.stack([np.bincount(groups[labels == value], minlength=groups.max() + 1) for value in (0, 1)], axis=1)
    shares = sizes / np.maximum(sizes.sum(axis=0), 1)
    order = rng.permutation(sizes.shape[0])
    order = order[np.argsort(-shares.max(axis=1)[order], kind="stable")]
    filled = np.zeros((n_folds, 2), dtype=np.int64)
    fold_of_group = np.empty(sizes.shape[0], dtype=np.int64)
    for group in order[sizes[order].sum(axis=1) > 1].tolist():
        # Growth of the sum of squares of the shares when the group joins; of equal ones the fold with the fewest
        # rows, so that a group of one class does not join a fold of the other while a third is empty.
        growth = (2 * filled / np.maximum(sizes.sum(axis=0), 1) + shares[group]) @ shares[group]
        fold = int(np.lexsort((filled.sum(axis=1), growth))[0])
        fold_of_group[group] = fold
        filled[fold] += sizes[group]
    for value in (1, 0):
        single = order[(sizes[order].sum(axis=1) == 1) & (sizes[order, value] == 1)]
        fold_of_group[single] = _levelled(filled[:, value], filled.sum(axis=1), single.size)
        filled[:, value] += np.bincount(fold_of_group[single], minlength=n_folds)
    return fold_of_group[groups]


def _levelled(filled: IntArray, rows: IntArray, count: int) -> IntArray:
    """Return folds for `count` single rows of a class so that its rows in each fold come as even as can be."""
    level = int(filled.min())
    while np.maximum(level - filled, 0).sum() < count:
        level += max(1, int(count - np.maximum(level - filled, 0).sum()) // filled.size)
    missing = np.maximum(level - filled, 0)
    # One too many in some folds: taken from those that have the most rows of both classes.
    surplus = int(missing.sum() - count)
    fullest = np.lexsort((-rows, missing == 0))
    missing[fullest[:surplus]] -= 1
    return np.repeat(np.arange(filled.size), missing)
