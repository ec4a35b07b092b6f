"""What is summed over blocks of rows: loss, gradient, Hessian. All heavy work of a fit has this one shape.

With u = e/‖e‖, z = w·u + c and p = sigmoid(z), for weights (w, c) with the intercept last and row weights s:

    loss     = Σ s (softplus(z) − y z)
    gradient = Σ s (p − y) (u, 1)
    Hessian  = Σ s p (1 − p) (u, 1) (u, 1)ᵀ

The penalty is no sum over rows; the solver adds it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.core.stable import sigmoid
from headeval.solver.rows import RowColumns, Rows, scratch, tile_rows
from headeval.solver.source import Sum

# Tiles are added up in groups of this many, and the groups in their order: whatever the number of threads and
# wherever the blocks of rows begin and end, the same numbers are added in the same order.
GROUP_TILES = 2
# With more weight vectors than this one matrix product a tile is quicker; with fewer, a product for each gives each
# the same bits, whichever others it comes with.
MOST_VECTORS = 2


@dataclass(frozen=True, slots=True)
class LossAndGradient:
    """Sum: (k,) losses, (k, d+1) gradients, (k,) how many rows with weight do not stand on their own side.

    Attributes
    ----------
    W : (k, d+1) weight vectors, the intercepts last.
    left_out : for each the fold whose rows do not count, or None.
    single : whether each tile is worked on in float32, to about six digits, where no embedding is so long or short that
        it would leave its range.
    """

    W: FloatArray
    left_out: tuple[int | None, ...]
    single: bool = False

    large = False
    adds_in = np.float64

    @property
    def name(self) -> str:
        """Return the name."""
        return "gradient" if len(self.W) == 1 else f"{len(self.W)} gradients"

    def rows_at_once(self, d: int) -> int:
        """Return a few tiles: sums of this kind are small."""
        return GROUP_TILES * tile_rows(d)

    def of(self, rows: Rows) -> tuple[FloatArray, ...]:
        """Return the sums over these rows."""
        total: Any = None
        with roomy(single=self.single):
            for tile in rows.tiles():
                total = added(total, self._of_tile(tile))
        return tuple(total)

    def _of_tile(self, tile: Rows) -> tuple[FloatArray, FloatArray, FloatArray]:
        E = scratch(tile.embeddings, single=self.single and tile.moderate)
        sign = np.where(self._positive(tile.columns), -1.0, 1.0).astype(E.dtype)
        z = tile_logits(E, tile.inverse_norms, self.W)
        z *= sign  # on the scale where larger is worse: −z for positives
        # One exponential gives softplus and sigmoid of it.
        e = np.abs(z)
        np.negative(e, out=e)
        with np.errstate(under="ignore"):
            np.exp(e, out=e)
        wrong = z >= 0
        # p − y is p, or −(1 − p) = −sigmoid(−z): a difference would be 0 where p only rounds to 1.
        r = np.where(wrong, E.dtype.type(1.0), e)
        e += 1.0
        r /= e
        # log(1 + e) to 1e-16 of a nat; log1p would be exact to the last digit and several times slower.
        loss = np.log(e, out=e)
        loss += np.maximum(z, 0.0, out=z)
        counted = self._counted(tile.columns)
        if counted is not None:
            loss *= counted
            r *= counted
            wrong &= counted > 0
        r *= sign
        gradient = np.empty_like(self.W)
        gradient[:, -1] = r.sum(axis=1)
        with np.errstate(under="ignore"):
            r *= tile.inverse_norms
        products(r, E, out=gradient[:, :-1])
        return loss.sum(axis=1, dtype=np.float64), gradient, np.count_nonzero(wrong, axis=1).astype(np.float64)

    def _positive(self, columns: RowColumns) -> NDArray[np.bool_]:
        """Return which rows are positive, (m,), or for each weight vector, (k, m)."""
        return columns.labels > 0

    def _counted(self, columns: RowColumns) -> NDArray[Any] | None:
        """Return how much each row counts for each weight vector, (k or 1, m), or None where all count once."""
        counted: NDArray[Any] | None = None
        if columns.folds is not None and any(fold is not None for fold in self.left_out):
            left_out = np.array([-1 if fold is None else fold for fold in self.left_out], dtype=columns.folds.dtype)
            counted = columns.folds != left_out[:, None]
        if columns.weights is not None:
            counted = columns.weights[None] if counted is None else columns.weights * counted
        return counted


@dataclass(frozen=True, slots=True)
class Hessian:
    """Sum: the Hessian (d+1, d+1) at one weight vector, in float64.

    Attributes
    ----------
    w : (d+1,) weights, the intercept last.
    left_out : the fold whose rows do not count, or None.
    single : whether products are formed in float32, which is twice as fast and enough to precondition with.
    few : whether there are so few rows that their products can be added up in float32, too.
    """

    w: FloatArray
    left_out: int | None = None
    single: bool = False
    few: bool = False
    name = "Hessian"
    large = True

    @property
    def adds_in(self) -> type[np.float32] | type[np.float64]:
        """Return the precision in which parts are added up."""
        return np.float32 if self.single and self.few else np.float64

    def rows_at_once(self, d: int) -> int:
        """Return at least d/2 rows, so that their product outweighs adding up (d+1)² numbers."""
        return GROUP_TILES * tile_rows(d) * max(1, -(-d // (2 * GROUP_TILES * tile_rows(d))))

    def of(self, rows: Rows) -> tuple[NDArray[Any]]:
        """Return the sum over these rows, in the precision of the products."""
        with roomy(single=self.single):
            B = self._rooted(rows)
            return (B.T @ B,)  # numpy takes half the work of a general product for a matrix with its own transpose

    def _rooted(self, rows: Rows) -> NDArray[Any]:
        """Return √(s p (1 − p)) (u, 1) of each row, whose product with itself is the Hessian."""
        B, first = np.empty((rows.n, rows.d + 1), dtype=np.float32 if self.single else np.float64), 0
        for tile in rows.tiles():
            E = scratch(tile.embeddings)
            z = tile_logits(E, tile.inverse_norms, self.w[None])[0]
            # p(1 − p) as a product of two sigmoids: 1 − p would lose the small probabilities.
            root = np.sqrt(tile.columns.counted(self.left_out) * sigmoid(z) * sigmoid(-z))
            part = B[first : first + tile.n]
            with np.errstate(under="ignore"):
                np.multiply(E, (root * tile.inverse_norms)[:, None], out=part[:, :-1], casting="same_kind")
            part[:, -1] = root
            first += tile.n
        return B


@dataclass(frozen=True, slots=True)
class Together:
    """Sum: several, one after the other, in one pass."""

    sums: tuple[Sum, ...]
    adds_in = np.float64

    @property
    def name(self) -> str:
        """Return the names."""
        return " and ".join(what.name for what in self.sums)

    @property
    def large(self) -> int:
        """Return how many times (d+1)² numbers they have together."""
        return sum(what.large for what in self.sums)

    def rows_at_once(self, d: int) -> int:
        """Return what the one that wants the most rows at once wants."""
        return max(what.rows_at_once(d) for what in self.sums)

    def of(self, rows: Rows) -> tuple[NDArray[Any], ...]:
        """Return the sums over these rows."""
        return tuple(part for what in self.sums for part in what.of(rows))


@dataclass(frozen=True, slots=True)
class RowsMoved:
    """Sum: how many logits a change of the weights moves by more than so much.

    Attributes
    ----------
    change : (d+1,) difference of two weight vectors.
    by : what a logit may move without being counted.
    left_out : the fold whose rows do not count, or None.
    """

    change: FloatArray
    by: float
    left_out: int | None = None
    name = "rows moved"
    large = False
    adds_in = np.float64

    def rows_at_once(self, d: int) -> int:
        """Return a few tiles: sums of this kind are small."""
        return GROUP_TILES * tile_rows(d)

    def of(self, rows: Rows) -> tuple[FloatArray]:
        """Return the sum over these rows."""
        moved = 0.0
        for tile in rows.tiles():
            z = np.abs(tile_logits(scratch(tile.embeddings), tile.inverse_norms, self.change[None])[0])
            moved += np.count_nonzero((z > self.by) & (tile.columns.counted(self.left_out) > 0))
        return (np.array([moved]),)


def roomy(*, single: bool) -> np.errstate:
    """Return what lets float32 overflow quietly."""
    # Weights beyond float32 make sums that are not finite: whoever takes them does without.
    return np.errstate(over="ignore" if single else None, invalid="ignore" if single else None)


def tile_logits(E: NDArray[Any], inverse_norms: FloatArray, W: FloatArray) -> NDArray[Any]:
    """Return the logits (k, m) of a tile for weight vectors (k, d+1), in the precision of the tile."""
    k, m = W.shape[0], E.shape[0]
    z = np.empty((k, m), dtype=E.dtype)
    features = W[:, :-1].astype(E.dtype)
    with np.errstate(under="ignore"):
        if k > MOST_VECTORS:
            np.matmul(features, E.T, out=z)
        else:
            for j in range(k):
                np.dot(E, features[j], out=z[j])
        z *= inverse_norms
        z += W[:, -1:]
    return z


def products(r: NDArray[Any], E: NDArray[Any], *, out: FloatArray) -> None:
    """Fill `out` (k, d) with r E for r (k, m)."""
    with np.errstate(under="ignore"):
        if r.shape[0] > MOST_VECTORS:
            out[...] = r @ E
        else:
            for j in range(r.shape[0]):
                out[j] = r[j] @ E


def added(total: Any, more: tuple[NDArray[Any], ...], adds_in: Any = np.float64, *, own: bool = False) -> Any:
    """Return the sum of two tuples of sums, in the precision wanted; the first is changed in place.

    Parameters
    ----------
    own : whether nobody else has hold of `more`, so that it can become the first.
    """
    if total is None:
        return tuple(part.astype(adds_in, copy=not own) for part in more)
    for there, part in zip(total, more, strict=True):
        there += part
    return total
