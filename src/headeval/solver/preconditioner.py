"""An approximate Hessian in factors, which turns a gradient into nearly a Newton step."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray

_BLOCK = 128
_UPDATED_ROWS = 512  # at once, so that no temporary comes near the size of the matrix


class Factor:
    """The Cholesky factor of a matrix in float32: as a preconditioner it need not be exact.

    It is formed in blocks, in place, from matrix products: quicker than LAPACK's on one thread, and with the inverses
    of the diagonal blocks at hand, since numpy has no triangular solver.

    Parameters
    ----------
    L : (k, k), lower triangular but for what stands above the diagonal blocks, which is not looked at.
    diagonal : the inverse of each diagonal block.

    Examples
    --------
    >>> factor = Factor.of(np.array([[4.0, 0.0], [0.0, 1.0]]), l2=1.0)
    >>> factor.solve(np.array([5.0, 4.0])).round(6).tolist()
    [1.0, 4.0]
    """

    def __init__(self, L: NDArray[np.float32], diagonal: list[NDArray[np.float32]]) -> None:
        self._L = L
        self._blocks = list(zip(_bounds(len(L)), diagonal, strict=True))

    @classmethod
    def of(cls, H: FloatArray, *, l2: float, classes: int = 1) -> Self | None:
        """Return the factor of H (k, k) with a penalty on all but intercepts: the last, or of each class the last.

        It is None where that is not positive definite in float32.
        """
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            A = H.astype(np.float32)
            penalised = np.arange(len(A)).reshape(classes, -1)[:, :-1]
            A[penalised, penalised] += np.float32(l2)
            try:
                diagonal = _factored(A)
            except np.linalg.LinAlgError:
                return None
        return cls(A, diagonal) if np.isfinite(A).all() else None

    def solve(self, g: FloatArray) -> FloatArray:
        """Return about H⁻¹ g for g (k,), in the scale of g."""
        scale = float(np.abs(g).max(initial=0.0))
        if not scale:
            return np.zeros_like(g)
        x = (g / scale).astype(np.float32)  # gradients near 1e-9 and their squares stay in range
        with np.errstate(under="ignore"):
            for (first, last), inverse in self._blocks:
                x[first:last] = inverse @ (x[first:last] - self._L[first:last, :first] @ x[:first])
            for (first, last), inverse in reversed(self._blocks):
                x[first:last] = inverse.T @ (x[first:last] - x[last:] @ self._L[last:, first:last])
        return x.astype(np.float64) * scale


def _bounds(k: int) -> list[tuple[int, int]]:
    return [(first, min(first + _BLOCK, k)) for first in range(0, k, _BLOCK)]


def _factored(A: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Turn A into its factor, and return the inverses of the diagonal blocks.

    Raises
    ------
    LinAlgError
        When A is not positive definite to working precision.
    """
    diagonal = []
    for first, last in _bounds(len(A)):
        A[first:last, first:last] = np.linalg.cholesky(A[first:last, first:last])
        inverse = np.linalg.inv(A[first:last, first:last])
        diagonal.append(inverse)
        A[last:, first:last] = A[last:, first:last] @ inverse.T
        for row in range(last, len(A), _UPDATED_ROWS):
            end = row + _UPDATED_ROWS
            A[row:end, last:end] -= A[row:end, first:last] @ A[last:end, first:last].T
    return diagonal
