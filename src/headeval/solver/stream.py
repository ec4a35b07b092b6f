"""Rows that are read anew in every pass, because they do not fit into memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray, IntArray
from headeval.core.threads import in_order, thread_count
from headeval.solver.memory import row_logits
from headeval.solver.rows import RowColumns, Rows, tile_rows
from headeval.solver.source import Sum, threads_for
from headeval.solver.sums import added

# Starts a pass, which has a name, and yields the embeddings of all rows in their order, in matrices of any height.
Matrices = Callable[[str], Iterable[NDArray[Any]]]
_LOGIT_TILES = 8


class StreamSource:
    """Rows on a disk or behind a network; a `headeval.solver.source.Source`.

    The rows are cut anew into the pieces that are summed together, so that no result depends on the blocks in which
    they come: every sum has the bits that it has in memory.

    Parameters
    ----------
    matrices : starts a pass.
    columns : of all rows.
    d : how many numbers make an embedding.
    dtype : of the embeddings, float32 or float64.
    sample_bytes : how much memory a sample of the rows may take.
    threads : None for as many as this process may use.
    """

    costly = True

    def __init__(
        self,
        matrices: Matrices,
        columns: RowColumns,
        d: int,
        dtype: Any,
        *,
        sample_bytes: int,
        threads: int | None = None,
    ) -> None:
        self.d = d
        self.columns = columns
        self.passes = 0
        self.most_sampled = max(1, sample_bytes // (d * np.dtype(dtype).itemsize))
        self._matrices = matrices
        self._dtype = np.dtype(dtype)
        self._threads = thread_count() if threads is None else threads

    def total(self, what: Sum) -> tuple[NDArray[Any], ...]:
        """Return the sums over all rows."""
        total: Any = None
        pieces = self._pieces(what.name, what.rows_at_once(self.d))
        threads = threads_for(what, self.d, self._threads)
        for part in in_order(
            lambda piece: what.of(self._prepared(*piece)), pieces, threads=threads, ahead=0 if what.large else 1
        ):
            total = added(total, part, what.adds_in, own=True)
        return tuple(total)

    def hold_out(self, folds: NDArray[np.int16]) -> None:
        """Let each row belong to a fold from now on, (n,)."""
        self.columns = replace(self.columns, folds=folds)

    def rows_at(self, positions: IntArray) -> Rows:
        """Return the rows at increasing positions, in memory."""
        taken = np.empty((positions.size, self.d), dtype=self._dtype)
        first = filled = 0
        for matrix in self._pass("sampling rows"):
            last = first + len(matrix)
            until = int(np.searchsorted(positions, last))
            np.take(matrix, positions[filled:until] - first, axis=0, out=taken[filled:until])
            first, filled = last, until
        return Rows.prepared(taken, self.columns.part(positions), threads=self._threads)

    def logits(self, W: FloatArray) -> FloatArray:
        """Return logits of each row, (T, n)."""
        pieces = self._pieces("scoring", _LOGIT_TILES * tile_rows(self.d))

        def scored(piece: tuple[int, NDArray[Any]]) -> FloatArray:
            rows = self._prepared(*piece)
            return np.concatenate([row_logits(tile, W) for tile in rows.tiles()], axis=1)

        return np.concatenate(list(in_order(scored, pieces, threads=self._threads)), axis=1)

    def _prepared(self, first: int, embeddings: NDArray[Any]) -> Rows:
        return Rows.prepared(embeddings, self.columns.part(slice(first, first + len(embeddings))))

    def _pass(self, name: str) -> Iterable[NDArray[Any]]:
        self.passes += 1
        return self._matrices(f"pass {self.passes}: {name}")

    def _pieces(self, name: str, size: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the first row and the embeddings of pieces of `size` rows, the last one shorter."""
        first = used = 0
        piece = np.empty((size, self.d), dtype=self._dtype)
        for matrix in self._pass(name):
            start = 0
            while start < len(matrix):
                rows = min(size - used, len(matrix) - start)
                piece[used : used + rows] = matrix[start : start + rows]
                start, used = start + rows, used + rows
                if used == size:
                    yield first, piece
                    first, used, piece = first + size, 0, np.empty((size, self.d), dtype=self._dtype)
        if used:
            yield first, piece[:used]
