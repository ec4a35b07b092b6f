"""A sheet as a rich renderable: made for 80 columns, readable without colour and on an ASCII console."""

from collections.abc import Iterator

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headeval.render.bars import ASCII_HEIGHTS, HEIGHTS, bar_text
from headeval.render.sections import Bar, Grid, Section, Tone
from headeval.render.sheet import Sheet, report_sheet
from headeval.render.summaries import calibration_sheet, fit_sheet
from headeval.report import CalibrationSummary, FitSummary, Report

BAR_WIDTH = 18
BAR_HEADING = "bar, │: mean p"
INDENT = 2
GAP = 2
LEAST_NAME = 8

ROOMY = 80

_HEAD_RULE = box.Box("\n".join(["    ", "    ", " -- ", *["    "] * 5]) + "\n", ascii=True)
_STYLES: dict[Tone, str] = {"good": "bold green", "bad": "bold red", "doubtful": "bold yellow"}
_ASCII = str.maketrans(
    {
        "≥": ">=",
        "≤": "<=",
        "–": "-",
        "−": "-",
        "∞": "inf",
        "²": "^2",
        "‖": "||",
        "→": "->",
        "↓": "v",
        "…": "...",
        "│": "|",
        **dict(zip(HEIGHTS, ASCII_HEIGHTS, strict=True)),
    }
)


def render_report(report: Report) -> RenderableType:
    """Return a report for the terminal; the verdict on its requirements is the last line."""
    return SheetView(report_sheet(report))


def render_fit(summary: FitSummary) -> RenderableType:
    """Return the story of a fit and its evaluation for the terminal."""
    return SheetView(fit_sheet(summary))


def render_calibration(summary: CalibrationSummary) -> RenderableType:
    """Return a calibration, before and after, for the terminal."""
    return SheetView(calibration_sheet(summary))


class SheetView:
    """A sheet that is laid out when it is printed, since only the console knows its encoding.

    Text is never read as markup. Characters that the console cannot show become ASCII ones or escapes,
    before anything is measured.
    """

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the parts from top to bottom."""
        view, sheet = _Parts(options), self._sheet
        yield view.text(sheet.title, "bold")
        yield view.lines(sheet.provenance)
        yield view.text("")
        how = view.text(f"CAUTION: {sheet.how}", "bold yellow") if sheet.caution else view.text(sheet.how, "bold")
        yield how
        for section in sheet.sections:
            yield from view.section(section)
        if sheet.notes:
            yield view.text("")
            yield view.text("Notes", "bold")
            yield view.lines(tuple(("-", note) for note in sheet.notes), gap=1)
        if sheet.requirements:
            yield from view.section(sheet.requirements)
            yield view.text("")
            if sheet.caution:  # by now its first place has scrolled away
                yield how
            yield view.text(sheet.verdict, _STYLES[sheet.tone])


class _Parts:
    """Builds the parts of a sheet for one console."""

    def __init__(self, options: ConsoleOptions) -> None:
        self._encoding = options.encoding
        self._ascii_only = options.ascii_only
        self._width = options.max_width
        self._roomy = options.max_width >= ROOMY

    def text(self, text: str, style: str = "") -> Text:
        if self._ascii_only:
            text = text.translate(_ASCII).encode(self._encoding, "backslashreplace").decode(self._encoding)
        return Text(text, style=style, overflow="fold")

    def lines(self, pairs: tuple[tuple[str, str], ...], gap: int = 2) -> RenderableType:
        table = Table.grid(padding=(0, gap, 0, 0))
        table.add_column(overflow="fold")
        table.add_column(overflow="fold")
        for key, value in pairs:
            table.add_row(self.text(key, "dim"), self.text(value))
        return table

    def section(self, section: Section) -> Iterator[RenderableType]:
        yield self.text("")
        title = self.text(section.heading, "bold")
        yield title.append_text(self.text(f": {section.lead}")) if section.lead else title
        for index, grid in enumerate(section.grids):
            if index:
                yield self.text("")
            yield Padding.indent(self.grid(grid), INDENT)
        for footnote in section.footnotes:
            yield Padding.indent(self.text(footnote, "dim"), INDENT)

    def grid(self, grid: Grid) -> Table:
        table = Table(
            box=(_HEAD_RULE if self._ascii_only else box.SIMPLE_HEAD) if grid.headed else None,
            show_header=grid.headed,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1 if grid.headed else 2, 0, 0),
        )
        for column, heading in zip(grid.columns, self._headings(grid), strict=True):
            justify: JustifyMethod = "right" if column.numeric else "left"
            # A folded number is easily misread: names give way first, unless the terminal is too narrow for both.
            whole = column.numeric and self._roomy
            table.add_column(heading, justify=justify, overflow="fold", no_wrap=whole)
        bars = grid.bars if self._roomy else ()  # a bar cut off would lie
        if bars:
            table.add_column(self.text(BAR_HEADING), no_wrap=True)
        for index, row in enumerate(grid.rows):
            cells = [self.text(cell, self._style(grid, index, place)) for place, cell in enumerate(row)]
            table.add_row(*cells, *([self._bar(bars[index])] if bars else []))
        return table

    def _headings(self, grid: Grid) -> list[Text]:
        """The headings; where those above numbers are too long for all to stand side by side, they fold."""
        headings = [self.text(column.heading) for column in grid.columns]
        numeric = [at for at, column in enumerate(grid.columns) if column.numeric]
        width = self._width - INDENT - LEAST_NAME * (len(headings) - len(numeric)) - GAP * (len(headings) - 1)
        if self._roomy and sum(headings[at].cell_len for at in numeric) > width:
            for at in numeric:
                headings[at] = Text("\n").join(_folded(headings[at], max(LEAST_NAME, width // len(numeric))))
        return headings

    def _style(self, grid: Grid, row: int, place: int) -> str:
        return _STYLES[grid.tones[row]] if grid.tones and grid.columns[place].heading == "verdict" else ""

    def _bar(self, bar: Bar | None) -> Text:
        if bar is None:
            return Text()
        return Text(bar_text(bar.share, bar.mean, width=BAR_WIDTH, ascii_only=self._ascii_only), style="cyan")


def _folded(text: Text, width: int) -> list[Text]:
    """Text in pieces of at most so many cells; wide characters take two."""
    cuts, used = [], 0
    for at, char in enumerate(text.plain):
        cells = cell_len(char)
        if used + cells > width:
            cuts.append(at)
            used = 0
        used += cells
    return list(text.divide(cuts))
