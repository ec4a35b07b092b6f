"""Files named after categories, which may be called anything: names that are safe on every file system."""

import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import unquote

from headeval.errors import OutputError
from headeval.printable import quoted

SUFFIX = ".json"
LONGEST_NAME = 200  # bytes: file systems take 255, and leave room for what copies and archives add
# What some file system takes for a separator, a stream, a pattern or a redirection; and what names are escaped with.
_FORBIDDEN = frozenset('/\\:*?"<>|%')
# Controls, formats (bidirectional overrides), surrogates, private and unassigned ones, line and paragraph separators.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Windows takes these for devices, whatever stands behind a dot or a space.
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])[ ]*(\..*)?", re.IGNORECASE | re.DOTALL)


def head_file_name(category: str) -> str:
    r"""Return the name of the file of a category's head, the same on every system; it holds no path.

    Where some file system could stumble, the bytes of a character stand as %XX, which `read_heads` reads back.

    Raises
    ------
    OutputError : where the name is empty, no Unicode, or too long for a file.

    Examples
    --------
    >>> head_file_name("hate/threatening"), head_file_name("../evil"), head_file_name("con")
    ('hate%2Fthreatening.json', '%2E.%2Fevil.json', '%63on.json')
    """
    if not category:
        raise OutputError("a category without a name has no file for its head: name the column of its labels")
    last, composed = len(category) - 1, unicodedata.is_normalized("NFC", category)
    device = _DEVICES.fullmatch(category) is not None

    def stumbles(place: int, char: str) -> bool:
        if char in _FORBIDDEN or unicodedata.category(char) in _INVISIBLE or (not composed and not char.isascii()):
            return True
        return (place == 0 and (device or char in ". ")) or (place == last and char in ". ")

    try:
        name = "".join(_escaped(char) if stumbles(place, char) else char for place, char in enumerate(category))
        size = len(f"{name}{SUFFIX}".encode())
    except UnicodeEncodeError as error:
        raise OutputError(f"the category {quoted(category)} is no valid Unicode, and has no file name") from error
    if size > LONGEST_NAME:
        raise OutputError(
            f"the category {quoted(category)} would make a file name of {size} bytes, more than {LONGEST_NAME}: "
            "give its column a shorter name"
        )
    return f"{name}{SUFFIX}"


def head_file_names(categories: Iterable[str]) -> dict[str, str]:
    """Return the name of the file of each category.

    Raises
    ------
    OutputError : as of `head_file_name`, and where a file system could take two of them for one.

    Examples
    --------
    >>> head_file_names(["hate", "a/b"])
    {'hate': 'hate.json', 'a/b': 'a%2Fb.json'}
    """
    names, taken = {}, dict[str, str]()
    for category in categories:
        name = head_file_name(category)
        plain = unicodedata.normalize("NFC", unicodedata.normalize("NFC", category).casefold())
        if plain in taken:
            raise OutputError(
                f"the categories {quoted(taken[plain])} and {quoted(category)} would share one file where case and "
                "accents are not told apart, as on macOS and Windows: rename a column"
            )
        names[category] = name
        taken[plain] = category
    return names


def category_of(file_name: str) -> str:
    """Return the category whose head the file is, by its name.

    Raises
    ------
    UnicodeError : where the name is no valid Unicode, or stands for none.

    Examples
    --------
    >>> category_of("a%2Fb.json"), category_of("100%.json")
    ('a/b', '100%')
    """
    file_name.encode()
    return unquote(file_name[: -len(SUFFIX)], errors="strict")


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())
