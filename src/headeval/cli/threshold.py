"""`headeval threshold`: a head and rows it was not fitted on → the same head with a threshold that keeps a promise."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headeval.cli import options, threshold_options
from headeval.cli.console import show, write
from headeval.errors import UsageError

if TYPE_CHECKING:
    from headeval.certifying.certifiable import Goal
    from headeval.certifying.summary import ThresholdSummary
    from headeval.cli.rows import Columns
    from headeval.cli.threshold_rows import ThresholdRows
    from headeval.requirement_parsing import Requirement


def threshold(
    data: threshold_options.Data = None,
    head: options.Head = None,
    require: threshold_options.Require = None,
    maximise: threshold_options.Maximise = None,
    cost_fp: threshold_options.CostFp = None,
    cost_fn: threshold_options.CostFn = None,
    confidence: threshold_options.Confidence = 0.95,
    benign: threshold_options.Benign = None,
    plan: threshold_options.Planning = False,
    label: options.Label = "label",
    positive: options.Positive = None,
    embedding: options.Embedding = "embedding",
    embedding_model: options.EmbeddingModel = None,
    drop_unlabelled: options.DropUnlabelled = False,
    output: threshold_options.Output = None,
    output_format: threshold_options.Format = "table",
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Choose a head's threshold so that it keeps what is required.

    Certified on rows the head was not fitted on: with the stated confidence all requirements hold on other rows like
    them. Where no threshold can be certified, exit 5.
    """
    from headeval.certifying.certifiable import chosen_goal, parse_certifiable
    from headeval.cli.rows import Columns

    json = output_format == "json"  # which promises not one escape code, a progress bar's included
    requirements = parse_certifiable(require or [], labelled=plan or bool(data), benign=plan or bool(benign))
    if plan:
        if data or benign or head or output or maximise or cost_fp is not None or cost_fn is not None:
            raise UsageError("--plan needs no data and no head: it takes --require and --confidence alone")
        _show_plan(requirements, confidence, json=json)
        return
    goal = chosen_goal(requirements, maximise, cost_fp, cost_fn, labelled=bool(data))
    columns = Columns(label, positive, embedding, embedding_model, drop_unlabelled)
    rows, target = _rows(data, benign, head, columns, output, force=force, quiet=quiet or json)
    summary = _choose(rows, requirements, goal, confidence, target)
    _write(rows, summary, target, force=force)
    _show(summary, json=json)


def _rows(
    data: list[str] | None,
    benign: list[str] | None,
    head: Path | None,
    columns: "Columns",
    output: Path | None,
    *,
    force: bool,
    quiet: bool,
) -> "tuple[ThresholdRows, Path]":
    """Read everything, once it is clear that the result may be written; a head may replace itself with --force."""
    from headeval.cli.threshold_rows import read_threshold_rows
    from headeval.files.atomic import check_output
    from headeval.files.tables import open_tables

    if head is None:
        raise UsageError("--head HEAD is needed: the threshold is that of a head")
    tables, traffic = open_tables(data) if data else None, open_tables(benign) if benign else None
    target = output or Path(f"{head.stem}-threshold.json")
    check_output(target, force=force, inputs=[path for table in (tables, traffic) if table for path in table.paths])
    return read_threshold_rows(head, tables, traffic, columns, quiet=quiet), target


def _choose(
    rows: "ThresholdRows", requirements: "Sequence[Requirement]", goal: "Goal", confidence: float, target: Path
) -> "ThresholdSummary":
    from headeval.certifying.choice import allowed_thresholds, certifications, choose_threshold
    from headeval.certifying.infeasible import infeasible
    from headeval.certifying.summary import ThresholdSummary
    from headeval.files.examples import require_both_classes

    rows.refuse_rows_that_flatter(requirements)
    if rows.subject is not None and goal.needs_both_classes:
        require_both_classes(rows.subject.examples, rows.subject.tables)
    sample, before = rows.sample, rows.head.threshold
    allowed = allowed_thresholds(sample, requirements, confidence=confidence)
    chosen = choose_threshold(sample, allowed, goal)
    if chosen is None:
        raise infeasible(sample, allowed, confidence=confidence)
    certified = certifications(sample, allowed, chosen, confidence=confidence)
    return ThresholdSummary(
        provenance={**rows.provenance, "written_to": str(target)},
        how=rows.how(certified=bool(certified)),
        caution=not certified,
        classes=rows.head.decision_classes,
        before_threshold=before,
        claim=rows.claim(chosen, goal, certified, confidence),
        requirements=certified,
        before=sample.counts(before) if rows.subject else None,
        after=sample.counts(chosen) if rows.subject else None,
        benign=rows.benign_counts(chosen),
        notes=rows.notes(requirements),
    )


def _write(rows: "ThresholdRows", summary: "ThresholdSummary", target: Path, *, force: bool) -> None:
    from headeval.certifying.claim_record import KEY
    from headeval.files.heads import write_head

    metrics = {**rows.head.metrics, KEY: summary.claim.document()}
    write_head(dataclasses.replace(rows.head, threshold=summary.claim.threshold, metrics=metrics), target, force=force)


def _show(summary: "ThresholdSummary", *, json: bool) -> None:
    from headeval.render.threshold import threshold_document, threshold_sheet

    if json:
        from headeval.render.document import to_json

        write(to_json(threshold_document(summary)))
    else:
        from headeval.render.terminal import SheetView

        show(SheetView(threshold_sheet(summary)))


def _show_plan(requirements: "Sequence[Requirement]", confidence: float, *, json: bool) -> None:
    from headeval.certifying.summary import planned_rows
    from headeval.render.threshold import plan_document, plan_sheet

    try:
        plan = planned_rows(requirements, confidence=confidence)
    except ValueError as error:
        raise UsageError(f"--plan: {error}; take a looser bound") from error
    if json:
        from headeval.render.document import to_json

        write(to_json(plan_document(plan)))
    else:
        from headeval.render.terminal import SheetView

        show(SheetView(plan_sheet(plan)))
