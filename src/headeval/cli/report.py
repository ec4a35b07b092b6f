"""`headeval report`: a head on labelled embeddings, or a column of scores → what it does, and if that is enough."""

import dataclasses
from typing import TYPE_CHECKING

import typer

from headeval.cli import options
from headeval.cli import report_options as asked
from headeval.cli.console import show, write
from headeval.cli.engine import check_engine, collect_on, connected
from headeval.errors import UsageError

if TYPE_CHECKING:
    from headeval.report import Report
    from headeval.requirement_parsing import Requirement


def report(
    data: options.Data,
    head: options.Head = None,
    logit: options.Logit = None,
    prob: options.Prob = None,
    threshold: options.ThresholdOverride = None,
    require: asked.Require = None,
    by: asked.By = None,
    require_each: asked.RequireEach = None,
    min_rows: asked.MinRows = 30,
    baseline: asked.Baseline = None,
    baseline_logit: asked.BaselineLogit = None,
    baseline_prob: asked.BaselineProb = None,
    changed: asked.Changed = None,
    reference: asked.Reference = None,
    identifier: asked.Identifier = None,
    prevalence: asked.Prevalence = None,
    per_day: asked.PerDay = None,
    confidence: asked.Confidence = 0.95,
    resamples: asked.Resamples = None,
    seed: asked.Seed = 0,
    weight: asked.Weight = None,
    group: asked.Group = None,
    ece_convention: asked.EceConvention = "top-label",
    bins: options.Bins = None,
    binning: options.Binning = "equal-width",
    label: options.Label = "label",
    positive: options.Positive = None,
    classes: options.Classes = None,
    embedding: options.Embedding = "embedding",
    embedding_model: options.EmbeddingModel = None,
    drop_unlabelled: options.DropUnlabelled = False,
    output_format: asked.Format = "table",
    html: asked.Html = None,
    plots: asked.Plots = None,
    card: asked.Card = None,
    junit: asked.Junit = None,
    engine: options.Engine = "local",
    scheduler: options.Scheduler = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Judge a head or scores; exit 1 if a --require fails.

    Needs one of --head, --logit and --prob, unless DATA was written by `headeval score`. A folder of heads, or as many
    columns of scores as of labels, is judged category by category, which leaves out --changed, --id, --per-day,
    --plots, --prevalence and --reference.
    """
    from headeval.files.tables import open_tables

    quiet = quiet or output_format == "json"  # which promises not one escape code, a progress bar's included
    comparing = any(option is not None for option in (baseline, baseline_logit, baseline_prob))
    requirements, of_each = _parsed(require, require_each, by=by, comparing=comparing)
    names = options.class_names(classes, positive)
    check_engine(engine, scheduler)
    _check_together(changed=changed, comparing=comparing, per_day=per_day, prevalence=prevalence)
    if junit is not None and not (requirements or of_each):
        raise UsageError("--junit writes the requirements as test cases: give --require or --require-each")
    tables = open_tables(data)
    # Only now what is made of numpy and pyarrow: so far, whatever is wrong is told at once.
    from headeval.cli.category_sources import category_sources
    from headeval.cli.judged_report import Asked, judged_report
    from headeval.cli.judging import Measured, baseline_source, drifted, read_baseline
    from headeval.cli.report_categories import (
        baseline_sources,
        category_documents,
        judge_categories,
        refuse_over_categories,
        show_categories,
    )
    from headeval.cli.report_files import ReportFiles
    from headeval.cli.rows import Columns, read_subject
    from headeval.cli.sources import choose_source
    from headeval.files.row_sample import RowSample
    from headeval.requirement_scope import of_classifier

    files = ReportFiles(html, plots, card, junit, changed, force)
    files.check(tables, [path for path in (head, baseline) if path is not None])
    columns = Columns(label, positive, embedding, embedding_model, drop_unlabelled, weight, group, identifier)
    measured = Measured(ece_convention, bins, binning, confidence, resamples, seed, prevalence, per_day)
    wanted = Asked(data, columns, measured, by or [], requirements, of_each, min_rows, files.drawn)
    sources = category_sources(tables, head=head, logit=logit, prob=prob, label=label)
    if sources is not None:
        single = {"--classes": names, "--changed": changed, "--plots": plots, "--reference": reference}
        refuse_over_categories(single | {"--id": identifier, "--prevalence": prevalence, "--per-day": per_day}, head)
        rivals = baseline_sources(tables, sources, head=baseline, logit=baseline_logit, prob=baseline_prob, label=label)
        with connected(engine, scheduler) as cluster:
            over = judge_categories(
                tables,
                sources,
                wanted,
                rivals,
                threshold=threshold,
                collect=collect_on(cluster, quiet=quiet),
                quiet=quiet,
            )
        files.write_documents(category_documents(over, sources, files), quiet=quiet)
        show_categories(over, output_format)
        raise typer.Exit(0 if over.passed else 1)
    source = choose_source(tables, head=head, logit=logit, prob=prob, classes=names, positive=positive)
    wanted = dataclasses.replace(wanted, requirements=of_classifier(requirements, of_each, source.class_names))
    other = baseline_source(tables, source, head=baseline, logit=baseline_logit, prob=baseline_prob)
    sample = RowSample(seed=[seed, 2]) if reference else None
    with connected(engine, scheduler) as cluster:
        subject = read_subject(
            tables,
            source,
            columns,
            by=by or [],
            named=sample is not None,
            threshold=threshold,
            hold=False,
            also=None if other is None else other.head,
            on_block=None if sample is None else sample.add,
            collect=collect_on(cluster, quiet=quiet),
            quiet=quiet,
        )
    rival = None if other is None else read_baseline(subject, other, columns, threshold=threshold, quiet=quiet)
    drift = drifted(subject, sample, reference, columns, measured, quiet=quiet) if reference and sample else None
    judged = judged_report(subject, rival, wanted, drift=drift)
    files.write(judged, subject, rival, quiet=quiet)
    _show(judged, output_format)
    if not judged.passed:
        raise typer.Exit(1)


def _parsed(
    require: list[str] | None, require_each: list[str] | None, *, by: list[str] | None, comparing: bool
) -> "tuple[list[Requirement], list[Requirement]]":
    if require_each and not by:
        raise UsageError("--require-each needs --by COL, whose values are the slices")
    if not (require or require_each):
        return [], []
    from headeval.requirement_parsing import parse_requirement

    return (
        [parse_requirement(text, baseline=comparing, of_parts=True) for text in require or []],
        [parse_requirement(text, each=True, of_parts=True) for text in require_each or []],
    )


def _check_together(*, changed: object, comparing: bool, per_day: float | None, prevalence: float | None) -> None:
    if changed is not None and not comparing:
        raise UsageError("--changed needs a baseline: --baseline HEAD, --baseline-logit COL or --baseline-prob COL")
    if per_day is not None and prevalence is None:
        raise UsageError("--per-day needs --prevalence, the share of positives in that traffic")


def _show(judged: "Report", output_format: str) -> None:
    if output_format == "json":
        from headeval.render.document import report_document, to_json

        write(to_json(report_document(judged)))
    elif output_format == "markdown":
        from headeval.render.markdown import render_markdown

        write(render_markdown(judged))
    else:
        from headeval.render.terminal import render_report

        show(render_report(judged))
