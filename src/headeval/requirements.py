"""Requirements such as `auc>=0.95`: parsed once, decided against an Evaluation, never passed by accident."""

import difflib
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from headeval.errors import UsageError
from headeval.evaluation import METRICS, Evaluation
from headeval.printable import quoted

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_-]*)\s*(>=|<=|>|<)\s*(\S+)\s*")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PER_CENT = re.compile(r"[0-9]+(\.[0-9]+)?%")


class Verdict(Enum):
    """How a requirement came out; only MET passes."""

    MET = "met"
    NOT_MET = "not met"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound on one metric, in the form METRIC OPERATOR NUMBER.

    Attributes
    ----------
    metric : a name in `evaluation.METRICS`.
    comparison : one of >=, <=, >, <.
    bound : finite.
    """

    metric: str
    comparison: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric}{self.comparison}{self.bound!r}"


@dataclass(frozen=True, slots=True)
class Decision:
    """A requirement beside what was measured.

    Attributes
    ----------
    value : the metric, None where undefined.
    reason : why it could not be decided, else empty.
    """

    requirement: Requirement
    value: float | None
    verdict: Verdict
    reason: str = ""


def parse_requirement(text: str) -> Requirement:
    """Read `METRIC>=NUMBER` (or <=, >, <).

    Raises
    ------
    UsageError
        When the text is not of that form, or the metric is not known.

    Examples
    --------
    >>> parse_requirement("auc >= 0.95")
    Requirement(metric='auc', comparison='>=', bound=0.95)
    """
    match = _FORM.fullmatch(text)
    if not match:
        quotes = "; put it in quotes, or the shell takes > and < for itself" if text.strip() in METRICS else ""
        raise UsageError(
            f"--require {quoted(text)} is not METRIC>=NUMBER (or <=, >, <), for example 'auc>=0.95'{quotes}"
        )
    metric, comparison, number = match.groups()
    if metric not in METRICS:
        close = difflib.get_close_matches(metric.lower().replace("-", "_"), METRICS, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise UsageError(
            f"--require {quoted(text)}: unknown metric {quoted(metric)}{hint}; known: {', '.join(METRICS)}"
        )
    bound = float(number) if _NUMBER.fullmatch(number) else math.nan
    if not math.isfinite(bound):
        hint = f"; {number} is {float(number[:-1]) / 100:g}" if _PER_CENT.fullmatch(number) else ""
        raise UsageError(f"--require {quoted(text)}: {quoted(number)} is not a finite number{hint}")
    if METRICS[metric].is_share and (bound > 1 if comparison[0] == "<" else bound < 0):
        # A gate that nothing can fail is a slip of the pen, most often 5 for 5 %.
        raise UsageError(f"--require {quoted(text)} is always met: {metric} lies between 0 and 1 (5 % is 0.05)")
    return Requirement(metric, comparison, bound)


def decide(requirement: Requirement, evaluation: Evaluation) -> Decision:
    """Hold the evaluation against the requirement; an undefined metric is undecided, which does not pass.

    Examples
    --------
    >>> from headeval.evaluation import evaluate
    >>> evaluation = evaluate([0.9, 0.2], [1, 0], kind="prob")
    >>> decide(parse_requirement("auc>=0.95"), evaluation).verdict
    <Verdict.MET: 'met'>
    """
    metric = getattr(evaluation, requirement.metric)
    if metric.value is None or math.isnan(metric.value):
        return Decision(requirement, None, Verdict.UNDECIDED, metric.reason or "undefined")
    # An infinite log loss is no measurement that a bound could be held against, from whichever side.
    met = math.isfinite(metric.value) and _OPERATORS[requirement.comparison](metric.value, requirement.bound)
    return Decision(requirement, metric.value, Verdict.MET if met else Verdict.NOT_MET, metric.reason)
