"""The head reader: any bytes are a head that says what they say, or a HeadError of a line or two."""

import re
import struct
from collections.abc import Sequence
from pathlib import Path

from fuzz.plain_json import NotJsonError, Twice, plain_json
from fuzz.promises import check_message, scratch
from headeval.errors import HeadError
from headeval.files.heads import read_head, write_head
from headeval.head import LinearHead

# fmt: off
WORDS = (
    b'"embedding_model"', b'"dim"', b'"classes"', b'"W"', b'"b"', b'"threshold"', b'"metrics"', b'"m"', b"{", b"}",
    b"[", b"]", b",", b":", b'"', b"[0,0]", b"0.5", b"1e999", b"-0.0", b"NaN", b"Infinity", b"null", b"5e-324",
    b"1.7976931348623157e308", b"9" * 309, b"true", b"\\ud800", b"\\u0000", b"\xef\xbb\xbf", b"\xff\xfe", b"[" * 33,
    b"]" * 33, b'{"":' * 20, b"1" * 30, b"0.1", b"\\\\", b"\xf4\x8f\xbf\xbf", b"\xed\xa0\x80", b"\t", b"\x00",
)
# fmt: on
_KEYS = {"embedding_model", "dim", "classes", "W", "b", "threshold"}
_DEEPEST = 32
_EXAMPLES = Path(__file__).parents[2] / "files" / "heads"


def seeds() -> list[bytes]:
    """Return the small example files of the tests of the head reader, right and wrong."""
    found = [path.read_bytes() for path in sorted(_EXAMPLES.rglob("*.json"))]
    return [data for data in found if len(data) <= 1_000]


def check(data: bytes) -> None:
    """Read `data` as a head file and hold what comes out against a second reading; write it and read it again."""
    path = scratch() / "head.json"
    path.write_bytes(data)
    expected = _document(data)
    try:
        head: LinearHead | None = read_head(path)
    except HeadError as error:
        head, refused = None, str(error)
    if head is None:
        check_message(refused, names=path)
        assert expected is None, f"a valid head is refused: {refused}"
        return
    assert expected is not None, "read as a head, though its rules are broken"
    _check_head(head, expected)
    again = path.with_name("again.json")
    write_head(head, again, force=True)
    assert read_head(again) == head, "written and read again, the head is another"
    first = again.read_bytes()
    write_head(read_head(again), again, force=True)
    assert again.read_bytes() == first, "written twice, the bytes differ"


def _check_head(head: LinearHead, document: dict[str, object]) -> None:
    rows, intercepts = document["W"], document["b"]
    assert isinstance(rows, list)
    assert isinstance(intercepts, list)
    assert head.embedding_model == document["embedding_model"]
    assert list(head.classes) == document["classes"]
    assert head.dim == document["dim"]
    assert _bits(head.W.ravel().tolist()) == _bits([number for row in rows for number in row])
    assert _bits(head.b.tolist()) == _bits(intercepts)
    assert _bits([head.threshold]) == _bits([document["threshold"]])
    assert repr(dict(head.metrics)) == repr(document.get("metrics", {}))


def _bits(numbers: Sequence[object]) -> bytes:
    return b"".join(struct.pack("<d", float(number)) for number in numbers)  # type: ignore[arg-type]


def _document(data: bytes) -> dict[str, object] | None:
    """Return the document where it keeps every rule of the format, by a reading of its own."""
    try:
        document = plain_json(data.decode("utf-8"))
    except (UnicodeDecodeError, NotJsonError, RecursionError):
        return None
    return document if isinstance(document, dict) and _is_plain(document, 1) and _is_head(document) else None


def _is_plain(value: object, depth: int) -> bool:
    """Whether other readers take the value for the same: no key twice, finite numbers, Unicode, not too deep."""
    if isinstance(value, dict | list):
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        return depth <= _DEEPEST and not isinstance(value, Twice) and all(_is_plain(item, depth + 1) for item in inside)
    if isinstance(value, str):
        return not re.search("[\ud800-\udfff]", value)
    return not isinstance(value, int | float) or abs(value) <= 2**1024 - 2**970


def _is_head(document: dict[str, object]) -> bool:
    if not _KEYS <= document.keys() <= _KEYS | {"metrics"} or not isinstance(document.get("metrics", {}), dict):
        return False
    names, rows, intercepts, dim = document["classes"], document["W"], document["b"], document["dim"]
    if not (isinstance(names, list) and isinstance(rows, list) and isinstance(intercepts, list)):
        return False
    texts = [document["embedding_model"], *names]
    if not all(isinstance(text, str) and text for text in texts) or len({*names}) < len(names) or len(names) < 2:
        return False
    return (
        _is_number(dim)
        and dim >= 1  # type: ignore[operator]
        and len(rows) == len(intercepts) == len(names)
        and all(isinstance(row, list) and len(row) == dim and all(map(_is_number, row)) for row in rows)
        and all(map(_is_number, intercepts))
        and _is_number(document["threshold"])
        and 0 <= document["threshold"] <= 1  # type: ignore[operator]
    )


def _is_number(value: object) -> bool:
    return type(value) in {int, float}
