"""`headeval report` over several categories: each is an ordinary subject, read together and judged one by one."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headeval.category_report import CategoriesReport, JudgedCategory
from headeval.cli.category_sources import ALL, category_sources, chosen_categories
from headeval.cli.category_subjects import LONGEST_LABEL, CategorySubject, read_category_subjects
from headeval.cli.judged_report import Asked, judged_report
from headeval.cli.judging import check_comparable, read_baseline
from headeval.cli.report_files import Document, ReportFiles
from headeval.cli.sources import Source
from headeval.cli.subject import Subject
from headeval.errors import DataError, UsageError
from headeval.files.arrow_errors import shown
from headeval.files.gathered_rows import Collect
from headeval.files.tables import Tables
from headeval.printable import listed, quoted
from headeval.requirement_parsing import Requirement
from headeval.requirement_scope import of_categories
from headeval.requirements import Decision, EachDecision, undecided, undecided_each


def refuse_over_categories(named: Mapping[str, object], head: Path | None) -> None:
    """Refuse options that speak of one head or column of scores.

    Parameters
    ----------
    named : the options with their values, None where one was not given.

    Raises
    ------
    UsageError : naming the first one, and what to do.
    """
    given = next((option for option, value in named.items() if value is not None), None)
    if given is not None:
        one = f"--head {quoted(head / 'NAME.json')} --label NAME --drop-unlabelled" if head else "one column of scores"
        raise UsageError(f"{given} is for one category: report on it alone, with {one}")


def baseline_sources(
    tables: Tables,
    sources: Mapping[str, Source],
    *,
    head: Path | None,
    logit: str | None,
    prob: str | None,
    label: str,
) -> dict[str, Source] | None:
    """Return what each category is compared with, or None; only one thing can be named.

    Parameters
    ----------
    label : as of --label; what it does not name need not be on both sides.

    Raises
    ------
    UsageError : where a category has no baseline, a baseline no category, or both have other classes.
    """
    if head is None and logit is None and prob is None:
        return None
    if sum(option is not None for option in (head, logit, prob)) > 1:
        raise UsageError("--baseline, --baseline-logit and --baseline-prob exclude each other: name one")
    every = ALL if head is not None else ",".join(sources)
    found = category_sources(tables, head=head, logit=logit, prob=prob, label=every, baseline=True)
    if found is None:
        raise UsageError(
            "several categories are compared with several: --baseline FOLDER, or as many columns of scores"
        )
    missing = [name for name in sources if name not in found]
    asked = () if head is None or missing else chosen_categories(tuple(found), label, head)
    more = [name for name in asked if name not in sources]
    if missing or more:
        said = f"the baseline {quoted(head)} has {'no' if missing else 'a'} head of {listed(missing or more)}"
        both = ",".join(name for name in sources if name in found) or "NAME"
        raise UsageError(
            f"{said}{'' if missing else ', which is not judged'}: compare the categories that both have, "
            f"--label {quoted(both, longest=LONGEST_LABEL)}"
        )
    for name, source in sources.items():
        check_comparable(source, found[name])
    return {name: found[name] for name in sources}


def judge_categories(
    tables: Tables,
    sources: Mapping[str, Source],
    asked: Asked,
    rivals: Mapping[str, Source] | None = None,
    *,
    threshold: float | None,
    collect: Collect | None = None,
    quiet: bool,
) -> CategoriesReport:
    """Read the rows of all categories at once, and judge each category on those whose label is known.

    Parameters
    ----------
    asked : its requirements name categories, see `requirement_scope.of_categories`.
    rivals : of each category what it is compared with.
    threshold : at which every category is judged, instead of its own.
    collect : reads the rows elsewhere.
    """
    names = tuple(sources)
    asked = dataclasses.replace(
        asked,
        requirements=of_categories(asked.requirements, names),
        of_each=of_categories(asked.of_each, names, each=True),
    )
    also = {name: source.head for name, source in (rivals or {}).items() if source.head is not None}
    subjects = read_category_subjects(
        tables, sources, asked.columns, by=asked.by, threshold=threshold, also=also, collect=collect, quiet=quiet
    )
    compared = _rivals(subjects, rivals, asked, threshold=threshold, quiet=quiet)
    parts = tuple(_judged(part, compared.get(part.name), asked) for part in subjects)
    return CategoriesReport(_provenance(asked, sources, rivals, parts), parts, *_in_order(asked, parts))


def _rivals(
    subjects: Sequence[CategorySubject],
    rivals: Mapping[str, Source] | None,
    asked: Asked,
    *,
    threshold: float | None,
    quiet: bool,
) -> dict[str, Subject]:
    """Return the same rows scored by the baseline; they are read once more where the first reading could not."""
    judged = {part.name: part.subject for part in subjects if part.subject is not None}
    if rivals is None or not judged:
        return {}
    if all(subject.also is not None for subject in judged.values()):
        return {
            name: read_baseline(subject, rivals[name], asked.columns, threshold=threshold, quiet=quiet)
            for name, subject in judged.items()
        }
    tables = next(iter(judged.values())).tables
    _check_width(tables, next(iter(judged.values())).source, next(iter(rivals.values())))
    at = {
        name: dataclasses.replace(source, threshold=threshold) if source.threshold is None else source
        for name, source in rivals.items()
    }
    again = read_category_subjects(tables, at, asked.columns, quiet=quiet)
    return {part.name: part.subject for part in again if part.subject is not None}


def _check_width(tables: Tables, judged: Source, rival: Source) -> None:
    """Refuse a folder for other embeddings than those that were read: the message of a reader knows of one head."""
    if judged.head is not None and rival.head is not None and judged.head.dim != rival.head.dim:
        raise DataError(
            f"{shown(tables.files[0].path)}: embeddings have {judged.head.dim} numbers, the baseline "
            f"{quoted(Path(rival.name).parent)} expects {rival.head.dim}"
        )


def _judged(part: CategorySubject, rival: Subject | None, asked: Asked) -> JudgedCategory:
    if part.subject is None:
        return JudgedCategory(part.name, part.unknown, None, part.why)
    own = dataclasses.replace(
        asked,
        requirements=[requirement for requirement in asked.requirements if requirement.of == part.name],
        of_each=[requirement for requirement in asked.of_each if requirement.of == part.name],
    )
    return JudgedCategory(part.name, part.unknown, judged_report(part.subject, rival, own))


def _in_order(asked: Asked, parts: Sequence[JudgedCategory]) -> tuple[tuple[Decision, ...], tuple[EachDecision, ...]]:
    """Return the decisions on all categories in the order in which they were asked."""
    reports = {part.name: part.report for part in parts}
    why = {part.name: part.why for part in parts}
    decisions = {name: iter(report.decisions) for name, report in reports.items() if report is not None}
    each = {name: iter(report.each) for name, report in reports.items() if report is not None}

    def decided(requirement: Requirement) -> Decision:
        of = requirement.of
        return next(decisions[of]) if of in decisions else undecided(requirement, why[of])

    def decided_each(requirement: Requirement) -> EachDecision:
        of = requirement.of
        return next(each[of]) if of in each else undecided_each(requirement, why[of])

    return tuple(map(decided, asked.requirements)), tuple(map(decided_each, asked.of_each))


def _provenance(
    asked: Asked,
    sources: Mapping[str, Source],
    rivals: Mapping[str, Source] | None,
    parts: Sequence[JudgedCategory],
) -> dict[str, Any]:
    """Return what all categories have in common, and what gives their scores."""
    reports = [part.report.provenance for part in parts if part.report is not None]
    shared = {
        key: value
        for key, value in (reports[0] if reports else {"data": list(asked.data)}).items()
        if all(key in other and other[key] == value for other in reports)
    }
    data = shared.pop("data", list(asked.data))
    first = next(iter(sources.values()))
    names: dict[str, Any] = {"heads" if first.head else f"{first.what}s": _where(sources)}
    baseline = {} if rivals is None else {"baseline": _where(rivals)}
    for key in (first.what, "label_column", "unlabelled_rows_left_out"):  # of which each category has its own
        shared.pop(key, None)
    return {"data": data, **names, "label_columns": list(sources), **baseline, **shared}


def _where(sources: Mapping[str, Source]) -> str | dict[str, str]:
    """Return the folder of the heads, or the column of scores of each category."""
    first = next(iter(sources.values()))
    if first.head:
        return str(Path(first.name).parent)
    return {name: source.name for name, source in sources.items()}


def category_documents(
    report: CategoriesReport, sources: Mapping[str, Source], files: ReportFiles
) -> Iterator[Document]:
    """Render each document that was asked for; what renders another is not even loaded."""
    if files.html is not None:
        from headeval.render.category_page import render_categories_page

        yield files.html, "page", render_categories_page(report).encode()
    if files.card is not None:
        from headeval.render.category_card import render_categories_card

        heads = {name: source.head for name, source in sources.items()}
        yield files.card, "card", render_categories_card(report, heads).encode()
    if files.junit is not None:
        from headeval.render.junit import categories_junit_xml

        yield files.junit, "test cases", categories_junit_xml(report).encode()


def show_categories(report: CategoriesReport, output_format: str) -> None:
    """Write the report to stdout as --format says."""
    from headeval.cli.console import show, write

    if output_format == "json":
        from headeval.render.category_document import categories_document
        from headeval.render.document import to_json

        write(to_json(categories_document(report)))
    elif output_format == "markdown":
        from headeval.render.categories import categories_sheet
        from headeval.render.markdown import sheet_markdown

        write(sheet_markdown(categories_sheet(report)))
    else:
        from headeval.render.categories import categories_sheet
        from headeval.render.terminal import SheetView

        show(SheetView(categories_sheet(report)))
