"""Folds of rows, stratified and with groups kept whole."""

from collections.abc import Sequence

import numpy as np

from headeval.core.checks import IntArray
from headeval.printable import quoted


class FoldError(ValueError):
    """The rows cannot be divided into such folds; the text says why.

    Parameters
    ----------
    text : with `{}` where a class stands, of more than two.
    n_classes : C.

    Attributes
    ----------
    label : of the class that has too few rows, where it is one of more than two.
    """

    def __init__(self, text: str, *, label: int | None = None, n_classes: int = 2) -> None:
        super().__init__(text if label is None else text.format(f"class {label + 1} of {n_classes}"))
        self.label, self._text = label, text

    def told(self, names: Sequence[str]) -> str:
        """Return the text with the class by its name, which only others know.

        Examples
        --------
        >>> FoldError("{} has 1", label=2, n_classes=3).told(["a", "b", "c"])
        "class 'c' has 1"
        """
        return str(self) if self.label is None else self._text.format(f"class {quoted(names[self.label])}")


def stratified_folds(
    labels: IntArray,
    n_folds: int,
    *,
    rng: np.random.Generator,
    groups: IntArray | None = None,
    n_classes: int = 2,
) -> IntArray:
    """Return the fold of each row, with the classes divided as evenly as the rows allow.

    Parameters
    ----------
    labels : (n,) in 0..C−1.
    n_folds : ≥ 2.
    rng : source of the shuffle.
    groups : (n,) codes ≥ 0; rows of one group always share a fold.
    n_classes : C.

    Returns
    -------
    folds : (n,) in 0..n_folds−1.

    Raises
    ------
    FoldError
        When a class (or the groups that hold it) does not reach into at least two folds, or there are more
        folds than rows of the smallest class.

    Examples
    --------
    >>> folds = stratified_folds(np.array([0, 0, 1, 1]), 2, rng=np.random.default_rng(0))
    >>> sorted(folds[:2].tolist()), sorted(folds[2:].tolist())
    ([0, 1], [0, 1])
    """
    _enough_rows(labels, n_folds, n_classes)
    folds = _deal_groups(labels, np.arange(labels.size) if groups is None else groups, n_folds, rng, n_classes)
    for fold in range(n_folds):
        left = np.bincount(labels[folds != fold], minlength=n_classes)
        if not left.all():
            which, label = ("{}", int(left.argmin())) if n_classes > 2 else ("one class", None)
            text = f"the rows of {which} all fall into one fold, so nothing is left to fit on"
            raise FoldError(text, label=label, n_classes=n_classes)
        if not (folds == fold).any():
            n_groups = labels.size if groups is None else np.unique(groups).size
            one = f"{n_groups}, as rows with the same embedding are one"
            raise FoldError(f"there are fewer groups than the {n_folds} folds: {one}")
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


def _enough_rows(labels: IntArray, n_folds: int, n_classes: int) -> None:
    sizes = np.bincount(labels, minlength=n_classes)
    smallest = int(sizes.argmin())
    if sizes[smallest] >= n_folds:
        return
    needs = f"{n_folds} folds need at least {n_folds} rows of each class"
    if n_classes == 2:
        raise FoldError(f"{needs}, the smaller has {sizes[smallest]}")
    raise FoldError(f"{needs}, {{}} has {sizes[smallest]}", label=smallest, n_classes=n_classes)


def _deal_groups(
    labels: IntArray, groups: IntArray, n_folds: int, rng: np.random.Generator, n_classes: int
) -> IntArray:
    """Give each group, the largest first, to the fold where the shares of all classes stay most even."""
    n_rows = np.bincount(groups)
    several = np.flatnonzero(n_rows > 1)
    # Rows by themselves are by far the most: only groups of several get a column for every class.
    sizes = np.zeros((several.size, n_classes), dtype=np.int64)
    all_of, largest_share = np.bincount(labels, minlength=n_classes), np.zeros(n_rows.size)
    label_of = np.zeros(n_rows.size, dtype=labels.dtype)
    label_of[groups] = labels
    for value in range(n_classes):
        inside = np.bincount(groups[labels == value], minlength=n_rows.size)
        sizes[:, value] = inside[several]
        np.maximum(largest_share, inside / max(int(all_of[value]), 1), out=largest_share)
    order = rng.permutation(n_rows.size)
    order = order[np.argsort(-largest_share[order], kind="stable")]
    filled = np.zeros((n_folds, n_classes), dtype=np.int64)
    fold_of_group = np.empty(n_rows.size, dtype=np.int64)
    shares = sizes / np.maximum(all_of, 1)
    for group in order[n_rows[order] > 1].tolist():
        place = int(np.searchsorted(several, group))
        # Growth of the sum of squares of the shares when the group joins; of equal ones the fold with the fewest
        # rows, so that a group of one class does not join a fold of the other while a third is empty.
        growth = (2 * filled / np.maximum(all_of, 1) + shares[place]) @ shares[place]
        fold = int(np.lexsort((filled.sum(axis=1), growth))[0])
        fold_of_group[group] = fold
        filled[fold] += sizes[place]
    for value in reversed(range(n_classes)):
        single = order[(n_rows[order] == 1) & (label_of[order] == value)]
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
