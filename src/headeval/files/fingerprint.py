"""Digests that tell equal rows from others, wherever they stand and however they are stored."""

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CHUNK_BYTES = 2**20
_CHUNK_DIGESTS = 2**16  # of which sums of 32 bits, times 2**16 for the last of all classes, stay below 2**64
_DIGEST_BYTES = 16
# Powers of two that both float32 and float64 hold exactly, so that a product with one is rounded as `ldexp` rounds.
_LARGEST_EXPONENT = 126
_MASK = np.uint64(2**32 - 1)


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
    kind = np.dtype("<f4" if values.ndim == 2 else "<f8")
    table = values if values.ndim == 2 else values[:, None]
    width = table.shape[1] * kind.itemsize
    digests: list[bytes] = []
    step = max(1, _CHUNK_BYTES // width)
    for start in range(0, len(table), step):
        part = table[start : start + step]
        rows = np.empty(part.shape, dtype=kind)
        with np.errstate(under="ignore"):
            if values.ndim == 2:
                _level(part, rows)
            else:
                rows[...] = part
        rows += np.zeros((), dtype=kind)  # turns -0.0 into 0.0 and leaves every other number as it is
        view = rows.data.cast("B")
        digests += [
            blake2b(view[position : position + width], digest_size=_DIGEST_BYTES).digest()
            for position in range(0, len(view), width)
        ]
    return np.frombuffer(b"".join(digests), dtype=">u8").reshape(-1, 2).astype(np.uint64)


def zero_digest(dim: int) -> np.uint64:
    """Return the first half of the digest of an embedding of zeros.

    Examples
    --------
    >>> bool(row_digests(np.array([[0.0, -0.0, 0.0]]))[0, 0] == zero_digest(3))
    True
    """
    return np.uint64(row_digests(np.zeros((1, dim), dtype=np.float32))[0, 0])


def _level(rows: NDArray[Any], levelled: NDArray[np.float32]) -> None:
    """Write the rows, each multiplied by its power of two, into `levelled`; every number is rounded once."""
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    largest = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0))
    exponents = np.frexp(largest)[1]
    usual = np.abs(exponents) <= _LARGEST_EXPONENT
    if usual.all():
        np.multiply(rows, np.ldexp(np.ones((), rows.dtype), -exponents)[:, None], out=levelled, casting="same_kind")
    else:
        levelled[...] = np.ldexp(rows.astype(np.float64), -exponents[:, None])


def fingerprint(digests: NDArray[np.uint64], labels: NDArray[np.uint8] | NDArray[np.int16]) -> str:
    """Return the number of rows and a digest of rows and labels that does not depend on their order.

    The digests of the rows are added modulo 2**128, those of the positives three times; of more than two classes those
    of class c 2c + 1 times.

    Parameters
    ----------
    digests : of the rows, shape (n, 2).
    labels : shape (n,), 0 or 1, or the codes of classes.

    Examples
    --------
    >>> digests = row_digests(np.array([0.25, 0.75]))
    >>> a = fingerprint(digests, np.array([0, 1], dtype=np.uint8))
    >>> a == fingerprint(digests[::-1], np.array([1, 0], dtype=np.uint8)), a[:2]
    (True, '2:')
    """
    total = 0
    for start in range(0, len(labels), _CHUNK_DIGESTS):
        part = slice(start, start + _CHUNK_DIGESTS)
        times = 2 * labels[part].astype(np.uint64) + np.uint64(1)
        high, low = digests[part, 0], digests[part, 1]
        for limb, shift in (
            (high >> np.uint64(32), 96),
            (high & _MASK, 64),
            (low >> np.uint64(32), 32),
            (low & _MASK, 0),
        ):
            total += int((limb * times).sum(dtype=np.uint64)) << shift
    return f"{len(labels)}:{total % 2**128:032x}"
