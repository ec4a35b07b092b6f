"""Categories that were left out, as a section."""

from collections.abc import Sequence

from headeval.category_summaries import LeftOut
from headeval.printable import printable
from headeval.render.numbers import count
from headeval.render.sections import LONGEST_IN_SENTENCE, Column, Grid, Section


def category_name(name: str) -> str:
    """Return the name of a category, short enough to head a row."""
    return printable(name, longest=LONGEST_IN_SENTENCE)


def left_out_sections(parts: Sequence[LeftOut]) -> tuple[Section, ...]:
    """Return what is missing and why, with the rows there were; nothing where nothing is."""
    if not parts:
        return ()
    headings = ("category", "known", "positive", "unknown", "why")
    columns = tuple(Column(heading, numeric=heading in {"known", "positive", "unknown"}) for heading in headings)
    rows = tuple(
        (category_name(part.name), count(part.known), count(part.positives), count(part.unknown), printable(part.why))
        for part in parts
    )
    return (Section("Left out: nothing was written for these", (Grid("categories left out", columns, rows),)),)
