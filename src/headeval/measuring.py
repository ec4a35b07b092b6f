"""The numbers of an evaluation that belong to no threshold: ranking and calibration, or why there are none."""

import math
from collections.abc import Mapping

import numpy as np

from headeval.core.calibration import ReliabilityTable
from headeval.core.delong import weighted_auc
from headeval.core.operating_points import best_f1, partial_auc, recall_at_fpr, recalls_at_fprs
from headeval.core.proper_scores import brier_score, log_loss, log_loss_from_logits
from headeval.core.ranking import average_precision, roc_auc
from headeval.core.thresholds import ConfusionCounts
from headeval.metric import Metric
from headeval.scored_rows import ScoredRows


def recall_by_fpr(rows: ScoredRows, auc: Metric) -> tuple[float, ...]:
    """Return the recall at false-positive rates of at most 0, 0.05, …, 1; nothing without both classes."""
    if auc.value is None:
        return ()
    grid = np.arange(21) / 20
    return tuple(recalls_at_fprs(rows.s, rows.y, max_fprs=grid, weights=rows.weights).tolist())


def ranking_metrics(rows: ScoredRows, counts: ConfusionCounts, weighed: Mapping[str, float]) -> dict[str, Metric]:
    """Return what the order of the scores is worth; `weighed` holds the same of weighted rows."""
    names = ("auc", "ap", "recall_at_1pct_fpr", "recall_at_0_1pct_fpr", "partial_auc", "best_f1")
    if not counts.positives:
        return dict.fromkeys(names, Metric(None, "no row is positive"))
    if not counts.negatives:
        every = dict.fromkeys(names, Metric(None, "every row is positive"))
        return every | {"ap": Metric(None, "every row is positive, so it is 1 whatever the scores")}
    if rows.weights is not None:
        undefined = Metric(None, "a class has no weight")
        if math.isnan(weighed["auc"]):
            return dict.fromkeys(names, undefined)
        return {name: Metric(weighed[name]) for name in names} | {
            "auc": Metric(weighted_auc(rows.s, rows.y, rows.weights)),  # exactly 1 for a perfect ranking
            "best_f1": Metric(best_f1(rows.p, rows.y, weights=rows.weights).f1),
        }
    return {
        "auc": Metric(roc_auc(rows.s, rows.y)),
        "ap": Metric(average_precision(rows.s, rows.y)),
        "recall_at_1pct_fpr": Metric(recall_at_fpr(rows.s, rows.y, max_fpr=0.01)),
        "recall_at_0_1pct_fpr": Metric(recall_at_fpr(rows.s, rows.y, max_fpr=0.001)),
        "partial_auc": Metric(partial_auc(rows.s, rows.y)),
        "best_f1": Metric(best_f1(rows.p, rows.y).f1),
    }


def calibration_metrics(
    rows: ScoredRows,
    chosen: ReliabilityTable,
    positive_class: ReliabilityTable,
    corrected: float,
    weighed: Mapping[str, float],
) -> dict[str, Metric]:
    """Return calibration errors and proper scores; `weighed` holds the same of weighted rows."""
    return {
        "ece": Metric(chosen.ece),
        "ece_corrected": Metric(corrected),
        "mce": Metric(chosen.mce),
        "ece_positive_class": Metric(positive_class.ece),
        "brier": Metric(brier_score(rows.p, rows.y) if rows.weights is None else weighed["brier"]),
        "log_loss": _log_loss(rows, weighed),
    }


def _log_loss(rows: ScoredRows, weighed: Mapping[str, float]) -> Metric:
    if rows.weights is not None:
        loss = weighed["log_loss"]
    elif rows.kind == "logit":
        loss = log_loss_from_logits(rows.s, rows.y)
    else:
        loss = log_loss(rows.s, rows.y)
    if math.isfinite(loss):
        return Metric(loss)
    impossible = int(np.count_nonzero(np.where(rows.y == 1, rows.s == 0, rows.s == 1)))
    return Metric(math.inf, f"the true class was given probability 0 in {impossible} {_rows(impossible)}")


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"
