"""Text from outside (file names, columns, labels), made safe to show on a terminal or in a document."""

import unicodedata
from collections.abc import Iterable, Iterator

LONGEST_SHOWN = 80

# Cc controls (C0, DEL, C1), Cf format characters (bidirectional overrides, zero width), Cs lone
# surrogates (undecodable bytes of paths), Co private use, Zl/Zp line and paragraph separators.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that nobody sees, so that two names look the same: fillers, joiners, variation selectors.
_INVISIBLE = frozenset(
    chr(code)
    for first, last in (
        (0x34F, 0x34F),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFFA0, 0xFFA0),
        (0xE0100, 0xE01EF),
    )
    for code in range(first, last + 1)
)
# Marks are drawn over what stands before them: none may reach out of its text, and no pile of them into other lines.
_MARKS = frozenset({"Mn", "Mc", "Me"})
_MOST_MARKS = 4


def printable(text: str, *, longest: int | None = None) -> str:
    r"""Return `text` with everything a terminal could interpret, and what cannot be seen, written as an escape.

    A combining mark is left where it has a character of the same text to stand on and is one of at most four.

    Parameters
    ----------
    text : any string, also one that is not valid Unicode (lone surrogates).
    longest : shorten to this many characters, the last one an ellipsis; None keeps all.

    Examples
    --------
    >>> printable("red\x1b[31m")
    'red\\x1b[31m'
    >>> printable("abcdef", longest=4)
    'abc…'
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(text))


def quoted(text: object, *, longest: int = LONGEST_SHOWN) -> str:
    """Return the printable form of `text` in single quotes, for use inside an error message.

    Examples
    --------
    >>> quoted("emb.parquet")
    "'emb.parquet'"
    """
    return f"'{printable(str(text), longest=longest)}'"


def listed(values: Iterable[object], *, longest: int = 6) -> str:
    """Return `values` quoted and joined with commas; beyond `longest` the rest is counted.

    Examples
    --------
    >>> listed(["a", "b"])
    "'a', 'b'"
    >>> listed("abcd", longest=2)
    "'a', 'b' and 2 more"
    """
    items = [quoted(value) for value in values]
    if len(items) <= longest:
        return ", ".join(items)
    return f"{', '.join(items[:longest])} and {len(items) - longest} more"


def _shown(text: str) -> Iterator[str]:
    room = 0  # for marks on the last character
    for char in text:
        category = unicodedata.category(char)
        if category in _UNSAFE_CATEGORIES or char in _INVISIBLE:
            yield _escape(char)
            room = 0
        elif category in _MARKS:
            yield char if room else _escape(char)
            room = max(room - 1, 0)
        else:
            yield char
            room = _MOST_MARKS


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
