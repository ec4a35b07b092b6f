"""Metrics and intervals as JSON values: full precision, null where there is no number, and then the reason."""

import math
from collections.abc import Iterable
from typing import Any

from headeval.core.intervals import Interval
from headeval.metric import Metric


def finite(value: float | None) -> float | None:
    """Return the number, or None where it is none or infinite, which JSON cannot say."""
    return value if value is not None and math.isfinite(value) else None


def interval_json(interval: Interval | None) -> dict[str, Any] | None:
    """Return the bounds, an infinite one as null, and how they were computed."""
    if interval is None:
        return None
    return {"lower": finite(interval.lower), "upper": finite(interval.upper), "method": interval.method}


def metrics_json(metrics: Iterable[tuple[str, Metric]]) -> dict[str, Any]:
    """Return values, reasons, intervals and guarantees, each by the names of the metrics.

    Examples
    --------
    >>> metrics_json([("auc", Metric(0.75)), ("recall", Metric(None, "no row is positive"))])["undefined"]
    {'recall': 'no row is positive'}
    """
    by_name = dict(metrics)
    return {
        "metrics": {name: finite(metric.value) for name, metric in by_name.items()},
        "undefined": {name: _reason(metric) for name, metric in by_name.items() if finite(metric.value) is None},
        "intervals": {name: interval_json(metric.interval) for name, metric in by_name.items() if metric.interval},
        "guarantees": {name: interval_json(metric.guarantee) for name, metric in by_name.items() if metric.guarantee},
    }


def _reason(metric: Metric) -> str:
    return f"infinite: {metric.reason}" if metric.value == math.inf else metric.reason or "undefined"
