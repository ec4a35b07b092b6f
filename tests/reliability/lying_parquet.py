"""Small Parquet files that announce what they do not hold, or hold far more than their size tells."""

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from reliability.parquet_bytes import (
    BYTE_ARRAY,
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    GZIP,
    I32,
    I64,
    LIST,
    RLE_DICTIONARY,
    SNAPPY,
    STRUCT,
    TEXT,
    ZSTD,
    Column,
    Fields,
    Raw,
    doubles,
    list_header,
    parquet,
    texts,
    varint,
)

# The rows of all of them, where they tell the truth.
N = 4
E = np.array([[0.25, 1.0], [1.0, -0.5], [-1.0, 0.125], [0.5, 2.0]])
LABELS = ["safe", "unsafe"] * 2


def columns(first: Mapping[str, object] | None = None, last: Mapping[str, object] | None = None) -> list[Column]:
    return [
        doubles("e0", E[:, 0].tolist(), **(first or {})),
        doubles("e1", E[:, 1].tolist()),
        texts("label", LABELS, **(last or {})),
    ]


def of_first(**lies: object) -> bytes:
    return parquet(columns(lies), n_rows=N)


def coded(page: bytes, **lies: object) -> bytes:
    dictionary = struct.pack("<2d", 0.5, 0.25)
    told: dict[str, Any] = {"encoding": RLE_DICTIONARY, "dictionary": dictionary} | lies
    first = Column(b"e0", DOUBLE, page, **told)
    return parquet([first, *columns()[1:]], n_rows=N)


def labels_page(page: bytes, **of: int) -> bytes:
    kind, encoding = of.get("kind", BYTE_ARRAY), of.get("encoding", 0)
    return parquet([*columns()[:2], Column(b"label", kind, page, encoding=encoding, text=kind == BYTE_ARRAY)], n_rows=N)


def lies_about_rows() -> Iterator[tuple[str, bytes]]:
    for n in (2**31, 2**40, 2**62, -1, 0, N + 1):
        count = {3: (I64, n)}
        yield f"{n} rows", parquet(columns(), n_rows=N, footer=count)
        yield f"{n} rows and so the group", parquet(columns(), n_rows=N, footer=count, group=count)
        chunk = {"chunk": {5: (I64, n)}}
        yield f"{n} rows and so the chunks", parquet(columns(chunk, chunk), n_rows=N, footer=count, group=count)
    yield "no group", parquet(columns(), n_rows=N, footer={4: (LIST, Raw(list_header(0)))})


def lies_about_pages() -> Iterator[tuple[str, bytes]]:
    for n in (2**31 - 1, -(2**31), -1, 0, 2**30):
        yield f"{n} values in the page", of_first(data_header={1: (I32, n)})
        for fields in ((2,), (3,), (2, 3)):
            sizes = dict.fromkeys(fields, (I32, n))
            yield f"a page of {n} bytes {fields}", of_first(header=sizes)
            yield f"and a chunk {fields}", of_first(header=sizes, chunk={6: (I64, n), 7: (I64, n)})
        for codec in (SNAPPY, GZIP, ZSTD):
            yield f"{n} bytes inflated by {codec}", of_first(header={2: (I32, n)}, codec=codec)
        yield f"{n} values in the dictionary", coded(b"\1\3\x55", dictionary_header={1: (I32, n)})
        fixed = Column(b"e0", FIXED_LEN_BYTE_ARRAY, bytes(8 * N), schema={2: (I32, n)})
        yield f"values of {n} bytes", parquet([fixed, *columns()[1:]], n_rows=N)
        yield f"{n} children", parquet(columns(), n_rows=N, root={5: (I32, n)})
    for n in (2**62, -1, 0, 2**33):
        for number in (6, 7, 9, 11):
            yield f"chunk field {number} is {n}", of_first(chunk={number: (I64, n)})
        yield f"a group of {n} bytes", parquet(columns(), n_rows=N, group={2: (I64, n)})


