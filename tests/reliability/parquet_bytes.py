"""Small Parquet files written byte by byte, after the format's specification, so that they can lie about themselves.

github.com/apache/parquet-format: README.md (the file), parquet.thrift (the structures), Encodings.md (the pages);
the structures are written in Thrift's compact protocol.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

I32, I64, TEXT, LIST, STRUCT = 5, 6, 8, 9, 12
Value = "int | bytes | Sequence[Value] | Fields"
DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY = 5, 6, 7
PLAIN, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, RLE_DICTIONARY = 0, 3, 5, 6, 7, 8
UNCOMPRESSED, SNAPPY, GZIP, ZSTD = 0, 1, 2, 6
N_ROWS = 8


@dataclass(frozen=True)
class Raw:
    """Bytes that stand for themselves where a value is expected."""

    data: bytes


class Fields(dict[int, tuple[int, object]]):
    """A Thrift structure: by number of the field its type and value."""


def varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def thrift(value: object) -> bytes:
    """Return a value in the compact protocol; a list is of structures, texts or int32, whichever its first item is."""
    if isinstance(value, Raw):
        return value.data
    if isinstance(value, bytes):
        return varint(len(value)) + value
    if isinstance(value, int):
        return varint(_zigzag(value))
    if isinstance(value, Fields):
        data, last = b"", 0
        for number, (kind, content) in sorted(value.items()):
            data += bytes([(number - last) << 4 | kind]) + thrift(content)
            last = number
        return data + b"\0"
    assert isinstance(value, Sequence)
    kind = STRUCT if not value or isinstance(value[0], Fields | Raw) else TEXT if isinstance(value[0], bytes) else I32
    return list_header(len(value), kind) + b"".join(map(thrift, value))


def list_header(size: int, kind: int = STRUCT) -> bytes:
    return bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + varint(size)


@dataclass(frozen=True)
class Column:
    """A required column of one page; the numbers that are None are what is true."""

    name: bytes
    kind: int
    page: bytes
    encoding: int = PLAIN
    codec: int = UNCOMPRESSED
    text: bool = False
    schema: Mapping[int, tuple[int, object]] = field(default_factory=dict)
    chunk: Mapping[int, tuple[int, object]] = field(default_factory=dict)
    header: Mapping[int, tuple[int, object]] = field(default_factory=dict)
    data_header: Mapping[int, tuple[int, object]] = field(default_factory=dict)
    dictionary: bytes | None = None
    dictionary_header: Mapping[int, tuple[int, object]] = field(default_factory=dict)


def doubles(name: str, values: Sequence[float], **lies: Any) -> Column:
    return Column(name.encode(), DOUBLE, struct.pack(f"<{len(values)}d", *values), **lies)


def texts(name: str, values: Sequence[str], **lies: Any) -> Column:
    page = b"".join(struct.pack("<I", len(value)) + value.encode() for value in values)
    return Column(name.encode(), BYTE_ARRAY, page, text=True, **lies)


def parquet(
    columns: Sequence[Column],
    *,
    n_rows: int = N_ROWS,
    footer: Mapping[int, tuple[int, object]] | None = None,
    group: Mapping[int, tuple[int, object]] | None = None,
    root: Mapping[int, tuple[int, object]] | None = None,
    footer_length: int | None = None,
) -> bytes:
    """Return a file of one row group; what is given replaces what would be true, by number of the field."""
    body, chunks = b"PAR1", []
    for column in columns:
        begin = len(body)
        pages = b""
        if column.dictionary is not None:
            pages += _page(
                2, 7, column.dictionary, Fields({1: (I32, 2), 2: (I32, PLAIN)}), {}, column.dictionary_header
            )
        data_offset = begin + len(pages)
        about = Fields({1: (I32, n_rows), 2: (I32, column.encoding), 3: (I32, RLE), 4: (I32, RLE)})
        pages += _page(0, 5, column.page, about, column.header, column.data_header)
        body += pages
        meta = Fields(
            {
                1: (I32, column.kind),
                2: (LIST, [column.encoding, RLE]),
                3: (LIST, [column.name]),
                4: (I32, column.codec),
                5: (I64, n_rows),
                6: (I64, len(pages)),
                7: (I64, len(pages)),
                9: (I64, data_offset),
            }
        )
        if column.dictionary is not None:
            meta[11] = (I64, begin)
        chunks.append(Fields({2: (I64, begin), 3: (STRUCT, Fields(meta | dict(column.chunk)))}))
    top = Fields({4: (TEXT, b"schema"), 5: (I32, len(columns))} | dict(root or {}))
    groups = [Fields({1: (LIST, chunks), 2: (I64, len(body)), 3: (I64, n_rows)} | dict(group or {}))]
    meta = Fields({1: (I32, 1), 2: (LIST, [top, *map(_element, columns)]), 3: (I64, n_rows), 4: (LIST, groups)})
    data = thrift(Fields(meta | dict(footer or {})))
    return body + data + struct.pack("<I", len(data) if footer_length is None else footer_length) + b"PAR1"


def _element(column: Column) -> Fields:
    element = Fields({1: (I32, column.kind), 3: (I32, 0), 4: (TEXT, column.name)})
    if column.text:
        element[6] = (I32, 0)  # UTF8
    return Fields(element | dict(column.schema))


def _page(
    kind: int,
    number: int,
    data: bytes,
    about: Fields,
    header: Mapping[int, tuple[int, object]],
    data_header: Mapping[int, tuple[int, object]],
) -> bytes:
    fields = Fields({1: (I32, kind), 2: (I32, len(data)), 3: (I32, len(data))} | dict(header))
    fields[number] = (STRUCT, Fields(about | dict(data_header)))
    return thrift(fields) + data
