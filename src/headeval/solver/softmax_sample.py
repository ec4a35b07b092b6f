"""A sample of rows of C classes, and where their fit begins."""

import dataclasses

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.solver.memory import ArraySource
from headeval.solver.rows import RowColumns
from headeval.solver.source import Summable


def class_totals(columns: RowColumns, left_out: int | None, n_classes: int) -> FloatArray:
    """Return how much the rows of each class count together, (C,), without those of a fold."""
    totals = np.bincount(columns.labels, weights=columns.counted(left_out), minlength=n_classes)
    return totals.astype(np.float64)


def null_class_weights(columns: RowColumns, d: int, n_classes: int) -> FloatArray:
    """Return the best weights (C, d+1) without any feature: logarithms of the classes' shares, which sum to zero."""
    totals = class_totals(columns, None, n_classes)
    W = np.zeros((n_classes, d + 1))
    if totals.all():
        W[:, -1] = np.log(totals) - np.log(totals).mean()
    return W


def sample_of_classes(source: Summable, most: int, n_classes: int) -> ArraySource:
    """Return about `most` of the rows in memory, with weights that make them stand for all."""
    chosen, s = class_sample_rows(source.columns, most, n_classes)
    rows = source.rows_at(chosen)
    return ArraySource(dataclasses.replace(rows, columns=RowColumns(rows.columns.labels, s)))


def class_sample_rows(columns: RowColumns, most: int, n_classes: int) -> tuple[IntArray, FloatArray]:
    """Return increasing positions of about `most` rows and what each counts for.

    Each class gives half of an equal share as far as it has so many, since of a rare one hardly any would be drawn
    otherwise, and of its other rows in proportion to them. The draw is the same every time.
    """
    rng = np.random.default_rng(columns.n)
    labels = columns.labels.astype(np.int64)
    if columns.weights is not None:
        labels[columns.weights <= 0] = n_classes  # rows of no weight are as if absent
    sizes = np.bincount(labels, minlength=n_classes + 1)[:n_classes]
    wanted = np.minimum(sizes, max(1, most // (2 * n_classes)))
    share = max(0, most - int(wanted.sum())) / max(1, int((sizes - wanted).sum()))
    wanted += (min(share, 1.0) * (sizes - wanted)).astype(np.int64)
    order = np.argsort(labels, kind="stable")
    firsts = np.cumsum([0, *sizes])
    chosen = np.sort(
        np.concatenate(
            [
                order[first + rng.choice(size, size=want, replace=False, shuffle=False)]
                for first, size, want in zip(firsts[:-1], sizes, wanted, strict=True)
            ]
        )
    )
    s = (sizes / np.maximum(wanted, 1))[labels[chosen]]
    return chosen, s if columns.weights is None else s * columns.weights[chosen]
