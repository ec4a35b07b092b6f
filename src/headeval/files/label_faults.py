"""Values of a label column that are no classes of their own: text for a missing label, and slips of the pen."""

import difflib
import itertools
import re
from collections.abc import Collection, Iterable, Mapping

from headeval.errors import DataError
from headeval.files.categories import canonical_number
from headeval.printable import quoted

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = frozenset({"false", "true"})
_SAFETY = frozenset({"safe", "unsafe"})
# What programs write for a missing value and nobody for a class; and what may be the name of one among other names.
_MISSING = frozenset({"", "nan", "-nan", "null", "<na>"})
_MISSING_NUMBER = _MISSING | {"none", "na", "n/a", "#n/a", "nat", "nil", "empty", "missing", "unknown", "?", "-", "."}
_ALIKE, _SHORTEST = 0.85, 4  # safe and unsafe are alike to 0.8
_RARE = 2  # times as many rows has a class of which another is a misspelling
_MOST_COMPARED = 100


def check_values(
    counts: Mapping[str, int], *, where: str, classes: Collection[str] | None = None, positive: str | None = None
) -> None:
    """Refuse text that stands for a missing label, and values that differ in case or spaces only.

    Parameters
    ----------
    counts : how often each value occurs.
    where : the file and column, for messages.
    classes : the names of the classes where a head, a file or an option gives them: what they name is a class.
    positive : the value that is said to be the positive class, whatever the names of the classes.

    Raises
    ------
    DataError : naming the values and how many rows have them.

    Examples
    --------
    >>> check_values({"NA": 3, "NC": 4}, where="here")
    >>> check_values({"NA": 3, "1": 4}, where="here")
    Traceback (most recent call last):
    headeval.errors.DataError: here holds the text 'NA' (3 rows), which reads like a missing label
    leave these cells empty (null), and the rows out with --drop-unlabelled, or give the class another name
    """
    named = frozenset(classes or ())
    missing = [text for text in missing_texts(counts) if text not in named]
    if missing:
        reads = "reads like a missing label" if len(missing) == 1 else "read like missing labels"
        raise DataError(
            f"{where} holds the text {_rows(counts, missing)}, which {reads}\nleave these cells empty (null), and the "
            "rows out with --drop-unlabelled, or give the class another name"
        )
    check_spellings(counts, where=where, classes=classes)
    if positive is None:
        _refuse_other_spellings(counts, where, classes or ())


def check_spellings(counts: Mapping[str, int], *, where: str, classes: Collection[str] | None = None) -> None:
    """Refuse values that differ in case or spaces only; parameters as of `check_values`.

    Values of a column of booleans are the same in any case, and safe and unsafe where these are the classes given.

    Raises
    ------
    DataError : naming them and how many rows have them.
    """
    named = frozenset(classes or ())
    for together in spelled_alike(counts):
        if not (named.issuperset(together) or _one_name(together, named, counts)):
            raise DataError(
                f"{where} holds {_rows(counts, together)}, which differ in case or spaces only\nwrite them alike; two "
                "classes they are only where --classes names both"
            )


def missing_texts(values: Collection[str]) -> list[str]:
    """Return the values that read like a missing one, more of them where all others are numbers or booleans.

    Examples
    --------
    >>> missing_texts(["none", "0", "1"]), missing_texts(["none", "hate", "NaN"])
    (['none'], ['NaN'])
    """
    others = [text for text in values if _bare(text) not in _MISSING_NUMBER]
    numbers = bool(others) and all(_NUMBER.fullmatch(text.strip()) or _bare(text) in _BOOLEANS for text in others)
    return [text for text in values if _bare(text) in (_MISSING_NUMBER if numbers else _MISSING)]


def spelled_alike(names: Iterable[str]) -> list[list[str]]:
    """Return which names are the same but for upper and lower case and spaces; one number is one name.

    Examples
    --------
    >>> spelled_alike(["safe", "hate", "Hate "])
    [['hate', 'Hate ']]
    """
    alike: dict[str, dict[str, str]] = {}
    for name in names:
        alike.setdefault(_folded(name), {}).setdefault(canonical_number(name), name)
    return [list(together.values()) for together in alike.values() if len(together) > 1]


def misspelled(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return values that look like another with at least twice as many rows: (the rarer, the other).

    Words with digits are no misspellings of each other, nor is one that only has a prefix more, such as un-.

    Examples
    --------
    >>> misspelled({"unsafe": 197, "safe": 179, "unsfe": 24, "class1": 5, "class2": 90})
    [('unsfe', 'unsafe')]
    """
    words = [text for text in counts if len(text) >= _SHORTEST and not any(char.isdigit() for char in text)]
    words = sorted(words, key=lambda text: (-counts[text], text))[:_MOST_COMPARED]
    found: dict[str, str] = {}
    for common, rare in itertools.combinations(words, 2):
        if rare not in found and counts[common] >= _RARE * counts[rare] and _look_alike(common, rare):
            found[rare] = common
    return list(found.items())


def _look_alike(one: str, other: str) -> bool:
    one, other = one.casefold(), other.casefold()
    if one.endswith(other) or other.endswith(one):
        return False
    swapped = one[0] == other[0] and sorted(one) == sorted(other)
    return swapped or difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() >= _ALIKE


def _refuse_other_spellings(counts: Mapping[str, int], where: str, classes: Collection[str]) -> None:
    """Refuse what is none of the given classes, but differs from one in case or spaces only."""
    known = {_folded(name): name for name in classes}
    exact = {canonical_number(name) for name in classes}
    for text in counts:
        name = known.get(_folded(text))
        if name is not None and canonical_number(text) not in exact and not _one_name([text, name], classes, counts):
            raise DataError(
                f"{where} holds {_rows(counts, [text])}, which differs from the class {quoted(name)} in case or "
                "spaces only\nwrite it as the class is written, or name the flagged one with --positive"
            )


def _one_name(names: Collection[str], classes: Collection[str], values: Collection[str]) -> bool:
    """Whether names are one in any case: of a column of booleans, or of safe and unsafe where these are the classes."""
    folded, given, all_values = ({name.casefold() for name in texts} for texts in (names, classes, values))
    return all_values <= _BOOLEANS or (folded <= _SAFETY and given == _SAFETY) or (folded <= _BOOLEANS == given)


def _folded(name: str) -> str:
    return canonical_number("".join(name.split()).casefold())


def _bare(text: str) -> str:
    return text.strip().casefold()


def _rows(counts: Mapping[str, int], texts: Collection[str]) -> str:
    from headeval.files.labels import counted

    return counted({text: counts[text] for text in texts})
