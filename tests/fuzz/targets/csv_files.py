"""CSV files: the cells that Python's own reader finds, or a DataError of a line or two."""

import csv
import io
from typing import Any

from fuzz.promises import check_message, scratch
from headeval.errors import DataError
from headeval.files.tables import open_tables

# fmt: off
WORDS = (
    b",", b'"', b'""', b"\n", b"\r\n", b"\r", b"\x00", b"\xef\xbb\xbf", b"\xff\xfe", b";", b"\t", b"|", b" ", b"#",
    b'","', b'"\n"', b"a,b\n", b"1,2\n", b"\0end of file\0", b"\xc2\x85", b"\xe2\x80\xa8", b"\x0b", b"\x0c", b"\x1c",
    b'"a\nb"', b"NA", b"=cmd()", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"'", b"\\", b",,",
)
# fmt: on


def seeds() -> list[bytes]:
    """Return small files, right and wrong."""
    return [
        b"a,b\n1,2\n3,4\n",
        b'"a","b"\r\n"1, and","2 ""said"""\r\n,\r\n',
        b'\xef\xbb\xbfid,text\n1,"two\nlines"\n\n2,last',
        b'a,b\n1,"never closed\n2,3\n',
        b"a;b\n1;2\n",
        b"a\n1\n2\n",
        b"a,b\n1\n1,2,3\n",
        b"a,b\n1,\xff\n",
        b'a,b\n1"x",y" z"\n',
    ]


def check(data: bytes) -> None:
    """Read `data` as a CSV file; what is read must be what `csv` reads."""
    path = scratch() / "table.csv"
    path.write_bytes(data)
    try:
        tables = open_tables([str(path)])
        names = tuple(tables.files[0].schema.names)
        rows = [row for block in tables.files[0].blocks(None) for row in _rows(block.batch.columns)]
    except DataError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        check_message(refused, names=path)
        assert not _is_plain(data), f"a plain table is refused: {refused}"
        return
    text = data.decode("utf-8").removeprefix("\ufeff")
    expected = [tuple(row) for row in csv.reader(io.StringIO(text, newline="")) if row]
    assert names == expected[0]
    assert rows == expected[1:], f"{rows} != {expected[1:]}"


def _is_plain(data: bytes) -> bool:
    """Whether nobody could object to the file: every row has the cells of the header, every quote its end."""
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
        header, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except (ValueError, csv.Error):
        return False
    return len(header) > 1 and len(rows) > 0 and {*map(len, rows)} == {len(header)} and "\0" not in text


def _rows(columns: list[Any]) -> list[tuple[str, ...]]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
