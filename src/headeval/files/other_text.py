"""Text that was named as a table but is none: heads, other JSON, and tables under the wrong name."""

import os
import re
from typing import BinaryIO

from headeval.files.foreign import Foreign
from headeval.printable import printable

_START_BYTES, _END_BYTES = 4096, 512
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*"((?:[^"\\]|\\.)*)"\s*:|\{\s*\}|\[\s*[\[{])', re.DOTALL)
_HEAD_KEYS = (b"embedding_model", b"dim", b"classes", b"W", b"b", b"threshold")
_JSON_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})
_SHOWN_BYTES = 12


def json_kind(file: BinaryIO, suffix: str = "") -> Foreign | None:
    r"""Say whether a file that was named as a table is JSON, and whether it is a head.

    Parameters
    ----------
    file : opened; its first and last bytes are read.
    suffix : of the name of the file, in lower case.

    Examples
    --------
    >>> from io import BytesIO
    >>> print(json_kind(BytesIO(b'{"dim": 2, "W": [[0, 0], [1, 2]]}')))
    is a linear head, no table: are DATA and --head swapped?
    >>> json_kind(BytesIO(b'e0,e1\n1,2\n')) is None
    True
    """
    file.seek(0)
    start = file.read(_START_BYTES)
    found = _JSON.match(start)
    if found is not None and found[1] in _HEAD_KEYS:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
        text = start + file.read(_END_BYTES)
        if sum(re.search(rb'"%s"\s*:' % key, text) is not None for key in _HEAD_KEYS) > 1:
            return Foreign("is a linear head, no table", "are DATA and --head swapped?")
    if found is not None or suffix in _JSON_SUFFIXES:
        return Foreign("is JSON, which is not read as a table", "write its rows as Parquet or CSV")
    return None


def text_advice(file: BinaryIO) -> str:
    r"""Return what to do with a file under a name that is not that of a CSV file, or how it begins.

    Examples
    --------
    >>> from io import BytesIO
    >>> text_advice(BytesIO(b"id,label\n1,0\n"))
    'it holds values separated by commas: rename it to .csv'
    >>> text_advice(BytesIO(b"\1\2"))
    "it starts with '\\x01\\x02'"
    """
    file.seek(0)
    start = file.read(_START_BYTES)
    line = start.partition(b"\n")[0]
    if re.search(rb"[\0-\x08\x0e-\x1f]", start) is None:
        if b"," in line and b"\t" not in line:
            return "it holds values separated by commas: rename it to .csv"
        if b"\t" in line:
            return "it holds values separated by tabs: save it with commas, as .csv"
    return f"it starts with '{printable(start[:_SHOWN_BYTES].decode('utf-8', 'backslashreplace'))}'"
