"""The head reader: any bytes are a head that says what they say, or a HeadError of a line or two."""

import struct
from collections.abc import Sequence
from pathlib import Path

from fuzz.promises import check_message, scratch
from headeval.errors import HeadError
from headeval.files.heads import read_head, write_head
from headeval.head import LinearHead
from reliability.independent_heads import NotAHeadError, Plain, plain_head

# fmt: off
WORDS = (
    b'"embedding_model"', b'"dim"', b'"classes"', b'"W"', b'"b"', b'"threshold"', b'"metrics"', b'"m"', b"{", b"}",
    b"[", b"]", b",", b":", b'"', b"[0,0]", b"0.5", b"1e999", b"-0.0", b"NaN", b"Infinity", b"null", b"5e-324",
    b"1.7976931348623157e308", b"9" * 309, b"true", b"\\ud800", b"\\u0000", b"\xef\xbb\xbf", b"\xff\xfe", b"[" * 33,
    b"]" * 33, b'{"":' * 20, b"1" * 30, b"0.1", b"\\\\", b"\xf4\x8f\xbf\xbf", b"\xed\xa0\x80", b"\t", b"\x00",
)
# fmt: on
_EXAMPLES = Path(__file__).parents[2] / "files" / "heads"


def seeds() -> list[bytes]:
    """Return the small example files of the tests of the head reader, right and wrong."""
    found = [path.read_bytes() for path in sorted(_EXAMPLES.rglob("*.json"))]
    return [data for data in found if len(data) <= 1_000]


def check(data: bytes) -> None:
    """Read `data` as a head file and hold what comes out against a second reading; write it and read it again."""
    path = scratch() / "head.json"
    path.write_bytes(data)
    expected = _expected(data)
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


def _check_head(head: LinearHead, expected: Plain) -> None:
    assert head.embedding_model == expected.embedding_model
    assert list(head.classes) == expected.classes
    assert head.W.shape == (len(expected.W), len(expected.W[0]))
    assert _bits(head.W.ravel().tolist()) == _bits([number for row in expected.W for number in row])
    assert _bits(head.b.tolist()) == _bits(expected.b)
    assert _bits([head.threshold]) == _bits([expected.threshold])
    assert repr(dict(head.metrics)) == repr(expected.metrics)


def _bits(numbers: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def _expected(data: bytes) -> Plain | None:
    """Return what the bytes say where they keep every rule of the format, by a reader that shares no code."""
    try:
        return plain_head(data)
    except NotAHeadError:
        return None
