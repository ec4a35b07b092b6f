"""A block of rows as the sums over blocks see it, and the columns that all rows have."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray, IntArray
from headeval.core.threads import in_order
from headeval.core.vectors import unit_vectors

# A tile of embeddings in float64: few enough bytes to stay in the cache while it is used several times, and enough that
# the interpreter's own time for a tile does not show.
TILE_BYTES = 2**22
FEWEST_TILE_ROWS = 16
SHORTEST = 2.0**-40

_local = threading.local()


@dataclass(frozen=True, slots=True)
class RowColumns:
    """What is known of every row beside its embedding.

    Attributes
    ----------
    labels : (n,) in {0, 1}.
    weights : (n,) ≥ 0, or None where every row counts once.
    folds : (n,) the fold that each row is held out in, or None.
    """

    labels: NDArray[np.uint8]
    weights: FloatArray | None = None
    folds: NDArray[np.int16] | None = None
    _kept: dict[str, FloatArray] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.labels.shape[0])

    def part(self, rows: slice | IntArray) -> Self:
        """Return the columns of some rows."""
        weights, folds = self.weights, self.folds
        return type(self)(
            self.labels[rows], None if weights is None else weights[rows], None if folds is None else folds[rows]
        )

    def class_weights(self, left_out: int | None) -> tuple[float, float]:
        """Return how much the rows of either class count together, (negatives, positives), without those of a fold."""
        folds = None if left_out is None else self.folds
        key = "all" if folds is None else "folds"
        if key not in self._kept:
            places = (0 if folds is None else 2 * folds.astype(np.int64)) + (self.labels > 0)
            sums = np.bincount(places, weights=self.weights, minlength=2).astype(np.float64)
            self._kept[key] = np.append(sums, np.zeros(sums.size % 2)).reshape(-1, 2)
        table = self._kept[key]
        inside = (np.arange(len(table)) != left_out) | (folds is None)
        negatives, positives = table[inside].sum(axis=0).tolist()
        return negatives, positives

    def counted(self, left_out: int | None) -> FloatArray:
        """Return how much each row counts, (n,), where the rows of one fold count nothing."""
        s = np.ones(self.n) if self.weights is None else self.weights.astype(np.float64)
        if left_out is not None and self.folds is not None:
            s[self.folds == left_out] = 0.0
        return s

    def folds_of(self, t: int) -> NDArray[np.int16] | None:  # noqa: ARG002 - the same for each
        """Return the fold that each row is held out in, (n,), for logit t of several; or None."""
        return self.folds

    def held_out(self, folds: tuple[int, ...]) -> FloatArray:
        """Return how much each row counts, (k, n), where only the rows of one fold count."""
        inside = np.zeros((len(folds), self.n))
        if self.folds is not None:
            inside += self.folds == np.array(folds)[:, None]
        return inside if self.weights is None else inside * self.weights


@dataclass(frozen=True, slots=True)
class Rows:
    """A block of rows.

    Attributes
    ----------
    embeddings : (m, d) float32 or float64, of any length.
    inverse_norms : (m,) what brings them to unit length; 1 for a zero row.
    columns : of the same rows.
    """

    embeddings: NDArray[Any]
    inverse_norms: FloatArray
    columns: RowColumns

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.embeddings.shape[0])

    @property
    def d(self) -> int:
        """How many numbers make an embedding."""
        return int(self.embeddings.shape[1])

    @property
    def moderate(self) -> bool:
        """Whether products with float32 weights stay in the range of float32."""
        return bool(self.inverse_norms.min() > SHORTEST and self.inverse_norms.max() < 1 / SHORTEST)

    @classmethod
    def prepared(cls, embeddings: NDArray[Any], columns: RowColumns, *, threads: int = 1) -> Self:
        """Return rows whose products stay in the range of float64; extreme ones are brought to unit length at once."""
        parts = (embeddings[tile] for tile in tiles(len(embeddings), embeddings.shape[1]))
        with np.errstate(under="ignore", over="ignore"):
            norms = np.sqrt(np.concatenate([np.empty(0), *in_order(squared_norms, parts, threads=threads)]))
        # Squares of float32 numbers never leave the range of float64.
        if embeddings.dtype != np.float32:
            extreme = ~((norms > 1e-140) & (norms < 1e140))
            if extreme.any():
                embeddings = embeddings.astype(np.float64)
                embeddings[extreme] = unit_vectors(embeddings[extreme])
                norms[extreme] = 1.0
        norms[norms == 0] = 1.0
        return cls(embeddings, 1.0 / norms, columns)

    def part(self, rows: slice | IntArray) -> Self:
        """Return some of the rows."""
        return type(self)(self.embeddings[rows], self.inverse_norms[rows], self.columns.part(rows))

    def tiles(self) -> Iterator[Self]:
        """Yield the rows in tiles that fit into the cache."""
        return (self.part(tile) for tile in tiles(self.n, self.d))


def tile_rows(d: int) -> int:
    """Return how many embeddings of d numbers make a tile."""
    return max(FEWEST_TILE_ROWS, TILE_BYTES // (8 * max(d, 1)))


def tiles(n: int, d: int) -> Iterator[slice]:
    """Yield the tiles of n rows, whose bounds depend on d alone."""
    size = tile_rows(d)
    return (slice(first, min(first + size, n)) for first in range(0, n, size))


def scratch(embeddings: NDArray[Any], *, single: bool = False) -> NDArray[Any]:
    """Return the embeddings of a tile in float64 or float32, in memory of this thread that the next tile uses again."""
    dtype = np.float32 if single else np.float64
    if embeddings.dtype == dtype:
        return embeddings
    memory = getattr(_local, dtype.__name__, None)
    if memory is None or memory.size < embeddings.size:
        memory = np.empty(embeddings.size, dtype=dtype)
        setattr(_local, dtype.__name__, memory)
    E: NDArray[Any] = memory[: embeddings.size].reshape(embeddings.shape)
    np.copyto(E, embeddings, casting="same_kind")
    return E


def squared_norms(embeddings: NDArray[Any]) -> FloatArray:
    """Return the squared Euclidean norm of each row of a tile, in float64, each summed by itself."""
    E = scratch(embeddings)
    norms: FloatArray = np.einsum("ij,ij->i", E, E)
    return norms
