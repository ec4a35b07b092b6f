"""What is kept of the embeddings of rows while they are read: themselves, what they are projected to, their digests."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.core.threads import in_order, thread_count
from headeval.files.fingerprint import row_digests
from headeval.files.growing import GrowingArray

Project = Callable[[NDArray[Any]], NDArray[np.float64]]
OnBlock = Callable[[int, NDArray[Any]], None]


@dataclass(frozen=True, slots=True)
class Keeping:
    """What to keep of the embeddings.

    Attributes
    ----------
    hold : whether they stay in memory.
    project : what makes of embeddings, shape (m, d), the numbers that are kept, shape (m, k). It is called in other
        threads, for several blocks at the same time; no row may depend on the others of its block.
    on_block : is called with the number of rows before, and the embeddings of each block, in their order.
    threads : that make digests and projections; None takes as many as this process may use.
    """

    hold: bool = True
    project: Project | None = None
    on_block: OnBlock | None = None
    threads: int | None = None


class EmbeddedRows:
    """Takes the embeddings of block after block. Digests and projections are made while the next blocks are read.

    Parameters
    ----------
    dtype : of the embeddings.
    expected : how many rows will come, or None.
    keeping : what to keep of them.
    """

    def __init__(self, dtype: type[np.float32] | type[np.float64], *, expected: int | None, keeping: Keeping) -> None:
        self._keeping = keeping
        self._embeddings = GrowingArray(dtype, expected=expected)
        self._projected = GrowingArray(np.float64, expected=expected)
        self._digests = GrowingArray(np.uint64, expected=expected)
        self._n = 0
        self.dim: int | None = None

    def gather(self, matrices: Iterable[NDArray[Any]]) -> None:
        """Take the embeddings of all rows, matrices of shape (m, d)."""
        threads = thread_count() if self._keeping.threads is None else self._keeping.threads
        for digests, projected in in_order(self._made_of, self._held(matrices), threads=threads):
            self._digests.append(digests)
            if projected is not None:
                self._projected.append(projected)

    def embeddings(self) -> NDArray[Any] | None:
        """Return the embeddings, shape (n, d), or None where they are not held."""
        return self._embeddings.array() if self._keeping.hold else None

    def projected(self) -> NDArray[np.float64] | None:
        """Return what the embeddings are projected to, shape (n, k), or None."""
        return None if self._keeping.project is None else self._projected.array()

    def digests(self) -> NDArray[np.uint64]:
        """Return the digests, shape (n, 2)."""
        return self._digests.array() if self._n else np.empty((0, 2), dtype=np.uint64)

    def _held(self, matrices: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        for embeddings in matrices:
            if self._keeping.hold:
                self._embeddings.append(embeddings)
            if self._keeping.on_block is not None:
                self._keeping.on_block(self._n, embeddings)
            self._n += len(embeddings)
            self.dim = embeddings.shape[1]
            yield embeddings

    def _made_of(self, embeddings: NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[np.float64] | None]:
        project = self._keeping.project
        return row_digests(embeddings), None if project is None else project(embeddings)
