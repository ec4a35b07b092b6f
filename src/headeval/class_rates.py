"""What is said of each class of many, one against the rest."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from headeval.class_rows import ClassRows
from headeval.core.intervals import wilson
from headeval.core.thresholds import ConfusionCounts
from headeval.metric import Metric, MetricInfo, described
from headeval.rates import EFFECTIVE, rates, rates_of_rows
from headeval.scored_rows import ScoredRows

_MOST_SORTED = 30_000_000
"""Rows times classes; beyond, dependent rows get no intervals of the classes' prevalences."""


@dataclass(frozen=True, slots=True)
class ClassRates:
    """One class against all others.

    Attributes
    ----------
    name : of the class.
    n : rows of it.
    predicted : rows taken for it, as its score is the largest.
    """

    name: str
    n: int
    predicted: int
    prevalence: Metric = described("prevalence", "data", "share of the rows that are of the class")
    auc: Metric = described("AUC", "ranking", "P(a random row of the class outscores one of the rest)")
    ap: Metric = described("average precision", "ranking", "a random ranking scores the prevalence")
    ece: Metric = described("ECE", "calibration", "mean gap between its probability and its share")
    precision: Metric = described("precision", "decision", "of the rows taken for the class, truly of it")
    recall: Metric = described("recall", "decision", "of the rows of the class, taken for it")
    f1: Metric = described("F1", "decision", "harmonic mean of precision and recall")


CLASS_RATES = {
    entry.name: MetricInfo(entry.name, **entry.metadata)
    for entry in dataclasses.fields(ClassRates)
    if "title" in entry.metadata
}


def decided_rates(rows: ClassRows, confidence: float | None) -> list[dict[str, Metric]]:
    """Return prevalence, precision, recall and F1 of each class, with intervals as those of a binary classifier.

    Precision is undefined where the class is never predicted, recall where it has no rows, F1 where both are so.
    """
    found = _of_counts(rows, confidence) if rows.top.independent else _of_rows(rows, confidence)
    row = "no row" if rows.weights is None else "no row with any weight"
    for metrics in found:
        for name, reason in (
            ("precision", "the class is never predicted"),
            ("recall", f"{row} is of the class"),
            ("f1", f"{row} is of the class, and it is never predicted"),
        ):
            if metrics[name].value is None:
                metrics[name] = Metric(None, reason)
    return found


def _of_counts(rows: ClassRows, confidence: float | None) -> list[dict[str, Metric]]:
    found = []
    for hits, actual, predicted in zip(rows.counts.hits, rows.counts.actual, rows.counts.predicted, strict=True):
        tp, fp, fn = int(hits), int(predicted - hits), int(actual - hits)
        every = rates(ConfusionCounts(tp, fp, fn, rows.n - tp - fp - fn), confidence=confidence)
        found.append({name: every[name] for name in ("prevalence", "precision", "recall", "f1")})
    return found


def _of_rows(rows: ClassRows, confidence: float | None) -> list[dict[str, Metric]]:
    # Precision, recall and F1 are shares of the rows that are of the class or taken for it: those of one class are
    # sorted out once, so that all classes together take twice the rows instead of C times.
    order_y, order_called = np.argsort(rows.y, kind="stable"), np.argsort(rows.predicted, kind="stable")
    places = np.arange(rows.n_classes + 1)
    ends_y, ends_called = (np.searchsorted(key, places) for key in (rows.y[order_y], rows.predicted[order_called]))
    found = []
    for c in range(rows.n_classes):
        its = np.union1d(order_y[ends_y[c] : ends_y[c + 1]], order_called[ends_called[c] : ends_called[c + 1]])
        metrics = dict.fromkeys(("precision", "recall", "f1"), Metric(None, "nothing"))
        if its.size:
            called, w, g = (rows.predicted[its] == c).astype(np.float64), rows.weights, rows.groups
            asked = ScoredRows(
                "prob",
                called,
                (rows.y[its] == c).astype(np.int64),
                called,
                None if w is None else w[its],
                None if g is None else g[its],
            )
            every = rates_of_rows(asked, 0.5, confidence=confidence)
            metrics = {name: every[name] for name in metrics}
        found.append({"prevalence": _prevalence(rows, c, confidence), **metrics})
    return found


def _prevalence(rows: ClassRows, place: int, confidence: float | None) -> Metric:
    share = float(rows.counts.actual[place] / rows.counts.total)
    if confidence is None or rows.n * rows.n_classes > _MOST_SORTED:
        return Metric(share)
    size = rows.top.effective_size(rows.y == place, np.ones(rows.n, dtype=np.bool_))
    interval = wilson(min(share * size, size), size, confidence=confidence)
    return Metric(share, interval=dataclasses.replace(interval, method=f"{interval.method}, {EFFECTIVE}"))
