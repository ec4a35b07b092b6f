"""Embeddings as directions: a head sees unit vectors only."""

import numpy as np
from numpy.typing import ArrayLike

from headeval.core.checks import FloatArray


def unit_vectors(embeddings: ArrayLike) -> FloatArray:
    """Return each row divided by its Euclidean norm, in float64; a zero row stays zero.

    Parameters
    ----------
    embeddings : (n, d), finite, of any numeric type; not checked here.

    Returns
    -------
    units : (n, d), each row of length 1 or 0.

    Examples
    --------
    >>> unit_vectors([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    u = np.array(embeddings, dtype=np.float64, ndmin=2, order="C")
    with np.errstate(under="ignore", over="ignore"):
        norm = _norms(u)
        # Squares of huge or tiny entries leave the range of float64: such rows are first brought
        # to a largest entry of one. All others keep the plain quotient e/‖e‖ that readers compute.
        extreme = ~((norm > 1e-140) & (norm < 1e140))
        if extreme.any():
            largest = np.abs(u[extreme]).max(axis=1, keepdims=True, initial=0.0)
            u[extreme] = np.divide(u[extreme], largest, out=np.zeros_like(u[extreme]), where=largest > 0)
            norm[extreme] = _norms(u[extreme])
        norm[norm == 0] = 1.0
        u /= norm[:, None]
    return u


def _norms(u: FloatArray) -> FloatArray:
    """Euclidean norms of the rows; each row is summed by itself, so that its norm does not depend on the others."""
    norms: FloatArray = np.sqrt(np.square(u).sum(axis=1))
    return norms
