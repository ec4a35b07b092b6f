"""Rows that cannot be used: the first are named, the rest are counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.locations import Location
from headeval.printable import quoted

ROWS_NAMED = 5
_CELL_SHOWN = 40


@dataclass(slots=True)
class RowFaults:
    """The first kind of fault that is met, and the rows of its file that have it.

    A fault is not raised where it is met: reading goes on to the end of the file, so that all its rows are counted.
    """

    path: Location | None = None
    problem: str = ""
    advice: str = ""
    rows: list[int] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    count: int = 0

    def __bool__(self) -> bool:
        return self.count > 0

    def add(self, path: Location, rows: NDArray[np.int64], problem: str, advice: str, cells: Iterable[object]) -> None:
        """Note that `rows` (numbers from 1) of `path` have `problem`; another kind of fault than the first is ignored.

        `cells` are what these rows hold, or nothing where that says no more than the problem does.
        """
        if not self:
            self.path, self.problem, self.advice = path, problem, advice
        elif (self.path, self.problem) != (path, problem):
            return
        free = ROWS_NAMED - len(self.rows)
        self.count += len(rows)
        self.rows += rows[:free].tolist()
        self.cells += [quoted(cell, longest=_CELL_SHOWN) for _, cell in zip(range(free), cells, strict=False)]

    def take(self, fault: "RowFaults", path: Location) -> None:
        """Note a fault that was met elsewhere, in later rows of `path`, as `add` does."""
        if not self:
            self.path, self.problem, self.advice = path, fault.problem, fault.advice
        elif (self.path, self.problem) != (path, fault.problem):
            return
        free = ROWS_NAMED - len(self.rows)
        self.count += fault.count
        self.rows += fault.rows[:free]
        self.cells += fault.cells[:free]

    def raise_if_any(self, *, unless_in: Location | None = None) -> None:
        """Raise the fault, unless it is in the file `unless_in`, which is still being read.

        Raises
        ------
        DataError : naming the file, the problem and the rows.
        """
        if not self or self.path is None or self.path == unless_in:
            return
        held = f" ({', '.join(self.cells)})" if self.cells else ""
        advice = f"; {self.advice}" if self.advice else ""
        rows = rows_text(self.rows, self.count)
        raise DataError(f"{shown(self.path)}: {self.problem} in {rows}{held}{advice}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the values at hand come from: a file, the numbers (from 1) of its rows, and where their faults go."""

    path: Location
    rows: NDArray[np.int64]
    is_csv: bool
    faults: RowFaults

    def of(self, rows: NDArray[np.bool_]) -> "Place":
        """Return the place of some of the rows, given as a mask."""
        return Place(self.path, self.rows[rows], self.is_csv, self.faults)

    def fault(
        self, where: NDArray[np.bool_], problem: str, *, advice: str = "", cells: Sequence[object] | None = None
    ) -> None:
        """Note `problem` for the rows of the mask `where`; `cells` are what these rows, and only these, hold."""
        self.faults.add(self.path, self.rows[where], problem, advice, () if cells is None else cells)


def rows_text(rows: Sequence[int], count: int) -> str:
    """Return the row numbers as text, all of them counted where there are more.

    Examples
    --------
    >>> rows_text([3], 1), rows_text([3, 7], 2), rows_text([1, 2, 3], 1200)
    ('row 3', 'rows 3 and 7', '1200 rows, the first 1, 2 and 3')
    """
    *most, last = [str(row) for row in rows]
    named = f"{', '.join(most)} and {last}" if most else last
    if count > len(rows):
        return f"{count} rows, the first {named}"
    return f"rows {named}" if most else f"row {named}"
