"""The embeddings of all rows while they fit, of a random sample of the rows when they do not."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import IntArray
from headeval.files.growing import GrowingArray

MOST_BYTES = 160_000_000  # of which there are two, here and in a reference; 50,000 rows of 768 numbers fit
_SORTED_COLUMNS = 64  # at once: sorting all of them would hold the sample twice


class RowSample:
    """Takes the embeddings of block after block; which rows are kept does not depend on how blocks divide them.

    Every row draws a number, and those with the smallest numbers are kept.

    Parameters
    ----------
    most_bytes : what the embeddings kept may take.
    seed : of the numbers.

    Examples
    --------
    >>> sample = RowSample(most_bytes=3 * 8, seed=0)
    >>> for row in range(5):
    ...     sample.add(row, np.array([[float(row)]]))
    >>> sample = sample.finished()
    >>> sample.complete, sample.rows.tolist() == sample.embeddings[:, 0].tolist()
    (False, True)
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES, seed: int | Sequence[int] = 0) -> None:
        self._most_bytes = most_bytes
        self._random = np.random.PCG64(seed).random_raw
        self._held: GrowingArray | None = None
        self._embeddings: NDArray[Any] | None = None
        self._keys = np.empty(0, dtype=np.uint64)
        self._rows = np.empty(0, dtype=np.int64)
        self._n = 0

    def add(self, first_row: int, embeddings: NDArray[Any]) -> None:
        """Take the embeddings of the rows from `first_row` on, shape (m, d)."""
        if not len(embeddings):
            return
        if self._held is None:
            self._held = GrowingArray(embeddings.dtype, expected=None)
        room = max(1, self._most_bytes // embeddings[0].nbytes) - len(self._rows)
        rows, keys = np.arange(first_row, first_row + len(embeddings)), self._random(len(embeddings))
        self._n += len(embeddings)
        if room > 0:
            self._held.append(embeddings[:room])
            self._keys, self._rows = np.append(self._keys, keys[:room]), np.append(self._rows, rows[:room])
        if room < len(embeddings):
            self._replace(rows[room:], keys[room:], embeddings[room:])

    def finished(self) -> Self:
        """Return the sample with its rows in order; nothing may be added afterwards."""
        if self._held is None:
            return self
        if self._embeddings is None:
            self._embeddings = self._held.array()
        order = np.argsort(self._rows)
        if not self.complete:
            for start in range(0, self._embeddings.shape[1], _SORTED_COLUMNS):
                part = slice(start, start + _SORTED_COLUMNS)
                self._embeddings[:, part] = self._embeddings[order, part]
        self._rows = self._rows[order]
        return self

    @property
    def complete(self) -> bool:
        """Whether these are all rows."""
        return len(self._rows) == self._n

    @property
    def rows(self) -> IntArray:
        """The numbers of the rows kept, increasing, shape (k,)."""
        return self._rows

    @property
    def embeddings(self) -> NDArray[Any]:
        """Their embeddings, shape (k, d)."""
        return np.empty((0, 0)) if self._embeddings is None else self._embeddings

    def _replace(self, rows: IntArray, keys: NDArray[np.uint64], embeddings: NDArray[Any]) -> None:
        """Put those of the new rows that have drawn smaller numbers into the places of those with the largest."""
        if self._embeddings is None and self._held is not None:
            self._embeddings = self._held.array()
        size = len(self._rows)
        hopeful = np.flatnonzero(keys < self._keys.max())
        both = np.concatenate([self._keys, keys[hopeful]])
        stays = np.zeros(len(both), dtype=np.bool_)
        stays[np.argpartition(both, size - 1)[:size]] = True
        freed, taken = np.flatnonzero(~stays[:size]), hopeful[stays[size:]]
        if self._embeddings is not None:
            self._embeddings[freed] = embeddings[taken]
        self._keys[freed], self._rows[freed] = keys[taken], rows[taken]
