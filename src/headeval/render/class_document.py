"""All classes of a classifier with more than two as JSON values."""

import dataclasses
from typing import Any

from headeval.multiclass import CLASS_RATES, ClassEvaluation, ClassRates
from headeval.render.json_values import finite, metrics_json


def class_document(classes: ClassEvaluation) -> dict[str, Any]:
    """Return what is said of all classes; a metric without a number is null, and `undefined` says why.

    Examples
    --------
    >>> from headeval.multiclass import evaluate_classes
    >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.5, 0.3, 0.2]]
    >>> document = class_document(evaluate_classes(probs, [0, 1, 2], kind="prob", classes=("a", "b", "c")))
    >>> document["confusion"]["counts"], document["undefined"]["macro_precision"]
    ([[1, 0, 0], [0, 1, 0], [1, 0, 0]], "class 'c' is never predicted, so that it has no precision")
    """
    table, noise, resampling = classes.reliability, classes.noise, classes.resampling
    return {
        "classes": list(classes.classes),
        "n": classes.n,
        "confusion": {"rows": "true", "columns": "predicted", "counts": classes.confusion.tolist()},
        **metrics_json((info.name, metric) for info, metric in classes.metrics()),
        "confidence": classes.confidence,
        "resampling": None if resampling is None else dataclasses.asdict(resampling),
        "weighted": classes.weighted,
        "top_label": {
            "binning": table.binning,
            "n_bins": table.n_bins,
            "ece_corrected": finite(noise.ece_corrected),
            "ece_if_calibrated": finite(noise.mean),
            "ece_if_calibrated_95": finite(noise.quantile_95),
            "p_value": finite(noise.p_value),
            "simulations": noise.n_simulations,
        },
        "per_class": [_one_class(part) for part in classes.per_class],
        "notes": list(classes.notes),
    }


def _one_class(part: ClassRates) -> dict[str, Any]:
    counts = {"name": part.name, "n": part.n, "predicted": part.predicted}
    return counts | metrics_json((name, getattr(part, name)) for name in CLASS_RATES)
