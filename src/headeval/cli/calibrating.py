"""What a calibration makes of labelled rows: the scaling, the head or scores with it folded in, and what changes."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headeval.certifying.claim_record import dropped_claim, moved_claim
from headeval.cli.row_notes import few_rows
from headeval.cli.rows import data_provenance, reading, rows_used
from headeval.cli.subject import Subject
from headeval.core.checks import FloatArray
from headeval.core.class_scaling import closest_threshold, fit_class_temperature
from headeval.core.class_scores import log_odds
from headeval.core.scaling import Scaling, ScalingError, fit_platt_scaling, fit_temperature_scaling
from headeval.core.stable import logit, sigmoid
from headeval.core.thresholds import DecisionChanges, decision_changes
from headeval.errors import DataError, FitError
from headeval.evaluation import Evaluation, evaluate
from headeval.files.examples import file_names, require_both_classes
from headeval.files.vector_blocks import embedding_matrices
from headeval.head import LinearHead
from headeval.head_history import calibration_history
from headeval.printable import listed, quoted
from headeval.render.numbers import metric_value
from headeval.render.sections import in_sentence
from headeval.report import CalibrationSummary

if TYPE_CHECKING:
    from headeval.multiclass import ClassEvaluation

FEW_OTHERS = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Calibrated:
    """A scaling with what it makes of the rows.

    Attributes
    ----------
    before : (n,) probabilities.
    logits : (n,) after, log-odds of the flagged class.
    threshold : after.
    head : with the scaling folded in and that threshold; None for a column of scores.
    class_logits : (n, C) after, of more than two classes.
    """

    scaling: Scaling
    before: FloatArray
    logits: FloatArray
    threshold: float
    head: LinearHead | None = None
    class_logits: FloatArray | None = None


def require_classes(subject: Subject) -> None:
    """Refuse rows of one class only, with which nothing can be calibrated.

    Raises
    ------
    DataError : where all labels are the same, or do not tell the classes of what has more than two.
    """
    names, labels = subject.source.class_names, subject.class_labels
    if names is None:
        require_both_classes(subject.examples, subject.tables)
        return
    where = f"{file_names(subject.tables)}: column {quoted(subject.label_column)}"
    if labels is None:
        raise DataError(
            f"{where} only tells {quoted(names[-1])} from the rest: a temperature takes labels of all {len(names)} "
            f"classes, {listed(names)}"
        )
    if labels.min() == labels.max():
        raise DataError(
            f"{where}: all {len(labels):,} rows are {quoted(names[labels[0]])}: it takes rows of others too"
        )


def fit_scaling(subject: Subject, method: str) -> Scaling:
    """Return the scaling of maximum likelihood on the rows.

    Raises
    ------
    FitError : where the rows allow none that is of use.
    DataError : for probabilities of exactly 0 or 1.
    """
    try:
        if subject.class_logits is not None and subject.class_labels is not None:
            _refuse_infinite(subject, np.asarray(np.isinf(subject.class_logits).any(axis=1)), "columns", "0")
            return fit_class_temperature(subject.class_logits, subject.class_labels)
        fit = fit_temperature_scaling if method == "temperature" else fit_platt_scaling
        return fit(logits_before(subject), subject.labels)
    except ScalingError as error:
        raise FitError(f"no {method} scaling was written: {error}") from error


def logits_before(subject: Subject) -> FloatArray:
    """Return the log-odds (n,) of the flagged class before.

    Raises
    ------
    DataError : for probabilities of exactly 0 or 1.
    """
    if subject.source.kind == "logit":
        return subject.scores
    _refuse_infinite(subject, (subject.scores == 0) | (subject.scores == 1), "column", "0 or 1")
    return logit(subject.scores)


def _refuse_infinite(subject: Subject, certain: NDArray[np.bool_], what: str, values: str) -> None:
    if certain.any():
        name, is_, ends = quoted(subject.source.name), "are" if what == "columns" else "is", int(certain.sum())
        raise DataError(
            f"{what} {name} {is_} exactly {values} in {ends:,} rows, whose logits are "
            "infinite: calibrate the logits (--logit COL), or take these rows out"
        )


def folded(head: LinearHead, scaling: Scaling) -> LinearHead:
    """Return the head with the scaling in its weights; threshold and metrics are those before.

    Raises
    ------
    FitError : where the weights would leave the range of float64.
    """
    try:
        if scaling.method == "temperature":
            return head.with_temperature(scaling.temperature)
        return head.with_platt(scaling.slope, scaling.intercept)
    except ValueError:
        told = f"no {scaling.method} scaling was written: the weights of the head would leave the range of float64"
        raise FitError(told) from None


def calibrated_scores(subject: Subject, scaling: Scaling) -> Calibrated:
    """Return what a scaling makes of a column of scores, or of one a class."""
    before = probs_before(subject)
    if subject.class_logits is not None:
        z = scaling.apply(subject.class_logits)
        after = log_odds(z)
        return Calibrated(
            scaling, before, after, closest_threshold(subject.threshold, before, sigmoid(after)), class_logits=z
        )
    after = scaling.apply(logits_before(subject))
    threshold = scaling.carry_threshold(subject.threshold, before, sigmoid(after))
    return Calibrated(scaling, before, after, threshold)


def probs_before(subject: Subject) -> FloatArray:
    """Return the probabilities (n,) as they are: sigmoid(logit(p)) differs from p in the last bit, and decides."""
    return subject.scores if subject.source.kind == "prob" else sigmoid(subject.scores)


def calibrated_head(
    subject: Subject, scaling: Scaling, head: LinearHead, logits: FloatArray, class_logits: FloatArray | None = None
) -> Calibrated:
    """Return what a scaling makes of a head, and of its threshold.

    Parameters
    ----------
    head : with the scaling folded in.
    logits, class_logits : (n,) of this very head, which differ in the last bits from the scaled logits, and decide;
        and (n, C) where it has more than two classes.
    """
    before, after = probs_before(subject), sigmoid(logits)
    if class_logits is None:
        threshold = scaling.carry_threshold(subject.threshold, before, after)
    else:
        threshold = closest_threshold(subject.threshold, before, after)
    return Calibrated(scaling, before, logits, threshold, dataclasses.replace(head, threshold=threshold), class_logits)


def logits_again(subject: Subject, head: LinearHead, *, quiet: bool) -> tuple[FloatArray, FloatArray | None]:
    """Return `logits` and `class_logits` of another head on the same rows, whose embeddings are read once more."""
    matrices = embedding_matrices(subject.tables, subject.examples, track=reading(quiet))
    if len(head.classes) == 2:
        return np.concatenate([head.logits(matrix) for matrix in matrices]), None
    z = np.concatenate([head.class_logits(matrix) for matrix in matrices])
    return log_odds(z), z


def calibration_summary(
    subject: Subject, calibrated: Calibrated, data: Sequence[str], written_to: str
) -> CalibrationSummary:
    """Return the rows judged before and after."""
    changes = decision_changes(
        calibrated.before,
        sigmoid(calibrated.logits),
        threshold=subject.threshold,
        threshold_after=calibrated.threshold,
    )
    before = subject.evaluate(n_resamples=0)  # of intervals only those of the bins are shown
    after = evaluate(
        calibrated.logits,
        subject.labels,
        kind="logit",
        threshold=calibrated.threshold,
        classes=subject.examples.classes,
        n_resamples=0,
    )
    told = (*_few_rows(subject, calibrated), *_worse(calibrated, before, after), *_threshold_note(calibrated, changes))
    return CalibrationSummary(
        provenance={
            **data_provenance(data, subject.examples),
            subject.source.what: subject.source.name,
            "label_column": subject.label_column,
            "written_to": written_to,
        },
        scaling=calibrated.scaling,
        before=before,
        after=after,
        changes=changes,
        notes=(*subject.notes, *told),
        classes=_classes(subject, calibrated),
    )


def head_to_write(subject: Subject, calibrated: Calibrated, summary: CalibrationSummary) -> LinearHead:
    """Return the calibrated head with its history.

    The claim of the threshold follows it where the scores keep their order, so that the decisions stay. Of more than
    two classes they need not: the claim then speaks of the head before.
    """
    head = calibrated.head
    if head is None:
        raise ValueError("a column of scores has no head")
    thresholds = (summary.before.threshold, calibrated.threshold)
    ordered = calibrated.class_logits is None
    history = calibration_history(
        moved_claim(head.metrics, *thresholds) if ordered else dropped_claim(head.metrics),
        rows_used(subject.examples),
        summary.scaling,
        summary.changes,
        thresholds=thresholds,
        label=subject.label_column,
    )
    return dataclasses.replace(head, metrics=history)


def _classes(subject: Subject, calibrated: Calibrated) -> "tuple[ClassEvaluation, ClassEvaluation] | None":
    if calibrated.class_logits is None:
        return None
    logits = dataclasses.replace(subject.source, kind="logit")
    after = dataclasses.replace(subject, source=logits, class_scores=calibrated.class_logits)
    judged = [rows.evaluate_classes(n_resamples=0) for rows in (subject, after)]
    return None if judged[0] is None or judged[1] is None else (judged[0], judged[1])


def _few_rows(subject: Subject, calibrated: Calibrated) -> tuple[str, ...]:
    if subject.class_labels is None:
        return few_rows(calibrated.scaling, len(subject.labels), int(subject.labels.sum()))
    others = len(subject.labels) - int(np.bincount(subject.class_labels).max())
    if others >= FEW_OTHERS:
        return ()
    return (f"the temperature rests on {others:,} rows beside those of the commonest class: take it for a guess",)


def _worse(calibrated: Calibrated, before: Evaluation, after: Evaluation) -> tuple[str, ...]:
    """Say that the flagged class alone loses by a temperature that makes the loss of all classes small."""
    if calibrated.class_logits is None:
        return ()
    larger: list[str] = []
    for title in ("log loss", "Brier score"):
        was, now = (part.log_loss if title == "log loss" else part.brier for part in (before, after))
        shown = metric_value(was), metric_value(now)
        if was.value is not None and now.value is not None and now.value > was.value and shown[0] != shown[1]:
            larger.append(f"the {title}{'' if larger else ' becomes larger'}, {' → '.join(shown)}")
    if not larger:
        return ()
    flagged = in_sentence(after.classes[1])
    return (f"of {flagged} against the rest {', and '.join(larger)}: the temperature is that of all classes together",)


def _threshold_note(calibrated: Calibrated, changes: DecisionChanges) -> tuple[str, ...]:
    """Say that a threshold of 0 or 1, probabilities that rounding made equal, or other classes decide otherwise."""
    changed, threshold = changes.newly_flagged + changes.no_longer_flagged, calibrated.threshold
    if not changed:
        return ()
    if calibrated.class_logits is not None:
        why = "of more than two classes a temperature changes the order of the rows"
        return (f"no threshold keeps all decisions: {why}; {threshold!r} changes the fewest, {changed:,}",)
    return (f"no threshold keeps all decisions: floats saturate, and {threshold!r} decides {changed:,} rows anew",)
