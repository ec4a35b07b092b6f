"""What the page's charts draw, as numbers for the charting library, and what they show in words."""

from typing import Any

import numpy as np

from headeval.core.calibration import ReliabilityTable
from headeval.core.checks import FloatArray
from headeval.curves import Curve, Curves, Histogram
from headeval.evaluation import Evaluation
from headeval.metric import Metric
from headeval.render.numbers import count, edges, interval_text, metric_value, number, percent
from headeval.render.sections import in_sentence
from headeval.report import Report

_DECIMALS = 5  # a pixel is a thousandth of a chart


def chart_data(report: Report, drawn: Curves) -> dict[str, Any]:
    """Return the numbers that the charts draw, rounded below what can be seen."""
    return {
        "roc": None if drawn.roc is None else _curve(drawn.roc),
        "pr": None if drawn.pr is None else _curve(drawn.pr) | {"prevalence": report.evaluation.prevalence.value},
        "reliability": _reliability(report),
        "histogram": _histogram(drawn.histogram),
    }


def chart_words(report: Report, drawn: Curves) -> dict[str, str]:
    """Return what each chart shows, for those who cannot see it; the page adds what happens at the threshold."""
    evaluation = report.evaluation
    positive = in_sentence(evaluation.classes[1])
    band = "" if evaluation.confidence is None else f" with its {percent(evaluation.confidence)} band"
    return {
        "roc": f"ROC curve{band}: recall against false-positive rate. AUC {_said(evaluation.auc)}.",
        "pr": f"Precision against recall{band}. Average precision {_said(evaluation.ap)}; "
        f"flagging at random has precision {metric_value(evaluation.prevalence)}.",
        "reliability": _reliability_words(report),
        "bins": "Rows in each bin of the reliability diagram: "
        + ", ".join(count(rows) for rows in evaluation.reliability.counts.tolist())
        + ".",
        "histogram": _histogram_words(drawn.histogram, evaluation),
        "costs": f"Cost of the decisions by threshold on these rows, from the two costs given; positive is {positive}.",
    }


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "x": _rounded(curve.x),
        "y": _rounded(curve.y),
        "lower": None if curve.lower is None else _rounded(curve.lower),
        "upper": None if curve.upper is None else _rounded(curve.upper),
    }


def _reliability(report: Report) -> dict[str, Any]:
    table = report.evaluation.reliability
    after, before = _by_mean(table), {} if report.before is None else _by_mean(report.before)
    x = sorted({0.0, 1.0, *after, *before})
    bars = [
        {
            "x": round(float(mean), _DECIMALS),
            "lower": round(sure.lower, _DECIMALS),
            "upper": round(sure.upper, _DECIMALS),
        }
        for mean, sure in zip(table.confidence, report.evaluation.reliability_intervals, strict=True)
        if sure is not None
    ]
    return {
        "x": x,
        "after": [after.get(mean) for mean in x],
        "before": None if report.before is None else [before.get(mean) for mean in x],
        "bars": bars,
        "edges": [float(text) for text in _edges(table)],
        "counts": _stairs(table.counts),
    }


def _by_mean(table: ReliabilityTable) -> dict[float, float]:
    """Share of positives by mean probability, of the bins that hold rows."""
    filled = table.counts > 0
    return dict(zip(_rounded(table.confidence[filled]), _rounded(table.accuracy[filled]), strict=True))


def _histogram(histogram: Histogram) -> dict[str, Any]:
    shares = [rows / max(1, int(rows.sum())) for rows in (histogram.negatives, histogram.positives)]
    return {
        "edges": _rounded(histogram.edges),
        "negatives": _stairs(np.round(shares[0], 6)),
        "positives": _stairs(np.round(shares[1], 6)),
        "rows": [[count(rows) for rows in part.tolist()] for part in (histogram.negatives, histogram.positives)],
    }


def _stairs(values: Any) -> list[float]:
    """One value an edge: the last bin's height holds up to the last edge."""
    heights: list[float] = values.tolist()
    return [*heights, heights[-1]]


def _edges(table: ReliabilityTable) -> list[str]:
    return edges([*table.lower.tolist(), float(table.upper[-1])])


def _rounded(values: FloatArray) -> list[float]:
    rounded: list[float] = (np.round(values, _DECIMALS) + 0.0).tolist()
    return rounded


def _said(metric: Metric) -> str:
    sure = "" if metric.interval is None else f" {interval_text(metric.interval)}"
    return f"{metric_value(metric)}{sure}"


def _reliability_words(report: Report) -> str:
    positive = in_sentence(report.evaluation.classes[1])
    texts = [f"Reliability diagram: share that is {positive} against mean p, bin by bin: "]
    texts.append(_bin_words(report.evaluation.reliability))
    if report.before is not None:
        texts.append(f" Before calibration: {_bin_words(report.before)}")
    return "".join(texts)


def _bin_words(table: ReliabilityTable) -> str:
    parts = [
        f"at {number(mean, 2)} {number(share, 2)} of {count(rows)} rows"
        for mean, share, rows in zip(
            table.confidence.tolist(), table.accuracy.tolist(), table.counts.tolist(), strict=True
        )
        if rows
    ]
    return f"{', '.join(parts)}."


def _histogram_words(histogram: Histogram, evaluation: Evaluation) -> str:
    bounds = edges(histogram.edges.tolist())
    parts = []
    for name, rows in zip(evaluation.classes, (histogram.negatives, histogram.positives), strict=True):
        if total := int(rows.sum()):
            middle = int(np.searchsorted(np.cumsum(rows), total / 2))
            parts.append(
                f"of {count(total)} {in_sentence(name)} rows the middle one lies between {bounds[middle]} and "
                f"{bounds[middle + 1]}"
            )
    return f"Histogram of the predicted probabilities by class: {'; '.join(parts)}."
