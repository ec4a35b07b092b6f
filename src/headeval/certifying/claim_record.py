"""What a head remembers, under `metrics`, of how its threshold was chosen: written, read back, and carried along."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headeval._version import __version__
from headeval.certifying.certifiable import CERTIFIABLE
from headeval.core.intervals import Interval
from headeval.requirement_parsing import Requirement

KEY = "threshold"
CERTIFIED, ON_THE_SAMPLE = "certified requirements", "the same rows that measure it; nothing is certified"


@dataclass(frozen=True, slots=True)
class ClaimedRequirement:
    """A requirement with what it was certified on.

    Attributes
    ----------
    n, errors, errors_allowed : rows that the rate is about, those that count against it, and the most allowed.
    value, interval : the rate there; None where a foreign file does not say.
    bound : the exact one-sided bound at the level of this requirement, or None.
    rule : how it was certified, in words.
    """

    requirement: Requirement
    n: int
    errors: int
    errors_allowed: int
    value: float | None = None
    interval: Interval | None = None
    bound: float | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a head remembers of how its threshold was chosen.

    Attributes
    ----------
    threshold : that was chosen; a claim about another one says nothing.
    chosen_by : `CERTIFIED` or `ON_THE_SAMPLE`.
    goal : what was made large among the thresholds that were left, in words.
    confidence : with which all requirements hold together.
    rows : n, positives, data_fingerprint, distinct_rows and row_digests of the labelled rows; empty without any.
    in_sample : what most of the rows had been used for before, or None.
    benign : n and data_fingerprint of unlabelled benign rows, or None.
    """

    threshold: float
    chosen_by: str
    goal: str
    confidence: float
    requirements: tuple[ClaimedRequirement, ...]
    rows: Mapping[str, Any]
    in_sample: str | None = None
    benign: Mapping[str, Any] | None = None
    headeval_version: str = __version__

    def document(self) -> dict[str, Any]:
        """Return the form that a head keeps under `metrics`."""
        return {
            "headeval_version": self.headeval_version,
            "threshold": self.threshold,
            "chosen_by": self.chosen_by,
            "goal": self.goal,
            "confidence": self.confidence,
            "requirements": [_requirement_document(part) for part in self.requirements],
            **self.rows,
            "in_sample": self.in_sample,
            "benign": None if self.benign is None else dict(self.benign),
        }


def read_claim(metrics: Mapping[str, Any]) -> Claim | None:
    """Return the claim among the `metrics` of a head; None where there is none, or what stands there is not ours.

    Examples
    --------
    >>> read_claim({"threshold": {"threshold": "high"}}) is None
    True
    """
    entry = metrics.get(KEY)
    if not isinstance(entry, Mapping):
        return None
    threshold, confidence = _share(entry.get("threshold")), _share(entry.get("confidence"))
    listed = entry.get("requirements")
    if threshold is None or confidence is None or not 0 < confidence < 1 or not isinstance(listed, list):
        return None
    requirements = [_read_requirement(part) for part in listed]
    found = tuple(part for part in requirements if part is not None)
    if len(found) < len(requirements):
        return None
    benign = entry.get("benign")
    names = ("n", "positives", "prevalence", "unlabelled_left_out", "data_fingerprint", "distinct_rows", "row_digests")
    return Claim(
        threshold=threshold,
        chosen_by=_text(entry.get("chosen_by")),
        goal=_text(entry.get("goal")),
        confidence=confidence,
        requirements=found,
        rows={name: entry[name] for name in names if name in entry},
        in_sample=_text(entry.get("in_sample")) or None,
        benign=benign if isinstance(benign, Mapping) else None,
        headeval_version=_text(entry.get("headeval_version")),
    )


def moved_claim(metrics: Mapping[str, Any], threshold: float, moved: float) -> dict[str, Any]:
    """Return `metrics` whose claim follows the threshold along a monotone map of the scores: the decisions stay.

    A claim about another threshold than the head's was void before, and stays as it is.
    """
    entry = metrics.get(KEY)
    if not isinstance(entry, Mapping) or entry.get("threshold") != threshold:
        return dict(metrics)
    return {**metrics, KEY: {**entry, "threshold": moved}}


def dropped_claim(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return `metrics` whose claim, if any, speaks of the head before: its scores have since changed their order.

    Examples
    --------
    >>> dropped_claim({"threshold": {"goal": "largest recall"}})
    {'threshold_before_calibration': {'goal': 'largest recall'}}
    """
    history = dict(metrics)
    if KEY in history:
        history[f"{KEY}_before_calibration"] = history.pop(KEY)
    return history


def _requirement_document(part: ClaimedRequirement) -> dict[str, Any]:
    return {
        "requirement": str(part.requirement),
        "metric": part.requirement.metric,
        "comparison": part.requirement.comparison,
        "bound": part.requirement.bound,
        "n": part.n,
        "errors": part.errors,
        "errors_allowed": part.errors_allowed,
        "value": part.value,
        "interval": None if part.interval is None else interval_document(part.interval),
        "exact_bound": part.bound,
        "rule": part.rule,
    }


def interval_document(interval: Interval) -> dict[str, Any]:
    """Return an interval as JSON values."""
    return {
        "lower": interval.lower,
        "upper": interval.upper,
        "confidence": interval.confidence,
        "method": interval.method,
    }


def _read_requirement(entry: object) -> ClaimedRequirement | None:
    if not isinstance(entry, Mapping):
        return None
    metric, comparison, bound = entry.get("metric"), entry.get("comparison"), _share(entry.get("bound"))
    numbers = [_whole(entry.get(name)) for name in ("n", "errors", "errors_allowed")]
    if not isinstance(metric, str) or metric not in CERTIFIABLE or bound is None:
        return None
    if comparison not in (CERTIFIABLE[metric][0], f"{CERTIFIABLE[metric][0]}="):
        return None
    n, errors, errors_allowed = numbers
    if n is None or errors is None or errors_allowed is None:
        return None
    return ClaimedRequirement(
        Requirement(metric, comparison, bound),
        n,
        errors,
        errors_allowed,
        _share(entry.get("value")),
        _read_interval(entry.get("interval")),
        _share(entry.get("exact_bound")),
        _text(entry.get("rule")),
    )


def _read_interval(entry: object) -> Interval | None:
    if not isinstance(entry, Mapping):
        return None
    lower, upper, confidence = (_share(entry.get(name)) for name in ("lower", "upper", "confidence"))
    if lower is None or upper is None or confidence is None or not lower < upper:
        return None
    return Interval(lower, upper, confidence, _text(entry.get("method")))


def _share(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= 1 else None


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 10**15 else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
