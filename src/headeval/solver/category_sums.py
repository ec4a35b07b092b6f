"""Rows with the labels of several categories, each known or unknown, and what is summed over them.

A row whose label is unknown in a category is, for that category, as if it were not there: it counts nothing in any sum.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import UNKNOWN, FloatArray, IntArray
from headeval.solver.rows import RowColumns, Rows
from headeval.solver.source import Sum, Summable
from headeval.solver.sums import LossAndGradient


@dataclass(frozen=True, slots=True)
class CategoryColumns(RowColumns):
    """What is known of every row beside its embedding, where it has a label in each of K categories.

    Sums over rows of one category take the columns of that one, from `of`.

    Attributes
    ----------
    labels : (K, n) in {0, 1, UNKNOWN}.
    weights : (n,) ≥ 0, or None where every row counts once.
    folds : (K, n) the fold that each row is held out in, by category, or None.
    """

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.labels.shape[1])

    @property
    def n_categories(self) -> int:
        """K."""
        return int(self.labels.shape[0])

    def part(self, rows: slice | IntArray) -> Self:
        """Return the columns of some rows."""
        weights, folds = self.weights, self.folds
        return type(self)(
            self.labels[:, rows], None if weights is None else weights[rows], None if folds is None else folds[:, rows]
        )

    def known(self, category: int) -> NDArray[np.bool_]:
        """Return which rows have a label in a category, (n,)."""
        found: NDArray[np.bool_] = self.labels[category] != UNKNOWN
        return found

    def of(self, category: int) -> RowColumns:
        """Return the columns of one category, in which rows without a label have no weight."""
        known, labels, weights = self.known(category), self.labels[category], self.weights
        folds = None if self.folds is None else self.folds[category]
        if known.all():
            return RowColumns(labels, weights, folds)
        s = known * (np.ones(self.n) if weights is None else weights)
        return RowColumns(np.where(known, labels, 0).astype(np.uint8), s, folds)

    def folds_of(self, t: int) -> NDArray[np.int16] | None:
        """Return the fold that each row is held out in for category t, (n,), or None."""
        return None if self.folds is None else self.folds[t]


@dataclass(frozen=True, slots=True)
class CategoryLossAndGradient(LossAndGradient):
    """Sum: as `LossAndGradient`, of weight vectors of several categories.

    Attributes
    ----------
    categories : (k,) the category of each weight vector.
    """

    categories: tuple[int, ...] = ()

    def _positive(self, columns: RowColumns) -> NDArray[np.bool_]:
        positive: NDArray[np.bool_] = columns.labels[list(self.categories)] == 1
        return positive

    def _counted(self, columns: RowColumns) -> NDArray[Any]:
        which = list(self.categories)
        counted: NDArray[Any] = columns.labels[which] != UNKNOWN
        if columns.folds is not None:
            left_out = np.array([-1 if fold is None else fold for fold in self.left_out], dtype=columns.folds.dtype)
            counted &= columns.folds[which] != left_out[:, None]
        return counted if columns.weights is None else columns.weights * counted


@dataclass(frozen=True, slots=True)
class OfCategory:
    """Sum: another one, of the labels of one category."""

    what: Sum
    category: int

    @property
    def name(self) -> str:
        """Return the name of what is summed."""
        return self.what.name

    @property
    def large(self) -> int:
        """Whether it is."""
        return self.what.large

    @property
    def adds_in(self) -> Any:
        """Return its precision."""
        return self.what.adds_in

    def rows_at_once(self, d: int) -> int:
        """Return what it wants."""
        return self.what.rows_at_once(d)

    def of(self, rows: Rows) -> tuple[NDArray[Any], ...]:
        """Return the sums over these rows."""
        return self.what.of(of_category(rows, self.category))


class OneCategory:
    """The rows of a source with the labels of one category; a `headeval.solver.source.Summable`.

    Parameters
    ----------
    source : whose columns are `CategoryColumns`.
    category : its number.
    """

    def __init__(self, source: Summable, category: int) -> None:
        self._source, self._category, self._before = source, category, source.passes
        self._columns: tuple[RowColumns, RowColumns] | None = None
        self.d, self.costly, self.most_sampled = source.d, source.costly, source.most_sampled

    @property
    def columns(self) -> RowColumns:
        """Of the category, as the source has them now."""
        of_source = categories_of(self._source.columns)
        if self._columns is None or self._columns[0] is not of_source:
            self._columns = (of_source, of_source.of(self._category))
        return self._columns[1]

    @property
    def passes(self) -> int:
        """How often all rows have been looked at since there is this view of them."""
        return self._source.passes - self._before

    def total(self, what: Sum) -> tuple[NDArray[Any], ...]:
        """Return the sums over all rows, in one pass."""
        return self._source.total(OfCategory(what, self._category))

    def rows_at(self, positions: IntArray) -> Rows:
        """Return the rows at increasing positions, in memory."""
        return of_category(self._source.rows_at(positions), self._category)

    def logits(self, W: FloatArray) -> FloatArray:
        """Return a logit of each row, (1, n), by W (1, k, d+1)."""
        every = np.zeros((categories_of(self._source.columns).n_categories, *W.shape[1:]))
        every[self._category] = W[0]
        z: FloatArray = self._source.logits(every)[self._category][None]
        return z


def of_category(rows: Rows, category: int) -> Rows:
    """Return rows with the labels of one category."""
    return dataclasses.replace(rows, columns=categories_of(rows.columns).of(category))


def categories_of(columns: RowColumns) -> CategoryColumns:
    """Return columns that have categories as what they are.

    Raises
    ------
    TypeError
        When they have none.
    """
    if not isinstance(columns, CategoryColumns):
        raise TypeError("these rows have one label, not those of categories")
    return columns
