"""`headeval threshold` for a folder of heads: one for each, on the rows whose label of its category is known."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headeval.category_summaries import CategoryThreshold, CategoryThresholds, LeftOut
from headeval.certifying.certifiable import Goal, chosen_goal
from headeval.certifying.infeasible import InfeasibleError
from headeval.cli.calibrate_categories import output_folder
from headeval.cli.category_sources import folder_sources
from headeval.cli.category_subjects import CategorySubject, read_category_subjects
from headeval.cli.console import show, write
from headeval.cli.left_out_categories import left_out, n_rows, report_left_out
from headeval.cli.rows import Columns, reading
from headeval.cli.sources import Source, check_models
from headeval.cli.threshold_choice import chosen_threshold, with_claim
from headeval.cli.threshold_rows import ThresholdRows, open_both, threshold_rows
from headeval.core.thresholds import ConfusionCounts
from headeval.errors import DataError, FitError, UsageError
from headeval.files.benign import BenignRows, read_benign_of
from headeval.files.head_folder import check_heads_output, write_heads
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.printable import listed, quoted
from headeval.render.category_threshold import category_threshold_document, category_threshold_sheet
from headeval.render.document import to_json
from headeval.render.numbers import percent
from headeval.render.terminal import SheetView
from headeval.report import FEW_ROWS
from headeval.requirement_parsing import Requirement
from headeval.requirement_scope import EVERY, of_categories


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks of the thresholds, and what becomes of categories that cannot have it."""

    requirements: Sequence[Requirement]
    maximise: str | None
    cost_fp: float | None
    cost_fn: float | None
    confidence: float
    allow_missing: bool
    json: bool


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """What one category is to keep, and which of the thresholds that do is taken."""

    requirements: tuple[Requirement, ...]
    goal: Goal


def threshold_categories(
    data: list[str] | None,
    benign: list[str] | None,
    folder: Path,
    columns: Columns,
    wanted: Wanted,
    output: Path | None,
    *,
    force: bool,
    quiet: bool,
) -> None:
    """Choose a threshold for every head of a folder, over one reading of the rows and one of the benign traffic.

    Raises
    ------
    FitError : at the end, where categories were left out and that was not allowed, or all were.
    """
    sources = folder_sources(folder, columns.label)
    asked = _asked(wanted, tuple(sources), labelled=bool(data))
    tables, traffic = open_both(data, benign)
    target = output or output_folder(folder, "threshold")
    check_heads_output(
        target, sources, force=force, inputs=[path for each in (tables, traffic) if each for path in each.paths]
    )
    rows, benign_n = _rows(tables, traffic, sources, columns, quiet=quiet)
    heads, found, without = _chosen(rows, asked, wanted.confidence, str(target))
    if heads:
        write_heads(target, heads, force=force)
    summary = CategoryThresholds(
        _provenance(folder, sources, tables, traffic, rows, benign_n, target if heads else None),
        wanted.confidence,
        tuple(found),
        tuple(without),
        (*_shared(asked, wanted.confidence), *_unread(sources, traffic)),
    )
    if wanted.json:
        write(to_json(category_threshold_document(summary)))
    else:
        show(SheetView(category_threshold_sheet(summary)))
    report_left_out(without, len(rows), "given a threshold", allow_missing=wanted.allow_missing, quiet=quiet)


def _asked(wanted: Wanted, categories: tuple[str, ...], *, labelled: bool) -> dict[str, _Asked]:
    """Return what each category is to keep; what is asked of none in particular is asked of each."""
    every = [dataclasses.replace(part, of=part.of or EVERY) for part in wanted.requirements]
    parts = of_categories(every, categories)
    asked = {}
    for name in categories:
        own = tuple(dataclasses.replace(part, of="") for part in parts if part.of == name)
        if not own and wanted.requirements and wanted.maximise is None and wanted.cost_fp is None:
            without = [other for other in categories if all(part.of != other for part in parts)]
            raise UsageError(
                f"nothing is required of {listed(without)}: require it of every category ('fpr<=0.01'), or name those "
                "that are to get a threshold with --label"
            )
        try:
            goal = chosen_goal(own, wanted.maximise, wanted.cost_fp, wanted.cost_fn, labelled=labelled)
        except UsageError as error:
            raise UsageError(f"{error} (for {quoted(name)})" if wanted.requirements else str(error)) from error
        asked[name] = _Asked(own, goal)
    return asked


