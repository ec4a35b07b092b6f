"""What happens at a threshold: counts and rates when every score ≥ threshold is flagged."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headeval.core import checks


@dataclass(frozen=True, slots=True)
class ConfusionCounts:
    """Rows by decision and truth; every rate is a quotient of these, and None where it divides by zero.

    Attributes
    ----------
    true_positives, false_positives, false_negatives, true_negatives : rows ≥ 0; positive is class 1.

    Examples
    --------
    >>> counts = ConfusionCounts(true_positives=6, false_positives=2, false_negatives=4, true_negatives=8)
    >>> counts.precision, counts.recall, round(counts.f1, 4)
    (0.75, 0.6, 0.6667)
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def n(self) -> int:
        """All rows."""
        return self.positives + self.negatives

    @property
    def positives(self) -> int:
        """Rows of class 1."""
        return self.true_positives + self.false_negatives

    @property
    def negatives(self) -> int:
        """Rows of class 0."""
        return self.false_positives + self.true_negatives

    @property
    def flagged(self) -> int:
        """Rows at or above the threshold."""
        return self.true_positives + self.false_positives

    @property
    def accuracy(self) -> float | None:
        """(TP + TN) / n."""
        return _quotient(self.true_positives + self.true_negatives, self.n)

    @property
    def precision(self) -> float | None:
        """TP / (TP + FP); None when nothing is flagged."""
        return _quotient(self.true_positives, self.flagged)

    @property
    def recall(self) -> float | None:
        """TP / (TP + FN), the true-positive rate; None without positives."""
        return _quotient(self.true_positives, self.positives)

    @property
    def specificity(self) -> float | None:
        """TN / (TN + FP); None without negatives."""
        return _quotient(self.true_negatives, self.negatives)

    @property
    def fpr(self) -> float | None:
        """FP / (FP + TN), the false-positive rate; None without negatives."""
        return _quotient(self.false_positives, self.negatives)

    @property
    def f1(self) -> float | None:
        """2·TP / (2·TP + FP + FN); None when there is neither a positive nor a flag."""
        return self.f_beta(1.0)

    def f_beta(self, beta: float) -> float | None:
        """Return (1 + β²)PR / (β²P + R), recall counting β times as much as precision.

        Computed from the counts, so that it is 0 (and not undefined) where only TP is zero.

        Parameters
        ----------
        beta : finite and ≥ 0; 1 weighs both alike, 0 is precision alone.

        Raises
        ------
        ValueError
            Unless β is finite and ≥ 0.

        References
        ----------
        van Rijsbergen, Information Retrieval, 2nd ed. 1979, chapter 7.
        """
        beta = checks.real_number("beta", beta, minimum=0.0)
        share = 1 / (1 + beta * beta)  # the weight of precision: an infinite β² is recall alone
        mistakes = (1 - share) * self.false_negatives + share * self.false_positives
        return _quotient(self.true_positives, self.true_positives + mistakes)


def confusion_counts(scores: ArrayLike, labels: ArrayLike, *, threshold: float) -> ConfusionCounts:
    """Count the four outcomes when every score ≥ `threshold` is flagged.

    Parameters
    ----------
    scores : (n,) finite; probabilities or any score on the threshold's scale.
    labels : (n,) in {0, 1}.
    threshold : on the scale of the scores, not NaN; +∞ flags nothing.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> confusion_counts([0.9, 0.5, 0.1], [1, 0, 1], threshold=0.5)
    ConfusionCounts(true_positives=1, false_positives=1, false_negatives=1, true_negatives=0)
    """
    scores = checks.finite_array("scores", scores, ndim=1)
    positive = checks.binary_labels(labels, n=scores.shape[0]) == 1
    return counted_outcomes(scores >= checks.decision_threshold(threshold), positive)


def counted_outcomes(flagged: NDArray[np.bool_], positive: NDArray[np.bool_]) -> ConfusionCounts:
    """Count the four outcomes of decisions (n,) against the truth (n,)."""
    n, positives, found = flagged.shape[0], int(np.count_nonzero(positive)), int(np.count_nonzero(flagged & positive))
    wrongly = int(np.count_nonzero(flagged)) - found
    return ConfusionCounts(found, wrongly, positives - found, n - positives - wrongly)


@dataclass(frozen=True, slots=True)
class DecisionChanges:
    """Rows that other scores, or the same at another threshold, decide otherwise.

    Attributes
    ----------
    newly_flagged, no_longer_flagged : rows ≥ 0.
    """

    newly_flagged: int
    no_longer_flagged: int


def decision_changes(
    before: ArrayLike, after: ArrayLike, *, threshold: float, threshold_after: float | None = None
) -> DecisionChanges:
    """Count the rows whose decision, score ≥ `threshold`, changes between two sets of scores.

    Parameters
    ----------
    before, after : (n,) finite scores of the same rows.
    threshold : on the scale of both, not NaN; ±∞ changes nothing.
    threshold_after : of the scores after, where it is another.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> decision_changes([0.4, 0.6, 0.7], [0.5, 0.3, 0.8], threshold=0.5)
    DecisionChanges(newly_flagged=1, no_longer_flagged=1)
    """
    threshold = checks.decision_threshold(threshold)
    was = checks.finite_array("before", before, ndim=1) >= threshold
    later = threshold if threshold_after is None else checks.decision_threshold(threshold_after)
    now = checks.finite_array("after", after, ndim=1) >= later
    if was.shape != now.shape:
        raise ValueError(f"before and after must have the same length, got {was.shape[0]} and {now.shape[0]}")
    return DecisionChanges(int(np.count_nonzero(now & ~was)), int(np.count_nonzero(was & ~now)))


def short_number(low: float, high: float) -> float:
    """Return the number with the fewest decimals in (low, high] near its middle; never below 0.

    Examples
    --------
    >>> short_number(0.8311, 0.8334), short_number(0.5, 0.5000000000000001), short_number(-float("inf"), 0.0)
    (0.832, 0.5000000000000001, 0.0)
    """
    low = max(low, 0.0)
    middle = low + (high - low) / 2
    for digits in range(1, 18):
        value = round(middle, digits)
        if low < value <= high:
            return value
    return high


def _quotient(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None
