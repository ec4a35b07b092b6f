"""A threshold chosen on the rows of one head: what is certified of it, and the head that keeps it."""

import dataclasses
from collections.abc import Sequence

from headeval.certifying.certifiable import Goal
from headeval.certifying.choice import allowed_thresholds, certifications, choose_threshold
from headeval.certifying.claim_record import KEY
from headeval.certifying.infeasible import infeasible
from headeval.certifying.summary import ThresholdSummary
from headeval.cli.threshold_rows import ThresholdRows
from headeval.files.examples import require_both_classes
from headeval.head import LinearHead
from headeval.requirement_parsing import Requirement


def chosen_threshold(
    rows: ThresholdRows, requirements: Sequence[Requirement], goal: Goal, confidence: float, written_to: str
) -> ThresholdSummary:
    """Return the threshold that the requirements allow and the goal prefers.

    Raises
    ------
    FitError : where none can be certified, or the rows flatter the head.
    DataError : for rows of one class, where the goal weighs both.
    """
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
        provenance={**rows.provenance, "written_to": written_to},
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


def with_claim(head: LinearHead, summary: ThresholdSummary) -> LinearHead:
    """Return the head with its new threshold, and what it remembers of the choice."""
    metrics = {**head.metrics, KEY: summary.claim.document()}
    return dataclasses.replace(head, threshold=summary.claim.threshold, metrics=metrics)
