"""What a head says its threshold keeps, beside what these rows say: as a section and as JSON."""

import dataclasses
from typing import Any

from headeval.certifying.certifiable import CERTIFIABLE
from headeval.certifying.claim_record import interval_document
from headeval.certifying.claims import ClaimCheck, ClaimVerdict, RequirementCheck, RowsApart, about_benign_rows
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
    rows = tuple(_row(part, weighted=check.weighted) for part in check.checks)
    tones = tuple(_TONES[part.verdict][1] for part in check.checks)
    grids = (Grid("what the head says its threshold keeps", columns, rows, tones=tones),) if rows else ()
    reasons = dict.fromkeys(
        f"{part.claimed.requirement}: {part.reason}"
        for part in check.checks
        if part.reason and part.reason not in {check.void, check.same_rows}
    )
    footnotes = [printable(reason) for reason in reasons]
    if claim.goal:
        footnotes.append(f"chosen by headeval {printable(claim.headeval_version)}: {printable(claim.goal)}")
    return Section("What the threshold keeps", grids, lead=printable(_lead(check)), footnotes=tuple(footnotes))


def claim_notes(check: ClaimCheck | None) -> tuple[str, ...]:
    """Return what a reader must not miss: each promise that the rows break, and rows that chose the threshold."""
    if check is None:
        return ()
    broken = (
        f"the threshold's promise {part.claimed.requirement} is BROKEN on these rows: {number(part.value)}, "
        f"{interval_text(part.interval)}"
        for part in check.checks
        if part.verdict is ClaimVerdict.BROKEN and part.value is not None and part.interval is not None
    )
    if check.apart.recognised:
        rows = count(check.apart.recognised)
        return (*broken, f"the threshold was chosen on {rows} of these rows, which flatter the rates at it")
    return tuple(broken)


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
        "rows": dataclasses.asdict(check.apart),
        "requirements": [_requirement(part) for part in check.checks],
    }


def _lead(check: ClaimCheck) -> str:
    claim = check.claim
    if check.void or check.same_rows:
        return f"void: {check.void}" if check.void else check.same_rows
    certified = f"threshold {exact(claim.threshold)} was certified with {percent(claim.confidence)} confidence"
    if all(map(about_benign_rows, claim.requirements)):
        return f"{certified} for unlabelled benign traffic, and labelled rows are no test of that"
    return f"{certified}{_tested_on(check.apart)}"


def _tested_on(apart: RowsApart) -> str:
    """Say on which rows a claim is tested, and how far the head can tell that they are others."""
    n, left = count(apart.n), count(apart.tested)
    if not apart.checked:
        return "; whether it was chosen on some of these rows, the head cannot tell"
    if apart.unrecognised:
        more = f"about {count(apart.unrecognised)} more cannot be recognised, and flatter it"
        return f"; tested on the {left} of {n} rows that are not recognised as ones that it was chosen on: {more}"
    far = "" if apart.checked == apart.n else f", as far as the head can tell, by {count(apart.checked)} of them"
    if apart.recognised:
        return f"; tested on the {left} of {n} rows that it was not chosen on{far}"
    return f" on other rows{far}; these rows judge it by themselves"


def _row(part: RequirementCheck, *, weighted: bool) -> tuple[str, ...]:
    wanted, claimed = part.claimed.requirement, part.claimed
    asked = f"{wanted.name} {wanted.comparison} {exact(wanted.bound)}"
    certified = f"{share(claimed.errors, claimed.n)} errors, {count(claimed.errors_allowed)} allowed"
    hits = part.errors if CERTIFIABLE[wanted.metric][0] == "<" else part.n - part.errors
    behind = "" if weighted else f" ({share(hits, part.n)})"
    here = NOTHING if part.value is None else f"{number(part.value)}{behind}"
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
