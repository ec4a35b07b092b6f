"""Rates at a threshold, each a share of some rows, with how sure it is."""

from dataclasses import dataclass, replace

import numpy as np

from headeval.core.intervals import Interval, clopper_pearson, wilson
from headeval.core.thresholds import ConfusionCounts, confusion_counts
from headeval.core.traffic import Traffic, traffic, traffic_of_rates
from headeval.metric import Metric
from headeval.scored_rows import ScoredRows

# Ends the method of an interval of rows that weigh differently or come in groups: an approximation, unlike the plain.
EFFECTIVE = "effective size"


@dataclass(frozen=True, slots=True)
class _Rate:
    """Successes among the rows a rate is about, by outcome: TP, FP, FN, TN.

    F1 is no share of rows, but 2J/(1 + J) of one: J = TP/(TP + FP + FN) is the share of true positives among all rows
    that are positive or flagged, and its interval is carried through that increasing map.
    """

    among: tuple[bool, bool, bool, bool]
    success: tuple[bool, bool, bool, bool]
    undefined: str


_ALL = (True, True, True, True)
_RATES = {
    "prevalence": _Rate(_ALL, (True, False, True, False), ""),
    "accuracy": _Rate(_ALL, (True, False, False, True), ""),
    "precision": _Rate((True, True, False, False), (True, False, False, False), "nothing is flagged"),
    "recall": _Rate((True, False, True, False), (True, False, False, False), "no row is positive"),
    "specificity": _Rate((False, True, False, True), (False, False, False, True), "no row is negative"),
    "fpr": _Rate((False, True, False, True), (False, True, False, False), "no row is negative"),
    "f1": _Rate((True, True, True, False), (True, False, False, False), "no row is positive and nothing is flagged"),
    "flag_rate": _Rate(_ALL, (True, True, False, False), ""),
}


def rates(counts: ConfusionCounts, *, confidence: float | None) -> dict[str, Metric]:
    """Return every rate of these counts: Wilson's interval to show, Clopper and Pearson's exact one for guarantees.

    Parameters
    ----------
    counts : the four outcomes; rows are independent of each other.
    confidence : in (0, 1), or None for no intervals.

    Examples
    --------
    >>> found = rates(ConfusionCounts(3, 2, 1, 4), confidence=0.95)
    >>> found["recall"].value, round(found["recall"].guarantee.lower, 3), found["precision"].value
    (0.75, 0.194, 0.6)
    """
    outcomes = (counts.true_positives, counts.false_positives, counts.false_negatives, counts.true_negatives)
    found = {}
    for name, rate in _RATES.items():
        among = sum(rows for rows, wanted in zip(outcomes, rate.among, strict=True) if wanted)
        successes = sum(rows for rows, wanted in zip(outcomes, rate.success, strict=True) if wanted)
        found[name] = _metric(name, rate, successes, among, among, confidence)
    return found


def rates_of_rows(
    rows: ScoredRows, threshold: float, *, confidence: float | None, counts: ConfusionCounts | None = None
) -> dict[str, Metric]:
    """Return every rate at a threshold; rows can be weighted, or come in groups that are not independent.

    Where they do, the intervals are those of as many independent rows as would tell the rate as well (Korn and
    Graubard 1998), and their methods end in "effective size".

    Parameters
    ----------
    threshold : on the probability.
    confidence : in (0, 1), or None for no intervals.
    counts : the outcomes of these rows there, where they were counted already.
    """
    if rows.independent:
        counted = confusion_counts(rows.p, rows.y, threshold=threshold) if counts is None else counts
        return rates(counted, confidence=confidence)
    flagged = rows.p >= threshold
    outcome = np.where(rows.y == 1, np.where(flagged, 0, 2), np.where(flagged, 1, 3))
    w = np.ones(rows.n) if rows.weights is None else rows.weights
    found = {}
    for name, rate in _RATES.items():
        among, success = np.array(rate.among)[outcome], np.array(rate.success)[outcome]
        hits, rest = float(w[among & success].sum()), float(w[among & ~success].sum())
        total = hits + rest  # so that the share of everything is exactly 1
        if not total and among.any():
            found[name] = Metric(None, f"{rate.undefined} that has any weight")
            continue
        size = rows.effective_size(success, among) if confidence is not None else 0.0
        found[name] = _of_effective_size(_metric(name, rate, hits, total, size, confidence))
    return found


def expected_traffic(
    rows: ScoredRows,
    counts: ConfusionCounts,
    threshold: float,
    *,
    prevalence: float | None,
    per_day: float | None,
    confidence: float | None,
) -> Traffic | None:
    """Return what the rates at a threshold mean in traffic with another share of positives; None without a share.

    Parameters
    ----------
    rows, counts : the rows, and their outcomes at the threshold.
    threshold : on the probability.
    prevalence, per_day, confidence : as for `headeval.core.traffic.traffic_of_rates`.
    """
    if prevalence is None:
        return None
    if rows.independent:
        return traffic(counts, prevalence=prevalence, per_day=per_day, confidence=confidence)
    found, flagged = rates_of_rows(rows, threshold, confidence=None), rows.p >= threshold
    return traffic_of_rates(
        found["recall"].value,
        found["fpr"].value,
        positives=rows.effective_size(flagged, rows.y == 1),
        negatives=rows.effective_size(flagged, rows.y == 0),
        prevalence=prevalence,
        per_day=per_day,
        confidence=confidence,
    )


def _metric(name: str, rate: _Rate, successes: float, among: float, size: float, confidence: float | None) -> Metric:
    if not among:
        return Metric(None, rate.undefined)
    share = successes / among
    value = 2 * successes / (among + successes) if name == "f1" else share
    if confidence is None:
        return Metric(value)
    scaled = min(share * size, size) if size != among else successes
    shown, exact = wilson(scaled, size, confidence=confidence), clopper_pearson(scaled, size, confidence=confidence)
    if name == "f1":
        shown, exact = _f1_of_jaccard(shown), _f1_of_jaccard(exact)
    return Metric(value, interval=shown, guarantee=exact)


def _of_effective_size(metric: Metric) -> Metric:
    shown, exact = (
        None if interval is None else replace(interval, method=f"{interval.method}, {EFFECTIVE}")
        for interval in (metric.interval, metric.guarantee)
    )
    return replace(metric, interval=shown, guarantee=exact)


def _f1_of_jaccard(interval: Interval) -> Interval:
    lower, upper = (2 * bound / (1 + bound) for bound in (interval.lower, interval.upper))
    return Interval(lower, upper, interval.confidence, interval.method)
