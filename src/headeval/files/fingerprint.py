"""Digests that tell equal rows from others, wherever they stand and however they are stored."""

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CHUNK_BYTES = 2**20
_DIGEST_BYTES = 16


def row_digests(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a digest of each row, shape (n, 2): the two halves of BLAKE2b with 16 bytes, big-endian.

    The bytes of a row are its embedding in little-endian float32, after it was multiplied by the power of two that
    brings its largest number into [1/2, 1), which changes no digit; or its score as little-endian float64. So copies of
    the same float32 numbers agree, be they stored as float64 or as decimals, and no range overflows. A negative zero
    counts as zero.

    Parameters
    ----------
    values : embeddings, shape (n, d), or scores, shape (n,).

    Examples
    --------
    >>> digests = row_digests(np.array([[0.25, 0.5], [0.25, 0.75], [0.25, 0.5]]))
    >>> bool((digests[0] == digests[2]).all()), bool((digests[0] == digests[1]).any())
    (True, False)
    """
    kind = "<f4" if values.ndim == 2 else "<f8"
    table = values if values.ndim == 2 else values[:, None]
    width = table.shape[1] * np.dtype(kind).itemsize
    digests = []
    step = max(1, _CHUNK_BYTES // width)
    for start in range(0, len(table), step):
        part = table[start : start + step]
        part = _levelled(part) if values.ndim == 2 else part
        with np.errstate(under="ignore"):
            # Adding zero turns -0.0 into 0.0 and leaves every other number as it is.
            rows = (part.astype(kind) + np.zeros((), dtype=kind)).tobytes()
        digests += [
            blake2b(rows[position : position + width], digest_size=_DIGEST_BYTES).digest()
            for position in range(0, len(rows), width)
        ]
    return np.frombuffer(b"".join(digests), dtype=">u8").reshape(-1, 2).astype(np.uint64)


def _levelled(rows: NDArray[Any]) -> NDArray[np.float64]:
    numbers = rows.astype(np.float64)
    exponents = np.frexp(np.abs(numbers).max(axis=1, initial=0.0))[1]
    with np.errstate(under="ignore"):
        levelled: NDArray[np.float64] = np.ldexp(numbers, -exponents[:, None])
    return levelled


def fingerprint(digests: NDArray[np.uint64], labels: NDArray[np.uint8]) -> str:
    """Return the number of rows and a digest of rows and labels that does not depend on their order.

    The digests of the rows are added modulo 2**128, those of the positives three times.

    Parameters
    ----------
    digests : of the rows, shape (n, 2).
    labels : shape (n,), 0 or 1.

    Examples
    --------
    >>> digests = row_digests(np.array([0.25, 0.75]))
    >>> a = fingerprint(digests, np.array([0, 1], dtype=np.uint8))
    >>> a == fingerprint(digests[::-1], np.array([1, 0], dtype=np.uint8)), a[:2]
    (True, '2:')
    """
    total = 0
    for (high, low), label in zip(digests.tolist(), labels.tolist(), strict=True):
        total += ((high << 64) + low) * (3 if label else 1)
    return f"{len(labels)}:{total % 2**128:032x}"
