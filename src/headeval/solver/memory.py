"""Rows that are in memory, summed by several threads."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray, IntArray
from headeval.core.threads import in_order, thread_count
from headeval.solver.rows import RowColumns, Rows, scratch, tile_rows
from headeval.solver.source import Sum, threads_for
from headeval.solver.sums import added

Track = Callable[[str], Callable[[Iterable[Rows], int], Iterable[Rows]]]

_SMALL = 2**18  # numbers of embeddings for which threads are not worth starting
_CACHED = 2**21  # for which a float64 copy, made once, saves a conversion in every pass


class ArraySource:
    """Rows in memory; a `headeval.solver.source.Source`.

    Parameters
    ----------
    rows : all rows; their embeddings are not copied.
    threads : None for as many as this process may use. Their number changes no bit of any result.
    track : wraps the pieces of a pass, which has a name, to show progress; it takes them and the number of all rows.
    """

    costly = False

    def __init__(self, rows: Rows, *, threads: int | None = None, track: Track | None = None) -> None:
        self.rows = rows
        self.d = rows.d
        self.columns = rows.columns
        self.passes = 0
        self.most_sampled = rows.n
        self._track = track
        self._threads = 1 if rows.n * rows.d <= _SMALL else thread_count() if threads is None else threads

    @classmethod
    def of(
        cls,
        embeddings: NDArray[Any],
        columns: RowColumns,
        *,
        threads: int | None = None,
        track: Track | None = None,
    ) -> Self:
        """Return the source for embeddings (n, d) of any length, float32 or float64."""
        wanted = thread_count() if threads is None else threads
        if embeddings.size <= _CACHED:
            embeddings = embeddings.astype(np.float64)
        return cls(Rows.prepared(embeddings, columns, threads=wanted), threads=wanted, track=track)

    def total(self, what: Sum) -> tuple[NDArray[Any], ...]:
        """Return the sums over all rows."""
        self.passes += 1
        total: Any = None
        size = what.rows_at_once(self.d)
        threads = 1 if self.rows.n <= size else threads_for(what, self.d, self._threads)
        pieces: Iterable[Rows] = self._pieces(size)
        if self._track is not None:
            pieces = self._track(f"pass {self.passes}: {what.name}")(pieces, self.rows.n)
        for part in in_order(what.of, pieces, threads=threads, ahead=0 if what.large else 1):
            total = added(total, part, what.adds_in, own=True)
        return tuple(total)

    def hold_out(self, folds: NDArray[np.int16]) -> None:
        """Let each row belong to a fold from now on, (n,)."""
        self.columns = replace(self.columns, folds=folds)
        self.rows = replace(self.rows, columns=self.columns)

    def rows_at(self, positions: IntArray) -> Rows:
        """Return a copy of the rows at these positions."""
        return self.rows.part(positions)

    def logits(self, W: FloatArray) -> FloatArray:
        """Return logits of each row, (T, n)."""
        self.passes += 1
        parts = in_order(lambda rows: row_logits(rows, W), self._pieces(tile_rows(self.d)), threads=self._threads)
        return np.concatenate(list(parts), axis=1)

    def _pieces(self, size: int) -> Iterator[Rows]:
        return (self.rows.part(slice(first, first + size)) for first in range(0, self.rows.n, size))


def row_logits(rows: Rows, W: FloatArray) -> FloatArray:
    """Return logits (T, m) of rows, each by itself, so that copies of a row tie exactly.

    Parameters
    ----------
    W : (T, k, d+1); of several weight vectors for a logit the one with the number of the row's fold.
    """
    z = np.full((W.shape[0], rows.n), np.nan)
    # A matrix product would be quicker, but the last bits of its rows depend on the rows around them.
    with np.errstate(under="ignore"):
        u = scratch(rows.embeddings) * rows.inverse_norms[:, None]
        for t, of_folds in enumerate(W):
            folds = rows.columns.folds_of(t)
            if len(of_folds) == 1 or folds is None:
                z[t] = (u * of_folds[0, :-1]).sum(axis=1) + of_folds[0, -1]
                continue
            for fold, w in enumerate(of_folds):
                inside = folds == fold
                z[t, inside] = (u[inside] * w[:-1]).sum(axis=1) + w[-1]
    return z
