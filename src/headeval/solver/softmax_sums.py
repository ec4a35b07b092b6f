"""What is summed over blocks of rows for a head of C classes: loss, gradient, Hessian, and what stands for it.

With u = e/‖e‖, z = W u + b for the weights (W, b) of C classes, intercepts last, p = softmax(z), t the row of the
identity that belongs to the label, and row weights s:

    loss     = Σ s (logsumexp(z) − z_label)
    gradient = Σ s (p − t) ⊗ (u, 1)
    Hessian  = Σ s (diag(p) − p pᵀ) ⊗ (u, 1) (u, 1)ᵀ

Adding the same weights to all classes changes none of them, so the Hessian is singular. It is formed in coordinates of
what is left: with the C × (C−1) matrix Q of `zero_sum_basis`, V = Qᵀ W, it is Σ s Qᵀ(diag(p) − p pᵀ)Q ⊗ (u, 1) (u, 1)ᵀ.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.solver.rows import RowColumns, Rows, scratch, tile_rows, tiles
from headeval.solver.sums import GROUP_TILES, roomy


@cache
def zero_sum_basis(n_classes: int) -> FloatArray:
    """Return an orthonormal basis (C, C−1) of the vectors of C numbers whose sum is zero (Helmert's).

    Examples
    --------
    >>> (zero_sum_basis(3) * np.sqrt([2, 6])).round(6).tolist()
    [[1.0, 1.0], [-1.0, 1.0], [0.0, -2.0]]
    """
    basis = np.zeros((n_classes, n_classes - 1))
    for j in range(1, n_classes):
        basis[:j, j - 1] = 1.0
        basis[j, j - 1] = -j
        basis[:, j - 1] /= np.sqrt(j * (j + 1))
    return basis


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
class SoftmaxHessian:
    """Sum: the Hessian in zero-sum coordinates, (C−1)(d+1) on either side, the coordinate of the classes the slower.

    Attributes
    ----------
    W : (C, d+1) weights, the intercepts last.
    left_out : the fold whose rows do not count, or None.
    single : whether products are formed in float32, which is twice as fast and enough to precondition with.
    few : whether there are so few rows that their products can be added up in float32, too.
    """

    W: FloatArray
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
        """Return at least as many rows as make their products outweigh adding up ((C−1)(d+1))² numbers."""
        return _rows_for_products(d)

    def of(self, rows: Rows) -> tuple[NDArray[Any]]:
        """Return the sum over these rows, in the precision of the products."""
        basis = zero_sum_basis(len(self.W))
        q, k = basis.shape[1], rows.d + 1
        dtype = np.float32 if self.single else np.float64
        H = np.empty((q, k, q, k), dtype=dtype)
        with roomy(single=self.single), np.errstate(under="ignore"):
            U = _units(rows, dtype)
            p = class_probabilities(rows, self.W)
            at = basis.T @ p  # (q, m): Qᵀ p
            s = rows.columns.counted(self.left_out)
            scaled = np.empty_like(U)
            for a in range(q):
                for b in range(a + 1):
                    # Qᵀ(diag(p) − p pᵀ)Q, a variance or a covariance of two columns of Q under p
                    if a == b:
                        spread = np.einsum("cm,cm->m", np.square(basis[:, a, None] - at[a]), p)
                        np.multiply(U, np.sqrt(s * spread)[:, None], out=scaled, casting="same_kind")
                        H[a, :, a] = scaled.T @ scaled  # numpy takes half the work for a product with its own transpose
                        continue
                    spread = np.einsum("cm,cm,cm->m", basis[:, a, None] - at[a], basis[:, b, None] - at[b], p)
                    np.multiply(U, (s * spread)[:, None], out=scaled, casting="same_kind")
                    H[a, :, b] = U.T @ scaled
                    H[b, :, a] = H[a, :, b]  # symmetric, being a sum of weighted u uᵀ
        return (H.reshape(q * k, q * k),)


@dataclass(frozen=True, slots=True)
class ClassHessians:
    """Sum: for each class its own block of the Hessian, (C, d+1, d+1), from float32 products.

    Attributes
    ----------
    W : (C, d+1) weights, the intercepts last.
    """

    W: FloatArray
    name = "Hessians of the classes"
    large = True
    adds_in = np.float32

    def rows_at_once(self, d: int) -> int:
        """Return at least as many rows as make their products outweigh adding up C (d+1)² numbers."""
        return _rows_for_products(d)

    def of(self, rows: Rows) -> tuple[NDArray[Any]]:
        """Return the sum over these rows."""
        with roomy(single=True), np.errstate(under="ignore"):
            U, p = _units(rows, np.float32), class_probabilities(rows, self.W)
            roots = np.sqrt(rows.columns.counted(None) * p * (1.0 - p))
            H = np.empty((len(self.W), rows.d + 1, rows.d + 1), dtype=np.float32)
            scaled = np.empty_like(U)
            for c, root in enumerate(roots):
                np.multiply(U, root[:, None], out=scaled, casting="same_kind")
                np.matmul(scaled.T, scaled, out=H[c])
        return (H,)


@dataclass(frozen=True, slots=True)
class MeanCurvature:
    """Sum: Σ s (diag(p) − p pᵀ), (C, C).

    Attributes
    ----------
    W : (C, d+1) weights, the intercepts last.
    """

    W: FloatArray
    name = "curvature"
    large = False
    adds_in = np.float64

    def rows_at_once(self, d: int) -> int:
        """Return a few tiles: sums of this kind are small."""
        return GROUP_TILES * tile_rows(d)

    def of(self, rows: Rows) -> tuple[FloatArray]:
        """Return the sum over these rows."""
        total = np.zeros((len(self.W), len(self.W)))
        for tile in narrow_tiles(rows, len(self.W)):
            p = class_probabilities(tile, self.W)
            with np.errstate(under="ignore"):
                sp = p * tile.columns.counted(None)
                total -= sp @ p.T
                total[np.diag_indices_from(total)] += sp.sum(axis=1)
        return (total,)


@dataclass(frozen=True, slots=True)
class HessianTimes:
    """Sum: the Hessian times a vector, (C, d+1).

    Attributes
    ----------
    W : (C, d+1) weights, the intercepts last.
    V : (C, d+1) what it is multiplied with.
    left_out : the fold whose rows do not count, or None.
    """

    W: FloatArray
    V: FloatArray
    left_out: int | None = None
    name = "Hessian times a vector"
    large = False
    adds_in = np.float64

    def rows_at_once(self, d: int) -> int:
        """Return a few tiles: sums of this kind are small."""
        return GROUP_TILES * tile_rows(d)

    def of(self, rows: Rows) -> tuple[FloatArray]:
        """Return the sum over these rows."""
        total = np.zeros(self.V.shape)
        for tile in narrow_tiles(rows, 2 * len(self.W)):
            E = scratch(tile.embeddings)
            z, change = class_logits(E, tile.inverse_norms, np.stack([self.W, self.V]))
            p = _softmax(z)
            with np.errstate(under="ignore"):
                change -= np.einsum("cm,cm->m", p, change)
                change *= p
                change *= tile.columns.counted(self.left_out)
                total[:, -1] += change.sum(axis=1)
                change *= tile.inverse_norms
                total[:, :-1] += change @ E
        return (total,)


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


def class_probabilities(rows: Rows, W: FloatArray) -> FloatArray:
    """Return the probabilities (C, m) of rows for weights (C, d+1)."""
    tiled = narrow_tiles(rows, len(W))
    parts = [class_logits(scratch(tile.embeddings), tile.inverse_norms, W[None])[0] for tile in tiled]
    return _softmax(np.concatenate(parts, axis=1))


def _softmax(z: FloatArray) -> FloatArray:
    """Return e^z / Σ e^z over the first axis; z is worked on in place."""
    z -= z.max(axis=0)
    with np.errstate(under="ignore"):
        np.exp(z, out=z)
        z /= z.sum(axis=0)
    return z


def _units(rows: Rows, dtype: Any) -> NDArray[Any]:
    """Return (u, 1) of each row, (m, d+1)."""
    U, first = np.empty((rows.n, rows.d + 1), dtype=dtype), 0
    for tile in rows.tiles():
        part = U[first : first + tile.n]
        with np.errstate(under="ignore"):
            E = scratch(tile.embeddings)
            np.multiply(E, tile.inverse_norms[:, None], out=part[:, :-1], casting="same_kind")
        part[:, -1] = 1.0
        first += tile.n
    return U


def _rows_for_products(d: int) -> int:
    tile = GROUP_TILES * tile_rows(d)
    return tile * max(1, -(-d // (2 * tile)))
