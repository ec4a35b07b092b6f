"""A record as JSON: full precision, null where there is no number, in the form of report.schema.json."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from headeval._version import __version__
from headeval.comparison import Comparison
from headeval.core.calibration import ReliabilityTable
from headeval.core.calibration_evidence import CalibrationNoise
from headeval.core.traffic import Traffic
from headeval.evaluation import Evaluation
from headeval.multiclass import ClassEvaluation
from headeval.render.claim import claim_document
from headeval.render.class_document import class_document
from headeval.render.drift import drift_document
from headeval.render.json_values import finite, interval_json, metrics_json
from headeval.render.requirements import meant_of_classes
from headeval.report import HeldOut, Report, Slice
from headeval.requirement_parsing import Requirement
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
        **_all_classes(report.classes),
        "slices": [_slice(part) for part in report.slices],
        "comparison": None if report.comparison is None else _comparison(report.comparison),
        "drift": None if report.drift is None else drift_document(report.drift),
        "claim": None if report.claim is None else claim_document(report.claim),
        "requirements": [requirement_document(decision, report.classes) for decision in report.decisions],
        "requirements_of_each_slice": [requirement_of_each_document(decision) for decision in report.each],
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
    measured = metrics_json((info.name, metric) for info, metric in evaluation.metrics())
    return {
        "classes": list(evaluation.classes),
        "n": counts.n,
        "positives": counts.positives,
        "negatives": counts.negatives,
        "threshold": evaluation.threshold,
        "counts": dataclasses.asdict(counts),
        "metrics": measured["metrics"] | {"n": counts.n},
        "undefined": measured["undefined"],
        "confidence": evaluation.confidence,
        "intervals": measured["intervals"],
        "guarantees": measured["guarantees"],
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
    judged = {**evaluation_document(held_out.evaluation), **_all_classes(held_out.classes)}
    return {**history, "evaluation": {"how": held_out.how, **folds, **judged}}


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


def _all_classes(classes: ClassEvaluation | None) -> dict[str, Any]:
    """The key is there only where there are more than two classes."""
    return {} if classes is None else {"all_classes": class_document(classes)}


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
            "share_positive_interval": interval_json(interval),
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
        **{name: {"value": part.value, "interval": interval_json(part.interval)} for name, part in projected.items()},
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "baseline": comparison.name,
        "baseline_evaluation": evaluation_document(comparison.baseline),
        "differences": {
            name: {"value": part.value, "interval": interval_json(part.interval), "p_value": part.p_value}
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


def requirement_document(decision: Decision, classes: ClassEvaluation | None = None) -> dict[str, Any]:
    """Return a requirement with its verdict as JSON values; `classes` of a classifier of more than two."""
    wanted, value = decision.requirement, finite(decision.value)
    infinite = decision.value is not None and value is None
    return {
        "requirement": str(wanted),
        **_of(wanted),
        "metric": wanted.metric,
        "part": wanted.part,
        "difference": wanted.difference,
        "comparison": wanted.comparison,
        "bound": wanted.bound,
        "value": value,
        "measured": finite(decision.measured),
        "interval": interval_json(decision.interval),
        "verdict": decision.verdict.value,
        "reason": f"infinite: {decision.reason}" if infinite else decision.reason,
        **_meant(wanted, classes),
    }


def _of(requirement: Requirement) -> dict[str, str]:
    """The key is there only where one of several categories or classes is meant."""
    return {"of": requirement.of} if requirement.of else {}


def _meant(requirement: Requirement, classes: ClassEvaluation | None) -> dict[str, str]:
    """The key is there only where one of several classes is meant."""
    meant = meant_of_classes([requirement], classes)
    return {"meant": meant[0]} if meant else {}


def requirement_of_each_document(decision: EachDecision) -> dict[str, Any]:
    """Return a requirement of every slice with its verdict as JSON values."""
    wanted = decision.requirement
    return {
        "requirement": str(wanted),
        **_of(wanted),
        "metric": wanted.metric,
        "part": wanted.part,
        "comparison": wanted.comparison,
        "bound": wanted.bound,
        "verdict": decision.verdict.value,
        "reason": decision.reason,
        "judged": decision.judged,
        "failing": [
            {"column": column, "slice": value, **requirement_document(part)} for column, value, part in decision.failing
        ],
        "skipped": [{"column": column, "slice": value, "reason": reason} for column, value, reason in decision.skipped],
    }
