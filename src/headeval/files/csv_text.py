"""CSV files as a stream of record batches in which every cell is text.

Types are given to single columns later, by those who need numbers: a column read as text passes through unchanged,
and what a cell means never depends on which cells happened to come first.
"""

import codecs
import csv
import io
import re
import secrets
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

import pyarrow as pa
import pyarrow.csv

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.locations import Location
from headeval.printable import quoted

# One row must fit into a block: this holds vectors of some hundred thousand numbers.
BLOCK_BYTES = 8 * 2**20
_HEADER_BYTES = 4 * 2**20
_BOM = b"\xef\xbb\xbf"
# A row put behind the last one. Where a quote is never closed, it ends up inside the cell, which is how it is found.
# Nobody who writes a file can know it, and so pass the last of their own rows off as this one.
_LAST_ROW = f"\0end of file {secrets.token_hex(8)}\0"
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns?, got (\d+)")
_NOT_UTF8 = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?.*invalid UTF8")
# A cell and what ends it. A quote opens a quoted cell only as the first character; anywhere else it is text.
_CELL = re.compile(rb'(?:"[^"]*+(?:""[^"]*+)*+"|(?!"))[^,\r\n]*+(,|\r\n|\n|\r|)')
_UNSAFE_NAMES = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def read_header(path: Location) -> tuple[tuple[str, ...], int]:
    """Return the column names of a CSV file and the offset in bytes of its first row.

    Raises
    ------
    DataError : where the file is not UTF-8, has no rows, or separates its columns by something other than a comma.
    """
    with reading(path), path.open("rb") as stream:
        start = stream.read(_HEADER_BYTES)
    _refuse_other_encodings(path, start)
    begin = len(_BOM) if start.startswith(_BOM) else 0
    while start[begin : begin + 1] in (b"\n", b"\r"):
        begin += 1
    end = _end_of_line(start, begin)
    if end is None and len(start) == _HEADER_BYTES:
        raise DataError(f"{shown(path)}: the header line does not end; a quote in it may not be closed")
    names = _names(path, start[begin:end])
    if len(names) == 1:
        _refuse_other_separators(path, names[0])
    if end is None or (len(start) < _HEADER_BYTES and not start[end:].strip(b"\r\n")):
        raise DataError(f"{shown(path)} holds a header but no rows")
    return names, end


def read_batches(path: Location, names: tuple[str, ...], offset: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows from byte `offset` on as batches of text columns; their names are the positions "0", "1", ….

    Positions, since the names of a file need not be unique. An empty cell is the empty text, never a null.

    Raises
    ------
    DataError : for rows with too few or too many cells, text that is not UTF-8, or a quote that is never closed.
    """
    with reading(path):
        stream = path.open("rb")
    with stream:
        stream.seek(offset)
        waiting: pa.RecordBatch | None = None
        rows = 0
        marked = _EndMarked(stream, len(names))
        for batch in _parsed(path, marked, names):
            if waiting is not None:
                rows += waiting.num_rows
                yield waiting
            waiting = batch
        if waiting is None or waiting.column(0)[-1].as_py() != _LAST_ROW:
            rows += 0 if waiting is None else waiting.num_rows
            raise DataError(f"{shown(path)}: a quote that opens in row {rows} is never closed")
        if not marked.is_text:
            raise DataError(f"{shown(path)} is not UTF-8 text: save it as UTF-8")
        if waiting.num_rows > 1:
            yield waiting.slice(0, waiting.num_rows - 1)


def _parsed(path: Location, stream: io.RawIOBase, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    positions = [str(number) for number in range(len(names))]
    rows = 0
    try:
        batches = pyarrow.csv.open_csv(
            stream,
            # With threads, pyarrow leaves the row number out of its errors.
            pyarrow.csv.ReadOptions(column_names=positions, block_size=BLOCK_BYTES, use_threads=False),
            pyarrow.csv.ParseOptions(newlines_in_values=True),
            pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(positions, pa.string()), strings_can_be_null=False),
        )
    except (pa.ArrowException, ValueError, OSError) as error:
        _explain(path, names, error, rows)
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, ValueError, OSError) as error:
            _explain(path, names, error, rows)
        if batch is None:
            return
        if batch.num_rows:
            rows += batch.num_rows
            yield batch


def _explain(path: Location, names: tuple[str, ...], error: Exception, rows: int) -> NoReturn:
    """Raise what pyarrow's parser said in the words of this project."""
    text = str(error)
    if ragged := _RAGGED.search(text):
        row, expected, found = ragged.groups()
        raise DataError(
            f"{shown(path)}: row {row} has {found} cells, the header {expected}; "
            "a cell with a comma must stand in double quotes, and every quote must be closed"
        ) from error
    if broken := _NOT_UTF8.search(text):
        place = f"row {broken[2]}, " if broken[2] else ""
        column = names[int(broken[1])] if int(broken[1]) < len(names) else ""
        raise DataError(f"{shown(path)}: {place}column {quoted(column)} is not UTF-8 text; save as UTF-8") from error
    if "straddl" in text:
        raise DataError(
            f"{shown(path)}: a row after row {rows} is longer than {BLOCK_BYTES // 2**20} MiB; "
            "a quote in it may not be closed"
        ) from error
    with reading(path):
        raise error
    raise AssertionError  # `reading` has turned the error into a DataError


def _refuse_other_encodings(path: Location, start: bytes) -> None:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{shown(path)} is UTF-16 text: save it as UTF-8")


def _refuse_other_separators(path: Location, name: str) -> None:
    for separator, word in _UNSAFE_NAMES.items():
        if separator in name:
            raise DataError(f"{shown(path)} separates its columns by {word}: headeval reads commas; save it so")


def _end_of_line(start: bytes, begin: int) -> int | None:
    """Return where the first line ends, line breaks inside quoted cells not counted; None if it does not."""
    cell = _CELL.match(start, begin)
    while cell is not None and cell[1] == b",":
        cell = _CELL.match(start, cell.end())
    return cell.end() if cell is not None and cell[1] else None


def _names(path: Location, line: bytes) -> tuple[str, ...]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{shown(path)}: the header is not UTF-8 text; save the file as UTF-8") from error
    try:
        names = next(csv.reader(io.StringIO(text, newline=""), strict=True), [])
    except csv.Error as error:
        raise DataError(f"{shown(path)}: the header line is no CSV: {error}") from error
    if not names:
        raise DataError(f"{shown(path)} holds no header line")
    return tuple(names)


class _EndMarked(io.RawIOBase):
    """A binary stream followed by one more row, `_LAST_ROW`, with empty cells up to `width`.

    It begins with a byte-order mark, which Arrow takes away: else it would take away one that begins the first cell.
    Arrow looks at cells without their quotes: a character cut in two by a quote would be whole, in a file that is no
    text. So `is_text` says whether all that was read is UTF-8.
    """

    def __init__(self, stream: BinaryIO, width: int) -> None:
        self._stream: Any = stream  # `readinto` is not declared of every binary stream
        self._mark = _BOM
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.is_text = True
        self._tail = io.BytesIO(f"\n{_LAST_ROW}{',' * (width - 1)}\n".encode())

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the stubs ask for any buffer
        begin, self._mark = len(self._mark), b""
        buffer[:begin] = _BOM[:begin]
        rest = memoryview(buffer)[begin:]
        length = int(self._stream.readinto(rest) or 0)
        if self.is_text:
            try:
                self._decoder.decode(bytes(rest[:length]))
            except UnicodeDecodeError:
                self.is_text = False
        return begin + (length or self._tail.readinto(rest))
