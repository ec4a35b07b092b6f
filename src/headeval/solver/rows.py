"""A block of rows as the sums over blocks see it, and the columns that all rows have."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray, IntArray
from headeval.core.vectors import row_norms, unit_vectors
from headeval.workers import in_order

# A tile of embeddings in float64: few enough bytes to stay in the cache while it is used several times, and enough that
# the interpreter's own time for a tile does not show.
TILE_BYTES = 2**21
FEWEST_TILE_ROWS = 16
SHORTEST = 2.0**-40


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

    def counted(self, left_out: int | None) -> FloatArray:
        """Return how much each row counts, (n,), where the rows of one fold count nothing."""
        s = np.ones(self.n) if self.weights is None else self.weights.astype(np.float64)
        if left_out is not None and self.folds is not None:
            s[self.folds == left_out] = 0.0
        return s

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
        norms = np.concatenate([np.empty(0), *in_order(row_norms, parts, threads=threads)])
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
