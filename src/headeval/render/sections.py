"""Titled grids of text: what terminal, Markdown and HTML all can show.

Text from outside passes through `printable` on its way here; each format still escapes what its own syntax would read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from headeval.printable import printable

Tone = Literal["good", "bad", "doubtful"]

LONGEST_IN_SENTENCE = 40
LONGEST_IN_CELL = 240  # of thousands of characters the numbers beside them would be hard to find


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
    """Rows of text; the first cell of a row names it. A line break in a cell is shown as one.

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
    """A title, a sentence, grids, and what has to be said below them.

    Attributes
    ----------
    about : which of several questions the section answers, where the title alone does not say; stands beside it.
    """

    title: str
    grids: tuple[Grid, ...]
    lead: str = ""
    footnotes: tuple[str, ...] = ()
    about: str = ""

    @property
    def heading(self) -> str:
        """The title with what it is about."""
        return f"{self.title} ({self.about})" if self.about else self.title


def all_about(sections: Iterable[Section], about: str) -> tuple[Section, ...]:
    """Return the sections with what they are about; empty text leaves them as they are."""
    return tuple(replace(section, about=about) if about else section for section in sections)


def in_sentence(name: str) -> str:
    """Return a class name short enough to stand within a sentence, in quotes where it is not a word."""
    text = printable(name, longest=LONGEST_IN_SENTENCE)
    return text if text[:1].isalpha() else f"'{text}'"


def in_cell(name: str, *, longest: int = LONGEST_IN_CELL) -> str:
    """Return a name as it heads a row or a section: whole, but of a very long one the beginning and the end.

    Examples
    --------
    >>> in_cell("hate"), in_cell("x" * 5000 + "y").count("x"), in_cell("x" * 5000 + "y")[-2:]
    ('hate', 238, 'xy')
    """
    if len(name) > longest:
        end = longest // 3
        name = f"{name[: longest - end - 1]}…{name[-end:]}"
    return printable(name)
