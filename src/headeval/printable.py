"""Text from outside (file names, columns, labels), made safe to show on a terminal or in a document."""

import unicodedata
from collections.abc import Iterable

LONGEST_SHOWN = 80

# Cc controls (C0, DEL, C1), Cf format characters (bidirectional overrides, zero width), Cs lone
# surrogates (undecodable bytes of paths), Co private use, Zl/Zp line and paragraph separators.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str, *, longest: int | None = None) -> str:
    r"""Return `text` with everything a terminal could interpret written as an escape.

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
    return "".join(_escape(char) if unicodedata.category(char) in _UNSAFE_CATEGORIES else char for char in text)


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


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
