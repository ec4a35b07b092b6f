"""A chosen threshold, or a plan of the rows that certifying takes, as a sheet and as JSON."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from headeval._version import __version__
from headeval.certifying.choice import Certification
from headeval.certifying.summary import BenignCounts, Plan, ThresholdSummary
from headeval.core.certify import PRECISION_STARTS
from headeval.core.intervals import Interval, clopper_pearson
from headeval.core.rows_needed import ERRORS_PLANNED
from headeval.core.thresholds import ConfusionCounts
from headeval.metric import Metric
from headeval.printable import printable
from headeval.rates import rates
from headeval.render.numbers import NOTHING, count, exact, interval_text, measured, metric_value, number, percent, share
from headeval.render.sections import Column, Grid, Section, in_sentence
from headeval.render.sheet import Sheet, provenance_lines

FORMAT, PLAN_FORMAT = "headeval-threshold", "headeval-threshold-plan"
VERSION = 1
_NOT_SHOWN = {"headeval_version", "row_digests"}  # the digests are for the head alone
_COMPLEMENTS = {"fpr": "specificity", "specificity": "fpr"}
_RATES = {
    "recall": "recall",
    "fpr": "FPR",
    "precision": "precision",
    "specificity": "specificity",
    "accuracy": "accuracy",
    "f1": "F1",
}


def threshold_sheet(summary: ThresholdSummary) -> Sheet:
    """Lay out a choice: the threshold, what is certified of it, and what changes against the one before."""
    sections = [_choice(summary)]
    if summary.requirements:
        sections.append(_requirements(summary))
    if summary.after is not None or summary.benign is not None:
        sections.append(_decisions(summary))
    return Sheet(
        title="headeval threshold",
        provenance=provenance_lines(summary.provenance),
        how=printable(summary.how),
        caution=summary.caution,
        sections=tuple(sections),
        notes=tuple(map(printable, summary.notes)),
    )


def threshold_document(summary: ThresholdSummary) -> dict[str, Any]:
    """Return everything a choice says, as JSON values."""
    confidence = summary.claim.confidence
    return {
        "format": FORMAT,
        "version": VERSION,
        "headeval_version": __version__,
        "provenance": dict(summary.provenance),
        "how": summary.how,
        "classes": list(summary.classes),
        "threshold_before": summary.before_threshold,
        **_without_digests(summary.claim.document()),
        "before": (
            None if summary.before is None else _outcomes(summary.before, rates(summary.before, confidence=confidence))
        ),
        "after": None if summary.after is None else _outcomes(summary.after, _rates_after(summary, summary.after)),
        "benign_rows": (
            None
            if summary.benign is None
            else dataclasses.asdict(summary.benign)
            | {"interval": dataclasses.asdict(_benign_interval(summary, summary.benign))}
        ),
        "notes": list(summary.notes),
    }


def _without_digests(claim: dict[str, Any]) -> dict[str, Any]:
    shown = {key: value for key, value in claim.items() if key not in _NOT_SHOWN}
    if claim["benign"] is not None:
        shown["benign"] = {key: value for key, value in claim["benign"].items() if key not in _NOT_SHOWN}
    return shown


def plan_sheet(plan: Plan) -> Sheet:
    """Lay out how many rows a certificate takes, by the errors found among them."""
    headings = ("to certify", "rows of", *map(str, ERRORS_PLANNED))
    columns = tuple(Column(heading, numeric=index > 1) for index, heading in enumerate(headings))
    rows = tuple((printable(line.what), line.among, *map(count, line.rows)) for line in plan.lines)
    lead = f"fewest rows by the errors among them, at {percent(plan.confidence)} confidence"
    footnotes = [
        "an error is a flagged negative for fpr and specificity, a missed positive for recall",
        "with some rows more than these one more may be flagged, where it stands alone at the threshold",
    ]
    if plan.shared > 1:
        footnotes.append(f"the confidence is that of all {plan.shared} requirements together, shared equally")
    if any(line.among == "flagged rows" for line in plan.lines):
        footnotes.append("precision: rows flagged at one of the fixed thresholds where its tests begin")
    return Sheet(
        title="headeval threshold: plan",
        provenance=(),
        how="how many independent rows a certificate takes; they must not have been used for the fit",
        caution=False,
        sections=(Section("Rows needed", (Grid("rows needed", columns, rows),), lead, tuple(footnotes)),),
    )


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON values."""
    return {
        "format": PLAN_FORMAT,
        "version": VERSION,
        "headeval_version": __version__,
        "confidence": plan.confidence,
        "shared_among": plan.shared,
        "errors": list(ERRORS_PLANNED),
        "plan": [{**dataclasses.asdict(line), "rows": list(line.rows)} for line in plan.lines],
    }


def _choice(summary: ThresholdSummary) -> Section:
    claim = summary.claim
    if summary.requirements:
        together = " together" if len(summary.requirements) > 1 else ""
        kept = f"with {percent(claim.confidence)} confidence{together}, for rows like these"
    else:
        kept = "nothing: chosen on this very sample, so the numbers below flatter it"
    rows = (
        ("threshold", f"{exact(summary.before_threshold)} → {exact(claim.threshold)}"),
        ("goal", printable(claim.goal)),
        ("certified", kept),
    )
    columns = (Column("what"), Column("value"))
    lead = f"flagged when P({in_sentence(summary.classes[1])}) ≥ {exact(claim.threshold)}"
    return Section("Threshold", (Grid("the threshold", columns, rows, headed=False),), lead=lead)


