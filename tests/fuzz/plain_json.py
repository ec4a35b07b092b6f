"""A second reader of JSON, by RFC 8259 and nothing else, to hold headeval's against.

Slow and short. It shares no code with Python's `json`, which accepts more than the standard does, nor with headeval.
"""

import re
from fractions import Fraction

_BLANKS = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}


class NotJsonError(ValueError):
    """The text is no JSON document."""


class Twice(dict[str, object]):
    """An object that holds a key twice, which the standard leaves to the reader."""


def plain_json(text: str) -> object:
    """Return the value of a document; integers are int, other numbers float, an object with a key twice is `Twice`."""
    value, end = _value(text, _after_blanks(text, 0))
    if _after_blanks(text, end) != len(text):
        raise NotJsonError("text after the end")
    return value


def _after_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int) -> tuple[object, int]:
    if text[at : at + 1] == "[":
        return _items(text, at)
    if text[at : at + 1] == "{":
        return _members(text, at)
    if string := _STRING.match(text, at):
        return _unescaped(string[0][1:-1]), string.end()
    if number := _NUMBER.match(text, at):
        whole = number[2] is None and number[3] is None
        return int(number[0]) if whole else _nearest(number[0]), number.end()
    for word, value in _WORDS.items():
        if text.startswith(word, at):
            return value, at + len(word)
    raise NotJsonError(f"no value at {at}")


def _items(text: str, at: int) -> tuple[list[object], int]:
    found: list[object] = []
    at = _after_blanks(text, at + 1)
    if text[at : at + 1] == "]":
        return found, at + 1
    while True:
        value, at = _value(text, _after_blanks(text, at))
        found.append(value)
        at = _after_blanks(text, at)
        if text[at : at + 1] == "]":
            return found, at + 1
        if text[at : at + 1] != ",":
            raise NotJsonError(f"no comma at {at}")
        at += 1


def _members(text: str, at: int) -> tuple[dict[str, object], int]:
    found: list[tuple[str, object]] = []
    at = _after_blanks(text, at + 1)
    while text[at : at + 1] != "}" or found:
        key, at = _value(text, _after_blanks(text, at))
        at = _after_blanks(text, at)
        if not isinstance(key, str) or text[at : at + 1] != ":":
            raise NotJsonError(f"no key before {at}")
        value, at = _value(text, _after_blanks(text, at + 1))
        found.append((key, value))
        at = _after_blanks(text, at)
        if text[at : at + 1] == "}":
            break
        if text[at : at + 1] != ",":
            raise NotJsonError(f"no comma at {at}")
        at += 1
    members = dict(found)
    return members if len(members) == len(found) else Twice(members), at + 1


def _unescaped(inner: str) -> str:
    text = _ESCAPE.sub(lambda match: chr(int(match[1][1:], 16)) if match[1][0] == "u" else _letter(match[1]), inner)
    # Two escapes may be the halves of one character.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _letter(char: str) -> str:
    return _LETTERS.get(char, char)


def _nearest(number: str) -> float:
    """Round a decimal to the nearest double by exact arithmetic; one too large is an infinity."""
    digits, _, exponent = number.lower().partition("e")
    power = int(exponent or 0)
    if not digits.strip("-0."):
        return -0.0 if number.startswith("-") else 0.0
    if abs(power) > 10_000 + len(digits):  # exact arithmetic would take long, and there is no question
        size = float("inf") if power > 0 else 0.0
        return -size if number.startswith("-") else size
    try:
        return float(Fraction(digits) * Fraction(10) ** power)
    except OverflowError:
        return float("-inf") if number.startswith("-") else float("inf")
