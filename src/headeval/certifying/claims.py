"""What a head says its threshold keeps, and whether other rows bear it out."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from headeval.certifying.certifiable import CERTIFIABLE, measured_errors
from headeval.certifying.claim_record import Claim, ClaimedRequirement
from headeval.core.intervals import Interval
from headeval.core.thresholds import ConfusionCounts, confusion_counts
from headeval.head_history import recognised
from headeval.metric import Metric
from headeval.rates import EFFECTIVE, rates_of_rows
from headeval.scored_rows import ScoredRows


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
    n, errors : rows that the rate is about, and those that count against it, each counted once.
    value, interval : of the rate, by the weights and groups of the rows; None where there is none, or it was not
        tested.
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
class RowsApart:
    """How many of some rows the threshold was not chosen on, as far as the head can tell.

    Attributes
    ----------
    n : the rows looked at.
    recognised : those that the threshold was chosen on, which are left out of the test.
    checked : the rows of which the kept digests can tell.
    unrecognised : about how many of the others the threshold was chosen on too, going by those that can be checked.
    """

    n: int
    recognised: int
    checked: int
    unrecognised: int

    @property
    def tested(self) -> int:
        """The rows that are left."""
        return self.n - self.recognised


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A claim held against rows.

    Attributes
    ----------
    threshold : in use on these rows.
    void : the threshold in use is not the one of the claim, or nothing was certified: why; empty where it is tested.
    same_rows : why these rows are no test, since the threshold was chosen on them; empty where they are.
    apart : which of the rows it is tested on.
    weighted : whether the rows weigh differently, so that no rate is a share of rows.
    checks : one a requirement, in the order claimed.
    """

    claim: Claim
    threshold: float
    void: str
    same_rows: str
    apart: RowsApart
    weighted: bool
    checks: tuple[RequirementCheck, ...]


def check_claim(
    claim: Claim,
    rows: ScoredRows,
    *,
    threshold: float,
    fingerprint: str,
    digests: NDArray[np.uint64],
    confidence: float = 0.95,
) -> ClaimCheck:
    """Hold a claim against labelled rows; those that the threshold was chosen on are left out.

    Parameters
    ----------
    rows : with their weights and groups, if any.
    threshold : in use on these rows; the claim is void where it is another.
    fingerprint, digests : of these rows; digests (n,), in the order of `rows`.
    confidence : of the exact intervals, in (0, 1).
    """
    known, apart = _apart(claim, digests)
    void = _void(claim, threshold)
    same = "" if void else _same_rows(claim, fingerprint, apart)
    untested = void or same
    if untested:
        checks = tuple(RequirementCheck(part, ClaimVerdict.NOT_TESTED, reason=untested) for part in claim.requirements)
    else:
        others = rows if not apart.recognised else rows.reordered(np.flatnonzero(~known))
        counts = confusion_counts(others.p, others.y, threshold=threshold)
        rates = rates_of_rows(others, threshold, confidence=confidence)
        checks = tuple(_checked(part, counts, rates[part.requirement.metric]) for part in claim.requirements)
    return ClaimCheck(claim, threshold, void, same, apart, rows.weights is not None, checks)


def about_benign_rows(requirement: ClaimedRequirement) -> bool:
    """Whether a requirement is about unlabelled benign traffic, of which labelled rows are no test."""
    return requirement.requirement.metric == "flag_rate"


def _void(claim: Claim, threshold: float) -> str:
    if not claim.requirements:
        return "nothing was certified when the threshold was chosen"
    if claim.threshold != threshold:
        return f"the threshold in use, {threshold!r}, is not {claim.threshold!r}, the one that was certified"
    return ""


def _apart(claim: Claim, digests: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], RowsApart]:
    """Return which rows the threshold was chosen on as far as the head can tell, (n,), and how far that is."""
    known, told = np.zeros(digests.shape, dtype=np.bool_), np.ones(digests.shape, dtype=np.bool_)
    for entry in (claim.rows, claim.benign):
        if entry is None or entry.get("n") == 0:
            continue
        among, tells = recognised(entry, digests)
        known |= among
        told &= tells
    share = known[told].mean() if told.any() else 0.0
    more = max(0, round(float(share) * int((~told).sum())) - int((known & ~told).sum()))
    return known, RowsApart(int(digests.size), int(known.sum()), int(told.sum()), more)


def _same_rows(claim: Claim, fingerprint: str, apart: RowsApart) -> str:
    if claim.rows.get("data_fingerprint") == fingerprint:
        return "these are the rows that the threshold was chosen on: no test"
    if claim.benign is not None and claim.benign.get("data_fingerprint") == fingerprint:
        return "these are the benign rows that the threshold was chosen on: no test"
    if not apart.tested:
        return f"all of these {apart.n:,} rows are rows that the threshold was chosen on: no test"
    # Most of what is left would be the rows themselves: leaving out those that are recognised would not help.
    if apart.unrecognised and 2 * apart.unrecognised >= apart.tested:
        chosen = apart.recognised + apart.unrecognised
        return (
            f"about {chosen:,} of these {apart.n:,} rows are rows that the threshold was chosen on, of which the head "
            "keeps a sample only: no test"
        )
    return ""


def _checked(claimed: ClaimedRequirement, counts: ConfusionCounts, measured: Metric) -> RequirementCheck:
    requirement = claimed.requirement
    if about_benign_rows(claimed):
        reason = "not tested here: it is about unlabelled benign traffic"
        return RequirementCheck(claimed, ClaimVerdict.NOT_TESTED, reason=reason)
    errors, n = measured_errors(counts, 0, 0, requirement.metric)
    interval, bound = measured.guarantee, requirement.bound
    if measured.value is None or interval is None:
        return RequirementCheck(claimed, ClaimVerdict.UNDECIDED, n, errors, reason=measured.reason)
    falls = CERTIFIABLE[requirement.metric][0] == "<"
    kept = interval.upper <= bound if falls else interval.lower >= bound
    broken = interval.lower > bound if falls else interval.upper < bound
    verdict = ClaimVerdict.KEPT if kept else ClaimVerdict.BROKEN if broken else ClaimVerdict.UNDECIDED
    few = "these rows or groups" if interval.method.endswith(EFFECTIVE) else "these rows"
    reason = "" if kept or broken else f"the interval holds the bound: {few} are too few to tell"
    return RequirementCheck(claimed, verdict, n, errors, measured.value, interval, reason)
