"""Files that are neither tables nor heads but often taken for one, recognised by their first and last bytes.

Reading most formats of arrays and models can run code that stands in the file, so none of them is ever opened.
"""

import os
import re
import zlib
from dataclasses import dataclass
from typing import BinaryIO

# Enough for all that is recognised here.
_START_BYTES = 512

# From protocol 2 on a pickle names its protocol: 2 to 5 so far.
_NEWER_PICKLE = re.compile(rb"\x80[\x02-\x0f]", re.DOTALL)
# Before, it began with its first object: a container, a number or a text that is marked as an argument, or what a
# function by its name makes of its arguments.
_OLDER_PICKLE = re.compile(
    rb"\(*[ldt]p[0-9]+\n|\(+(?:[IL]-?[0-9]+L?|F-?[0-9a-z.+-]+|S'[^\n]*'|S\"[^\n]*\"|V[^\n]*\np[0-9]+)\n"
    rb"|\(*[ci][A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\n(?:p[0-9]+\n|q.|\()|\(+c[A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\n"
    rb"|(?:\(*[])}]|\(+(?:K.|M..|J.{4}|G.{8}|[UX].).*)q\0",  # where it is remembered, which is no text
    re.DOTALL,
)
_COMPRESSED = re.compile(
    rb"\x1f\x8b|\x28\xb5\x2f\xfd|BZh[1-9](?:1AY&SY|\x17rE8P\x90)|\xfd7zXZ|\x04\x22\x4d\x18|]\0\0", re.DOTALL
)
_ZLIB = (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1f]")  # no text has those
_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|head)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a file is that headeval does not read.

    Attributes
    ----------
    kind : the rest of a sentence about the file: "is a pickle, …".
    advice : the next step for who meant it as a table.
    """

    kind: str
    advice: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.advice}"


def _loaded(what: str) -> Foreign:
    return Foreign(f"is {what}, never loaded, since that can run code", "load it where you trust it and write Parquet")


_AS_TABLE = "save it as CSV (UTF-8) or Parquet"
_AS_PARQUET = "write what it holds as Parquet"
_UNPACK = "unpack it"
_WORKBOOK = Foreign("is a workbook of a spreadsheet", _AS_TABLE)
_TAR = Foreign("is a tar archive", _UNPACK)
_SIGNS: tuple[tuple[bytes, Foreign], ...] = (
    (b"\x93NUMPY", _loaded("a NumPy array (.npy)")),
    (b"PK\x05\x06", Foreign("is a zip archive with nothing in it", "name the file that was meant")),
    (b"\x89HDF\r\n\x1a\n", Foreign("is an HDF5 file", _AS_PARQUET)),
    (b"7z\xbc\xaf\x27\x1c", Foreign("is a 7z archive", _UNPACK)),
    (b"Rar!\x1a\x07", Foreign("is a rar archive", _UNPACK)),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _WORKBOOK),
    (b"SQLite format 3\0", Foreign("is an SQLite database", "export the table as CSV (UTF-8) or Parquet")),
    (b"Obj\x01", Foreign("is an Avro file", _AS_PARQUET)),
    (b"%PDF-", Foreign("is a PDF document", "save its table as CSV (UTF-8) or Parquet")),
    (b"PARE", Foreign("is an encrypted Parquet file", "write it without encryption")),
    (
        b"version https://git-lfs.github.com/spec/",
        Foreign("is a Git LFS pointer", "fetch the file itself (git lfs pull)"),
    ),
)
# Those a header of a CSV file could begin with: they count only where something follows that is no text.
_WORDS: tuple[tuple[bytes, Foreign], ...] = (
    (b"GGUF", Foreign("is a GGUF file", _AS_PARQUET)),
    (b"ARROW1", Foreign("is an Arrow file", "write it as Parquet")),
    (b"FEA1", Foreign("is a Feather file", "write it as Parquet")),
    (b"ORC", Foreign("is an ORC file", "write it as Parquet")),
)
# What stands in the begin of a zip archive, and what the archive then is.
_MEMBERS: tuple[tuple[bytes, Foreign], ...] = (
    (b"[Content_Types].xml", _WORKBOOK),
    (b"xl/workbook.xml", _WORKBOOK),
    (b"opendocument.spreadsheet", _WORKBOOK),
    (b"data.pkl", _loaded("a PyTorch model (.pt)")),
    (b".npy", _loaded("an archive of NumPy arrays (.npz)")),
)
_OF_SUFFIX = {
    **{
        suffix: _loaded(f"by its name ({suffix}) an array or a model")
        for suffix in (".pkl", ".pickle", ".pt", ".pth", ".npy", ".npz", ".joblib", ".skops")
    },
    **{
        suffix: Foreign(f"is by its name ({suffix}) an array or a model", _AS_PARQUET)
        for suffix in (".safetensors", ".h5", ".hdf5", ".onnx")
    },
    **{suffix: Foreign(f"is by its name ({suffix}) a workbook", _AS_TABLE) for suffix in (".xlsx", ".xls", ".ods")},
}


def foreign_kind(file: BinaryIO, suffix: str = "") -> Foreign | None:
    r"""Say what kind of file that is neither a table nor a head this is, or return None.

    Parameters
    ----------
    file : opened at its begin; nothing but its first bytes and its last one is read.
    suffix : of the name of the file, in lower case.

    Examples
    --------
    >>> from io import BytesIO
    >>> foreign_kind(BytesIO(b"\x80\x04N.")).kind
    'is a pickle, never loaded, since that can run code'
    >>> foreign_kind(BytesIO(b"id,label\n")) is None
    True
    """
    start = file.read(_START_BYTES)
    if _NEWER_PICKLE.match(start) or (_OLDER_PICKLE.match(start) and _last_byte(file) == b"."):
        return _loaded("a pickle")
    if start.startswith(_ZLIB) and _NEWER_PICKLE.match(_inflated(start)):
        return _loaded("a compressed pickle")
    if found := _signed(start, suffix):
        return found
    if suffix in _OF_SUFFIX:
        return _OF_SUFFIX[suffix]
    return Foreign("is compressed", "decompress it first") if _COMPRESSED.match(start) else None


def _signed(start: bytes, suffix: str) -> Foreign | None:
    """Return what the first bytes say beyond doubt."""
    if start.startswith(b"PK\x03\x04"):
        of_suffix = _OF_SUFFIX.get(suffix, Foreign("is a zip archive", _UNPACK))
        return next((kind for part, kind in _MEMBERS if part in start), of_suffix)
    binary = _BINARY.search(start) is not None
    signs = (*_SIGNS, *_WORDS) if binary else _SIGNS
    if kind := next((kind for sign, kind in signs if start.startswith(sign)), None):
        return kind
    if _is_safetensors(start):
        return Foreign("is a safetensors file", _AS_PARQUET)
    if binary and _is_tar(start):
        return _TAR
    return Foreign("is an HTML page", "download the file itself") if _PAGE.match(start) else None


def _last_byte(file: BinaryIO) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


def _is_tar(start: bytes) -> bool:
    """Whether the first block is a header with the sum of its bytes, which also the oldest archives have."""
    digits = start[148:156].strip(b" \0")
    sum_of_others = sum(start[:148]) + 8 * ord(" ") + sum(start[156:])
    return re.fullmatch(rb"[0-7]+", digits) is not None and int(digits, 8) == sum_of_others


def _is_safetensors(start: bytes) -> bool:
    """Whether the length of a JSON object comes first, in eight bytes, then the object."""
    return len(start) > 9 and start[8:9] == b"{" and start[4:8] == b"\0\0\0\0" and b"\0" not in start[8:16]


def _inflated(start: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(start, 8)
    except zlib.error:
        return b""
