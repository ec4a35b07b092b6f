"""What stands beside the numbers of several categories, a row each: claims, a baseline, slices."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from headeval.category_report import CategoriesReport
from headeval.core.intervals import Difference
from headeval.printable import printable
from headeval.render.category_notes import merged_notes, named
from headeval.render.claim import claim_section
from headeval.render.numbers import NOTHING, count, number, percent, signed
from headeval.render.sections import Column, Grid, Section, Tone, in_cell
from headeval.render.slices import below_whole
from headeval.report import FEW_OF_A_CLASS, FEW_ROWS, Report, Slice

_COMPARED = {"auc": "AUC", "recall": "recall", "fpr": "FPR"}
_TELL_NOTHING = (("false", "true"), ("0", "1"))
ALL_SLICES = "the report of each category alone, --format json and --html have all slices"
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
            rows += [(in_cell(name), *(row[at] for at in kept)) for row in grid.rows]
            tones += grid.tones
    if any(lead for _, lead in told):
        grids = (Grid("what the heads say their thresholds keep", tuple(columns), tuple(rows), tones=tuple(tones)),)
        yield Section("What the thresholds keep", grids if rows else (), footnotes=merged_notes(told))


def comparison_sections(report: CategoriesReport) -> Iterator[Section]:
    """Yield each category less its baseline, where there is one, and the rows that are decided otherwise."""
    compared = [(name, part.evaluation, part.comparison) for name, part in report.judged if part.comparison is not None]
    if not compared:
        return
    differences = tuple(
        (in_cell(name), *(_difference(comparison.differences.get(key)) for key in _COMPARED))
        for name, _, comparison in compared
    )
    decided = tuple(
        (
            in_cell(name),
            f"{number(comparison.baseline.threshold)} → {number(new.threshold)}",
            *map(count, (comparison.changes.newly_flagged, comparison.changes.no_longer_flagged)),
        )
        for name, new, comparison in compared
    )
    headings = ("threshold", "newly flagged", "no longer flagged")
    confidence = next((new.confidence for _, new, _ in compared), None)
    yield Section(
        "Comparison",
        (
            Grid("new less baseline", (Column("category"), *_numbers(*_COMPARED.values())), differences),
            Grid("rows decided otherwise", (Column("category"), *_numbers(*headings)), decided),
        ),
        lead=f"difference to the baseline{_baseline(report)} on the same rows",
        footnotes=(
            *(() if confidence is None else (f"below each difference its {percent(confidence)} interval",)),
            "threshold: that of the baseline → the new one",
        ),
    )


def _baseline(report: CategoriesReport) -> str:
    """Return the name of the folder, or of the columns, after a space."""
    where = report.provenance.get("baseline")
    if isinstance(where, Mapping):
        return f" {named(map(str, where.values()))}"
    return "" if where is None else f" {printable(str(where))}"


def _numbers(*headings: str) -> tuple[Column, ...]:
    return tuple(Column(heading, numeric=True) for heading in headings)


def named_classes(name: str, report: Report) -> Report:
    """Return the report of a category whose classes tell nothing, such as false and true, under the category's name.

    Examples
    --------
    >>> from headeval.evaluation import evaluate
    >>> report = Report({}, "", evaluate([0.2, 0.9], [0, 1], kind="prob", classes=("false", "true"), n_resamples=0))
    >>> named_classes("hate", report).evaluation.classes
    ('not hate', 'hate')
    """
    names = (f"not {name}", name)
    if tuple(each.casefold() for each in report.evaluation.classes) not in _TELL_NOTHING:
        return report
    comparison = report.comparison
    if comparison is not None:
        comparison = replace(comparison, baseline=replace(comparison.baseline, classes=names))
    return replace(
        report,
        evaluation=replace(report.evaluation, classes=names),
        comparison=comparison,
        slices=tuple(replace(part, evaluation=replace(part.evaluation, classes=names)) for part in report.slices),
    )


def slices_sections(report: CategoriesReport, *, all_slices: str = ALL_SLICES) -> Iterator[Section]:
    """Yield of each column the slice that falls furthest below its whole category.

    Parameters
    ----------
    all_slices : tells a reader where the others are.
    """
    by_column: dict[str, list[tuple[str, list[Slice]]]] = {}
    for name, part in report.judged:
        for column in dict.fromkeys(each.column for each in part.slices):
            own = [each for each in part.slices if each.column == column]
            by_column.setdefault(column, []).append((name, own))
    for column, found in by_column.items():
        columns = (Column("category"), Column("worst"), *_numbers("slices", "rows", "below the whole"))
        rows = tuple(_worst(name, slices) for name, slices in found)
        notes = [all_slices]
        if any(each.below for _, slices in found for each in slices[:1]):
            notes.append("! the whole interval of the slice lies on the bad side of its category's value")
        if any(each.small for _, slices in found for each in slices[:1]):
            few = f"fewer than {FEW_ROWS}, or 1 to {FEW_OF_A_CLASS - 1} of a class"
            notes.append(f"* no slice of this category has enough rows: {few}")
        yield Section(
            f"Slices by {in_cell(column)}",
            (Grid(f"slices by {in_cell(column)}", columns, rows),),
            lead="of each category the slice that falls furthest below it",
            footnotes=tuple(notes),
        )


def _worst(name: str, slices: list[Slice]) -> tuple[str, ...]:
    """The first slice is the worst, of those that are large enough to say so."""
    worst = slices[0]
    value = f"{in_cell(worst.value)}{' *' if worst.small else ''}"
    rows = count(worst.evaluation.counts.n)
    return (in_cell(name), value, count(len(slices)), rows, below_whole(worst))


def _difference(difference: Difference | None) -> str:
    if difference is None:
        return NOTHING
    if difference.interval is None:
        return signed(difference.value)
    interval = f"[{signed(difference.interval.lower)}, {signed(difference.interval.upper)}]"
    return f"{signed(difference.value)}\n{interval}"
