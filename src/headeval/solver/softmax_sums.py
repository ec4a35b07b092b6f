"""What is summed over blocks of rows for a head of C classes: loss and gradient.

With u = e/‖e‖, z = W u + b for the weights (W, b) of C classes, intercepts last, p = softmax(z), t the row of the
identity that belongs to the label, and row weights s:

    loss     = Σ s (logsumexp(z) − z_label)
    gradient = Σ s (p − t) ⊗ (u, 1)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.solver.rows import RowColumns, Rows, scratch, tile_rows, tiles
from headeval.solver.sums import GROUP_TILES, roomy


@dataclass(frozen=True, slots=True)
class SoftmaxLossAndGradient:
    """Sum: (k,) losses, (k, C, d+1) gradients, (k,) how many rows with weight do not stand on their own side.

    Attributes
    ----------
    W : (k, C, d+1) weights, the intercepts last.
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
        k = len(self.W)
        total = np.zeros(k), np.zeros(self.W.shape), np.zeros(k)
        with roomy(single=self.single):
            for tile in narrow_tiles(rows, self.W[..., 0].size):
                for there, part in zip(total, self._of_tile(tile), strict=True):
                    there += part
        return total

    def _of_tile(self, tile: Rows) -> tuple[NDArray[Any], ...]:
        E = scratch(tile.embeddings, single=self.single and tile.moderate)
        own, every = tile.columns.labels.astype(np.intp), np.arange(tile.n)
        z = class_logits(E, tile.inverse_norms, self.W)
        z_own = z[:, own, every]
        z[:, own, every] = -np.inf
        highest_other = z.max(axis=1)
        wrong = highest_other >= z_own
        top = np.maximum(highest_other, z_own)
        z -= top[:, None]
        z_own -= top
        with np.errstate(under="ignore"):
            np.exp(z, out=z)
            e_own = np.exp(z_own)
        others = z.sum(axis=1)
        # log Σ e^(z − z_label): where the label's is the largest the sum is 1 + others, which would lose small others.
        loss = np.log1p(others + (e_own - 1.0)) - z_own
        inverse = 1.0 / (others + e_own)
        s = self._counted(tile.columns)
        if s is not None:
            loss *= s
            inverse *= s
            wrong &= s > 0
        with np.errstate(under="ignore"):
            z *= inverse[:, None]
            # p − 1 of the own class is minus the sum of all others: a difference would be 0 where p only rounds to 1.
            z[:, own, every] = -(others * inverse)
            gradient = np.empty(self.W.shape)
            gradient[..., -1] = z.sum(axis=2)
            z *= tile.inverse_norms.astype(E.dtype)
            gradient[..., :-1] = (z.reshape(-1, tile.n) @ E).reshape(*self.W.shape[:2], -1)
        return loss.sum(axis=1, dtype=np.float64), gradient, np.count_nonzero(wrong, axis=1)

    def _counted(self, columns: RowColumns) -> FloatArray | None:
        """Return how much each row counts for each of the weights, (k, m), or None where all count once."""
        if columns.weights is None and (columns.folds is None or all(fold is None for fold in self.left_out)):
            return None
        return np.stack([columns.counted(fold) for fold in self.left_out])


@dataclass(frozen=True, slots=True)
class ClassRowsMoved:
    """Sum: how many rows have a logit that a change of the weights moves by more than so much.

    Attributes
    ----------
    change : (C, d+1) difference of two weights.
    by : what a logit may move without its row being counted.
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
        for tile in narrow_tiles(rows, len(self.change)):
            z = np.abs(class_logits(scratch(tile.embeddings), tile.inverse_norms, self.change[None])[0])
            moved += np.count_nonzero((z.max(axis=0) > self.by) & (tile.columns.counted(self.left_out) > 0))
        return (np.array([moved]),)


def narrow_tiles(rows: Rows, width: int) -> Iterator[Rows]:
    """Yield rows in tiles that fit into the cache together with `width` numbers for each row."""
    return (rows.part(tile) for tile in tiles(rows.n, max(rows.d, width)))


def class_logits(E: NDArray[Any], inverse_norms: FloatArray, W: FloatArray) -> NDArray[Any]:
    """Return the logits (k, C, m) of a tile for weights (k, C, d+1), in the precision of the tile."""
    features = W[..., :-1].astype(E.dtype).reshape(-1, E.shape[1])
    with np.errstate(under="ignore"):
        z: NDArray[Any] = (features @ E.T).reshape(*W.shape[:2], len(E))
        z *= inverse_norms.astype(E.dtype)
        z += W[..., -1:].astype(E.dtype)
    return z


def row_probabilities(rows: Rows, W: FloatArray) -> FloatArray:
    """Return the probabilities (C, m) of rows for weights (C, d+1)."""
    tiled = narrow_tiles(rows, len(W))
    parts = [class_logits(scratch(tile.embeddings), tile.inverse_norms, W[None])[0] for tile in tiled]
    return softmax_in_place(np.concatenate(parts, axis=1))


def softmax_in_place(z: FloatArray) -> FloatArray:
    """Return e^z / Σ e^z over the first axis; z is worked on in place."""
    z -= z.max(axis=0)
    with np.errstate(under="ignore"):
        np.exp(z, out=z)
        z /= z.sum(axis=0)
    return z
