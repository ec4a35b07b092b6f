"""Notes of several categories told once, with the categories they concern."""

import re
from collections.abc import Iterable, Sequence

from headeval.printable import printable
from headeval.render.sections import LONGEST_IN_SENTENCE

MOST_NAMED = 8
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def merged_notes(notes: Iterable[tuple[str, Sequence[str]]], *, with_numbers: bool = False) -> tuple[str, ...]:
    """Return each note once: alone where it is of every category, else with the names of those it is of.

    Parameters
    ----------
    notes : name and notes of each category; text from outside.
    with_numbers : whether notes that differ in their numbers alone are all told; else those of the first.

    Examples
    --------
    >>> merged_notes([("hate", ("few rows: 3", "all")), ("spam", ("few rows: 12", "all")), ("harm", ("all",))])
    ('hate: few rows: 3; likewise, with its own numbers, spam', 'all')
    >>> merged_notes([("hate", ("is flagged",)), ("spam", ("is flagged",)), ("harm", ())])
    ('hate, spam: is flagged',)
    """
    notes = [(name, tuple(dict.fromkeys(texts))) for name, texts in notes]
    alike: dict[str, list[tuple[str, str]]] = {}
    for name, texts in notes:
        for text in texts:
            alike.setdefault(text if with_numbers else _NUMBER.sub("#", text), []).append((name, text))
    return tuple(_told(found, everywhere=len(found) == len(notes)) for found in alike.values())


def named(names: Iterable[str]) -> str:
    """Return the names of categories, printable; beyond a few the rest is counted.

    Examples
    --------
    >>> named(["hate", "spam"]), named("abcdefghij")
    ('hate, spam', 'a, b, c, d, e, f, g, h and 2 more')
    """
    shown = [printable(name, longest=LONGEST_IN_SENTENCE) for name in names]
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(shown[:MOST_NAMED]) + more


def _told(found: Sequence[tuple[str, str]], *, everywhere: bool) -> str:
    first, text = found[0][0], printable(found[0][1])
    if len({text for _, text in found}) == 1:
        return text if everywhere else f"{named(name for name, _ in found)}: {text}"
    others = [name for name, _ in found[1:]]
    own = "its own numbers" if len(others) == 1 else "their own numbers"
    return f"{named([first])}: {text}; likewise, with {own}, {named(others)}"
