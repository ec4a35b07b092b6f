"""Parts of a table that can be read apart from each other, on another machine too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headeval.files.locations import RemoteFile
from headeval.files.read_ahead import read_ahead
from headeval.files.table_file import Block, TableFile

_MOST_BYTES = 2**28  # a part is closed at this size, too


@dataclass(frozen=True, slots=True)
class TablePart:
    """Consecutive rows of one file: whole row groups of a Parquet file, or a CSV file. The value can be pickled.

    Attributes
    ----------
    file : the opened file.
    row_groups : the first row group and the one after the last; None for a CSV file.
    first_row : position in the file of the first row, from 0.
    n_rows : the number of rows; None for a CSV file.
    n_bytes : what the rows take uncompressed, all columns; of a CSV file its size.
    """

    file: TableFile
    row_groups: tuple[int, int] | None
    first_row: int
    n_rows: int | None
    n_bytes: int

    @property
    def begins_file(self) -> bool:
        """Whether its first row is the first of the file."""
        return self.row_groups is None or self.row_groups[0] == 0

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Return the rows in order, block by block; parameters and errors as for `Tables.blocks`."""
        wanted = None if columns is None else list(dict.fromkeys(columns))
        self.file.check(wanted or ())
        groups = None if self.row_groups is None else range(*self.row_groups)
        return read_ahead(self.file.blocks(wanted, groups, first_row=self.first_row))


def split(file: TableFile, rows_each: int) -> Iterator[TablePart]:
    """Yield the parts of a file: row groups are put together until they hold `rows_each` rows or many bytes.

    Raises
    ------
    ValueError : unless `rows_each` is at least 1.
    """
    if rows_each < 1:
        raise ValueError(f"rows_each must be at least 1, not {rows_each}")
    if file.is_csv:
        size = file.path.size if isinstance(file.path, RemoteFile) else file.path.stat().st_size
        yield TablePart(file, None, 0, None, size)
        return
    begin = first_row = rows = size = 0
    for number, (more_rows, more_bytes) in enumerate(file.row_groups):
        rows, size = rows + more_rows, size + more_bytes
        last = number + 1 == len(file.row_groups)
        if rows and (last or rows >= rows_each or size >= _MOST_BYTES):
            yield TablePart(file, (begin, number + 1), first_row, rows, size)
            begin, first_row, rows, size = number + 1, first_row + rows, 0, 0
