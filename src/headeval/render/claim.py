"""What a head says its threshold keeps, beside what these rows say: as a section and as JSON."""

from typing import Any

from headeval.certifying.claim_record import interval_document
from headeval.certifying.claims import ClaimCheck, ClaimVerdict, RequirementCheck
from headeval.printable import printable
from headeval.render.numbers import NOTHING, count, exact, interval_text, number, percent, share
from headeval.render.sections import Column, Grid, Section, Tone

_TONES: dict[ClaimVerdict, tuple[str, Tone]] = {
    ClaimVerdict.KEPT: ("kept", "good"),
    ClaimVerdict.BROKEN: ("BROKEN", "bad"),
    ClaimVerdict.UNDECIDED: ("undecided", "doubtful"),
    ClaimVerdict.NOT_TESTED: ("not tested", "doubtful"),
}


def claim_section(check: ClaimCheck) -> Section:
    """Return each claimed requirement beside what was certified and what these rows show."""
    claim = check.claim
    headings = ("requirement", "certified on", "here", "exact interval", "verdict")
    columns = tuple(Column(heading, numeric=heading in {"here", "exact interval"}) for heading in headings)
    rows = tuple(_row(part) for part in check.checks)
    tones = tuple(_TONES[part.verdict][1] for part in check.checks)
    grids = (Grid("what the head says its threshold keeps", columns, rows, tones=tones),) if rows else ()
    if check.void:
        lead = f"void: {check.void}"
    elif check.same_rows:
        lead = check.same_rows
    else:
        confident = f"was certified with {percent(claim.confidence)} confidence"
        lead = f"threshold {exact(claim.threshold)} {confident} on other rows; these rows judge it by themselves"
    reasons = dict.fromkeys(
        f"{part.claimed.requirement}: {part.reason}"
        for part in check.checks
        if part.reason and part.reason not in {check.void, check.same_rows}
    )
    footnotes = [printable(reason) for reason in reasons]
    if claim.goal:
        footnotes.append(f"chosen by headeval {printable(claim.headeval_version)}: {printable(claim.goal)}")
    return Section("What the threshold keeps", grids, lead=printable(lead), footnotes=tuple(footnotes))


def claim_document(check: ClaimCheck) -> dict[str, Any]:
    """Return a claim and its test as JSON values."""
    claim = check.claim
    return {
        "threshold": claim.threshold,
        "threshold_in_use": check.threshold,
        "confidence": claim.confidence,
        "goal": claim.goal,
        "void": check.void or None,
        "same_rows": check.same_rows or None,
        "requirements": [_requirement(part) for part in check.checks],
    }


def _row(part: RequirementCheck) -> tuple[str, ...]:
    wanted, claimed = part.claimed.requirement, part.claimed
    asked = f"{wanted.name} {wanted.comparison} {exact(wanted.bound)}"
    certified = f"{share(claimed.errors, claimed.n)} errors, {count(claimed.errors_allowed)} allowed"
    here = NOTHING if part.value is None else f"{number(part.value)} ({share(round(part.value * part.n), part.n)})"
    interval = NOTHING if part.interval is None else interval_text(part.interval)
    return (asked, certified, here, interval, _TONES[part.verdict][0])


def _requirement(part: RequirementCheck) -> dict[str, Any]:
    claimed, wanted = part.claimed, part.claimed.requirement
    return {
        "requirement": str(wanted),
        "metric": wanted.metric,
        "comparison": wanted.comparison,
        "bound": wanted.bound,
        "certified_on": {"n": claimed.n, "errors": claimed.errors, "errors_allowed": claimed.errors_allowed},
        "n": part.n,
        "errors": part.errors,
        "value": part.value,
        "interval": None if part.interval is None else interval_document(part.interval),
        "verdict": part.verdict.value,
        "reason": part.reason,
    }
