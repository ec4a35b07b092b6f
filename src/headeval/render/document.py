"""A record as JSON: full precision, null where there is no number, in the form of report.schema.json."""

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from headeval._version import __version__
from headeval.comparison import Comparison
from headeval.core.calibration import ReliabilityTable
from headeval.core.calibration_evidence import CalibrationNoise
from headeval.core.intervals import Interval
from headeval.core.traffic import Traffic
from headeval.evaluation import Evaluation
from headeval.metric import Metric
from headeval.render.claim import claim_document
from headeval.render.drift import drift_document
from headeval.report import HeldOut, Report, Slice
from headeval.requirements import Decision, EachDecision

FORMAT = "headeval-report"
VERSION = 2


def report_document(report: Report) -> dict[str, Any]:
    """Return everything a report says, as JSON values.

    `passed` is null where no requirement was made: a report that was asked nothing has passed nothing.

    Examples
    --------
    >>> from headeval.evaluation import evaluate
    >>> document = report_document(Report({}, "held-out", evaluate([0.9, 0.2], [1, 0], kind="prob")))
    >>> document["format"], document["version"], document["metrics"]["auc"], document["passed"]
    ('headeval-report', 2, 1.0, None)
    """
    body = evaluation_document(report.evaluation)
    return {
        "format": FORMAT,
        "version": VERSION,
        "headeval_version": __version__,
        "provenance": dict(report.provenance),
        "how": report.how,
        "in_sample": report.in_sample,
        "rows_seen": None if report.seen is None else {**dataclasses.asdict(report.seen), "exact": report.seen.exact},
        **body,
        "slices": [_slice(part) for part in report.slices],
        "comparison": None if report.comparison is None else _comparison(report.comparison),
        "drift": None if report.drift is None else drift_document(report.drift),
        "claim": None if report.claim is None else claim_document(report.claim),
        "requirements": [_requirement(decision) for decision in report.decisions],
        "requirements_of_each_slice": [_each(decision) for decision in report.each],
        "passed": report.passed if report.decisions or report.each else None,
        "notes": [*body["notes"], *report.notes],
    }


