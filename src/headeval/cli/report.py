"""`headeval report`: a head on labelled embeddings, or a column of scores → what it does, and if that is enough."""

from typing import TYPE_CHECKING, Any

import typer

from headeval.cli import options
from headeval.cli import report_options as asked
from headeval.cli.console import show, write
from headeval.cli.engine import check_engine, collect_on, connected
from headeval.errors import UsageError

if TYPE_CHECKING:
    from headeval.certifying.claims import ClaimCheck
    from headeval.cli.judging import Measured
    from headeval.cli.rows import Columns, Subject
    from headeval.comparison import Comparison
    from headeval.evaluation import Evaluation
    from headeval.report import Report, Slice
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

    Needs one of --head, --logit and --prob, unless DATA was written by `headeval score`.
    """
    from headeval.files.tables import open_tables

    quiet = quiet or output_format == "json"  # which promises not one escape code, a progress bar's included
    comparing = any(option is not None for option in (baseline, baseline_logit, baseline_prob))
    requirements, of_each = _parsed(require, require_each, by=by, comparing=comparing)
    check_engine(engine, scheduler)
    _check_together(changed=changed, comparing=comparing, per_day=per_day, prevalence=prevalence)
    if junit is not None and not (requirements or of_each):
        raise UsageError("--junit writes the requirements as test cases: give --require or --require-each")
    tables = open_tables(data)
    # Only now what is made of numpy and pyarrow: so far, whatever is wrong is told at once.
    from headeval.cli.judging import Measured, baseline_source, compared, drifted, judged_slices, read_baseline
    from headeval.cli.report_files import ReportFiles
    from headeval.cli.row_notes import model_note
    from headeval.cli.rows import Columns, read_subject
    from headeval.cli.sources import choose_source
    from headeval.files.row_sample import RowSample
    from headeval.render.claim import claim_notes
    from headeval.report import Report

    files = ReportFiles(html, plots, card, junit, changed, force)
    files.check(tables, [path for path in (head, baseline) if path is not None])
    source = choose_source(tables, head=head, logit=logit, prob=prob)
    other = baseline_source(tables, source, head=baseline, logit=baseline_logit, prob=baseline_prob)
    columns = Columns(label, positive, embedding, embedding_model, drop_unlabelled, weight, group, identifier)
    measured = Measured(ece_convention, bins, binning, confidence, resamples, seed, prevalence, per_day)
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
    evaluation = subject.evaluate(**measured.options, **measured.traffic)
    comparison = None if rival is None else compared(subject, rival, evaluation, measured)
    slices = judged_slices(subject, by or [], evaluation, measured)
    claim = _claim(subject, measured)
    judged = Report(
        provenance=_provenance(data, subject, columns),
        how=subject.how,
        seen=subject.seen,
        evaluation=evaluation,
        slices=slices,
        **_decided(subject, claim, (requirements, of_each), evaluation, comparison, slices, min_rows),
        notes=(*claim_notes(claim), *subject.notes, *model_note(subject.source.head, tables, embedding_model)),
        comparison=comparison,
        drift=drifted(subject, sample, reference, columns, measured, quiet=quiet) if reference and sample else None,
        claim=claim,
        **(_drawn(subject, measured, evaluation) if files.drawn else {}),
    )
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
        [parse_requirement(text, baseline=comparing) for text in require or []],
        [parse_requirement(text, each=True) for text in require_each or []],
    )


def _check_together(*, changed: object, comparing: bool, per_day: float | None, prevalence: float | None) -> None:
    if changed is not None and not comparing:
        raise UsageError("--changed needs a baseline: --baseline HEAD, --baseline-logit COL or --baseline-prob COL")
    if per_day is not None and prevalence is None:
        raise UsageError("--per-day needs --prevalence, the share of positives in that traffic")


def _decided(
    subject: "Subject",
    claim: "ClaimCheck | None",
    required: "tuple[list[Requirement], list[Requirement]]",
    evaluation: "Evaluation",
    comparison: "Comparison | None",
    slices: "tuple[Slice, ...]",
    min_rows: int,
) -> dict[str, Any]:
    """Hold everything against what is required; rows that made the head, or chose its threshold, let nothing pass."""
    from headeval.requirements import decide, decide_each, held_back, held_back_each

    decisions = [decide(requirement, evaluation, comparison) for requirement in required[0]]
    each = decide_each(required[1], slices, min_rows)
    reason = "" if claim is None or claim.void or not claim.same_rows else f"{claim.same_rows}; judge on other rows"
    if subject.seen is not None and subject.seen.in_sample == "fitted":
        reason = "most of these rows were used for the fit: judge on other rows"
    if reason:
        decisions = [held_back(decision, reason) for decision in decisions]
        each = tuple(held_back_each(decision, reason) for decision in each)
    return {"decisions": tuple(decisions), "each": each}


def _claim(subject: "Subject", measured: "Measured") -> "ClaimCheck | None":
    from headeval.certifying.claim_record import read_claim
    from headeval.certifying.claims import check_claim

    claim = read_claim(subject.source.head.metrics) if subject.source.head else None
    if claim is None:
        return None
    return check_claim(
        claim,
        subject.scored_rows(),
        threshold=subject.threshold,
        fingerprint=subject.examples.fingerprint,
        digests=subject.examples.digests[:, 0],
        confidence=measured.confidence,
    )


def _drawn(subject: "Subject", measured: "Measured", evaluation: "Evaluation") -> dict[str, Any]:
    from headeval.cli.judging import before_calibration, drawn

    return {"curves": drawn(subject, measured), "before": before_calibration(subject, evaluation.reliability)}


def _provenance(data: list[str], subject: "Subject", columns: "Columns") -> dict[str, Any]:
    from headeval.cli.rows import data_provenance, embedding_provenance

    source = subject.source
    provenance = {**data_provenance(data, subject.examples), "label_column": columns.label, source.what: source.name}
    if source.head:
        provenance |= embedding_provenance(subject.examples, columns)
        provenance["embedding_model"] = source.head.embedding_model
    named = {"weights": columns.weight, "groups": columns.group}
    return provenance | {"threshold_from": subject.threshold_from} | {k: v for k, v in named.items() if v is not None}


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
