"""One short text that tells whether two evaluations saw the same rows."""

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CHUNK_BYTES = 2**20


def fingerprint(values: NDArray[Any] | None, labels: NDArray[np.uint8]) -> str:
    """Return the number of rows and a digest that depends on the rows but not on their order.

    The digests (BLAKE2b, 16 bytes, big-endian) of the rows are added modulo 2**128. The bytes of a row are its
    embedding as little-endian float32, or its score as little-endian float64, and one byte for its label. A negative
    zero counts as zero.

    Parameters
    ----------
    values : embeddings, shape (n, d), or scores, shape (n,), or None for labels alone.
    labels : shape (n,), 0 or 1.

    Examples
    --------
    >>> a = fingerprint(np.array([0.25, 0.75]), np.array([0, 1], dtype=np.uint8))
    >>> a == fingerprint(np.array([0.75, 0.25]), np.array([1, 0], dtype=np.uint8))
    True
    >>> a[:2]
    '2:'
    """
    n = len(labels)
    if values is None:
        values = np.empty((n, 0), dtype="<f4")
    kind = "<f4" if values.ndim == 2 else "<f8"
    table = values.reshape(n, -1)
    width = table.shape[1] * np.dtype(kind).itemsize + 1
    step = max(1, _CHUNK_BYTES // width)
    total = 0
    for start in range(0, n, step):
        rows = _bytes(table[start : start + step], labels[start : start + step], kind)
        for position in range(0, len(rows), width):
            digest = blake2b(rows[position : position + width], digest_size=16).digest()
            total += int.from_bytes(digest, "big")
    return f"{n}:{total % 2**128:032x}"


def _bytes(table: NDArray[Any], labels: NDArray[np.uint8], kind: str) -> bytes:
    with np.errstate(over="ignore", under="ignore"):
        # Adding zero turns -0.0 into 0.0 and leaves every other number as it is.
        numbers = np.ascontiguousarray(table.astype(kind) + np.zeros((), dtype=kind))
    numbers = numbers.view(np.uint8).reshape(len(labels), numbers.shape[1] * np.dtype(kind).itemsize)
    return np.concatenate([numbers, labels[:, None]], axis=1).tobytes()
