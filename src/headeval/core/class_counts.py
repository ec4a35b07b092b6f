"""What classifiers of C classes decide: the confusion matrix, and every measure that follows from it."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray


def confusion_matrix(labels: ArrayLike, predicted: ArrayLike, *, n_classes: int) -> IntArray:
    """Return how many rows of each class were taken for each class, whatever their weights.

    Parameters
    ----------
    labels, predicted : (n,) in {0, …, C−1}.
    n_classes : C ≥ 2.

    Returns
    -------
    counts : (C, C), true classes down, predicted ones across.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> confusion_matrix([0, 1, 2, 2], [0, 2, 2, 2], n_classes=3).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 0, 2]]
    """
    n_classes = checks.whole_number("n_classes", n_classes, minimum=2)
    y = checks.class_labels(labels, n=np.size(labels), n_classes=n_classes)
    called = checks.class_labels(predicted, n=y.shape[0], n_classes=n_classes)
    return np.bincount(y * n_classes + called, minlength=n_classes**2).reshape(n_classes, n_classes).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """What is left of confusion matrices when only their diagonals and margins count: C numbers three times.

    Every measure is undefined (NaN) where it would divide by zero, and so is every average that holds such a one: a
    class without rows has no recall, and a class that is never predicted has no precision. scikit-learn puts 0 there,
    or leaves the class out, which changes what is averaged without a word.

    Attributes
    ----------
    hits : (…, C) rows, or their weight, of the class that were taken for it.
    actual : (…, C) all of the class.
    predicted : (…, C) all that were taken for it.
    """

    hits: FloatArray
    actual: FloatArray
    predicted: FloatArray

    @classmethod
    def of_rows(cls, labels: IntArray, predicted: IntArray, weights: FloatArray | None, *, n_classes: int) -> Self:
        """Return the counts of checked rows (n,), weighted where they have weights.

        Examples
        --------
        >>> labels, predicted = np.array([0, 0, 0, 0, 1]), np.array([0, 0, 0, 1, 1])
        >>> counts = ClassCounts.of_rows(labels, predicted, None, n_classes=2)
        >>> counts.recall.tolist(), counts.precision.tolist(), float(counts.accuracy)
        ([0.75, 1.0], [1.0, 0.5], 0.8)
        """
        w = np.ones(labels.shape[0]) if weights is None else weights
        hits = np.where(labels == predicted, w, 0.0)
        parts = ((labels, hits), (labels, w), (predicted, w))
        return cls(*(np.bincount(place, part, n_classes).astype(np.float64, copy=False) for place, part in parts))

    @property
    def total(self) -> FloatArray:
        """(…,) all rows or their weight."""
        total: FloatArray = self.actual.sum(axis=-1)
        return total

    @property
    def recall(self) -> FloatArray:
        """(…, C) of the rows of a class, taken for it."""
        return _quotient(self.hits, self.actual)

    @property
    def precision(self) -> FloatArray:
        """(…, C) of the rows taken for a class, of it."""
        return _quotient(self.hits, self.predicted)

    @property
    def f1(self) -> FloatArray:
        """(…, C) harmonic mean of precision and recall, 2·hits/(actual + predicted)."""
        return _quotient(2.0 * self.hits, self.actual + self.predicted)

    @property
    def accuracy(self) -> FloatArray:
        """(…,) of all rows, taken for their own class; every micro average is this too, as one class is one label."""
        return _quotient(self.hits.sum(axis=-1), self.total)

    def averages(self) -> dict[str, FloatArray]:
        """Return (…,) accuracy, balanced accuracy, and the averages of precision, recall and F1 over the classes.

        The macro average weighs every class alike; where a class has no rows it is undefined, also that of F1. The
        weighted one weighs a class by its rows, so that a class without rows has no part in it. Balanced accuracy is
        the macro recall, and the weighted recall is the accuracy.

        Examples
        --------
        Of class 0 three of four rows are taken for it, and two rows of the other; of class 1 four of six, and one.

        >>> found = ClassCounts(np.array([3.0, 4.0]), np.array([4.0, 6.0]), np.array([5.0, 5.0])).averages()
        >>> round(float(found["macro_precision"]), 12), round(float(found["weighted_precision"]), 12)
        (0.7, 0.72)
        """
        found = {"accuracy": self.accuracy, "balanced_accuracy": self.recall.mean(axis=-1)}
        present = self.actual > 0
        for name, values in (("precision", self.precision), ("recall", self.recall), ("f1", self.f1)):
            found[f"macro_{name}"] = np.where(present, values, np.nan).mean(axis=-1)
            found[f"micro_{name}"] = self.accuracy
            weighed = np.where(present, self.actual * values, 0.0).sum(axis=-1)
            found[f"weighted_{name}"] = self.accuracy if name == "recall" else _quotient(weighed, self.total)
        return found


def _quotient(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):  # 0/0 is the NaN promised
        return np.asarray(np.divide(numerator, denominator))
