"""Two sets of embeddings compared: rows that are nearly repeated, and how far apart the mean directions are."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray
from headeval.core.vectors import unit_vectors

# A few seconds of products; of more rows a sample is compared.
_PRODUCTS = 10**11
_PERMUTED_NUMBERS = 10**10  # about a second; larger samples get fewer permutations
_FEWEST_PERMUTATIONS = 99
_DRAWN_BYTES = 2**28  # of divisions at once
_BLOCK_ROWS = 2048
_RECHECKED_NUMBERS = 2**22  # at once, in float64


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """Rows of X that nearly repeat a row of Y.

    Attributes
    ----------
    rows : (k,) indices into X, increasing.
    matches : (k,) for each the index of its most similar row of Y, the first of equals.
    cosines : (k,) their cosines, in float64, at most 1.
    compared : how many rows of X were compared: all, or the size of a random sample.
    """

    rows: IntArray
    matches: IntArray
    cosines: FloatArray
    compared: int


@dataclass(frozen=True, slots=True)
class RowStream:
    """Embeddings that are read once more, matrix after matrix, since they are too many to be held.

    Attributes
    ----------
    n, dim : how many there are, and their width.
    matrices : returns them in order, as matrices of shape (m, dim), finite, of any m.
    """

    n: int
    dim: int
    matrices: Callable[[], Iterable[NDArray[Any]]]

    def only(self, rows: IntArray) -> "RowStream":
        """Return those of the rows, which are increasing, shape (k,)."""

        def chosen() -> Iterator[NDArray[Any]]:
            first = 0
            for matrix in self.matrices():
                start, stop = np.searchsorted(rows, [first, first + len(matrix)])
                yield matrix[rows[start:stop] - first]
                first += len(matrix)

        return RowStream(len(rows), self.dim, chosen)


@dataclass(frozen=True, slots=True)
class MeanShift:
    """How far apart the mean directions of two sets of embeddings are.

    Attributes
    ----------
    distance : ‖mean of the unit vectors of X − mean of those of Y‖, in [0, 2].
    distance_if_same : its mean over the permutations: never zero, and larger on fewer rows.
    cosine : of the two means; None where one of them is zero.
    p_value : (1 + permutations with at least this distance) / (1 + permutations).
    n_permutations : how many were drawn.
    """

    distance: float
    distance_if_same: float
    cosine: float | None
    p_value: float
    n_permutations: int


def near_duplicates(
    X: ArrayLike,
    Y: ArrayLike | RowStream,
    *,
    rng: np.random.Generator,
    min_cosine: float = 0.99,
    max_products: int = _PRODUCTS,
    block_rows: int = _BLOCK_ROWS,
) -> NearDuplicates:
    """Find for each row of X the most similar row of Y, where their cosine is at least `min_cosine`.

    Products are taken in float32; whatever their rounding leaves open is decided in float64, row by row, so that
    blocks of another size find the same. Many copies of a row make this slow: drop them first.

    Parameters
    ----------
    X, Y : (n, d) and (m, d), finite, n and m ≥ 1, of any numeric type. A zero row resembles nothing. Y may also be
        read while it is compared.
    rng : draws the rows of X to compare, where n·m·d exceeds `max_products`; not used otherwise.
    min_cosine : in (0, 1].
    max_products : ≥ 1, how many multiplications may be spent; one row of X is always compared.
    block_rows : ≥ 1, rows multiplied at once, which changes memory and speed only.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> found = near_duplicates([[1, 0], [5, 5]], [[0, 1], [4, 5]], rng=np.random.default_rng(0), min_cosine=0.9)
    >>> found.rows.tolist(), found.matches.tolist(), found.cosines.round(4).tolist(), found.compared
    ([1], [1], [0.9939], 2)
    """
    if isinstance(Y, RowStream):
        X, n_others, matrices = _beside(X, Y), Y.n, Y.matrices()
    else:
        X, Y = embedding_pair(X, Y)
        n_others, matrices = len(Y), iter([Y])
    min_cosine = checks.real_number("min_cosine", min_cosine, minimum=np.nextafter(0.0, 1.0), maximum=1.0)
    max_products = checks.whole_number("max_products", max_products, minimum=1)
    step = checks.whole_number("block_rows", block_rows, minimum=1)
    affordable = max(1, max_products // max(n_others * X.shape[1], 1))
    picked = np.arange(len(X))
    if affordable < len(X):
        picked = np.sort(rng.choice(len(X), affordable, replace=False))
    best, match = np.full(len(picked), -np.inf), np.zeros(len(picked), dtype=np.int64)
    first = 0
    for others in _units(matrices, step):
        for row in range(0, len(picked), step):
            part = slice(row, row + step)
            _improve(best[part], match[part], unit_vectors(X[picked[part]]), others, first, min_cosine)
        first += len(others)
    found = best >= min_cosine
    return NearDuplicates(picked[found], match[found], np.minimum(best[found], 1.0), len(picked))


def _units(matrices: Iterable[NDArray[Any]], step: int) -> Iterator[FloatArray]:
    """Return the rows of all matrices as unit vectors, at most `step` at once."""
    for matrix in matrices:
        for start in range(0, len(matrix), step):
            yield unit_vectors(matrix[start : start + step])


def mean_shift(X: ArrayLike, Y: ArrayLike, *, rng: np.random.Generator, n_permutations: int = 999) -> MeanShift:
    """Compare the mean directions of two sets of embeddings by permuting which rows belong to which set.

    Rows count as unit vectors. Fewer permutations are drawn, down to 99, where (n + m)·d·permutations would
    exceed 10¹⁰.

    Parameters
    ----------
    X, Y : (n, d) and (m, d), finite, n and m ≥ 1, of any numeric type.
    rng : draws the permutations.
    n_permutations : ≥ 1, at most this many.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> shift = mean_shift([[2.0, 0.0]], [[0.0, 3.0]], rng=np.random.default_rng(0))
    >>> round(shift.distance, 4), shift.cosine, shift.p_value
    (1.4142, 0.0, 1.0)
    """
    X, Y = embedding_pair(X, Y)
    n_permutations = checks.whole_number("n_permutations", n_permutations, minimum=1)
    affordable = _PERMUTED_NUMBERS // ((len(X) + len(Y)) * max(X.shape[1], 1))
    n_permutations = min(n_permutations, max(_FEWEST_PERMUTATIONS, affordable))
    few, many = (X, Y) if len(X) <= len(Y) else (Y, X)
    sums, total = _permuted_sums(few, many, 1 + n_permutations, rng)
    one, other = sums / len(few), (total - sums) / len(many)
    distances = np.linalg.norm(one - other, axis=1)
    lengths = float(np.linalg.norm(one[0]) * np.linalg.norm(other[0]))
    # Equal divisions differ in the last digits by the order of summation; they count as equal.
    reached = np.count_nonzero(distances[1:] >= distances[0] - 1e-9)
    return MeanShift(
        distance=float(distances[0]),
        distance_if_same=float(distances[1:].mean()),
        cosine=min(1.0, max(-1.0, float(one[0] @ other[0]) / lengths)) if lengths > 1e-18 else None,
        p_value=(1 + int(reached)) / (1 + n_permutations),
        n_permutations=n_permutations,
    )


def _permuted_sums(
    few: NDArray[Any], many: NDArray[Any], n_divisions: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of the unit vectors that each division gives to `few`, (n_divisions, d), and that of all, (d,).

    Division 0 is the one as it is, computed in the same way as the others.
    """
    n = len(few) + len(many)
    at_once = max(1, _DRAWN_BYTES // n)
    sums = np.zeros((n_divisions, few.shape[1]))
    for first in range(0, n_divisions, at_once):
        drawn = np.zeros((min(at_once, n_divisions - first), n), dtype=bool)
        for division, row in enumerate(drawn, start=first):
            row[np.arange(len(few)) if division == 0 else rng.choice(n, len(few), replace=False, shuffle=False)] = True
        total = np.zeros(few.shape[1])
        for table, offset in ((few, 0), (many, len(few))):
            for start in range(0, len(table), _BLOCK_ROWS):
                units = unit_vectors(table[start : start + _BLOCK_ROWS])
                mine = drawn[:, offset + start : offset + start + len(units)].astype(np.float64)
                sums[first : first + len(drawn)] += mine @ units
                total += units.sum(axis=0)
    return sums, total


def embedding_pair(X: ArrayLike, Y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both as 2-D arrays of their own types.

    Raises
    ------
    ValueError
        Unless they are finite, of the same width, and hold at least one row each.
    """
    both = _table("X", X), _table("Y", Y)
    if both[0].shape[1] != both[1].shape[1]:
        raise ValueError(f"X and Y must have the same width, got {both[0].shape[1]} and {both[1].shape[1]}")
    return both


def _beside(X: ArrayLike, Y: RowStream) -> NDArray[Any]:
    table = _table("X", X)
    if Y.n < 1 or table.shape[1] != Y.dim:
        raise ValueError(f"Y must have rows of the width {table.shape[1]}, got {Y.n} of the width {Y.dim}")
    return table


def _table(name: str, rows: ArrayLike) -> NDArray[Any]:
    array = np.asarray(rows)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.shape[0]:
        raise ValueError(f"{name} must be a 2-D array of numbers, got shape {array.shape} of {array.dtype}")
    for start in range(0, len(array), _BLOCK_ROWS):
        if not np.isfinite(array[start : start + _BLOCK_ROWS]).all():
            raise ValueError(f"{name} must be finite")
    return array


def _improve(
    best: FloatArray,
    match: IntArray,
    units: FloatArray,
    others: FloatArray,
    start: int,
    min_cosine: float,
) -> None:
    """Write better matches among `others`, which begin at row `start` of Y, into `best` and `match`."""
    # No order of summation of d products of unit vectors rounds by more than this.
    margin = 1.1 * (units.shape[1] + 4) * 2.0**-24
    products = units.astype(np.float32) @ others.astype(np.float32).T
    highest = products.max(axis=1)
    needed = np.maximum(np.maximum(best, min_cosine), highest - margin) - margin
    hopeful = np.flatnonzero(highest >= needed)
    if not hopeful.size:
        return
    near, column = np.nonzero(products[hopeful] >= needed[hopeful, None])
    if near.size > 8 * hopeful.size:  # cheaper once more as products, in float64, than pair by pair
        margin *= 2.0**-29
        exact = units[hopeful] @ others.T
        floor = np.maximum(np.maximum(best[hopeful], min_cosine), exact.max(axis=1) - margin) - margin
        near, column = np.nonzero(exact >= floor[:, None])
    row = hopeful[near]
    cosines = _cosines(units, row, others, column)
    # By row, then the highest cosine, then the first of Y; of each row the first entry counts.
    order = np.lexsort((column, -cosines, row))
    order = order[np.append(True, row[order][1:] != row[order][:-1])[: order.size]]
    better = order[cosines[order] > best[row[order]]]
    best[row[better]], match[row[better]] = cosines[better], start + column[better]


def _cosines(units: FloatArray, row: IntArray, others: FloatArray, column: IntArray) -> FloatArray:
    """Each is summed by itself, so that it does not depend on the others."""
    cosines = np.empty(row.size)
    step = max(1, _RECHECKED_NUMBERS // max(units.shape[1], 1))
    for start in range(0, row.size, step):
        part = slice(start, start + step)
        cosines[part] = (units[row[part]] * others[column[part]]).sum(axis=1)
    return cosines
