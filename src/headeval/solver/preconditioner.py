"""An approximate Hessian in factors, which turns a gradient into nearly a Newton step."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray

_BLOCK = 64


class Factor:
    """The Cholesky factor of a matrix in float32: as a preconditioner it need not be exact.

    Parameters
    ----------
    L : (k, k) lower triangular, positive diagonal.

    Examples
    --------
    >>> factor = Factor.of(np.array([[4.0, 0.0], [0.0, 2.0]]))
    >>> factor.solve(np.array([4.0, 4.0])).round(6).tolist()
    [1.0, 2.0]
    """

    def __init__(self, L: NDArray[np.float32]) -> None:
        self._L = L
        self._bounds = [(first, min(first + _BLOCK, len(L))) for first in range(0, len(L), _BLOCK)]
        # With the diagonal blocks inverted, solving is a few matrix products: numpy has no triangular solver.
        self._diagonal = [np.linalg.inv(L[first:last, first:last]) for first, last in self._bounds]

    @classmethod
    def of(cls, H: FloatArray) -> Self | None:
        """Return the factor of H (k, k), or None where H is not positive definite in float32."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                L: Any = np.linalg.cholesky(H.astype(np.float32))
        except np.linalg.LinAlgError:
            return None
        return cls(L) if np.isfinite(L).all() else None

    def solve(self, g: FloatArray) -> FloatArray:
        """Return about H⁻¹ g for g (k,), in the scale of g."""
        scale = float(np.abs(g).max(initial=0.0))
        if not scale:
            return np.zeros_like(g)
        x = (g / scale).astype(np.float32)  # gradients near 1e-9 and their squares stay in range
        with np.errstate(under="ignore"):
            for (first, last), inverse in zip(self._bounds, self._diagonal, strict=True):
                x[first:last] = inverse @ (x[first:last] - self._L[first:last, :first] @ x[:first])
            for (first, last), inverse in zip(reversed(self._bounds), reversed(self._diagonal), strict=True):
                x[first:last] = inverse.T @ (x[first:last] - x[last:] @ self._L[last:, first:last])
        return x.astype(np.float64) * scale
