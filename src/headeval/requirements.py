"""Requirements held against what was measured: met, not met or undecided, and never passed by accident."""

import dataclasses
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from headeval.comparison import Comparison
from headeval.core.intervals import Interval
from headeval.errors import UsageError
from headeval.evaluation import METRICS, Evaluation
from headeval.metric import Metric
from headeval.multiclass import ClassEvaluation
from headeval.printable import quoted
from headeval.rates import EFFECTIVE
from headeval.requirement_parsing import Requirement, needs_baseline

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_DIGITS, _MOST_DIGITS = 4, 17


class Verdict(Enum):
    """How a requirement came out; only MET passes."""

    MET = "met"
    NOT_MET = "not met"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Decision:
    """A requirement beside what was measured.

    Attributes
    ----------
    value : the number held against the bound: the metric, or an end of its interval; None where there is none.
    reason : why it is undecided, or what the interval says; else empty.
    interval : the one whose end was held against the bound; beside a plain metric the one that is shown.
    measured : the metric itself, or its difference to the baseline; None where undefined.
    """

    requirement: Requirement
    value: float | None
    verdict: Verdict
    reason: str = ""
    interval: Interval | None = None
    measured: float | None = None


@dataclass(frozen=True, slots=True)
class EachDecision:
    """A requirement held against every slice.

    Attributes
    ----------
    judged : slices that were held against it.
    failing : column, value and decision of the slices that do not meet it.
    skipped : column, value and reason of the slices that were not judged.
    held_back : why it does not pass although every slice that was judged meets it, else empty.
    reason : why it is undecided when no slice could be judged or it is held back, else empty.
    """

    requirement: Requirement
    verdict: Verdict
    judged: int
    failing: tuple[tuple[str, str, Decision], ...]
    skipped: tuple[tuple[str, str, str], ...]
    held_back: str = ""

    @property
    def reason(self) -> str:
        """Why nothing could be decided."""
        return self.held_back or ("" if self.judged else "no slice could be judged")


class JudgedSlice(Protocol):
    """A slice: the rows with one value in a column."""

    @property
    def column(self) -> str:
        """Text from the table."""

    @property
    def value(self) -> str:
        """Text from the table."""

    @property
    def evaluation(self) -> Evaluation:
        """Of the rows of the slice."""


def decide(
    requirement: Requirement,
    evaluation: Evaluation,
    comparison: Comparison | None = None,
    classes: ClassEvaluation | None = None,
) -> Decision:
    """Hold the evaluation, or its difference to the baseline, against the requirement.

    A plain metric is met or not met; where it is undefined, the requirement is undecided. Ends of an interval come
    from the exact interval where the metric has one. For an interval from L to U and the number b, with >= and <=
    standing for > and < as well:

    ==============  =======  ==========  ===========  =======================================================
    requirement     met      not met     undecided    what it asks
    ==============  =======  ==========  ===========  =======================================================
    `m.lower >= b`  L >= b   U < b       L < b <= U   the data show that m is at least b
    `m.upper <= b`  U <= b   L > b       L <= b < U   the data show that m is at most b
    `m.upper >= b`  U >= b   U < b       never        the data do not rule out b; few rows meet it easily
    `m.lower <= b`  L <= b   L > b       never        the data do not rule out b; few rows meet it easily
    ==============  =======  ==========  ===========  =======================================================

    In the first two rows the metric itself has to meet the bound too. Nothing infinite meets a bound.

    Parameters
    ----------
    comparison : with the baseline; only needed for differences.
    classes : of more than two classes, whose own metrics and metrics of all classes together can be required.

    Raises
    ------
    UsageError
        For a difference without a comparison.

    Examples
    --------
    >>> from headeval.evaluation import evaluate
    >>> from headeval.requirement_parsing import parse_requirement
    >>> evaluation = evaluate([0.9, 0.2], [1, 0], kind="prob")
    >>> decide(parse_requirement("auc>=0.95"), evaluation).verdict
    <Verdict.MET: 'met'>
    >>> decide(parse_requirement("auc.lower>=0.95"), evaluation).verdict
    <Verdict.UNDECIDED: 'undecided'>
    """
    metric = _measured(requirement, evaluation, comparison, classes)
    if metric.value is None or math.isnan(metric.value):
        return Decision(requirement, None, Verdict.UNDECIDED, metric.reason or "undefined")
    if requirement.part == "value":
        verdict = Verdict.MET if _holds(requirement, metric.value) else Verdict.NOT_MET
        return Decision(requirement, metric.value, verdict, metric.reason, metric.interval, metric.value)
    interval = metric.gate_interval
    if interval is None or math.isnan(interval.lower) or math.isnan(interval.upper):
        reason = "intervals were not asked for" if evaluation.confidence is None else "it has no interval here"
        return Decision(requirement, None, Verdict.UNDECIDED, reason, None, metric.value)
    verdict, reason = _held_against(requirement, metric.value, interval)
    value = interval.lower if requirement.part == "lower" else interval.upper
    return Decision(requirement, value, verdict, metric.reason or reason, interval, metric.value)


