"""An array that takes blocks of rows, whether or not their number is known beforehand."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingArray:
    """Rows in one piece of memory that is made larger in place, so that the rows are never held twice.

    Parameters
    ----------
    dtype : of the array.
    expected : how many rows will come, or None.

    Examples
    --------
    >>> rows = GrowingArray(np.int64, expected=None)
    >>> rows.append(np.array([1, 2])); rows.append(np.array([3]))
    >>> rows.array()
    array([1, 2, 3])
    """

    def __init__(self, dtype: DTypeLike, *, expected: int | None) -> None:
        self._dtype = np.dtype(dtype)
        self._expected = expected
        self._data: NDArray[Any] | None = None
        self._used = 0

    def append(self, rows: NDArray[Any]) -> None:
        """Add `rows`, shape (n,) or (n, d), with the same d every time."""
        needed = self._used + len(rows)
        if self._data is None:
            self._data = self._reserve(needed, rows.shape[1:])
        if needed > len(self._data):
            self._resize(max(needed, len(self._data) * 3 // 2))
        self._data[self._used : needed] = rows
        self._used = needed

    def array(self) -> NDArray[Any]:
        """Return the rows; nothing may be appended afterwards."""
        if self._data is None:
            return np.empty(0, dtype=self._dtype)
        if self._used < len(self._data):
            self._resize(self._used)
        return self._data

    def _reserve(self, needed: int, shape: tuple[int, ...]) -> NDArray[Any]:
        try:
            return np.empty((max(needed, self._expected or 0), *shape), dtype=self._dtype)
        except (MemoryError, ValueError):
            # A damaged file may announce any number of rows.
            return np.empty((needed, *shape), dtype=self._dtype)

    def _resize(self, rows: int) -> None:
        if self._data is not None:
            # No other reference to the memory is ever given out before `array`, so the check for one is left out:
            # it counts the references of a debugger or a profiler, too.
            self._data.resize((rows, *self._data.shape[1:]), refcheck=False)
