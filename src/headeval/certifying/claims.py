"""What a head says its threshold keeps, and whether other rows bear it out."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from headeval.certifying.certifiable import CERTIFIABLE, measured_errors
from headeval.certifying.claim_record import Claim, ClaimedRequirement
from headeval.core.intervals import Interval, clopper_pearson
from headeval.core.thresholds import ConfusionCounts
from headeval.head_history import RowsSeen, rows_seen


class ClaimVerdict(Enum):
    """What rows say of a claim."""

    KEPT = "kept"
    BROKEN = "broken"
    UNDECIDED = "undecided"
    NOT_TESTED = "not tested"


@dataclass(frozen=True, slots=True)
class RequirementCheck:
    """One claimed requirement on other rows.

    Attributes
    ----------
    verdict : kept or broken where the whole exact interval lies on that side of the bound.
    n, errors : rows that the rate is about, and those that count against it.
    value, interval : None where there is no such row, or it was not tested.
    reason : why it was not tested or is undecided, else empty.
    """

    claimed: ClaimedRequirement
    verdict: ClaimVerdict
    n: int = 0
    errors: int = 0
    value: float | None = None
    interval: Interval | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A claim held against rows.

    Attributes
    ----------
    threshold : in use on these rows.
    void : the threshold in use is not the one of the claim, or nothing was certified: why; empty where it is tested.
    same_rows : why these rows are no test, since the threshold was chosen on them; empty where they are.
    checks : one a requirement, in the order claimed.
    """

    claim: Claim
    threshold: float
    void: str
    same_rows: str
    checks: tuple[RequirementCheck, ...]


def check_claim(
    claim: Claim,
    *,
    threshold: float,
    counts: ConfusionCounts,
    fingerprint: str,
    digests: NDArray[np.uint64],
    confidence: float = 0.95,
) -> ClaimCheck:
    """Hold a claim against labelled rows.

    Parameters
    ----------
    threshold : in use on these rows; the claim is void where it is another.
    counts : of these rows at that threshold, each row counted once.
    fingerprint, digests : of these rows; digests (n,). The rows that the threshold was chosen on are no test of it.
    confidence : of the exact intervals, in (0, 1).
    """
    void = _void(claim, threshold)
    same = "" if void else _same_rows(claim, fingerprint, rows_seen({"fit": dict(claim.rows)}, digests))
    untested = void or same
    checks = tuple(
        RequirementCheck(part, ClaimVerdict.NOT_TESTED, reason=untested)
        if untested
        else _checked(part, counts, confidence)
        for part in claim.requirements
    )
    return ClaimCheck(claim, threshold, void, same, checks)


def _void(claim: Claim, threshold: float) -> str:
    if not claim.requirements:
        return "nothing was certified when the threshold was chosen"
    if claim.threshold != threshold:
        return f"the threshold in use, {threshold!r}, is not {claim.threshold!r}, the one that was certified"
    return ""


def _same_rows(claim: Claim, fingerprint: str, seen: RowsSeen | None) -> str:
    if claim.rows.get("data_fingerprint") == fingerprint:
        return "these are the rows that the threshold was chosen on: no test"
    if seen is not None and seen.fitted is not None and seen.fitted and 2 * seen.fitted >= seen.n:
        about = "" if seen.exact else "about "
        return f"{about}{seen.fitted:,} of these {seen.n:,} rows are rows that the threshold was chosen on: no test"
    return ""


def _checked(claimed: ClaimedRequirement, counts: ConfusionCounts, confidence: float) -> RequirementCheck:
    requirement = claimed.requirement
    if requirement.metric == "flag_rate":
        reason = "not tested here: it is about unlabelled benign traffic"
        return RequirementCheck(claimed, ClaimVerdict.NOT_TESTED, reason=reason)
    errors, n = measured_errors(counts, 0, 0, requirement.metric)
    if not n:
        return RequirementCheck(
            claimed, ClaimVerdict.UNDECIDED, reason=f"there are no {CERTIFIABLE[requirement.metric][1]}"
        )
    falls = CERTIFIABLE[requirement.metric][0] == "<"
    k = errors if falls else n - errors
    interval = clopper_pearson(k, n, confidence=confidence)
    bound = requirement.bound
    kept = interval.upper <= bound if falls else interval.lower >= bound
    broken = interval.lower > bound if falls else interval.upper < bound
    verdict = ClaimVerdict.KEPT if kept else ClaimVerdict.BROKEN if broken else ClaimVerdict.UNDECIDED
    reason = "" if kept or broken else "the interval holds the bound: these rows are too few to tell"
    return RequirementCheck(claimed, verdict, n, errors, k / n, interval, reason)
