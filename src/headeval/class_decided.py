"""The averages over classes of what a classifier decides, with intervals."""

from collections.abc import Sequence

import numpy as np

from headeval.class_rows import ClassRows
from headeval.core.checks import FloatArray
from headeval.core.class_influence import rate_variances
from headeval.core.class_intervals import Variances, average_interval
from headeval.core.intervals import Interval
from headeval.metric import Metric
from headeval.printable import listed
from headeval.rates import rates_of_rows
from headeval.scored_rows import ScoredRows

_ACCURACIES = ("top1_accuracy", "micro_precision", "micro_recall", "micro_f1", "weighted_recall")


def decision_metrics(
    rows: ClassRows, names: Sequence[str], decided: Sequence[dict[str, Metric]], *, confidence: float | None
) -> dict[str, Metric]:
    """Return accuracy and the averages of precision, recall and F1, by the field of `ClassEvaluation`.

    Parameters
    ----------
    names : of the classes, for reasons.
    decided : the rates of each class, with their intervals.
    """
    hit = rows.top.y.astype(np.float64)
    asked = ScoredRows("prob", hit, np.ones(rows.n, dtype=np.int64), hit, rows.weights, rows.groups)
    found = dict.fromkeys(_ACCURACIES, rates_of_rows(asked, 0.5, confidence=confidence)["accuracy"])
    averages = rows.counts.averages()
    variances = rate_variances(rows.y, rows.predicted, rows.weights, rows.groups, rows.counts)
    alike, by_rows = np.full(rows.n_classes, 1.0 / rows.n_classes), rows.counts.actual / rows.counts.total
    for name in ("macro_precision", "macro_recall", "macro_f1", "weighted_precision", "weighted_f1"):
        average, rate = name.split("_")
        reason = _undefined(rows, names, average, rate)
        if reason:
            found[name] = Metric(None, reason)
            continue
        found[name] = Metric(float(averages[name]))
        if confidence is not None:
            shares = alike if average == "macro" else by_rows
            interval = _interval(found[name], rate, decided, shares, variances[name], confidence)
            found[name] = found[name].with_interval(interval)
    return {**found, "balanced_accuracy": found["macro_recall"]}


def _interval(
    metric: Metric,
    rate: str,
    decided: Sequence[dict[str, Metric]],
    shares: FloatArray,
    variances: Variances,
    confidence: float,
) -> Interval:
    held = np.flatnonzero(shares > 0).tolist()
    own = [decided[c][rate] for c in held]
    classes = [(part.value, part.interval) for part in own if part.value is not None and part.interval is not None]
    return average_interval(metric.value or 0.0, classes, shares[held], variances, confidence=confidence)


def _undefined(rows: ClassRows, names: Sequence[str], average: str, rate: str) -> str:
    """Return why an average is undefined, naming the classes; empty where it is not."""
    counts = rows.counts
    if average == "macro" and not counts.actual.all():
        return missing_classes(rows, names)
    silent = np.flatnonzero((counts.predicted == 0) & (counts.actual > 0)).tolist()
    if rate != "precision" or not silent:
        return ""
    which = listed(names[c] for c in silent)
    if len(silent) == 1:
        return f"class {which} is never predicted, so that it has no precision"
    return f"classes {which} are never predicted, so that they have no precision"


def missing_classes(rows: ClassRows, names: Sequence[str]) -> str:
    """Return the reason of an average where classes have no rows, which it names."""
    missing = np.flatnonzero(rows.counts.actual == 0).tolist()
    which = listed(names[c] for c in missing)
    return f"{nothing(rows)} is of {'class' if len(missing) == 1 else 'classes'} {which}"


def nothing(rows: ClassRows) -> str:
    """Return what a class without rows has."""
    return "no row" if rows.weights is None else "no row with any weight"
