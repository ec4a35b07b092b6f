"""A threshold chosen on labelled rows, or on benign traffic: what is certified, and which of that is taken."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headeval.certifying.certifiable import CERTIFIABLE, Goal, measured_errors
from headeval.core.certify import (
    PRECISION_STARTS,
    Certified,
    allowed_errors,
    certify_few_flagged,
    certify_few_missed,
    certify_precision,
    edge_bound,
)
from headeval.core.checks import FloatArray, IntArray
from headeval.core.intervals import Interval, clopper_pearson, upper_bound
from headeval.core.thresholds import ConfusionCounts, short_number
from headeval.requirement_parsing import Requirement


@dataclass(frozen=True, slots=True)
class Sample:
    """Probabilities of the rows that a threshold is chosen on.

    Attributes
    ----------
    positives, negatives : increasing.
    benign : of unlabelled benign traffic, increasing; None where there is none.
    """

    positives: FloatArray
    negatives: FloatArray
    benign: FloatArray | None = None

    @classmethod
    def of(cls, probs: FloatArray, labels: IntArray, benign: FloatArray | None) -> "Sample":
        """Return labelled rows, (n,) each, and benign ones as a sample."""
        return cls(
            np.sort(probs[labels == 1]), np.sort(probs[labels == 0]), None if benign is None else np.sort(benign)
        )

    def counts(self, threshold: float) -> ConfusionCounts:
        """Return the outcomes of the labelled rows at a threshold."""
        tp, fp = _at_least(self.positives, threshold), _at_least(self.negatives, threshold)
        return ConfusionCounts(tp, fp, self.positives.size - tp, self.negatives.size - fp)

    def flagged_benign(self, threshold: float) -> int:
        """Return how many benign rows a threshold flags."""
        return 0 if self.benign is None else _at_least(self.benign, threshold)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The thresholds that one requirement leaves.

    Attributes
    ----------
    level : the confidence with which this requirement alone is certified, so that all of them hold together.
    """

    requirement: Requirement
    certified: Certified
    level: float

    @property
    def among(self) -> str:
        """The rows that the requirement is about, in words."""
        return CERTIFIABLE[self.requirement.metric][1]


@dataclass(frozen=True, slots=True)
class Certification:
    """A requirement at the threshold that was taken.

    Attributes
    ----------
    n : rows that the rate is about.
    errors : those among them that count against the requirement.
    errors_allowed : the most that would still have certified it, the row at the threshold itself included.
    value : the rate on these rows.
    interval : exact, two-sided, at the confidence of the whole.
    bound : the exact one-sided bound at the errors allowed and this requirement's level: what is certified.
    rule : how it was certified, in words.
    """

    requirement: Requirement
    n: int
    errors: int
    errors_allowed: int
    value: float
    interval: Interval
    bound: float
    rule: str


def allowed_thresholds(
    sample: Sample, requirements: Sequence[Requirement], *, confidence: float
) -> tuple[Allowed, ...]:
    """Return what each requirement leaves; the level is shared equally, so that all hold together (Bonferroni)."""
    level = 1 - (1 - confidence) / max(len(requirements), 1)
    return tuple(Allowed(requirement, _certify(sample, requirement, level), level) for requirement in requirements)


def _certify(sample: Sample, requirement: Requirement, level: float) -> Certified:
    bound = requirement.bound
    match requirement.metric:
        case "fpr":
            return certify_few_flagged(sample.negatives, bound, confidence=level)
        case "specificity":
            return certify_few_flagged(sample.negatives, 1 - bound, confidence=level)
        case "flag_rate":
            benign = np.empty(0) if sample.benign is None else sample.benign
            return certify_few_flagged(benign, bound, confidence=level)
        case "recall":
            return certify_few_missed(sample.positives, 1 - bound, confidence=level)
    probs = np.concatenate([sample.positives, sample.negatives])
    labels = np.repeat([1, 0], [sample.positives.size, sample.negatives.size])
    return certify_precision(probs, labels, bound, confidence=level)


def choose_threshold(sample: Sample, allowed: Sequence[Allowed], goal: Goal) -> float | None:
    """Return the threshold that all requirements allow and the goal prefers; None where they allow none.

    All thresholds between two neighbouring probabilities decide these rows alike: the one taken is a short number near
    the middle of that gap.
    """
    lower = max([_beyond(part.certified) for part in allowed], default=-math.inf)
    upper = min([part.certified.upper for part in allowed] + [1.0])
    lows, highs = _gaps(sample, allowed, lower, upper)
    if not highs.size:
        return None
    if goal.maximise == "recall":
        best = 0
    elif goal.maximise == "specificity":
        best = highs.size - 1
    else:
        gain = _gain(sample, goal, highs)
        # Precision is often equal at several thresholds, of which the lowest finds most; else the highest flags least.
        best = int(np.argmax(gain)) if goal.maximise == "precision" else highs.size - 1 - int(np.argmax(gain[::-1]))
    return short_number(float(lows[best]), float(highs[best]))


