"""Embeddings written as text in cells: the numbers that the text says, or the rows that are at fault."""

import json
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa

from fuzz.promises import check_message
from headeval.errors import DataError
from headeval.files.row_faults import Place, RowFaults
from headeval.files.vector_text import read_vector_cells
from headeval.files.vectors import EmbeddingColumns, VectorReader

# fmt: off
WORDS = (
    b"\x00", b"[", b"]", b",", b", ", b" ", b"\n", b"\t", b"0.1", b"-0", b"1.", b".5", b"+1", b"1e5", b"1E-400",
    b"1e999", b"NaN", b"null", b"inf", b"...", "…".encode(), b"[0.1, -0.2]", b"[1 2]", b"0x10", b"1_000", b"\xc2\xa0",
    b"\x0b", "٣".encode(), b'"1"', b"[[1]]", b"1" * 400, b"0." + b"1" * 30, b"2.2250738585072011e-308",
    b"9007199254740993", b"\r\n",
)
# fmt: on
_BLANKS = " \t\r\n"
_FILE = Path("vectors.csv")


def seeds() -> list[bytes]:
    """Return columns of cells; a NUL parts two cells."""
    return [
        b"[0.1, -0.2]\x00[1,2]\x00[3e5,-0.0]",
        b"[0.1, -0.2]\x00[1,2]\x001 2",
        b"0.1 0.2\x000.3 0.4",
        b"[ 1. .5 +3 ]\x00[1\n 2\n 3]",
        b"[0.1 0.2 ... 0.9]\x00[0.1, 0.2, NaN]\x00\x00[]\x005",
        b"[1e999, 2]\x00[1, 2]",
        b"[1, 2]\x00[1, 2, 3]",
        b'["1", 2]\x00[true, 1]\x00[[1], 2]',
    ]


def check(data: bytes) -> None:
    """Read the cells in one column and hold the numbers, or the rows at fault, against a reading cell by cell."""
    try:
        cells = data.decode("utf-8").split("\x00")
    except UnicodeDecodeError:
        return  # text columns are UTF-8: whoever reads the file has refused anything else
    expected = [_numbers(cell) for cell in cells]
    faults = RowFaults()
    place = Place(_FILE, np.arange(1, len(cells) + 1), is_csv=True, faults=faults)
    read = read_vector_cells(pa.array(cells, pa.string()), "column 'v'", place)
    bad = [row for row, numbers in enumerate(expected, 1) if numbers is None]
    if read is None:
        assert bad, f"refused, though every cell is a vector: {faults}"
        assert faults.count <= len(bad)
        assert {*faults.rows} <= {*bad}, f"rows {faults.rows} are refused, at fault are {bad}"
    else:
        assert not bad, f"rows {bad} are no vectors, and yet they were read"
        values, lengths = read
        assert lengths.tolist() == [len(numbers or []) for numbers in expected]
        assert _bits(values.tolist()) == _bits([number for numbers in expected for number in numbers or []])
    _check_matrix(cells, expected)


def _check_matrix(cells: list[str], expected: list[list[float] | None]) -> None:
    """The same cells as a matrix: of one width and finite, or a message."""
    faults = RowFaults()
    place = Place(_FILE, np.arange(1, len(cells) + 1), is_csv=True, faults=faults)
    batch = pa.RecordBatch.from_arrays([pa.array(cells, pa.string())], names=["v"])
    matrix = VectorReader(EmbeddingColumns(("v",), wide=False, dtype=np.float64)).read(batch, place)
    if matrix is not None:
        assert np.isfinite(matrix).all()
        assert matrix.tolist() == expected
        return
    try:
        faults.raise_if_any()
    except DataError as error:
        check_message(str(error), names=_FILE)
    else:
        raise AssertionError("neither a matrix nor a fault")


def _numbers(cell: str) -> list[float] | None:
    """Return what a cell says: a JSON array of numbers, or decimals with blanks between them."""
    try:
        value = json.loads(cell, parse_constant=lambda _: None, parse_int=float)
    except ValueError:
        pass
    else:
        if isinstance(value, list) and value and all(type(item) is float for item in value):
            return value
    inner = cell.strip(_BLANKS)
    bare = inner[1:-1].strip(_BLANKS) if inner[:1] == "[" and inner[-1:] == "]" and len(inner) > 1 else inner
    for blank in _BLANKS:
        bare = bare.replace(blank, " ")
    words = [word for word in bare.split(" ") if word]
    if not words or (len(words) == 1 and bare == inner.strip(_BLANKS)) or {*bare} - {*"0123456789+-.eE "}:
        return None
    try:
        return [float(word) for word in words]
    except ValueError:
        return None


def _bits(numbers: list[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)