def _requirements(summary: ThresholdSummary) -> Section:
    headings = ("requirement", "here", "errors", "allowed", "exact bound", "exact interval")
    columns = tuple(Column(heading, numeric=index > 0) for index, heading in enumerate(headings))
    rows = tuple(_requirement(part) for part in summary.requirements)
    rules = dict.fromkeys(f"{part.requirement.metric}: {part.rule}" for part in summary.requirements)
    confidence, together = summary.claim.confidence, len(summary.requirements)
    bound = "exact bound: one-sided, at the errors allowed: what is certified of the rate behind these rows"
    if together > 1:
        each = percent(1 - (1 - confidence) / together)
        bound += f", each at {each}, its share of the {percent(confidence)} for all {together} together"
    if any(part.requirement.metric == "precision" for part in summary.requirements):
        bound += f"; that of precision is shared by {len(PRECISION_STARTS)} walks in turn"
    methods = " or ".join(dict.fromkeys(part.interval.method.removeprefix("exact, ") for part in summary.requirements))
    interval = (
        f"exact interval: {methods}, two-sided at {percent(confidence)}: it can reach beyond what is required, "
        "as the certificate is one-sided"
    )
    return Section(
        "Requirements", (Grid("requirements", columns, rows),), footnotes=(bound, interval, *map(printable, rules))
    )


def _requirement(part: Certification) -> tuple[str, ...]:
    wanted = part.requirement
    return (
        f"{wanted.name} {wanted.comparison} {exact(wanted.bound)}",
        number(part.value),
        share(part.errors, part.n),
        count(part.errors_allowed),
        measured(part.bound, wanted.bound),
        interval_text(part.interval),
    )


def _decisions(summary: ThresholdSummary) -> Section:
    confidence = summary.claim.confidence
    columns = (
        Column("measure"),
        Column("before", numeric=True),
        Column("after", numeric=True),
        Column(f"{percent(confidence)} exact", numeric=True),
    )
    rows: list[tuple[str, ...]] = []
    footnotes: list[str] = []
    if summary.before is not None and summary.after is not None:
        was, now = rates(summary.before, confidence=confidence), _rates_after(summary, summary.after)
        for name, title in _RATES.items():
            sure = now[name].guarantee
            interval = NOTHING if sure is None else interval_text(sure)
            rows.append((title, metric_value(was[name]), metric_value(now[name]), interval))
        rows += _outcome_rows(summary.classes, summary.before, summary.after)
        footnotes.append(_changes(summary.classes, summary.before, summary.after))
    if summary.benign is not None:
        benign = summary.benign
        flagged = share(benign.before, benign.n), share(benign.after, benign.n)
        rows.append(("benign traffic flagged", *flagged, interval_text(_benign_interval(summary, benign))))
    return Section("Before and after", (Grid("before and after", columns, tuple(rows)),), footnotes=tuple(footnotes))


def _benign_interval(summary: ThresholdSummary, benign: BenignCounts) -> Interval:
    """Return the exact interval of the share that is flagged, that of its requirement where there is one."""
    required = [part.interval for part in summary.requirements if part.requirement.metric == "flag_rate"]
    return required[0] if required else clopper_pearson(benign.after, benign.n, confidence=summary.claim.confidence)


def _rates_after(summary: ThresholdSummary, after: ConfusionCounts) -> dict[str, Metric]:
    """Return the rates at the threshold taken; those that were required have the interval of their requirement."""
    found = rates(after, confidence=summary.claim.confidence)
    for part in summary.requirements:
        name, sure = part.requirement.metric, part.interval
        if name not in _RATES:
            continue
        found[name] = dataclasses.replace(found[name], guarantee=sure)
        if name in _COMPLEMENTS:
            other = dataclasses.replace(sure, lower=1 - sure.upper, upper=1 - sure.lower)
            found[_COMPLEMENTS[name]] = dataclasses.replace(found[_COMPLEMENTS[name]], guarantee=other)
    return found


def _outcome_rows(
    classes: tuple[str, str], before: ConfusionCounts, after: ConfusionCounts
) -> list[tuple[str, str, str, str]]:
    negative, positive = map(in_sentence, classes)
    names = {
        "true_positives": f"{positive}, flagged",
        "false_negatives": f"{positive}, passed",
        "false_positives": f"{negative}, flagged",
        "true_negatives": f"{negative}, passed",
    }
    return [
        (title, count(getattr(before, name)), count(getattr(after, name)), NOTHING) for name, title in names.items()
    ]


def _changes(classes: tuple[str, str], before: ConfusionCounts, after: ConfusionCounts) -> str:
    """A threshold moves one way: rows are newly flagged, or no longer."""
    positives, negatives = after.true_positives - before.true_positives, after.false_positives - before.false_positives
    if not positives and not negatives:
        return "no decision changes on these rows"
    what = "newly flagged" if positives + negatives > 0 else "no longer flagged"
    negative, positive = map(in_sentence, classes)
    return f"{what}: {count(abs(positives))} {positive} and {count(abs(negatives))} {negative}"


def _outcomes(counts: ConfusionCounts, found: Mapping[str, Metric]) -> dict[str, Any]:
    return {
        "counts": dataclasses.asdict(counts),
        "rates": {name: found[name].value for name in _RATES},
        "intervals": {
            name: None if (sure := found[name].guarantee) is None else dataclasses.asdict(sure) for name in _RATES
        },
    }
