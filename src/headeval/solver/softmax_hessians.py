"""What is summed over blocks of rows for a head of C classes: the Hessian, and what stands for it.

In the letters of `headeval.solver.softmax_sums`:

    Hessian  = Σ s (diag(p) − p pᵀ) ⊗ (u, 1) (u, 1)ᵀ

Adding the same weights to all classes changes neither loss nor gradient, so the Hessian is singular. It is formed in
coordinates of what is left: with the C × (C−1) matrix Q of `zero_sum_basis` and V = Qᵀ W, it is
Σ s Qᵀ(diag(p) − p pᵀ)Q ⊗ (u, 1) (u, 1)ᵀ.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.solver.rows import Rows, scratch, tile_rows
from headeval.solver.softmax_sums import class_logits, narrow_tiles, row_probabilities, softmax_in_place
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

    @property
    def large(self) -> int:
        """Return how many times (d+1)² numbers a sum has."""
        return (len(self.W) - 1) ** 2

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
            p = row_probabilities(rows, self.W)
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
    adds_in = np.float32

    @property
    def large(self) -> int:
        """Return how many times (d+1)² numbers a sum has."""
        return len(self.W)

    def rows_at_once(self, d: int) -> int:
        """Return at least as many rows as make their products outweigh adding up C (d+1)² numbers."""
        return _rows_for_products(d)

    def of(self, rows: Rows) -> tuple[NDArray[Any]]:
        """Return the sum over these rows."""
        with roomy(single=True), np.errstate(under="ignore"):
            U, p = _units(rows, np.float32), row_probabilities(rows, self.W)
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
            p = row_probabilities(tile, self.W)
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
            p = softmax_in_place(z)
            with np.errstate(under="ignore"):
                change -= np.einsum("cm,cm->m", p, change)
                change *= p
                change *= tile.columns.counted(self.left_out)
                total[:, -1] += change.sum(axis=1)
                change *= tile.inverse_norms
                total[:, :-1] += change @ E
        return (total,)


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
