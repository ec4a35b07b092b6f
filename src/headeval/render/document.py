"""A record as JSON: full precision, null where there is no number, in the form of report.schema.json."""

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from headeval._version import __version__
from headeval.core.calibration import ReliabilityTable
from headeval.evaluation import Evaluation, Metric
from headeval.report import HeldOut, Report, Slice
from headeval.requirements import Decision

FORMAT = "headeval-report"
VERSION = 1


def report_document(report: Report) -> dict[str, Any]:
    """Return everything a report says, as JSON values.

    `passed` is null where no requirement was made: a report that was asked nothing has passed nothing.

    Examples
    --------
    >>> from headeval.evaluation import evaluate
    >>> document = report_document(Report({}, "held-out", evaluate([0.9, 0.2], [1, 0], kind="prob")))
    >>> document["format"], document["version"], document["metrics"]["auc"], document["passed"]
    ('headeval-report', 1, 1.0, None)
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
        "requirements": [_requirement(decision) for decision in report.decisions],
        "passed": report.passed if report.decisions else None,
        "notes": [*body["notes"], *report.notes],
    }


def evaluation_document(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as JSON values; a metric without a number is null, and `undefined` says why.

    Examples
    --------
    >>> from headeval.evaluation import evaluate
    >>> document = evaluation_document(evaluate([0.1, 0.2], [1, 0], kind="prob"))
    >>> document["metrics"]["precision"], document["undefined"]
    (None, {'precision': 'nothing is flagged'})
    """
    counts = evaluation.counts
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
        "calibration": [_calibration(table) for table in evaluation.calibration],
        "reliability": _reliability(evaluation.reliability),
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


def _calibration(table: ReliabilityTable) -> dict[str, Any]:
    return {
        "convention": table.convention,
        "binning": table.binning,
        "n_bins": table.n_bins,
        "closed": "left" if table.convention == "top-label-left" else "right",
        "ece": table.ece,
        "mce": table.mce,
        "ece_if_calibrated": table.ece_if_calibrated,
    }


def _reliability(table: ReliabilityTable) -> list[dict[str, Any]]:
    columns = (table.lower, table.upper, table.counts, table.confidence, table.accuracy)
    return [
        {
            "lower": lower,
            "upper": upper,
            "count": count,
            "mean_prob": confidence if count else None,
            "share_positive": accuracy if count else None,
        }
        for lower, upper, count, confidence, accuracy in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _slice(part: Slice) -> dict[str, Any]:
    return {"column": part.column, "value": part.value, **evaluation_document(part.evaluation)}


def _requirement(decision: Decision) -> dict[str, Any]:
    value = _finite(decision.value)
    infinite = decision.value is not None and value is None
    return {
        "requirement": str(decision.requirement),
        "metric": decision.requirement.metric,
        "comparison": decision.requirement.comparison,
        "bound": decision.requirement.bound,
        "value": value,
        "verdict": decision.verdict.value,
        "reason": f"infinite: {decision.reason}" if infinite else decision.reason,
    }
