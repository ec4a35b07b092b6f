"""Files that are neither tables nor heads but often taken for one, recognised by their first and last bytes.

Reading most formats of arrays and models can run code that stands in the file, so none of them is ever opened.
"""

import os
import re
import zlib
from typing import BinaryIO

# Enough for all that is recognised here.
_START_BYTES = 512

_MODEL_SUFFIXES = frozenset(
    {".pkl", ".pickle", ".pt", ".pth", ".npy", ".npz", ".joblib", ".skops", ".safetensors", ".h5", ".hdf5", ".onnx"}
)
# From protocol 2 on a pickle names its protocol, of which there are five so far.
_NEWER_PICKLE = re.compile(rb"\x80[\x02-\x0f]", re.DOTALL)
# Before, it began with its first object: a container, or what a function by its name makes of its arguments.
_OLDER_PICKLE = re.compile(
    rb"\(*[ldt]p[0-9]+\n|\(+[IFLSV][^\n]*\n|\(*[ci][A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\n(?:p[0-9]+\n|q.|\()"
    rb"|(?:\(*[])}]|\(+(?:K.|M..|J.{4}|G.{8}|[UX].).*)q\0",  # where it is remembered, which is no text
    re.DOTALL,
)
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"\x04\x22\x4d\x18", b"]\0\0")
_ZLIB = (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")
_NEVER_LOADED = "which headeval never loads, since that can run code"
_SIGNS: tuple[tuple[bytes, str], ...] = (
    (b"\x93NUMPY", f"is a NumPy array file (.npy), {_NEVER_LOADED}"),
    (b"PK\x03\x04", f"is a zip archive (.npz, .pt, .skops or .xlsx), {_NEVER_LOADED}"),
    (b"PK\x05\x06", f"is a zip archive with nothing in it, {_NEVER_LOADED}"),
    (b"\x89HDF\r\n\x1a\n", "is an HDF5 file, which headeval does not read"),
    (b"GGUF", "is a GGUF file, which headeval does not read"),
    (b"ARROW1", "is an Arrow file, which headeval does not read"),
    (b"FEA1", "is a Feather file, which headeval does not read"),
)


def foreign_kind(file: BinaryIO, suffix: str = "") -> str:
    r"""Say what kind of file that is neither a table nor a head this is, or return an empty text.

    Parameters
    ----------
    file : opened at its begin; nothing but its first bytes and its last one is read.
    suffix : of the name of the file, in lower case.

    Examples
    --------
    >>> from io import BytesIO
    >>> foreign_kind(BytesIO(b"\x80\x04N."))
    'is a pickle, which headeval never loads, since that can run code'
    >>> foreign_kind(BytesIO(b"id,label\n"))
    ''
    """
    start = file.read(_START_BYTES)
    if _NEWER_PICKLE.match(start) or (_OLDER_PICKLE.match(start) and _last_byte(file) == b"."):
        return f"is a pickle, {_NEVER_LOADED}"
    for sign, kind in _SIGNS:
        if start.startswith(sign):
            return kind
    if _is_safetensors(start):
        return "is a safetensors file, which headeval does not read"
    if start[257:262] == b"ustar" and b"\0" in start[:257]:  # text may have the word there, but no zero bytes before it
        return f"is a tar archive, {_NEVER_LOADED}"
    if start.startswith(_ZLIB) and _NEWER_PICKLE.match(_inflated(start)):
        return f"is a compressed pickle, {_NEVER_LOADED}"
    if suffix in _MODEL_SUFFIXES:
        return f"is by its name ({suffix}) an array or a model, {_NEVER_LOADED}"
    return "is compressed: decompress it first" if start.startswith(_COMPRESSED) else ""


def _last_byte(file: BinaryIO) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


def _is_safetensors(start: bytes) -> bool:
    """Whether the length of a JSON object comes first, in eight bytes, then the object."""
    return len(start) > 9 and start[8:9] == b"{" and start[4:8] == b"\0\0\0\0" and b"\0" not in start[8:16]


def _inflated(start: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(start, 8)
    except zlib.error:
        return b""
