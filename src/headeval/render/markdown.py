"""A report as GitHub-flavoured Markdown, for the job summary of a CI run."""

import re
from collections.abc import Iterator

from headeval.render.sections import Grid, Section
from headeval.render.sheet import Sheet, report_sheet
from headeval.report import Report

# Everything in ASCII that is not listed here can mean something to Markdown, HTML or a link finder.
_ACTIVE = re.compile(r"[^A-Za-z0-9 .,()/=%'?+\-\u0080-\U0010ffff]")
# At the start of a block these make a list, a rule or an underlined heading, and spaces make code.
_AT_START = re.compile(r"(\d*)([-+=.)]|\s+)")


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
    ('a&#124;b &#42;c&#42; &#60;d&#62;', '&#45; e', '1&#46; f')
    """
    start = _AT_START.match(text)
    before, first = start.groups() if start else ("", "")
    rest = text[len(before) + len(first) :]
    return f"{before}{_references(first)}{_ACTIVE.sub(lambda match: _references(match[0]), rest)}"


def _references(text: str) -> str:
    return "".join(f"&#{ord(char)};" for char in text)


def _blocks(sheet: Sheet) -> Iterator[str]:
    yield f"## {escape(f'headeval: {sheet.verdict}'.rstrip('.') if sheet.verdict else sheet.title)}"
    if sheet.requirements:
        yield from map(_grid, sheet.requirements.grids)
    yield f"> [!CAUTION]\n> {escape(sheet.how)}" if sheet.caution else f"**{escape(sheet.how)}**"
    if sheet.notes:
        yield "\n".join(f"- {escape(note)}" for note in sheet.notes)
    for section in sheet.sections:
        yield from _section(section)
    yield "### Provenance"
    yield "\n".join(f"- {escape(key)}: {escape(value)}" for key, value in sheet.provenance)


def _section(section: Section) -> Iterator[str]:
    yield f"### {escape(section.title)}"
    if section.lead:
        yield escape(section.lead)
    yield from map(_grid, section.grids)
    if section.footnotes:
        yield "\n".join(f"- {escape(note)}" for note in section.footnotes)


def _grid(grid: Grid) -> str:
    columns = grid.columns
    lines = [
        [escape(column.heading) for column in columns],
        ["---:" if column.numeric else ":---" for column in columns],
        *([escape(cell) for cell in row] for row in grid.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