def decide_each(
    requirements: Iterable[Requirement], slices: Sequence[JudgedSlice], min_rows: int
) -> tuple[EachDecision, ...]:
    """Hold every requirement against every slice; it is met when every slice that can be judged meets it.

    Not judged are slices of fewer than `min_rows` rows, unless `n` itself is required, and slices in which the
    metric is undefined: where no row is positive there is no recall that could be too low. When no slice can be
    judged, the requirement is undecided. One slice that fails makes it not met, whatever else is undecided.

    Examples
    --------
    >>> from collections import namedtuple
    >>> from headeval.evaluation import evaluate
    >>> from headeval.requirement_parsing import parse_requirement
    >>> part = namedtuple("part", "column value evaluation")
    >>> slices = [part("language", "de", evaluate([0.9, 0.2], [1, 0], kind="prob"))]
    >>> [decision.verdict.value for decision in decide_each([parse_requirement("recall>=0.9")], slices, 2)]
    ['met']
    >>> [decision.skipped for decision in decide_each([parse_requirement("recall>=0.9")], slices, 30)]
    [(('language', 'de', 'fewer than 30 rows'),)]
    """
    return tuple(_decide_slices(requirement, slices, min_rows) for requirement in requirements)


def held_back(decision: Decision, reason: str) -> Decision:
    """Return a decision that does not pass for that reason, whatever was measured; what fails, fails."""
    if decision.verdict is not Verdict.MET:
        return decision
    return dataclasses.replace(decision, verdict=Verdict.UNDECIDED, reason=reason)


def held_back_each(decision: EachDecision, reason: str) -> EachDecision:
    """Return the same of a requirement on every slice."""
    if decision.verdict is not Verdict.MET:
        return decision
    return dataclasses.replace(decision, verdict=Verdict.UNDECIDED, held_back=reason)


def _decide_slices(requirement: Requirement, slices: Sequence[JudgedSlice], min_rows: int) -> EachDecision:
    judged: list[tuple[str, str, Decision]] = []
    skipped: list[tuple[str, str, str]] = []
    for part in slices:
        decision = decide(requirement, part.evaluation)
        if part.evaluation.counts.n < min_rows and requirement.metric != "n":
            skipped.append((part.column, part.value, f"fewer than {min_rows:,} rows"))
        elif _metric(requirement, part.evaluation, None).value is None:
            skipped.append((part.column, part.value, decision.reason))
        else:
            judged.append((part.column, part.value, decision))
    failing = tuple(entry for entry in judged if entry[2].verdict is not Verdict.MET)
    return EachDecision(requirement, _worst(judged), len(judged), failing, tuple(skipped))


