"""What recall and false-positive rate mean in a stream of traffic: alerts, misses and precision."""

from collections.abc import Callable
from dataclasses import dataclass

from headeval.core import checks
from headeval.core.intervals import Interval, clopper_pearson
from headeval.core.thresholds import ConfusionCounts

JOINT_METHOD = "Clopper-Pearson for recall and FPR, each at (1 + confidence)/2 so that both hold together"


@dataclass(frozen=True, slots=True)
class Projected:
    """A number expected in traffic; no interval where none was asked for, or where the number is undefined."""

    value: float | None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the rates of a sample mean in traffic with another share of positives.

    Attributes
    ----------
    prevalence : share of positives in the traffic, in (0, 1).
    per_day : rows a day; None leaves all but `precision` undefined.
    alerts : flagged rows a day.
    true_alerts, false_alerts : positives and negatives among them.
    misses : positives a day that are not flagged.
    precision : share of positives among the flagged; None where nothing is flagged.
    """

    prevalence: float
    per_day: float | None
    alerts: Projected
    true_alerts: Projected
    false_alerts: Projected
    misses: Projected
    precision: Projected


def traffic(
    counts: ConfusionCounts, *, prevalence: float, per_day: float | None = None, confidence: float | None = 0.95
) -> Traffic:
    """Project counts of independent rows, one weight each, as `traffic_of_rates` does.

    Examples
    --------
    >>> day = traffic(ConfusionCounts(8, 1, 2, 99), prevalence=0.001, per_day=100_000, confidence=None)
    >>> round(day.alerts.value), round(day.misses.value), round(day.precision.value, 4)
    (1079, 20, 0.0741)
    """
    return traffic_of_rates(
        counts.recall,
        counts.fpr,
        positives=counts.positives,
        negatives=counts.negatives,
        prevalence=prevalence,
        per_day=per_day,
        confidence=confidence,
    )


def traffic_of_rates(
    recall: float | None,
    fpr: float | None,
    *,
    positives: float,
    negatives: float,
    prevalence: float,
    per_day: float | None = None,
    confidence: float | None = 0.95,
) -> Traffic:
    """Project recall r and false-positive rate f to N rows a day with a share π of positives.

    alerts = N(π·r + (1 − π)·f), misses = Nπ(1 − r), precision = π·r/(π·r + (1 − π)·f). What depends on one rate
    has the interval of that rate, exact at `confidence`. Alerts and precision depend on both: their bounds are those at
    the corners of two exact intervals, each at (1 + confidence)/2, so that both hold together with `confidence`
    (Bonferroni).

    Parameters
    ----------
    recall, fpr : in [0, 1]; None where undefined, and so is then what depends on it.
    positives, negatives : the independent rows behind each rate; effective sizes need not be whole.
    prevalence : π, strictly between 0 and 1.
    per_day : N > 0, or None.
    confidence : in (0, 1); None gives no intervals.

    Raises
    ------
    ValueError
        When an argument breaks the above.
    """
    share = checks.real_number("prevalence", prevalence, minimum=0.0, maximum=1.0)
    if share in {0.0, 1.0}:
        raise ValueError("prevalence must lie strictly between 0 and 1")
    rows = None if per_day is None else checks.real_number("per_day", per_day, minimum=0.0)
    if rows == 0.0:
        raise ValueError("per_day must be greater than 0")
    together = None if confidence is None else (1 + confidence) / 2
    r, f = _rate("recall", recall, positives, confidence), _rate("fpr", fpr, negatives, confidence)
    r_joint, f_joint = _rate("recall", recall, positives, together), _rate("fpr", fpr, negatives, together)
    n, m = (None, None) if rows is None else (rows * share, rows * (1 - share))
    return Traffic(
        prevalence=share,
        per_day=rows,
        alerts=_both(r_joint, f_joint, confidence, lambda r, f: n * r + m * f if n and m else None, falls_in_fpr=False),
        true_alerts=_single(r, lambda rate: n * rate if n else None),
        false_alerts=_single(f, lambda rate: m * rate if m else None),
        misses=_single(r, lambda rate: n * (1 - rate) if n else None),
        precision=_both(r_joint, f_joint, confidence, lambda r, f: _share(share * r, (1 - share) * f)),
    )


def _rate(name: str, rate: float | None, n: float, confidence: float | None) -> Projected:
    if rate is None:
        return Projected(None)
    rate = checks.real_number(name, rate, minimum=0.0, maximum=1.0)
    return Projected(rate, None if confidence is None else clopper_pearson(rate * n, n, confidence=confidence))


def _single(rate: Projected, of: Callable[[float], float | None]) -> Projected:
    """Carry a rate through a monotone map."""
    if rate.value is None:
        return rate
    value = of(rate.value)
    if value is None or rate.interval is None:
        return Projected(value)
    bounds = [x for x in (of(rate.interval.lower), of(rate.interval.upper)) if x is not None]
    return Projected(value, Interval(min(bounds), max(bounds), rate.interval.confidence, rate.interval.method))


def _both(
    recall: Projected,
    fpr: Projected,
    confidence: float | None,
    of: Callable[[float, float], float | None],
    *,
    falls_in_fpr: bool = True,
) -> Projected:
    """Carry two rates through a map that grows with recall, and falls or grows with the false-positive rate."""
    if recall.value is None or fpr.value is None:
        return Projected(None)
    value = of(recall.value, fpr.value)
    if value is None or recall.interval is None or fpr.interval is None or confidence is None:
        return Projected(value)
    worst, best = fpr.interval.upper, fpr.interval.lower
    if not falls_in_fpr:
        worst, best = best, worst
    lower, upper = of(recall.interval.lower, worst), of(recall.interval.upper, best)
    if lower is None or upper is None:  # never: an upper bound of a rate is above 0
        return Projected(value)
    return Projected(value, Interval(lower, upper, confidence, JOINT_METHOD))


def _share(part: float, rest: float) -> float | None:
    return part / (part + rest) if part + rest else None