def lies_about_lengths() -> Iterator[tuple[str, bytes]]:
    for n in (2**31 - 1, 2**31, 2**32 - 1, 0):
        yield f"a footer of {n} bytes", parquet(columns(), n_rows=N, footer_length=n)
        yield f"a text of {n} bytes", labels_page(struct.pack("<I", n) + texts("", LABELS).page[4:])
        for number in (2, 4, 5):
            yield (
                f"{n} items in field {number}",
                parquet(columns(), n_rows=N, footer={number: (LIST, Raw(list_header(n)))}),
            )
        yield f"{n} encodings", of_first(chunk={2: (LIST, Raw(list_header(n, I32)))})
        yield f"{n} letters", parquet(columns(), n_rows=N, footer={6: (TEXT, Raw(varint(n) + b"x"))})
    for n in (2**31 - 1, 2**40, 2**62):
        yield f"a run of {n}", coded(b"\1" + varint(n << 1) + b"\0")
        yield f"{n} packed runs", coded(b"\1" + varint(n << 1 | 1) + b"\x55")
    for width in (33, 64, 255):
        yield f"codes of {width} bits", coded(bytes([width]) + b"\3" + b"\x55" * 400)
    for block, minis, total in ((2**31, 4, N), (2**40, 1, N), (128, 0, N), (128, 2**31, N), (128, 4, 2**62), (0, 0, 0)):
        page = b"".join(map(varint, (block, minis, total, 8, 0))) + bytes(8) + b"safeunsafe" * 8
        yield f"{block}/{minis}/{total} numbers", labels_page(page, kind=2, encoding=DELTA_BINARY_PACKED)
        for encoding in (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY):
            yield f"{block}/{minis}/{total} texts by {encoding}", labels_page(page, encoding=encoding)


def lies_about_depth() -> Iterator[tuple[str, bytes]]:
    leaf = Fields({1: (I32, DOUBLE), 3: (I32, 0), 4: (TEXT, b"e0")})
    for depth in (100, 10_000, 300_000):
        for repeated in (0, 2):
            group = Raw(b"\x35" + bytes([repeated << 1]) + b"\x18\x01g\x15\x02\0")
            yield f"{depth} groups", parquet(columns(), n_rows=N, footer={2: (LIST, [group] * depth + [leaf])})
        unknown = {15: (STRUCT, Raw(b"\x1c" * depth + b"\0" * (depth + 1)))}
        yield f"{depth} unknown structures", parquet(columns(), n_rows=N, footer=unknown)
        lists = {15: (LIST, Raw(b"\x19" * depth + b"\x15\0"))}
        yield f"{depth} unknown lists", parquet(columns(), n_rows=N, footer=lists)
        yield f"{depth} unknown lists in a page", of_first(header=lists)


LIARS = (lies_about_rows, lies_about_pages, lies_about_lengths, lies_about_depth)


# --- small files of large contents


def equal_rows(n: int) -> bytes:
    """All rows but the last are equal, so that each column is a run and one more value."""
    page = b"\1" + varint((n - 1) << 1) + b"\0" + varint(1 << 1) + b"\1"
    number, text = struct.pack("<2d", 0.5, 0.25), texts("", LABELS[:2]).page
    runs = [Column(name, DOUBLE, page, encoding=RLE_DICTIONARY, dictionary=number) for name in (b"e0", b"e1")]
    label = Column(b"label", BYTE_ARRAY, page, encoding=RLE_DICTIONARY, dictionary=text, text=True)
    return parquet([*runs, label], n_rows=n)


def zeros_in_zstd(n_bytes: int) -> bytes:
    """Return a frame of blocks that each repeat one zero 2^17 times (RFC 8878, 3.1.1)."""
    blocks = n_bytes >> 17
    block = struct.pack("<I", 1 << 1 | (1 << 17) << 3)[:3] + b"\0"
    last = struct.pack("<I", 1 | 1 << 1 | (1 << 17) << 3)[:3] + b"\0"
    return struct.pack("<IBQ", 0xFD2FB528, 0xE0, n_bytes) + block * (blocks - 1) + last


def inflated(n: int) -> bytes:
    page = zeros_in_zstd(8 * n)
    first = Column(b"e0", DOUBLE, page, codec=ZSTD, header={2: (I32, 8 * n)}, chunk={6: (I64, 8 * n)})
    return parquet([first, *columns()[1:]], n_rows=n)
