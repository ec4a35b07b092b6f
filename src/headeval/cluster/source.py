"""Rows that workers of a cluster keep, as the solver sees them."""

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.cluster.reading import ClusterRows, Held, KeptPart
from headeval.cluster.work import Future, Graph, Key, as_it_is, keys_of
from headeval.core.checks import FloatArray, IntArray
from headeval.errors import DataError
from headeval.solver.memory import ArraySource
from headeval.solver.rows import RowColumns, Rows
from headeval.solver.source import Sum
from headeval.solver.sums import added

SAMPLE_BYTES = 2**28
FAN_IN = 8  # sums added up at once: few enough that none waits for many others


@dataclass(frozen=True, slots=True)
class PartColumns:
    """The columns of a part's rows, and which rows these were when it was read first."""

    columns: RowColumns
    mark: bytes
    file: str


class ClusterSource:
    """Rows that workers keep; a `headeval.solver.source.Source`.

    A pass is one task for each part, on the worker that keeps it, and a tree of tasks that add up. The tree depends on
    the parts alone, so whichever worker computes what, and whichever is done first, the sums have the same bits.

    Parameters
    ----------
    rows : that have been read, and are kept.
    columns : of all rows.
    d : how many numbers make an embedding.
    sample_bytes : how much memory a sample of the rows may take here.
    """

    costly = True

    def __init__(self, rows: ClusterRows, columns: RowColumns, d: int, *, sample_bytes: int = SAMPLE_BYTES) -> None:
        self.d = d
        self.columns = columns
        self.passes = 0
        self.most_sampled = max(1, sample_bytes // (d * np.dtype(np.float64).itemsize))
        self._cluster = rows.cluster
        self._held: Sequence[Held] = rows.held
        self._first = np.cumsum([0, *(part.n for part in rows.held)])
        if self._first[-1] != columns.n:
            raise ValueError(f"the parts hold {self._first[-1]} rows, the columns {columns.n}")
        self._columns = self._sent_columns()

    def total(self, what: Sum) -> tuple[NDArray[Any], ...]:
        """Return the sums over all rows."""
        self.passes += 1
        graph, keys, homes = self._for_each("sum", sum_of_part, what)
        while len(keys) > 1:
            sums = keys_of("add", -(-len(keys) // FAN_IN))
            for number, key in enumerate(sums):
                graph[key] = (sum_of_sums, *keys[number * FAN_IN : (number + 1) * FAN_IN])
            keys = sums
        (total,) = self._cluster.run(graph, keys, homes)
        return tuple(total)

    def hold_out(self, folds: NDArray[np.int16]) -> None:
        """Let each row belong to a fold from now on, (n,)."""
        self.columns = dataclasses.replace(self.columns, folds=folds)
        self._columns = self._sent_columns()

    def rows_at(self, positions: IntArray) -> Rows:
        """Return a copy of the rows at increasing positions."""
        bounds = np.searchsorted(positions, self._first)
        wanted = [
            (number, positions[begin:end] - self._first[number])
            for number, (begin, end) in enumerate(itertools.pairwise(bounds.tolist()))
            if begin < end
        ]
        homes = self._homes()
        some = [
            self._cluster.submit(
                rows_of_part, self._held[number].future, self._columns[number], rows, near=homes[number]
            )
            for number, rows in wanted
        ]
        parts: list[Rows] = [self._cluster.result(future) for future in some]
        return Rows(
            np.concatenate([part.embeddings for part in parts]),
            np.concatenate([part.inverse_norms for part in parts]),
            self.columns.part(positions),
        )

    def logits(self, W: FloatArray) -> FloatArray:
        """Return logits of each row, (T, n)."""
        self.passes += 1
        return np.concatenate(list(self._cluster.run(*self._for_each("logits", logits_of_part, W))), axis=1)

    def _for_each(self, name: str, function: Any, argument: Any) -> tuple[Graph, list[Key], dict[Key, Sequence[str]]]:
        """Return a graph that calls the function with each part, its columns and the argument."""
        (common,), keys = keys_of("argument", 1), keys_of(name, len(self._held))
        graph: Graph = {common: (as_it_is, argument)}
        for key, part, columns in zip(keys, self._held, self._columns, strict=True):
            graph[key] = (function, part.future, columns, common)
        return graph, keys, dict(zip(keys, self._homes(), strict=True))

    def _homes(self) -> list[Sequence[str]]:
        return self._cluster.homes([part.future for part in self._held])

    def _sent_columns(self) -> list[Future]:
        """Send each part's columns to where it is kept, once for all passes."""
        return [
            self._cluster.submit(as_it_is, self._part_columns(number), near=home)
            for number, home in enumerate(self._homes())
        ]

    def _part_columns(self, number: int) -> PartColumns:
        part = self._held[number]
        return PartColumns(self.columns.part(slice(self._first[number], self._first[number + 1])), part.mark, part.file)


def sum_of_part(kept: KeptPart, columns: PartColumns, what: Sum) -> tuple[NDArray[Any], ...]:
    """Return the sums over the rows of a part."""
    return _source(kept, columns).total(what)


def sum_of_sums(*sums: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
    """Return the sums of sums, added in their order."""
    total: Any = None
    for part in sums:
        total = added(total, part)
    return tuple(total)


def logits_of_part(kept: KeptPart, columns: PartColumns, W: FloatArray) -> FloatArray:
    """Return logits of the rows of a part, (T, m)."""
    return _source(kept, columns).logits(W)


def rows_of_part(kept: KeptPart, columns: PartColumns, positions: IntArray) -> Rows:
    """Return some rows of a part."""
    return _source(kept, columns).rows_at(positions)


def _source(kept: KeptPart, columns: PartColumns) -> ArraySource:
    """Return the rows of a part; should a lost one have been read again, they must be the same."""
    if kept.mark != columns.mark:
        raise DataError(f"{columns.file}: the rows have changed while they were read; run it again")
    return ArraySource(Rows(kept.embeddings, kept.inverse_norms, columns.columns), threads=1)
