"""What the solver asks of rows, wherever they live: sums over all of them."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray, IntArray
from headeval.solver.rows import RowColumns, Rows


class Sum(Protocol):
    """Something that adds up over blocks of rows; picklable, so that it can be sent to where the rows are."""

    @property
    def name(self) -> str:
        """What is summed, in a few words."""

    def rows_at_once(self, d: int) -> int:
        """Return how many rows, a whole number of tiles, are summed before their sum is added to that of the others."""

    @property
    def large(self) -> int:
        """How many times (d+1)² numbers a sum has where few of them may wait to be added up, 0 where it is small."""

    @property
    def adds_in(self) -> Any:
        """In which precision parts are added up, float32 or float64."""

    def of(self, rows: Rows) -> tuple[NDArray[Any], ...]:
        """Return the sums over these rows, at most so many."""


class Summable(Protocol):
    """Rows, wherever they live, that are summed over; a pass looks at each of them once.

    Attributes
    ----------
    d : how many numbers make an embedding.
    costly : whether a pass is worth far more than arithmetic, as where rows come from a disk or a network.
    most_sampled : how many rows of a costly source may be drawn into memory.
    """

    d: int
    costly: bool
    most_sampled: int

    @property
    def columns(self) -> RowColumns:
        """Of all rows."""

    @property
    def passes(self) -> int:
        """How often all rows have been looked at."""

    def total(self, what: Sum) -> tuple[NDArray[Any], ...]:
        """Return the sums over all rows, in one pass."""

    def rows_at(self, positions: IntArray) -> Rows:
        """Return the rows at increasing positions, in memory."""

    def logits(self, W: FloatArray) -> FloatArray:
        """Return logits of each row, (T, n), whose bits depend on the row alone.

        Parameters
        ----------
        W : (T, k, d+1) weights, the intercepts last: for each of T logits those of each fold, for the rows that it
            holds out, or k = 1 for all rows.
        """


class Source(Summable, Protocol):
    """The same where they can be dealt into folds."""

    def hold_out(self, folds: NDArray[np.int16]) -> None:
        """Let each row belong to a fold from now on, (n,), or (K, n) for rows with labels of K categories."""


MOST_WAITING_BYTES = 2**29


def threads_for(what: Sum, d: int, threads: int) -> int:
    """Return how many threads may sum, so that what waits to be added up stays within some hundred megabytes."""
    # Each thread has a sum at hand, and one more each may wait; a Hessian takes four bytes for each pair of numbers.
    return max(1, min(threads, MOST_WAITING_BYTES // (8 * what.large * (d + 1) ** 2))) if what.large else threads
