"""A model card of several categories: what they share once, then what is recorded and measured of each."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from headeval.category_report import CategoriesReport
from headeval.evaluation import METRICS
from headeval.head import LinearHead
from headeval.render.card import card_sheet
from headeval.render.categories import categories_sheet, not_judged, overview_section
from headeval.render.category_notes import merged_notes
from headeval.render.category_parts import claims_sections, comparison_sections, named_classes, slices_sections
from headeval.render.markdown import sheet_markdown
from headeval.render.numbers import UNDEFINED, count, number
from headeval.render.sections import Column, Grid, Section, in_cell
from headeval.render.sheet import Sheet
from headeval.report import Report

_MODEL, _ROWS = "Model", "Rows"
_MEASURES, _THRESHOLD = "Measures", "Decision threshold"
_LIMITS, _MISSING = "Limits that follow from the numbers", "Not recorded"

Parts = Mapping[str, Section]  # of one card, by their titles


def render_categories_card(report: CategoriesReport, heads: Mapping[str, LinearHead | None]) -> str:
    """Return the model card of several categories as Markdown.

    Parameters
    ----------
    heads : the heads that were judged, by category; None where the scores came from a column.
    """
    return sheet_markdown(categories_card_sheet(report, heads))


def categories_card_sheet(report: CategoriesReport, heads: Mapping[str, LinearHead | None]) -> Sheet:
    """Lay out that card, for any format."""
    full, sections = categories_sheet(report), tuple(_sections(report, heads))
    name = report.provenance.get("heads")
    what = in_cell(name) if isinstance(name, str) else "scores of several categories"
    return dataclasses.replace(full, title=f"Model card: {what}", sections=sections, verdict="")


def _sections(report: CategoriesReport, heads: Mapping[str, LinearHead | None]) -> Iterator[Section]:
    cards = [(name, _card(named_classes(name, part), heads.get(name))) for name, part in report.judged]
    facts = [
        [*_facts(_card(part, heads.get(name)), _MODEL), *_facts(card, _ROWS)]  # what is recorded is shown as it is
        for (name, part), (_, card) in zip(report.judged, cards, strict=True)
    ]
    alone = len(cards) < min(2, len(report.parts))  # then nothing tells what it shares with the others
    shared = [fact for fact in facts[0] if all(fact in other for other in facts)] if facts and not alone else []
    yield Section("Model", (_facts_grid("what all categories share", shared),))
    yield overview_section(report)
    yield _averages(report)
    for (name, card), own in zip(cards, facts, strict=True):
        yield _category(name, card, [fact for fact in own if fact not in shared])
    yield from claims_sections(report)
    yield from comparison_sections(report)
    yield from slices_sections(report)
    for title in (_LIMITS, _MISSING):
        told = [*((name, card[title].footnotes) for name, card in cards), *not_judged(report)]
        yield Section(title, (), footnotes=merged_notes(told, with_numbers=True))


def _category(name: str, card: Parts, own: Sequence[tuple[str, ...]]) -> Section:
    threshold = card[_THRESHOLD]
    grids = (_facts_grid("recorded", own), *threshold.grids, *card[_MEASURES].grids)
    return Section(f"Category {in_cell(name)}", grids, lead=threshold.lead, footnotes=threshold.footnotes)


def _card(report: Report, head: LinearHead | None) -> Parts:
    return {section.title: section for section in card_sheet(report, head).sections}


def _facts(card: Parts, title: str) -> list[tuple[str, ...]]:
    return [row for grid in card[title].grids for row in grid.rows]


def _facts_grid(caption: str, facts: Sequence[tuple[str, ...]]) -> Grid:
    return Grid(caption, (Column("what"), Column("recorded")), tuple(facts), headed=False)


def _averages(report: CategoriesReport) -> Section:
    """Every metric's mean over the categories, for those who quote one number."""
    rows = tuple(
        (METRICS[name].title, UNDEFINED if mean.value is None else number(mean.value), count(mean.categories))
        for name, mean in report.averages.items()
    )
    columns = (Column("measure"), Column("mean", numeric=True), Column("categories", numeric=True))
    return Section("Macro averages", (Grid("macro averages", columns, rows),))
