"""One subject judged: its evaluation, what stands beside it, and what was required of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headeval.certifying.claim_record import read_claim
from headeval.certifying.claims import ClaimCheck, check_claim
from headeval.cli.judging import Measured, before_calibration, compared, drawn, judged_slices
from headeval.cli.row_notes import model_note
from headeval.cli.rows import Columns, data_provenance, embedding_provenance
from headeval.cli.sources import model_of
from headeval.cli.subject import Subject
from headeval.comparison import Comparison
from headeval.drift import Drift
from headeval.evaluation import Evaluation
from headeval.multiclass import ClassEvaluation
from headeval.render.claim import claim_notes
from headeval.report import Report, Slice
from headeval.requirement_parsing import Requirement
from headeval.requirement_scope import of_classes
from headeval.requirements import decide, decide_each, held_back, held_back_each, undecided

_ONE_LABEL = "the labels only tell the flagged class from the rest, not the classes from each other"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks of whatever it judges.

    Attributes
    ----------
    data : the arguments that name it.
    by : columns whose values are judged as slices.
    requirements, of_each : of all rows, and of every slice.
    min_rows : slices with fewer are held against nothing.
    drawn : whether something has curves.
    """

    data: Sequence[str]
    columns: Columns
    measured: Measured
    by: Sequence[str]
    requirements: Sequence[Requirement]
    of_each: Sequence[Requirement]
    min_rows: int
    drawn: bool


def judged_report(subject: Subject, rival: Subject | None, asked: Asked, *, drift: Drift | None = None) -> Report:
    """Return everything that is asked of a subject.

    Parameters
    ----------
    rival : the same rows scored by a baseline.
    drift : against a reference.
    """
    measured = asked.measured
    evaluation = subject.evaluate(**measured.options, **measured.traffic)
    classes = subject.evaluate_classes(**measured.class_options)
    comparison = None if rival is None else compared(subject, rival, evaluation, measured)
    slices = judged_slices(subject, asked.by, evaluation, measured)
    claim = _claim(subject, measured)
    notes = model_note(subject.source.head, subject.tables, asked.columns.embedding_model)
    return Report(
        provenance=_provenance(subject, asked),
        how=subject.how,
        seen=subject.seen,
        evaluation=evaluation,
        slices=slices,
        **_decided(subject, claim, asked, (evaluation, comparison, classes), slices),
        notes=(*claim_notes(claim), *subject.notes, *notes),
        comparison=comparison,
        drift=drift,
        claim=claim,
        classes=classes,
        **(_drawn(subject, measured, evaluation) if asked.drawn else {}),
    )


def _decided(
    subject: Subject,
    claim: ClaimCheck | None,
    asked: Asked,
    found: tuple[Evaluation, Comparison | None, ClassEvaluation | None],
    slices: tuple[Slice, ...],
) -> dict[str, Any]:
    """Hold everything against what is required; rows that made the head, or chose its threshold, let nothing pass."""
    one_label = subject.source.class_names is not None and found[2] is None
    decisions = [
        undecided(requirement, _ONE_LABEL) if one_label and of_classes(requirement) else decide(requirement, *found)
        for requirement in asked.requirements
    ]
    each = decide_each(asked.of_each, slices, asked.min_rows)
    reason = "" if claim is None or claim.void or not claim.same_rows else f"{claim.same_rows}; judge on other rows"
    if subject.seen is not None and subject.seen.in_sample == "fitted":
        reason = "most of these rows were used for the fit: judge on other rows"
    if reason:
        decisions = [held_back(decision, reason) for decision in decisions]
        each = tuple(held_back_each(decision, reason) for decision in each)
    return {"decisions": tuple(decisions), "each": each}


def _claim(subject: Subject, measured: Measured) -> ClaimCheck | None:
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


def _drawn(subject: Subject, measured: Measured, evaluation: Evaluation) -> dict[str, Any]:
    return {"curves": drawn(subject, measured), "before": before_calibration(subject, evaluation.reliability)}


def _provenance(subject: Subject, asked: Asked) -> dict[str, Any]:
    source, columns = subject.source, asked.columns
    provenance = data_provenance(asked.data, subject.examples)
    provenance |= {"label_column": subject.label_column, source.what: source.name}
    if source.head:
        provenance |= embedding_provenance(subject.examples, columns)
        provenance["embedding_model"] = model_of(source.head, [subject.tables], columns.embedding_model)
    named = {"weights": columns.weight, "groups": columns.group}
    return provenance | {"threshold_from": subject.threshold_from} | {k: v for k, v in named.items() if v is not None}
