"""`headeval threshold`: a head and rows it was not fitted on → the same head with a threshold that keeps a promise."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headeval.cli import options, threshold_options
from headeval.cli.console import show, write
from headeval.errors import UsageError

if TYPE_CHECKING:
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
    allow_missing: options.AllowMissing = False,
    output: threshold_options.Output = None,
    output_format: threshold_options.Format = "table",
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Choose a head's threshold so that it keeps what is required.

    Certified on rows the head was not fitted on: with the stated confidence all requirements hold on other rows like
    them. Where no threshold can be certified, exit 5. Of a folder of heads, one a category, each gets its own.
    """
    from headeval.certifying.certifiable import chosen_goal, parse_certifiable, refuse_categories
    from headeval.cli.rows import Columns
    from headeval.files.head_folder import is_head_folder

    json = output_format == "json"  # which promises not one escape code, a progress bar's included
    requirements = parse_certifiable(require or [], labelled=plan or bool(data), benign=plan or bool(benign))
    if plan:
        if data or benign or head or output or maximise or cost_fp is not None or cost_fn is not None:
            raise UsageError("--plan needs no data and no head: it takes --require and --confidence alone")
        refuse_categories(requirements, "a plan needs no prefix, it is the same for every category")
        _show_plan(requirements, confidence, json=json)
        return
    columns = Columns(label, positive, embedding, embedding_model, drop_unlabelled)
    if head is not None and is_head_folder(head):
        from headeval.cli.threshold_categories import Wanted, threshold_categories

        wanted = Wanted(requirements, maximise, cost_fp, cost_fn, confidence, allow_missing, json)
        threshold_categories(data, benign, head, columns, wanted, output, force=force, quiet=quiet or json)
        return
    options.refuse_for_one("a folder of heads, --head FOLDER", allow_missing=allow_missing)
    refuse_categories(
        requirements,
        "the threshold of a single head is that of its flagged class",
        or_else=" (heads of several categories are a folder, --head FOLDER)",
    )
    goal = chosen_goal(requirements, maximise, cost_fp, cost_fn, labelled=bool(data))
    rows, target = _rows(data, benign, head, columns, output, force=force, quiet=quiet or json)
    from headeval.cli.threshold_choice import chosen_threshold, with_claim
    from headeval.files.heads import write_head

    summary = chosen_threshold(rows, requirements, goal, confidence, str(target))
    write_head(with_claim(rows.head, summary), target, force=force)
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
    from headeval.cli.threshold_rows import open_both, read_threshold_rows
    from headeval.files.atomic import check_output

    if head is None:
        raise UsageError("--head HEAD is needed: the threshold is that of a head")
    tables, traffic = open_both(data, benign)
    target = output or Path(f"{head.stem}-threshold.json")
    check_output(target, force=force, inputs=[path for table in (tables, traffic) if table for path in table.paths])
    return read_threshold_rows(head, tables, traffic, columns, quiet=quiet), target


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
