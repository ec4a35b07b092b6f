"""Titled grids of text: what terminal, Markdown and HTML all can show.

Text from outside passes through `printable` on its way here; each format still escapes what its own syntax would read.
"""

from dataclasses import dataclass
from typing import Literal

from headeval.printable import printable

Tone = Literal["good", "bad", "doubtful"]

LONGEST_IN_SENTENCE = 40


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a grid; numbers stand right-aligned."""

    heading: str
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a reliability diagram: the share of positives, and the mean p it should equal; both in [0, 1]."""

    share: float
    mean: float


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of text; the first cell of a row names it.

    Attributes
    ----------
    caption : what the grid shows, for those who do not see where it stands.
    headed : whether a reader needs the headings to understand the columns.
    bars : one a row, None in a row without; or no bars at all.
    tones : one a row, of its verdict; or none at all.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    headed: bool = True
    bars: tuple[Bar | None, ...] = ()
    tones: tuple[Tone, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A title, a sentence, grids, and what has to be said below them."""

    title: str
    grids: tuple[Grid, ...]
    lead: str = ""
    footnotes: tuple[str, ...] = ()


def in_sentence(name: str) -> str:
    """Return a class name short enough to stand within a sentence, in quotes where it is not a word."""
    text = printable(name, longest=LONGEST_IN_SENTENCE)
    return text if text[:1].isalpha() else f"'{text}'"
