"""How much averages of precision, recall and F1 over the classes vary, from the influence of every row."""

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.core.class_counts import ClassCounts
from headeval.core.class_intervals import Variances, class_sums_of_squares, sum_of_squares


def rate_variances(
    labels: IntArray,
    predicted: IntArray,
    weights: FloatArray | None,
    units: IntArray | None,
    counts: ClassCounts,
) -> dict[str, Variances]:
    """Return the variances of macro recall, precision and F1 and of weighted precision and F1.

    A row moves the recall of its class by (hit − recall)/actual, the precision of its predicted class by
    (hit − precision)/predicted, and the F1 of both by (hit − F1)/(actual + predicted); here each is times its weight.

    Parameters
    ----------
    labels, predicted : (n,) classes of the rows.
    weights : (n,); None counts every row once.
    units : (n,) codes of rows that vary together; None where each row is its own.
    counts : of these rows.

    Returns
    -------
    variances : by the name of the average; of an undefined one they mean nothing.
    """
    hit, w = (labels == predicted).astype(np.float64), np.ones(labels.shape[0]) if weights is None else weights
    classes = {
        "recall": ((labels, counts.recall, counts.actual),),
        "precision": ((predicted, counts.precision, counts.predicted),),
        "f1": tuple((place, counts.f1, counts.actual + counts.predicted) for place in (labels, predicted)),
    }
    n_classes = counts.actual.shape[0]
    code = np.arange(labels.shape[0]) if units is None else units
    alike, by_rows = np.full(n_classes, 1.0 / n_classes), counts.actual / counts.total
    found = {}
    for name, entries in classes.items():
        values = np.nan_to_num(entries[0][1])
        # Of a class without weight no row has any, so that all are 0 whatever they are divided by.
        moved = [
            (place, w * (hit - values[place]) / np.where(all_of > 0, all_of, 1.0)[place])
            for place, _, all_of in entries
        ]
        every = np.concatenate([part for _, part in moved])
        places = np.concatenate([place for place, _ in moved])
        own = class_sums_of_squares(every, places, np.tile(code, len(moved)), n_classes=n_classes)
        for average, shares in (("macro", alike), ("weighted", by_rows)):
            influence = sum(shares[place] * part for place, part in moved)
            fixed = sum_of_squares(np.asarray(influence), units)
            varying = 0.0
            if average == "weighted":
                rows = w * (values[labels] - shares @ values) / counts.total
                varying = max(0.0, sum_of_squares(influence + rows, units) - fixed)
            apart = float(np.sum(np.square(shares) * own))
            # Rows that are independent count for the recall of one class, and for the precision of one; for F1 of two.
            found[f"{average}_{name}"] = Variances(fixed, apart, varying, units is None and name != "f1")
    return found
