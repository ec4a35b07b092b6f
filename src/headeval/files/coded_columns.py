"""Columns of names while they are gathered, and afterwards: their distinct values and the code of each row."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.files.categories import MISSING, Categories
from headeval.files.growing import GrowingArray

NULL_SLICE = "(null)"


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of names: its distinct values in the order in which they are met, and the code of each row, (n,).

    Examples
    --------
    >>> column = Coded(("b", "a"), np.array([0, 1, 0, MISSING], dtype=np.int32))
    >>> column.counts(), column.row_texts().tolist()
    ({'b': 2, 'a': 1}, ['b', 'a', 'b', '(null)'])
    """

    texts: tuple[str, ...]
    codes: NDArray[np.int32]

    def of(self, rows: NDArray[np.bool_]) -> "Coded":
        """Return the column of some rows, given as a mask; a value that none of them has is no value of it."""
        codes = self.codes[rows]
        used = np.flatnonzero(self._times(codes))
        new = np.full(len(self.texts) + 1, MISSING, dtype=np.int32)  # the last stands for MISSING, -1
        new[used] = np.arange(len(used))
        return Coded(tuple(self.texts[code] for code in used), new[codes])

    def counts(self) -> dict[str, int]:
        """Return how many rows have each value."""
        times = self._times(self.codes)
        return {text: int(count) for text, count in zip(self.texts, times, strict=True)}

    def mapped(self, values: Mapping[str, int], kind: type[Any], missing: int) -> NDArray[Any]:
        """Return for each row what stands for its value, `missing` where it has none, shape (n,)."""
        table = np.array([*(values.get(text, missing) for text in self.texts), missing], dtype=kind)
        rows: NDArray[Any] = table[self.codes]
        return rows

    def ranks(self) -> NDArray[np.int64]:
        """Return the rank of each row's value among the texts, shape (n,), which no row order changes."""
        rank = np.empty(len(self.texts), dtype=np.int64)
        rank[sorted(range(len(self.texts)), key=self.texts.__getitem__)] = np.arange(len(self.texts))
        rows: NDArray[np.int64] = rank[self.codes]
        return rows

    def row_texts(self) -> NDArray[np.object_]:
        """Return the text of each row, shape (n,); for a null what `null_text` says."""
        # The last element is the one that the code MISSING, -1, stands for.
        return np.array([*self.texts, null_text(self.texts)], dtype=object)[self.codes]

    def _times(self, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        times: NDArray[np.int64] = np.bincount(codes[codes != MISSING], minlength=len(self.texts))
        return times


class CodedColumn:
    """A column of names that is being gathered."""

    def __init__(self, name: str, n_rows: int | None, *, numbers_in_text: bool, blank_is_missing: bool) -> None:
        self.name = name
        self.categories = Categories(name, numbers_in_text=numbers_in_text, blank_is_missing=blank_is_missing)
        self.codes = GrowingArray(np.int32, expected=n_rows)

    def join(self, coded: Coded) -> None:
        """Take the rows of a part, which was coded by itself."""
        codes = [self.categories.code_of(text) for text in coded.texts]
        # The last element is the one that the code MISSING, -1, stands for.
        self.codes.append(np.array([*codes, MISSING], dtype=np.int32)[coded.codes])

    def coded(self) -> Coded:
        """Return the rows; none may come afterwards."""
        return Coded(tuple(self.categories.texts), self.codes.array())


def null_text(texts: Collection[str]) -> str:
    """Return what stands for a null beside the values `texts`: "(null)", or with a number where that is a value.

    Examples
    --------
    >>> null_text(["en"]), null_text(["en", "(null)"]), null_text(["(null)", "(null, 2)"])
    ('(null)', '(null, 2)', '(null, 3)')
    """
    text, number = NULL_SLICE, 1
    while text in texts:
        number += 1
        text = f"({NULL_SLICE[1:-1]}, {number})"
    return text
