"""A report as GitHub-flavoured Markdown, for the job summary of a CI run."""

import re
from collections.abc import Iterator

from headeval.render.sections import Grid, Section
from headeval.render.sheet import Sheet, report_sheet
from headeval.report import Report

# Where these stand they can start emphasis, code, a link, HTML, a table cell, mathematics, a mention, an emoji.
_ACTIVE = re.compile(
    r"""[&<|`*\[\\~#@$^{}]
    | :(?=\S)
    | (?<=www)\.
    | (?<![A-Za-z0-9])_ | _(?![A-Za-z0-9])
    """,
    re.VERBOSE | re.IGNORECASE,
)
# At the start of a block these make a list, a quotation, a rule or an underlined heading, and spaces make code.
_ACTIVE_AT_START = re.compile(r"[>=]|[-+](?!\d)|\s+")
_LIST_NUMBER = re.compile(r"(\d+)([.)])(?=\s|$)")


def render_markdown(report: Report) -> str:
    """Return a report as Markdown, the verdict in its heading and the requirements first."""
    return sheet_markdown(report_sheet(report))


def sheet_markdown(sheet: Sheet) -> str:
    """Return any sheet as Markdown; blocks are parted by one empty line."""
    return "\n\n".join(_blocks(sheet)) + "\n"


def escape(text: str) -> str:
    """Return text that Markdown shows as it is, in a paragraph, a list item or a table cell.

    Character references are used, which are resolved only after the structure has been read.

    Examples
    --------
    >>> escape("a|b *c* <d>"), escape("- e"), escape("1. f")
    ('a&#124;b &#42;c&#42; &#60;d>', '&#45; e', '1&#46; f')
    """
    start = _LIST_NUMBER.match(text)
    if start:
        return f"{start[1]}{_references(start[2])}{_inline(text[start.end() :])}"
    start = _ACTIVE_AT_START.match(text)
    return f"{_references(start[0])}{_inline(text[start.end() :])}" if start else _inline(text)


def _inline(text: str) -> str:
    return _ACTIVE.sub(lambda match: _references(match[0]), text)


def _references(text: str) -> str:
    return "".join(f"&#{ord(char)};" for char in text)


def _blocks(sheet: Sheet) -> Iterator[str]:
    yield f"## {escape(sheet.heading)}"
    if sheet.requirements:
        yield from _content(sheet.requirements)
    yield f"> [!CAUTION]\n> {escape(sheet.how)}" if sheet.caution else f"**{escape(sheet.how)}**"
    if sheet.notes:
        yield "\n".join(f"- {escape(note)}" for note in sheet.notes)
    for section in sheet.sections:
        yield from _section(section)
    yield "### Provenance"
    yield "\n".join(f"- {escape(key)}: {escape(value)}" for key, value in sheet.provenance)


def _section(section: Section) -> Iterator[str]:
    yield f"### {escape(section.heading)}"
    if section.lead:
        yield escape(section.lead)
    yield from _content(section)


def _content(section: Section) -> Iterator[str]:
    yield from map(_grid, section.grids)
    if section.footnotes:
        yield "\n".join(f"- {escape(note)}" for note in section.footnotes)


def _grid(grid: Grid) -> str:
    columns = grid.columns
    lines = [
        [escape(column.heading) for column in columns],
        ["---:" if column.numeric else ":---" for column in columns],
        *(["<br>".join(map(escape, cell.split("\n"))) for cell in row] for row in grid.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
