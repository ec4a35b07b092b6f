"""`headeval report`: a head on labelled embeddings, or a column of scores → what it does, and if that is enough."""

from typing import TYPE_CHECKING, Any

import typer

from headeval.cli import options
from headeval.cli.console import say, show, write
from headeval.errors import UsageError
from headeval.printable import quoted

if TYPE_CHECKING:
    from headeval.cli.rows import Columns, Subject
    from headeval.report import Report, Slice

MOST_SLICES = 500


def report(
    data: options.Data,
    head: options.Head = None,
    logit: options.Logit = None,
    prob: options.Prob = None,
    threshold: options.ThresholdOverride = None,
    require: options.Require = None,
    by: options.By = None,
    ece_convention: options.EceConvention = "top-label",
    bins: options.Bins = None,
    binning: options.Binning = "equal-width",
    label: options.Label = "label",
    positive: options.Positive = None,
    embedding: options.Embedding = "embedding",
    embedding_model: options.EmbeddingModel = None,
    drop_unlabelled: options.DropUnlabelled = False,
    output_format: options.Format = "table",
    html: options.Html = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Judge a head or scores; exit 1 if a --require fails.

    Needs one of --head, --logit and --prob, unless DATA was written by `headeval score`.
    """
    from headeval.cli.rows import Columns, choose_source, read_subject
    from headeval.files.atomic import check_output, write_atomically
    from headeval.files.tables import open_tables
    from headeval.render.page import render_page
    from headeval.report import Report
    from headeval.requirements import decide, parse_requirement

    quiet = quiet or output_format == "json"  # which promises not one escape code, a progress bar's included
    requirements = [parse_requirement(text) for text in require or []]
    tables = open_tables(data)
    if html:
        check_output(html, force=force, inputs=(*tables.paths, *([head] if head else [])))
    source = choose_source(tables, head=head, logit=logit, prob=prob)
    columns = Columns(label, positive, embedding, embedding_model, drop_unlabelled)
    subject = read_subject(tables, source, columns, by=by or [], threshold=threshold, quiet=quiet)
    how_measured = {"ece_convention": ece_convention, "n_bins": bins, "binning": binning}
    evaluation = subject.evaluate(**how_measured)
    judged = Report(
        provenance=_provenance(data, subject, columns),
        how=subject.how,
        seen=subject.seen,
        evaluation=evaluation,
        slices=_slices(subject, how_measured),
        decisions=tuple(decide(requirement, evaluation) for requirement in requirements),
        notes=subject.notes,
    )
    if html:
        write_atomically(html, render_page(judged).encode(), force=force)
        say(f"page written to {html}", quiet=quiet)
    _show(judged, output_format)
    if not judged.passed:
        raise typer.Exit(1)


def _provenance(data: list[str], subject: "Subject", columns: "Columns") -> dict[str, Any]:
    from headeval.cli.rows import data_provenance, embedding_provenance

    source = subject.source
    provenance = {**data_provenance(data, subject.examples), source.what: source.name}
    if source.head:
        provenance |= embedding_provenance(subject.examples, columns)
        provenance["embedding_model"] = source.head.embedding_model
    return provenance | {"threshold_from": subject.threshold_from}


def _slices(subject: "Subject", how_measured: dict[str, Any]) -> "tuple[Slice, ...]":
    from headeval.report import Slice

    slices = []
    for column, values in subject.examples.slices.items():
        names = sorted(set(values.tolist()))
        if len(names) > MOST_SLICES:
            raise UsageError(
                f"--by {quoted(column)} has {len(names):,} different values, at most {MOST_SLICES} are judged: "
                "name a column of groups"
            )
        slices += [Slice(column, name, subject.evaluate(values == name, **how_measured)) for name in names]
    return tuple(slices)


def _show(judged: "Report", output_format: str) -> None:
    from headeval.render.document import report_document, to_json
    from headeval.render.markdown import render_markdown
    from headeval.render.terminal import render_report

    if output_format == "json":
        write(to_json(report_document(judged)))
    elif output_format == "markdown":
        write(render_markdown(judged))
    else:
        show(render_report(judged))
