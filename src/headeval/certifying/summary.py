"""What `headeval threshold` shows: the choice, what it keeps, and what it changes; and the rows that a plan takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headeval.certifying.certifiable import CERTIFIABLE
from headeval.certifying.choice import Certification
from headeval.certifying.claim_record import Claim
from headeval.core.certify import PRECISION_STARTS
from headeval.core.rows_needed import ERRORS_PLANNED, rows_needed
from headeval.core.thresholds import ConfusionCounts
from headeval.requirement_parsing import Requirement

RATES_PLANNED = (0.1, 0.05, 0.01, 0.005, 0.001)


@dataclass(frozen=True, slots=True)
class BenignCounts:
    """Benign rows that are flagged, before and after.

    Attributes
    ----------
    n : all of them.
    before, after : flagged at the old and at the new threshold.
    """

    n: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ThresholdSummary:
    """A threshold that was chosen, beside the one before.

    Attributes
    ----------
    provenance : what was chosen on what; JSON-able values in the order shown.
    how : which rows the choice comes from, in words.
    caution : whether `how` must not be overlooked.
    classes : (negative, positive).
    before_threshold : of the head that was read.
    claim : what the head now says of its threshold.
    requirements : one a requirement, in the order asked; none where nothing is certified.
    before, after : outcomes of the labelled rows at both thresholds; None without labelled rows.
    benign : None without benign rows.
    notes : sentences a reader must not miss.
    """

    provenance: Mapping[str, Any]
    how: str
    caution: bool
    classes: tuple[str, str]
    before_threshold: float
    claim: Claim
    requirements: tuple[Certification, ...]
    before: ConfusionCounts | None
    after: ConfusionCounts | None
    benign: BenignCounts | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanLine:
    """The rows that one rate takes.

    Attributes
    ----------
    what : the requirement or the rate, in words.
    among : the rows that are counted.
    rate : the error rate that is to be shown.
    level : the confidence for it alone.
    rows : the fewest rows, one number for each of `ERRORS_PLANNED`.
    """

    what: str
    among: str
    rate: float
    level: float
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """How many rows are needed to certify rates.

    Attributes
    ----------
    confidence : of all lines that come from requirements together; of each line by itself without any.
    shared : among how many requirements it is shared.
    """

    confidence: float
    shared: int
    lines: tuple[PlanLine, ...]


def planned_rows(requirements: Sequence[Requirement], *, confidence: float) -> Plan:
    """Return the rows that certifying these requirements takes, or without any, some usual rates.

    Raises
    ------
    ValueError
        When a rate takes more rows than anybody has.

    Examples
    --------
    >>> [line.rows[0] for line in planned_rows([], confidence=0.95).lines]
    [29, 59, 299, 598, 2995]
    """
    if not requirements:
        lines = (_line(f"error rate {100 * rate:g} %", "rows", rate, confidence) for rate in RATES_PLANNED)
        return Plan(confidence, 1, tuple(lines))
    level = 1 - (1 - confidence) / len(requirements)
    return Plan(confidence, len(requirements), tuple(_required(part, level) for part in requirements))


def _required(requirement: Requirement, level: float) -> PlanLine:
    side, among = CERTIFIABLE[requirement.metric]
    rate = requirement.bound if side == "<" else 1 - requirement.bound
    if requirement.metric == "precision":
        level = 1 - (1 - level) / len(PRECISION_STARTS)
    return _line(str(requirement), among, rate, level)


def _line(what: str, among: str, rate: float, level: float) -> PlanLine:
    rows = tuple(rows_needed(errors, rate, confidence=level) for errors in ERRORS_PLANNED)
    return PlanLine(what, among, rate, level, rows)
