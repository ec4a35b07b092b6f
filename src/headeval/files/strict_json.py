"""JSON as other programs will read it: UTF-8, no key twice, finite numbers, not too deep.

Python's own parser accepts NaN, keeps the last of two equal keys, recurses as deep as a file asks for and
takes quadratic time for long integers. A file that means one thing here must not mean another elsewhere.
"""

import codecs
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from headeval.files.foreign import foreign_kind
from headeval.printable import printable, quoted

DEEPEST = 32
LONGEST_INTEGER = 308  # digits; a longer one is no finite double, or just barely

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)  # possessive: linear in any input
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_CHUNK = 2**20


class DocumentError(ValueError):
    """What is wrong with a document, and where; the caller adds the name of the file."""


def parse_strict(data: bytes) -> object:
    """Return the value of the JSON document `data`: dict, list, str, int, float, bool or None.

    Raises
    ------
    DocumentError
        The document is not UTF-8 (or starts with a byte-order mark), is not valid JSON, is nested more than
        `DEEPEST` levels, or holds a key twice, a number that is not finite or half a surrogate pair.

    Examples
    --------
    >>> parse_strict(b'{"b": [0.0, -1]}')
    {'b': [0.0, -1]}
    >>> parse_strict(b'{"b": [0.0, 1e999]}')
    Traceback (most recent call last):
        ...
    headeval.files.strict_json.DocumentError: $.b[1]: is not a finite number
    """
    text = _decoded(data)
    if _is_deeper_than(data, DEEPEST):  # before parsing, which recurses
        raise DocumentError(f"is nested more than {DEEPEST} levels deep")
    try:
        value = json.loads(text, object_pairs_hook=_object_without_duplicates, parse_int=_integer)
    except json.JSONDecodeError as error:
        at, reason = error.pos, error.msg
        if reason == "Extra data":
            reason = "text after the end of the document"
        elif (comma := _needless_comma(text, at)) is not None:
            at, reason = comma, "a comma too many? (numbers are written with a point)"
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        raise DocumentError(f"line {line}, column {column}: is not valid JSON: {reason}") from error
    refuse(_value_problems(value, "$"))
    return value


def refuse(problems: Iterable[str]) -> None:
    """Raise DocumentError with the first of `problems` and the number of the others, if there is any."""
    remaining = iter(problems)
    first = next(remaining, None)
    if first is not None:
        more = sum(1 for _ in remaining)
        raise DocumentError(first + (f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""))


def member(path: str, key: str) -> str:
    """Return the path of the member `key` of the object at `path`, safe to show."""
    simple = key.isascii() and key.isidentifier()
    return f"{path}.{key}" if simple and len(key) <= 40 else f"{path}[{quoted(key)}]"


def _decoded(data: bytes) -> str:
    if not data.strip():
        raise DocumentError("is empty")
    if foreign := foreign_kind(io.BytesIO(data)):
        raise DocumentError(f"{foreign.kind}; expected JSON")
    if data.startswith(codecs.BOM_UTF8):
        raise DocumentError("starts with a byte-order mark; save it as UTF-8 without one")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:4]:
        raise DocumentError("is UTF-16 or UTF-32; save it as UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(f"is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}") from error


def _needless_comma(text: str, at: int) -> int | None:
    """Return where the comma stands that made a parser stop at `at`, if one did: releases of Python stop elsewhere."""
    if text[at : at + 1] == ",":
        return at
    before = len(text[:at].rstrip()) - 1
    return before if text[before : before + 1] == "," and re.match(r"[\]}0-9]", text[at : at + 1]) else None


def _is_deeper_than(data: bytes, limit: int) -> bool:
    brackets = np.frombuffer(_STRING.sub(b"", data).translate(None, _ALL_BUT_BRACKETS), dtype=np.uint8)
    depth = 0
    for start in range(0, brackets.size, _CHUNK):
        chunk = brackets[start : start + _CHUNK]
        depths = depth + np.cumsum(np.where((chunk == ord("[")) | (chunk == ord("{")), 1, -1))
        if depths.max() > limit:
            return True
        depth = int(depths[-1])
    return False


def _object_without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise DocumentError(f"has the key {quoted(twice)} twice in one object")
    return value


def _integer(digits: str) -> int | float:
    # A longer integer becomes a float, mostly an infinite one, which is refused like 1e999.
    return int(digits) if len(digits.lstrip("-")) <= LONGEST_INTEGER else float(digits)


def _value_problems(value: object, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _value_problems(key, f"{path}, a key")
            yield from _value_problems(item, member(path, key))
    elif isinstance(value, list):
        # Rows of numbers, the bulk of a head, without a step of Python for each number.
        if not (set(map(type, value)) <= {int, float} and all(map(math.isfinite, value))):
            for i, item in enumerate(value):
                yield from _value_problems(item, f"{path}[{i}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{path}: is not a finite number"
    elif isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        yield f"{path}: holds half a surrogate pair, which is not Unicode text: {printable(value, longest=40)}"