def _worst(judged: Iterable[tuple[str, str, Decision]]) -> Verdict:
    verdicts = {decision.verdict for _, _, decision in judged}
    if Verdict.NOT_MET in verdicts:
        return Verdict.NOT_MET
    return Verdict.MET if verdicts == {Verdict.MET} else Verdict.UNDECIDED


def undecided(requirement: Requirement, reason: str) -> Decision:
    """Return the decision on a requirement of rows that there are not; it does not pass."""
    return Decision(requirement, None, Verdict.UNDECIDED, reason)


def undecided_each(requirement: Requirement, reason: str) -> EachDecision:
    """Return the same of a requirement on every slice."""
    return EachDecision(requirement, Verdict.UNDECIDED, 0, (), (), reason)


def _measured(
    requirement: Requirement,
    evaluation: Evaluation,
    comparison: Comparison | None,
    classes: ClassEvaluation | None,
) -> Metric:
    metric = _metric(requirement, evaluation, classes)
    if not requirement.difference:
        return metric
    if comparison is None:
        raise UsageError(needs_baseline(f"--require {quoted(requirement)}"))
    difference = comparison.differences.get(requirement.metric)
    if difference is not None:
        return Metric(difference.value, interval=difference.interval)
    of_baseline: Metric = getattr(comparison.baseline, requirement.metric)
    return Metric(None, metric.reason or of_baseline.reason or "it is not compared with the baseline")


def _metric(requirement: Requirement, evaluation: Evaluation, classes: ClassEvaluation | None) -> Metric:
    """Return the metric itself: of all classes or of one where there are several, else of the evaluation."""
    measured: object = evaluation
    if classes is not None and requirement.of:
        measured = next(part for part in classes.per_class if part.name == requirement.of)
    elif classes is not None and requirement.metric not in METRICS:
        measured = classes
    metric: Metric = getattr(measured, requirement.metric)
    return metric


def _holds(requirement: Requirement, value: float) -> bool:
    # An infinite log loss is no measurement that a bound could be held against, from whichever side.
    return math.isfinite(value) and _OPERATORS[requirement.comparison](value, requirement.bound)


def _held_against(requirement: Requirement, measured: float, interval: Interval) -> tuple[Verdict, str]:
    """Return the verdict on an end of the interval, and what there is to say of it."""
    lower, upper = interval.lower, interval.upper
    used, opposite = (lower, upper) if requirement.part == "lower" else (upper, lower)
    asks_proof = (requirement.part == "lower") == (requirement.comparison[0] == ">")
    told = f"{_told(lower, requirement.bound)} to {_told(upper, requirement.bound)} ({interval.method})"
    if not math.isfinite(measured):
        return Verdict.NOT_MET, "infinite"
    if _holds(requirement, used):
        if asks_proof and not _holds(requirement, measured):  # which no interval around the value can show
            return Verdict.UNDECIDED, f"the measured value lies outside its interval, {told}"
        return Verdict.MET, ""
    if lower <= requirement.bound <= upper and _OPERATORS[requirement.comparison](opposite, requirement.bound):
        few = "rows or groups" if interval.method.endswith(EFFECTIVE) else "rows"
        return Verdict.UNDECIDED, f"too few {few}: the interval {told} holds the bound"
    if _OPERATORS[requirement.comparison](used, requirement.bound):
        return Verdict.NOT_MET, "infinite"
    return Verdict.NOT_MET, f"the whole interval {told} fails it"


def _told(end: float, bound: float) -> str:
    """An end with as many decimals as show on which side of the bound it lies, and that it is neither 0 nor 1."""
    if not math.isfinite(end):
        return "∞" if end > 0 else "-∞"
    for digits in range(_DIGITS, _MOST_DIGITS + 1):
        text = f"{end:.{digits}f}"
        if all((float(text) > at, float(text) < at) == (end > at, end < at) for at in (bound, 0.0, 1.0)):
            return text
    return repr(end)