def evaluation_document(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as JSON values; a metric without a number is null, and `undefined` says why.

    Examples
    --------
    >>> from headeval.evaluation import evaluate
    >>> document = evaluation_document(evaluate([0.1, 0.2], [1, 0], kind="prob"))
    >>> document["metrics"]["precision"], document["undefined"]["precision"]
    (None, 'nothing is flagged')
    """
    counts, resampling = evaluation.counts, evaluation.resampling
    metrics = {info.name: metric for info, metric in evaluation.metrics()}
    return {
        "classes": list(evaluation.classes),
        "n": counts.n,
        "positives": counts.positives,
        "negatives": counts.negatives,
        "threshold": evaluation.threshold,
        "counts": dataclasses.asdict(counts),
        "metrics": {name: _finite(metric.value) for name, metric in metrics.items()} | {"n": counts.n},
        "undefined": {name: _reason(metric) for name, metric in metrics.items() if _finite(metric.value) is None},
        "confidence": evaluation.confidence,
        "intervals": {name: _interval(metric.interval) for name, metric in metrics.items() if metric.interval},
        "guarantees": {name: _interval(metric.guarantee) for name, metric in metrics.items() if metric.guarantee},
        "resampling": None if resampling is None else dataclasses.asdict(resampling),
        "weighted": evaluation.weighted,
        "calibration": [
            _calibration(table, noise) for table, noise in zip(evaluation.calibration, evaluation.noise, strict=True)
        ],
        "reliability": _reliability(evaluation),
        "brier_parts": dataclasses.asdict(evaluation.brier_parts),
        "best_f1_threshold": evaluation.best_f1_threshold,
        "recall_by_fpr": list(evaluation.recall_by_fpr),
        "traffic": None if evaluation.traffic is None else _traffic(evaluation.traffic),
        "notes": list(evaluation.notes),
    }


def with_evaluation(history: Mapping[str, Any], held_out: HeldOut) -> dict[str, Any]:
    """Return the `metrics` of a fitted head with its held-out evaluation, where it was not skipped."""
    if held_out.evaluation is None:
        return dict(history)
    folds = {"folds": held_out.n_folds, "fold_seed": held_out.fold_seed} if held_out.n_folds else {}
    return {**history, "evaluation": {"how": held_out.how, **folds, **evaluation_document(held_out.evaluation)}}


def to_json(document: Any) -> str:
    r"""Return `document` as indented JSON in plain ASCII: safe to show, and the same bytes in every encoding.

    Raises
    ------
    ValueError
        When a number is NaN or infinite, which JSON cannot say.

    Examples
    --------
    >>> print(to_json({"class": "säfe\x9b\ud800"}), end="")
    {
      "class": "s\u00e4fe\u009b\ud800"
    }
    """
    # DEL is the one control character that ASCII-only JSON leaves as it is.
    return json.dumps(document, indent=2, allow_nan=False).replace("\x7f", "\\u007f") + "\n"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _reason(metric: Metric) -> str:
    return f"infinite: {metric.reason}" if metric.value == math.inf else metric.reason or "undefined"


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {"lower": _finite(interval.lower), "upper": _finite(interval.upper), "method": interval.method}


def _calibration(table: ReliabilityTable, noise: CalibrationNoise) -> dict[str, Any]:
    return {
        "convention": table.convention,
        "binning": table.binning,
        "n_bins": table.n_bins,
        "closed": "left" if table.convention == "top-label-left" else "right",
        "ece": table.ece,
        "mce": table.mce,
        "ece_corrected": noise.ece_corrected,
        "ece_if_calibrated": noise.mean,
        "ece_if_calibrated_95": noise.quantile_95,
        "p_value": noise.p_value,
        "simulations": noise.n_simulations,
    }


def _reliability(evaluation: Evaluation) -> list[dict[str, Any]]:
    table = evaluation.reliability
    columns = (table.lower, table.upper, table.counts, table.confidence, table.accuracy)
    return [
        {
            "lower": lower,
            "upper": upper,
            "count": count,
            "mean_prob": confidence if count else None,
            "share_positive": accuracy if count else None,
            "share_positive_interval": _interval(interval),
        }
        for lower, upper, count, confidence, accuracy, interval in zip(
            *(column.tolist() for column in columns), evaluation.reliability_intervals, strict=True
        )
    ]


def _traffic(traffic: Traffic) -> dict[str, Any]:
    names = ("alerts", "true_alerts", "false_alerts", "misses", "precision")
    projected = {name: getattr(traffic, name) for name in names}
    return {
        "prevalence": traffic.prevalence,
        "per_day": traffic.per_day,
        **{name: {"value": part.value, "interval": _interval(part.interval)} for name, part in projected.items()},
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "baseline": comparison.name,
        "baseline_evaluation": evaluation_document(comparison.baseline),
        "differences": {
            name: {"value": part.value, "interval": _interval(part.interval), "p_value": part.p_value}
            for name, part in comparison.differences.items()
        },
        **dataclasses.asdict(comparison.changes),
        "only_new_right": comparison.only_new_right,
        "only_baseline_right": comparison.only_baseline_right,
        "mcnemar_p": comparison.mcnemar_p,
    }


def _slice(part: Slice) -> dict[str, Any]:
    place = {"shortfall": part.shortfall, "worst": part.worst, "below": part.below, "small": part.small}
    return {"column": part.column, "value": part.value, **place, **evaluation_document(part.evaluation)}


def _requirement(decision: Decision) -> dict[str, Any]:
    wanted, value = decision.requirement, _finite(decision.value)
    infinite = decision.value is not None and value is None
    return {
        "requirement": str(wanted),
        "metric": wanted.metric,
        "part": wanted.part,
        "difference": wanted.difference,
        "comparison": wanted.comparison,
        "bound": wanted.bound,
        "value": value,
        "measured": _finite(decision.measured),
        "interval": _interval(decision.interval),
        "verdict": decision.verdict.value,
        "reason": f"infinite: {decision.reason}" if infinite else decision.reason,
    }


def _each(decision: EachDecision) -> dict[str, Any]:
    wanted = decision.requirement
    return {
        "requirement": str(wanted),
        "metric": wanted.metric,
        "part": wanted.part,
        "comparison": wanted.comparison,
        "bound": wanted.bound,
        "verdict": decision.verdict.value,
        "reason": decision.reason,
        "judged": decision.judged,
        "failing": [
            {"column": column, "slice": value, **_requirement(part)} for column, value, part in decision.failing
        ],
        "skipped": [{"column": column, "slice": value, "reason": reason} for column, value, reason in decision.skipped],
    }
