"""`headeval calibrate`: labelled rows → temperature or Platt scaling, folded into the head or added to the scores."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from headeval.cli import options
from headeval.cli.console import show
from headeval.errors import DataError, FitError
from headeval.printable import quoted

if TYPE_CHECKING:
    from headeval.cli.rows import Subject
    from headeval.core.checks import FloatArray
    from headeval.core.scaling import Scaling
    from headeval.core.thresholds import DecisionChanges
    from headeval.files.tables import Tables
    from headeval.head import LinearHead
    from headeval.report import CalibrationSummary


@dataclasses.dataclass(frozen=True, slots=True)
class _Calibrated:
    """The scaling with what it makes of the rows: probabilities before, logits after, and the threshold after."""

    scaling: "Scaling"
    before: "FloatArray"
    logits: "FloatArray"
    threshold: float
    head: "LinearHead | None" = None


def calibrate(
    data: options.Data,
    head: options.Head = None,
    logit: options.Logit = None,
    prob: options.Prob = None,
    method: options.Method = "temperature",
    label: options.Label = "label",
    positive: options.Positive = None,
    embedding: options.Embedding = "embedding",
    embedding_model: options.EmbeddingModel = None,
    drop_unlabelled: options.DropUnlabelled = False,
    output: options.CalibratedOutput = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Calibrate a head or scores on labelled rows.

    Needs one of --head, --logit and --prob, unless DATA was written by `headeval score`. Given a head, writes a head
    with the scaling folded in; given a column of scores, writes DATA with calibrated columns. The threshold moves
    along, so that the decisions stay. The numbers shown are in-sample for the scaling: judge it on other rows with
    `headeval report`.
    """
    from headeval.files.tables import open_tables

    tables = open_tables(data)
    # Only now what is made of numpy and pyarrow: so far, whatever is wrong is told at once.
    from headeval.cli.rows import Columns, read_subject
    from headeval.cli.sources import choose_source
    from headeval.files.examples import require_both_classes
    from headeval.render.terminal import render_calibration

    source = choose_source(tables, head=head, logit=logit, prob=prob)
    target = _target(output, head, tables, force=force)
    columns = Columns(label, positive, embedding, embedding_model, drop_unlabelled)
    subject = read_subject(tables, source, columns, hold=False, quiet=quiet)
    require_both_classes(subject.examples, tables)
    logits = _logits(subject)
    calibrated = _calibrated(logits, subject, _scaling(logits, subject, method), quiet=quiet)
    summary = _summary(subject, calibrated, data, target)
    if calibrated.head:
        _write_head(calibrated.head, subject, summary, target, force=force)
    else:
        _write_scores(subject, calibrated, target, force=force, quiet=quiet)
    show(render_calibration(summary))


def _target(output: Path | None, head: Path | None, tables: "Tables", *, force: bool) -> Path:
    """Return where the result goes, by default named after the head or the scores, once it is clear that it may.

    A calibrated head holds all that the head held, so it may replace it with --force; a table is never replaced.
    """
    from headeval.files.atomic import check_output
    from headeval.files.output import check_table_output

    judged = head or tables.paths[0]
    tabular = judged.suffix.lower() in {".parquet", ".pq", ".csv"}
    suffix = ".json" if head else judged.suffix if tabular else ".parquet"
    target = output or Path(f"{judged.stem}-calibrated{suffix}")
    (check_output if head else check_table_output)(target, force=force, inputs=tables.paths)
    return target


def _logits(subject: "Subject") -> "FloatArray":
    from headeval.core.stable import logit

    if subject.source.kind == "logit":
        return subject.scores
    certain = (subject.scores == 0) | (subject.scores == 1)
    if certain.any():
        raise DataError(
            f"column {quoted(subject.source.name)} is exactly 0 or 1 in {int(certain.sum()):,} rows, whose logits are "
            "infinite: calibrate the logits (--logit COL), or take these rows out"
        )
    return logit(subject.scores)


def _scaling(logits: "FloatArray", subject: "Subject", method: str) -> "Scaling":
    from headeval.core.scaling import ScalingError, fit_platt_scaling, fit_temperature_scaling

    fit = fit_temperature_scaling if method == "temperature" else fit_platt_scaling
    try:
        return fit(logits, subject.labels)
    except ScalingError as error:
        raise FitError(f"no {method} scaling was written: {error}") from error


