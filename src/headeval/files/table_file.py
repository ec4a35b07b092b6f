"""One opened Parquet or CSV file, and its rows block by block."""

import difflib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.locations import Location
from headeval.printable import quoted

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES_SHOWN = 12
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*")
_FAMILY = 3  # more numbered columns in a row than this are shown as a range


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of one file.

    Attributes
    ----------
    path : the file.
    first_row : position in the file of the first row, from 0, the header not counted.
    batch : the rows, at most 65,536; from a CSV file every column is text.
    is_csv : whether the file is a CSV file.
    """

    path: Location
    first_row: int
    batch: "pa.RecordBatch"
    is_csv: bool = False


@dataclass(frozen=True, slots=True)
class TableFile:
    """One opened file: its columns and what it says about itself.

    Attributes
    ----------
    path : the file.
    schema : its columns; those of a CSV file are text.
    n_rows : how many rows a Parquet file announces; None for a CSV file.
    offset : the byte at which the rows of a CSV file begin.
    metadata : the schema metadata, as far as it is text.
    row_groups : rows and bytes (uncompressed) of each row group of a Parquet file.
    """

    path: Location
    schema: "pa.Schema"
    n_rows: int | None
    offset: int
    metadata: Mapping[str, str]
    row_groups: tuple[tuple[int, int], ...] = ()

    @property
    def is_csv(self) -> bool:
        """Whether the file is a CSV file; its schema is text columns."""
        return self.n_rows is None

    def field(self, name: str, *, option: str = "") -> "pa.Field":
        """Return the one column called `name`; `option` is the one that names it, for the message.

        Raises
        ------
        DataError : where there is no such column, or several.
        """
        # An argument that is not UTF-8 names no column: Arrow, whose names all are, would not even look.
        positions = self.schema.get_all_field_indices(name) if name.isascii() or _is_unicode(name) else []
        if len(positions) != 1 and self.is_csv and _begin_with_data(self.schema.names):
            raise DataError(
                f"{shown(self.path)} has no column {quoted(name)}: its first line looks like data "
                f"({families(self.schema.names, longest=3)}): is the header missing?"
            )
        if len(positions) > 1:
            raise DataError(f"{shown(self.path)} has {len(positions)} columns {quoted(name)}: rename all but one")
        if not positions:
            names = list(self.schema.names)
            hint = _closest(name, names)
            advice = f"; name another with {option} COL" if option else ""
            raise DataError(
                f"{shown(self.path)} has no column {quoted(name)}{hint}; its columns are {families(names)}{advice}"
            )
        return self.schema.field(positions[0])

    def refuse_data_as_header(self, names: Sequence[str]) -> None:
        """Refuse a header of numbers of which `names`, taken for dimensions, do not just count.

        Raises
        ------
        DataError : asks whether the header is missing.
        """
        if self.is_csv and names and _begin_with_data(self.schema.names) and not _count_columns(names):
            raise DataError(f"{shown(self.path)}: the first line looks like data: is the header missing?")

    def check(self, columns: Sequence[str]) -> None:
        """Refuse names of which there is not just one column.

        Raises
        ------
        DataError : for the first of them.
        """
        for name in columns:
            self.field(name)

    def blocks(
        self, columns: Sequence[str] | None, row_groups: range | None = None, *, first_row: int = 0
    ) -> Iterator[Block]:
        """Yield the rows in order, of a Parquet file those of `row_groups` alone, the first of which is `first_row`."""
        from headeval.files.parquet_rows import MOST_ROWS

        for batch in _batches(self, columns, row_groups):
            for start in range(0, batch.num_rows, MOST_ROWS):
                part = batch.slice(start, MOST_ROWS)
                yield Block(self.path, first_row, part, self.is_csv)
                first_row += part.num_rows


def _count_columns(names: Sequence[str]) -> bool:
    """Whether `names` are no numbers, or those from 0 or 1 on: data hardly look like that."""
    plain = sorted(name.strip() for name in names)
    counted = ({str(n + first) for n in range(len(plain))} == set(plain) for first in (0, 1))
    return not all(map(_NUMBER.fullmatch, plain)) or any(counted)


def _begin_with_data(names: Sequence[str]) -> bool:
    """Whether a header holds nothing but numbers, or one that can number no column."""
    numbers = [name.strip() for name in names if _NUMBER.fullmatch(name)]
    return 1 < len(numbers) == len(names) or not all(map(str.isdigit, numbers))


def _is_unicode(name: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _batches(file: TableFile, columns: Sequence[str] | None, row_groups: range | None) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    from headeval.files import csv_text, parquet_rows

    if file.n_rows is not None:
        groups = range(len(file.row_groups)) if row_groups is None else row_groups
        n_rows = sum(file.row_groups[number][0] for number in groups)
        for batch in parquet_rows.read_batches(file.path, columns or file.schema.names, groups, n_rows):
            with reading(file.path):
                ordered = batch if columns is None else batch.select(columns)
            yield ordered
        return
    names = tuple(file.schema.names)
    at = {name: position for position, name in enumerate(names)}  # of those that are wanted there is one each
    positions = range(len(names)) if columns is None else [at[name] for name in columns]
    for batch in csv_text.read_batches(file.path, names, file.offset):
        arrays = [batch.column(position) for position in positions]
        yield pa.RecordBatch.from_arrays(arrays, names=[names[position] for position in positions])


def families(names: Sequence[str], *, longest: int = _NAMES_SHOWN) -> str:
    """Return up to `longest` column names as text; numbered ones of one prefix as the first and the last."""
    shown_names = []
    for prefix, group in itertools.groupby(names, key=_prefix):
        members = list(group)
        if len(members) > _FAMILY and prefix is not None:
            shown_names.append(f"{quoted(members[0])} … {quoted(members[-1])}")
        else:
            shown_names += [quoted(name) for name in members]
    more = len(shown_names) - longest
    return ", ".join(shown_names[:longest]) + (f" and {more} more" if more > 0 else "")


def _prefix(name: str) -> str | None:
    bare = name.rstrip("0123456789")
    return bare if bare != name else None


def _closest(name: str, names: Sequence[str]) -> str:
    folded = {other.strip().casefold(): other for other in names}
    close = difflib.get_close_matches(name.strip().casefold(), folded, n=1)
    return f" (did you mean {quoted(folded[close[0]])}?)" if close else ""
