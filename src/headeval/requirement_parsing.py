"""Requirements such as `auc>=0.95` or `recall.lower>=0.8`, read from text; what makes no sense is refused here."""

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from headeval.comparison import COMPARED, DECISION_RATES
from headeval.errors import UsageError
from headeval.evaluation import METRICS
from headeval.metric import MetricInfo
from headeval.multiclass import CLASS_METRICS, CLASS_RATES
from headeval.printable import printable, quoted

Part = Literal["value", "lower", "upper"]

_FORM = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*(>=|<=|>|<)\s*(\S+)\s*")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PER_CENT = re.compile(r"[0-9]+(\.[0-9]+)?%")

# What may follow the name of a metric: which number is meant, and whether of the difference to the baseline.
_SUFFIXES: dict[str, tuple[Part, bool]] = {
    "": ("value", False),
    ".lower": ("lower", False),
    ".upper": ("upper", False),
    ".diff": ("value", True),
    ".diff.lower": ("lower", True),
    ".diff.upper": ("upper", True),
}
# What others call the metrics; the miss rate is no metric here, but what is required of it says recall.
_SYNONYMS = {
    "tpr": "recall",
    "sensitivity": "recall",
    "hit_rate": "recall",
    "fnr": "recall, which is 1 - fnr",
    "miss_rate": "recall, which is 1 - miss rate",
    "tnr": "specificity",
    "ppv": "precision",
    "false_positive_rate": "fpr",
    "roc_auc": "auc",
    "auroc": "auc",
    "average_precision": "ap",
}
_COMPARED = ("auc", *COMPARED, *DECISION_RATES)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound on one number, in the form [OF:]METRIC[.diff][.lower|.upper] OPERATOR NUMBER.

    Attributes
    ----------
    metric : a name in `evaluation.METRICS`, or in `multiclass.CLASS_METRICS` where there are more than two classes.
    comparison : one of >=, <=, >, <.
    bound : finite.
    part : the metric's "value", or the "lower" or "upper" end of its interval.
    difference : whether the metric less that of the baseline is meant.
    of : the category or class whose metric it is, text from outside; empty where there is but one label of two classes.

    Examples
    --------
    >>> str(Requirement("auc", ">=", -0.005, "lower", difference=True))
    'auc.diff.lower>=-0.005'
    >>> str(Requirement("recall", ">=", 0.8, of="hate"))
    'hate:recall>=0.8'
    """

    metric: str
    comparison: str
    bound: float
    part: Part = "value"
    difference: bool = False
    of: str = ""

    @property
    def name(self) -> str:
        """What is held against the bound, such as `auc.lower` or `hate:auc`."""
        start, end = f"{self.of}:" if self.of else "", "" if self.part == "value" else f".{self.part}"
        return f"{start}{self.metric}{'.diff' if self.difference else ''}{end}"

    def __str__(self) -> str:
        return f"{self.name}{self.comparison}{self.bound!r}"


def parse_requirement(text: str, *, each: bool = False, baseline: bool = True, of_parts: bool = False) -> Requirement:
    """Read `METRIC>=NUMBER` (or <=, >, <), where .lower, .upper, .diff, .diff.lower or .diff.upper may follow METRIC.

    Parameters
    ----------
    text : as given on the command line.
    each : whether it is for --require-each, where there is no difference to a baseline.
    baseline : whether there is a baseline; without one a difference is refused.
    of_parts : whether the name of a category or a class, which may hold colons itself, and a colon may stand before it.

    Raises
    ------
    UsageError
        When the text is not of that form, the metric is not known or has no such number, or nothing could fail it.

    Examples
    --------
    >>> parse_requirement("auc >= 0.95")
    Requirement(metric='auc', comparison='>=', bound=0.95, part='value', difference=False, of='')
    >>> str(parse_requirement("recall.lower > .8"))
    'recall.lower>0.8'
    """
    given = f"{'--require-each' if each else '--require'} {quoted(text)}"
    of, colon, asked = text.rpartition(":") if of_parts else ("", "", text)
    if colon and not of.strip():
        raise UsageError(f"{given}: no name of a category or a class stands before the colon")
    match = _FORM.fullmatch(asked)
    if not match:
        quotes = "; put it in quotes, or the shell takes > and < for itself" if _is_name(text.strip()) else ""
        raise UsageError(f"{given} is not METRIC>=NUMBER (or <=, >, <), for example 'auc>=0.95'{quotes}")
    name, comparison, number = match.groups()
    known = METRICS | CLASS_METRICS if of_parts and not of else METRICS
    if of and name.partition(".")[0] in CLASS_METRICS:
        raise UsageError(f"{given}: {name} is of all classes together: write {quoted(asked.strip())}")
    metric, part, difference = _meant(given, name, known, _known(of=bool(of), classes=of_parts and not each))
    if difference and (each or not baseline):
        raise UsageError(
            f"{given}: differences are held against all rows: use --require" if each else needs_baseline(given)
        )
    requirement = Requirement(metric, comparison, _bound(given, number), part, difference, of.strip())
    _refuse_what_always_holds(given, requirement, known[metric])
    return requirement


def needs_baseline(given: str) -> str:
    """Return what to say of a difference where there is nothing to differ from."""
    return f"{given} needs --baseline: .diff is the metric less that of the baseline"


def synonym(name: str) -> str:
    """Return the hint at the metric that others call so; empty where there is none.

    Examples
    --------
    >>> synonym("TPR"), synonym("miss-rate"), synonym("fpr")
    (' (did you mean recall?)', ' (did you mean recall, which is 1 - miss rate?)', '')
    """
    meant = _SYNONYMS.get(name.lower().replace("-", "_"))
    return f" (did you mean {meant}?)" if meant else ""


def _is_name(text: str) -> bool:
    metric, dot, suffix = text.partition(".")
    return metric in METRICS and f"{dot}{suffix}" in _SUFFIXES


def _known(*, of: bool, classes: bool) -> str:
    """Say which metrics there are, and which of many classes: of each of them, or of all."""
    known = ", ".join(METRICS)
    if not classes:
        return known
    if of:
        return f"{known}; of one of several classes: {', '.join(CLASS_RATES)}"
    return f"{known}; with several classes, of them all: {', '.join(CLASS_METRICS)}"


def _meant(given: str, name: str, metrics: Mapping[str, MetricInfo], known_ones: str) -> tuple[str, Part, bool]:
    """Return metric, part and whether a difference is meant."""
    metric, dot, rest = name.partition(".")
    suffix = f"{dot}{rest}"
    if metric not in metrics:
        known = [f"{metric}{suffix}" for metric in metrics for suffix in _SUFFIXES]
        hint = synonym(metric) or _hint(name.lower().replace("-", "_"), known)
        raise UsageError(f"{given}: unknown metric {quoted(metric)}{hint}; known: {known_ones}")
    if suffix not in _SUFFIXES:
        turned = "." + ".".join(reversed(rest.split(".")))
        hint = _hint(turned if turned in _SUFFIXES else suffix.lower(), list(_SUFFIXES)[1:])
        raise UsageError(f"{given}: unknown part {quoted(suffix)}{hint}; known: {', '.join(filter(None, _SUFFIXES))}")
    part, difference = _SUFFIXES[suffix]
    if part != "value" and not metrics[metric].has_interval:
        bounded = ", ".join(info.name for info in metrics.values() if info.has_interval)
        raise UsageError(f"{given}: {metric} has no interval, so no .{part}; metrics with one: {bounded}")
    if difference and metric not in _COMPARED:
        raise UsageError(f"{given}: {metric} is not compared with a baseline; compared are: {', '.join(_COMPARED)}")
    return metric, part, difference


def _hint(text: str, known: list[str]) -> str:
    close = difflib.get_close_matches(text, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _bound(given: str, number: str) -> float:
    bound = float(number) if _NUMBER.fullmatch(number) else math.nan
    if not math.isfinite(bound):
        hint = f"; {number} is {float(number[:-1]) / 100:g}" if _PER_CENT.fullmatch(number) else ""
        raise UsageError(f"{given}: {quoted(number)} is not a finite number{hint}")
    return bound


def _refuse_what_always_holds(given: str, requirement: Requirement, info: MetricInfo) -> None:
    """A gate that nothing can fail is a slip of the pen, most often 5 for 5 %.

    At the very end of the scale a gate still asks for something: that the metric is defined.
    """
    if not info.is_share:
        return
    least = -1 if requirement.difference else 0
    if requirement.bound > 1 if requirement.comparison[0] == "<" else requirement.bound < least:
        raise UsageError(
            f"{given} is always met: {printable(requirement.name)} lies between {least} and 1 (5 % is 0.05)"
        )