def _calibrated(logits: "FloatArray", subject: "Subject", scaling: "Scaling", *, quiet: bool) -> "_Calibrated":
    from headeval.core.stable import sigmoid

    # The probabilities before are taken as they are: sigmoid(logit(p)) differs from p in the last bit, and decides.
    before = subject.scores if subject.source.kind == "prob" else sigmoid(logits)
    head = subject.source.head
    if head is None:
        after = scaling.apply(logits)
        return _Calibrated(scaling, before, after, scaling.carry_threshold(subject.threshold, before, sigmoid(after)))
    if scaling.method == "temperature":
        folded = head.with_temperature(scaling.temperature)
    else:
        folded = head.with_platt(scaling.slope, scaling.intercept)
    after = _logits_again(
        subject, folded, quiet=quiet
    )  # which differ in the last bits from the scaled logits, and decide
    threshold = scaling.carry_threshold(subject.threshold, before, sigmoid(after))
    return _Calibrated(scaling, before, after, threshold, dataclasses.replace(folded, threshold=threshold))


def _logits_again(subject: "Subject", head: "LinearHead", *, quiet: bool) -> "FloatArray":
    """Return the logits (n,) of another head on the same rows, whose embeddings are read once more."""
    import numpy as np

    from headeval.cli.rows import reading
    from headeval.files.vector_blocks import embedding_matrices

    matrices = embedding_matrices(subject.tables, subject.examples, track=reading(quiet))
    return np.concatenate([head.logits(matrix) for matrix in matrices])


def _summary(subject: "Subject", calibrated: "_Calibrated", data: list[str], target: Path) -> "CalibrationSummary":
    from headeval.cli.rows import data_provenance
    from headeval.core.stable import sigmoid
    from headeval.core.thresholds import decision_changes
    from headeval.evaluation import evaluate
    from headeval.report import CalibrationSummary

    after, threshold, classes = calibrated.logits, calibrated.threshold, subject.examples.classes
    changes = decision_changes(
        calibrated.before, sigmoid(after), threshold=subject.threshold, threshold_after=threshold
    )
    return CalibrationSummary(
        provenance={
            **data_provenance(data, subject.examples),
            subject.source.what: subject.source.name,
            "label_column": subject.label_column,
            "written_to": str(target),
        },
        scaling=calibrated.scaling,
        before=subject.evaluate(n_resamples=0),  # of intervals only those of the bins are shown
        after=evaluate(after, subject.labels, kind="logit", threshold=threshold, classes=classes, n_resamples=0),
        changes=changes,
        notes=(*subject.notes, *_few_rows(subject, calibrated.scaling), *_threshold_note(changes, threshold)),
    )


def _few_rows(subject: "Subject", scaling: "Scaling") -> tuple[str, ...]:
    from headeval.cli.row_notes import few_rows

    return few_rows(scaling, len(subject.labels), int(subject.labels.sum()))


def _threshold_note(changes: "DecisionChanges", threshold: float) -> tuple[str, ...]:
    """Say that a threshold of 0 or 1, or probabilities that rounding has made equal, do not decide as before."""
    changed = changes.newly_flagged + changes.no_longer_flagged
    if not changed:
        return ()
    return (f"no threshold keeps all decisions: floats saturate, and {threshold!r} decides {changed:,} rows anew",)


def _write_head(
    calibrated: "LinearHead", subject: "Subject", summary: "CalibrationSummary", target: Path, *, force: bool
) -> None:
    from headeval.certifying.claim_record import moved_claim
    from headeval.cli.rows import rows_used
    from headeval.files.heads import write_head
    from headeval.head_history import calibration_history

    thresholds = (summary.before.threshold, calibrated.threshold)
    history = calibration_history(
        moved_claim(calibrated.metrics, *thresholds),
        rows_used(subject.examples),
        summary.scaling,
        summary.changes,
        thresholds=thresholds,
        label=subject.label_column,
    )
    write_head(dataclasses.replace(calibrated, metrics=history), target, force=force)


def _write_scores(subject: "Subject", calibrated: "_Calibrated", target: Path, *, force: bool, quiet: bool) -> None:
    from headeval.cli.rows import reading
    from headeval.files.scores import (
        DeclaredScores,
        column_blocks,
        declared_scores,
        seen_after_calibration,
        write_scored,
    )

    tables, source = subject.tables, subject.source
    names = ("calibrated_logit", "calibrated_prob", "calibrated_flagged")
    declared = DeclaredScores(*names, subject.examples.classes, calibrated.threshold)
    declared.check_free(tables)
    seen = seen_after_calibration(source.seen, len(subject.labels), subject.examples.unlabelled)
    blocks = column_blocks(tables, source.name, source.kind, calibrated.scaling, track=reading(quiet))
    write_scored(
        target,
        blocks,
        declared,
        metadata=tables.metadata,
        earlier=declared_scores(tables),
        seen=lambda: seen,
        force=force,
    )