def _rows(
    tables: Tables | None, traffic: Tables | None, sources: Mapping[str, Source], columns: Columns, *, quiet: bool
) -> "tuple[list[tuple[CategorySubject, ThresholdRows | None]], int]":
    """Return of each category its labelled rows, and with the benign ones what its threshold is chosen on."""
    heads = {name: source.head for name, source in sources.items() if source.head is not None}
    subjects = (
        tuple(CategorySubject(name, None, 0) for name in heads)
        if tables is None
        else read_category_subjects(tables, sources, columns, quiet=quiet)
    )
    benign: dict[str, BenignRows] = {}
    if traffic is not None:
        for head in heads.values():
            check_models(head, traffic, columns.embedding_model)
        read = read_benign_of(traffic, tuple(heads.values()), embedding=columns.embedding, track=reading(quiet))
        benign = dict(zip(heads, read, strict=True))
    rows: list[tuple[CategorySubject, ThresholdRows | None]] = []
    for part in subjects:
        usable = tables is None or part.subject is not None
        head, name, own = heads[part.name], sources[part.name].name, benign.get(part.name)
        scored = threshold_rows(head, name, part.subject, own, traffic, columns) if usable else None
        rows.append((part, scored and dataclasses.replace(scored, in_folder=True)))
    return rows, next((each.n for each in benign.values()), 0)


def _chosen(
    rows: "list[tuple[CategorySubject, ThresholdRows | None]]",
    asked: Mapping[str, _Asked],
    confidence: float,
    written_to: str,
) -> tuple[dict[str, LinearHead], list[CategoryThreshold], list[LeftOut]]:
    """Return the heads with their thresholds, what is certified of them, and which categories have none."""
    heads, found, without = {}, [], []
    for part, own in rows:
        if own is None:
            without.append(left_out(part, part.why))
            continue
        try:
            wanted = asked[part.name]
            summary = chosen_threshold(own, wanted.requirements, wanted.goal, confidence, written_to)
        except (FitError, DataError) as error:
            without.append(left_out(part, _short(error)))
            continue
        heads[part.name] = with_claim(own.head, summary)
        notes = (*summary.notes, *few_of_a_class(summary.after), *idle_threshold_note(summary.before, summary.after))
        found.append(CategoryThreshold(part.name, part.unknown, dataclasses.replace(summary, notes=notes)))
    return heads, found, without


def few_of_a_class(counts: ConfusionCounts | None) -> tuple[str, ...]:
    """Say that rates are rough where either class has few rows, as a report does."""
    if counts is None or not any(0 < rows < FEW_ROWS for rows in (counts.positives, counts.negatives)):
        return ()
    return (f"rates on so few rows are rough: {counts.positives:,} positive, {counts.negatives:,} negative",)


def idle_threshold_note(before: ConfusionCounts | None, after: ConfusionCounts | None) -> tuple[str, ...]:
    """Say that a new threshold only costs something here: more negatives are flagged, and no positive more.

    Examples
    --------
    >>> idle_threshold_note(ConfusionCounts(1, 9, 2, 203), ConfusionCounts(1, 14, 2, 198))
    ('on these rows the new threshold finds no positive more and flags 5 negatives more',)
    """
    if before is None or after is None or not after.positives or after.true_positives > before.true_positives:
        return ()
    more = after.false_positives - before.false_positives
    if more <= 0:
        return ()
    negatives = "negative" if more == 1 else "negatives"
    return (f"on these rows the new threshold finds no positive more and flags {more:,} {negatives} more",)


def _short(error: FitError | DataError) -> str:
    return error.short if isinstance(error, InfeasibleError) else str(error).splitlines()[0]


def _shared(asked: Mapping[str, _Asked], confidence: float) -> tuple[str, ...]:
    """Say at what level each of several requirements of a category is tested."""
    counts = sorted({len(part.requirements) for part in asked.values()} - {0, 1})
    if not counts:
        return ()
    each = ", ".join(f"of {k} each is tested at {percent(1 - (1 - confidence) / k)}" for k in counts)
    together = f"so that they hold together with {percent(confidence)}"
    return (f"the requirements of a category share its confidence: {each}, {together}",)


def _unread(sources: Mapping[str, Source], traffic: Tables | None) -> tuple[str, ...]:
    """Say that labels in the benign files play no part."""
    if traffic is None:
        return ()
    there = [name for name in sources if any(name in file.schema.names for file in traffic.files)]
    if not there:
        return ()
    which = "a column" if len(there) == 1 else "columns"
    read = "which is not read" if len(there) == 1 else "which are not read"
    return (f"the benign files have {which} {listed(there)}, {read}: all their rows count as benign",)


def _provenance(
    folder: Path,
    sources: Mapping[str, Source],
    tables: Tables | None,
    traffic: Tables | None,
    rows: "list[tuple[CategorySubject, ThresholdRows | None]]",
    benign_n: int,
    target: Path | None,
) -> dict[str, Any]:
    return {
        **({} if tables is None else {"data": [str(path) for path in tables.paths], "rows": f"{n_rows(rows[0][0]):,}"}),
        **(
            {} if traffic is None else {"benign": [str(path) for path in traffic.paths], "benign_rows": f"{benign_n:,}"}
        ),
        "heads": f"{folder}: {len(sources)} {'category' if len(sources) == 1 else 'categories'}",
        **({} if target is None else {"written_to": str(target)}),
    }
