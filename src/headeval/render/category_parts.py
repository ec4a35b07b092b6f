"""What stands beside the numbers of several categories, a row each: claims, a baseline, slices."""

from collections.abc import Iterator

from headeval.category_report import CategoriesReport
from headeval.core.intervals import Difference
from headeval.printable import printable
from headeval.render.category_notes import merged_notes
from headeval.render.claim import claim_section
from headeval.render.numbers import NOTHING, count, signed
from headeval.render.sections import Column, Grid, Section, Tone
from headeval.render.slices import below_whole
from headeval.report import Slice

_COMPARED = {"auc": "AUC", "recall": "recall", "fpr": "FPR"}
_LEFT_OUT = "certified on"  # which each category's own report tells


def claims_sections(report: CategoriesReport) -> Iterator[Section]:
    """Yield what the heads say their thresholds keep, where one says so."""
    rows: list[tuple[str, ...]] = []
    tones: list[Tone] = []
    columns: list[Column] = []
    told: list[tuple[str, tuple[str, ...]]] = []
    for name, part in report.judged:
        section = None if part.claim is None else claim_section(part.claim)
        told.append((name, () if section is None else (section.lead,)))
        for grid in () if section is None else section.grids:
            kept = [at for at, column in enumerate(grid.columns) if column.heading != _LEFT_OUT]
            columns = [Column("category"), *(grid.columns[at] for at in kept)]
            rows += [(printable(name), *(row[at] for at in kept)) for row in grid.rows]
            tones += grid.tones
    if any(lead for _, lead in told):
        grids = (Grid("what the heads say their thresholds keep", tuple(columns), tuple(rows), tones=tuple(tones)),)
        yield Section("What the thresholds keep", grids if rows else (), footnotes=merged_notes(told))


def comparison_sections(report: CategoriesReport) -> Iterator[Section]:
    """Yield each category less its baseline, where there is one."""
    rows = tuple(
        (printable(name), *(_difference(part.comparison.differences.get(key)) for key in _COMPARED))
        for name, part in report.judged
        if part.comparison is not None
    )
    if rows:
        columns = (Column("category"), *(Column(title, numeric=True) for title in _COMPARED.values()))
        yield Section(
            "Comparison",
            (Grid("new less baseline", columns, rows),),
            lead="difference to the baseline on the same rows",
            footnotes=("below each difference its interval",)
            if any("\n" in cell for row in rows for cell in row)
            else (),
        )


def slices_sections(report: CategoriesReport) -> Iterator[Section]:
    """Yield of each column the slice that falls furthest below its whole category."""
    by_column: dict[str, list[tuple[str, list[Slice]]]] = {}
    for name, part in report.judged:
        for column in dict.fromkeys(each.column for each in part.slices):
            own = [each for each in part.slices if each.column == column]
            by_column.setdefault(column, []).append((name, own))
    for column, found in by_column.items():
        headings = ("slices", "rows", "below the whole")
        columns = (Column("category"), Column("worst"), *(Column(heading, numeric=True) for heading in headings))
        rows = tuple(_worst(name, slices) for name, slices in found)
        notes = ["the report of each category alone, --format json and --html have all slices"]
        if any(each.below for _, slices in found for each in slices[:1]):
            notes.append("! the whole interval of the slice lies on the bad side of its category's value")
        if any(each.small for _, slices in found for each in slices[:1]):
            notes.append("* few rows: no slice of this category has more")
        yield Section(
            f"Slices by {printable(column)}",
            (Grid(f"slices by {printable(column)}", columns, rows),),
            lead="of each category the slice that falls furthest below it",
            footnotes=tuple(notes),
        )


def _worst(name: str, slices: list[Slice]) -> tuple[str, ...]:
    """The first slice is the worst, of those that are large enough to say so."""
    worst = slices[0]
    value = f"{printable(worst.value)}{' *' if worst.small else ''}"
    rows = count(worst.evaluation.counts.n)
    return (printable(name), value, count(len(slices)), rows, below_whole(worst))


def _difference(difference: Difference | None) -> str:
    if difference is None:
        return NOTHING
    if difference.interval is None:
        return signed(difference.value)
    interval = f"[{signed(difference.interval.lower)}, {signed(difference.interval.upper)}]"
    return f"{signed(difference.value)}\n{interval}"