def _beyond(certified: Certified) -> float:
    """Return the largest number below every certified threshold."""
    return math.nextafter(certified.lower, -math.inf) if certified.closed else certified.lower


def _gaps(sample: Sample, allowed: Sequence[Allowed], lower: float, upper: float) -> tuple[FloatArray, FloatArray]:
    """Return the allowed thresholds as gaps (low, high] within which no row changes its decision, increasing."""
    grids = [part.certified.grid for part in allowed if part.certified.grid is not None]
    if not lower < upper or upper < 0:
        return np.empty(0), np.empty(0)
    if grids:
        grid = grids[0]
        for other in grids[1:]:
            grid = np.intersect1d(grid, other)
        grid = grid[(grid > lower) & (grid <= upper)]
        return np.nextafter(grid, 0.0), grid
    rows = [sample.positives, sample.negatives]
    if sample.benign is not None and any(part.requirement.metric == "flag_rate" for part in allowed):
        rows.append(sample.benign)
    scores = np.unique(np.concatenate([part[(part > lower) & (part < upper)] for part in rows]))
    return np.concatenate([[lower], scores]), np.concatenate([scores, [upper]])


def _gain(sample: Sample, goal: Goal, thresholds: FloatArray) -> FloatArray:
    p, n = sample.positives.size, sample.negatives.size
    tp = p - np.searchsorted(sample.positives, thresholds)
    fp = n - np.searchsorted(sample.negatives, thresholds)
    match goal.maximise:
        case "precision":
            return np.where(tp + fp > 0, tp / np.maximum(tp + fp, 1), -1.0)
        case "f1":
            return np.asarray(2 * tp / np.maximum(tp + fp + p, 1), dtype=np.float64)
        case "accuracy":
            return np.asarray(tp + n - fp, dtype=np.float64)
    dearest = max(goal.cost_fp, goal.cost_fn)  # only their ratio decides, and sums of large costs would overflow
    return np.asarray(-(goal.cost_fp / dearest * fp + goal.cost_fn / dearest * (p - tp)), dtype=np.float64)


def certifications(
    sample: Sample, allowed: Sequence[Allowed], threshold: float, *, confidence: float
) -> tuple[Certification, ...]:
    """Return each requirement at the threshold that was taken."""
    return tuple(_certification(sample, part, threshold, confidence) for part in allowed)


def _certification(sample: Sample, part: Allowed, threshold: float, confidence: float) -> Certification:
    metric = part.requirement.metric
    benign = 0 if sample.benign is None else sample.benign.size
    errors, n = measured_errors(sample.counts(threshold), sample.flagged_benign(threshold), benign, metric)
    falls = CERTIFIABLE[metric][0] == "<"
    k = errors if falls else n - errors
    level = part.level if metric != "precision" else 1 - (1 - part.level) / len(PRECISION_STARTS)
    most = part.certified.errors_allowed
    if most is None:
        most = allowed_errors(n, 1 - part.requirement.bound, confidence=level)
    edge = part.certified.closed and threshold == part.certified.lower
    walks = f", a walk from each of {len(PRECISION_STARTS)} fixed thresholds" if metric == "precision" else ""
    order = "; a row stands alone at the threshold, as an order statistic" if edge else ""
    return Certification(
        requirement=part.requirement,
        n=n,
        errors=errors,
        errors_allowed=most,
        value=k / n,
        interval=_interval(errors, n, falls, edge, confidence),
        bound=_bound(part, n, most),
        rule=f"fixed-sequence exact binomial test at {part.level:g}{walks}{order}",
    )


def _bound(part: Allowed, n: int, most: int) -> float:
    """Return the one-sided bound at the most errors allowed: at those found it would depend on the threshold taken."""
    falls, metric = CERTIFIABLE[part.requirement.metric][0] == "<", part.requirement.metric
    if metric == "precision":  # whose rows depend on the threshold
        return part.requirement.bound
    if part.certified.closed:
        bound = edge_bound(most, n, confidence=part.level)
    else:
        bound = upper_bound(most, n, confidence=part.level)
    return bound if falls else 1 - bound


def _interval(errors: int, n: int, falls: bool, edge: bool, confidence: float) -> Interval:
    fixed = clopper_pearson(errors if falls else n - errors, n, confidence=confidence)
    if not edge:
        return fixed
    bound = edge_bound(errors, n, confidence=(1 + confidence) / 2)
    lower, upper = (fixed.lower, bound) if falls else (1 - bound, fixed.upper)
    return Interval(lower, upper, confidence, "exact, order statistic")


def _at_least(increasing: FloatArray, threshold: float) -> int:
    return int(increasing.size - np.searchsorted(increasing, threshold))
