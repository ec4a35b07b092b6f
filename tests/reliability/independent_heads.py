"""Another reader of linear-head files, and another way to score with one; written from the format, nothing borrowed.

`tell` and `timed` are what a child of `limited_children` calls.
"""

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

DEEPEST = 32
LONGEST_INTEGER = 308  # digits; what has more is read as a float
KEYS = {"embedding_model", "dim", "classes", "W", "b", "threshold"}
_BLANKS = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_TEXT = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')
_ESCAPE = re.compile(r"\\(u....|.)")
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}


class NotAHeadError(ValueError):
    """The bytes break a rule of the format."""


@dataclass(frozen=True)
class Plain:
    """What the bytes of a head say."""

    embedding_model: str
    classes: list[str]
    W: list[list[float]]
    b: list[float]
    threshold: float
    metrics: dict[str, Any]

    def class_logits(self, embedding: Sequence[float]) -> list[float]:
        length = math.hypot(*embedding)
        u = [x / length for x in embedding] if length else list(embedding)
        return [
            math.fsum(w * x for w, x in zip(row, u, strict=True)) + c for row, c in zip(self.W, self.b, strict=True)
        ]

    def logit(self, embedding: Sequence[float]) -> float:
        *others, last = self.class_logits(embedding)
        largest = max(others)
        return last - largest - math.log(math.fsum(math.exp(z - largest) for z in others))

    def prob(self, embedding: Sequence[float]) -> float:
        *_, last = self.probabilities(embedding)
        return last

    def probabilities(self, embedding: Sequence[float]) -> list[float]:
        z = self.class_logits(embedding)
        e = [math.exp(one - max(z)) for one in z]
        return [one / math.fsum(e) for one in e]


def plain_head(data: bytes) -> Plain:
    """Return what `data` says, or raise NotAHeadError."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotAHeadError("encoding") from error
    value, end = _Parser(text).value(0, 0)
    if _after_blanks(text, end) != len(text):
        raise NotAHeadError("trailing text")
    require(isinstance(value, dict) and KEYS <= value.keys() <= {*KEYS, "metrics"}, "keys")
    model, dim, classes, W, b = (value[key] for key in ("embedding_model", "dim", "classes", "W", "b"))
    require(isinstance(model, str) and model != "", "model")
    require(is_number(dim) and dim >= 1 and dim == int(dim), "dim")
    require(isinstance(classes, list) and len(classes) >= 2, "classes")
    require(all(isinstance(name, str) and name for name in classes) and len(set(classes)) == len(classes), "names")
    require(isinstance(W, list) and len(W) == len(classes), "W")
    require(all(isinstance(row, list) and len(row) == dim and all(map(is_number, row)) for row in W), "rows")
    require(isinstance(b, list) and len(b) == len(classes) and all(map(is_number, b)), "b")
    require(is_number(value["threshold"]) and 0 <= value["threshold"] <= 1, "threshold")
    metrics = value.get("metrics", {})
    require(isinstance(metrics, dict), "metrics")
    rows = [[float(w) for w in row] for row in W]
    return Plain(model, classes, rows, [float(c) for c in b], float(value["threshold"]), metrics)


def says(data: bytes) -> dict[str, Any] | None:
    """Return the fields of a head, None where `data` is not one."""
    try:
        return asdict(plain_head(data))
    except NotAHeadError:
        return None


def require(holds: bool, what: str) -> None:
    if not holds:
        raise NotAHeadError(what)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Parser:
    """RFC 8259, strictly; a number beyond float64, a key twice and half a surrogate pair are refused as well."""

    def __init__(self, text: str) -> None:
        self.text = text

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        at = _after_blanks(self.text, at)
        char = self.text[at : at + 1]
        if char in {"[", "{"} and char:
            require(depth < DEEPEST, "depth")
            return self._array(at, depth + 1) if char == "[" else self._object(at, depth + 1)
        if char == '"':
            return self._string(at)
        for word, meaning in _WORDS.items():
            if self.text.startswith(word, at):
                return meaning, at + len(word)
        found = _NUMBER.match(self.text, at)
        if found is None:
            raise NotAHeadError("value")
        number = float(found[0])
        require(math.isfinite(number), "finite")
        return (
            int(found[0]) if found[0].lstrip("-").isdigit() and len(found[0].lstrip("-")) <= LONGEST_INTEGER else number
        ), found.end()

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        for start in self._members(at, "]"):
            item, self.end = self.value(start, depth)
            items.append(item)
        return items, self.end

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        value: dict[str, Any] = {}
        for start in self._members(at, "}"):
            key, end = self._string(_after_blanks(self.text, start))
            end = _after_blanks(self.text, end)
            require(self.text[end : end + 1] == ":" and key not in value, "member")
            value[key], self.end = self.value(end + 1, depth)
        return value, self.end

    def _members(self, at: int, closing: str) -> Iterator[int]:
        """Yield where each member begins; `self.end` tells where the last one ended, and in the end the whole."""
        self.end = _after_blanks(self.text, at + 1)
        if self.text[self.end : self.end + 1] != closing:
            while True:
                yield self.end
                self.end = _after_blanks(self.text, self.end)
                char = self.text[self.end : self.end + 1]
                if char != ",":
                    break
                self.end += 1
            require(char == closing, "closing")
        self.end += 1

    def _string(self, at: int) -> tuple[str, int]:
        found = _TEXT.match(self.text, at)
        if found is None:
            raise NotAHeadError("string")
        try:
            text = _ESCAPE.sub(_unescaped, found[1]).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeError as error:
            raise NotAHeadError("surrogate") from error
        return text, found.end()


def _unescaped(found: re.Match[str]) -> str:
    code: str = found[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _SHORT.get(code, code)


def _after_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()


# --- called in a child


def tell(arguments: list[str]) -> int:
    """Print what `read_head` makes of a file as it is changed at one place, one JSON line a change.

    The arguments are the file, and the place and the step of `changes_at`.
    """
    from headeval.errors import HeadError
    from headeval.files.heads import head_document, read_head

    name, place, step = arguments
    data, changed = Path(name).read_bytes(), Path("changed.json")
    for content in changes_at(data, int(place), int(step)):
        changed.write_bytes(content)
        try:
            document = head_document(read_head(changed))
        except HeadError:
            print("null")
        else:
            print(json.dumps({"metrics": {}} | {key: value for key, value in document.items() if key != "dim"}))
    return 0


PATTERNS = (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF, 0x06)  # every bit, all of them, and − for +


def changes_at(data: bytes, place: int, step: int = 1) -> Iterator[bytes]:
    """Yield `data` cut off at a place, and with the byte there flipped in all PATTERNS, or a few in turn."""
    yield data[:place]
    for pattern in PATTERNS[place % step :: step]:
        yield flipped(data, place, pattern)


def flipped(data: bytes, place: int, pattern: int) -> bytes:
    return data[:place] + bytes([data[place] ^ pattern]) + data[place + 1 :]


def timed(arguments: list[str]) -> int:
    """Run a command line, and print last how many seconds of the processor it took."""
    from headeval.cli.main import run

    clock: Callable[[], float] = time.process_time
    began = clock()
    code = run(arguments)
    print(f"\n{clock() - began}")
    return code
