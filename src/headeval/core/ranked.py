"""Rows sorted once and cumulated: the primitive behind every ranking measure and curve."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.core.threads import sort_runs

BLOCK = 2**16


@dataclass(frozen=True, slots=True)
class RankedCounts:
    """Cumulated counts at each distinct score, the highest first.

    Attributes
    ----------
    thresholds : (k,) distinct scores in decreasing order, grouped by exact equality.
    true_positives : (k,) positives with score ≥ thresholds[i].
    false_positives : (k,) negatives with score ≥ thresholds[i].
    """

    thresholds: FloatArray
    true_positives: IntArray
    false_positives: IntArray

    def blocks(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield both counts, block by block, each block with the counts just above it first: 0 at the very top.

        A block stays in the cache of one core while several passes go over it, which saves most of the time of a sum
        over millions of scores.
        """
        for first in range(0, self.thresholds.shape[0], BLOCK):
            place = slice(max(first - 1, 0), first + BLOCK)
            tp, fp = self.true_positives[place], self.false_positives[place]
            yield (tp, fp) if first else (np.append(0, tp), np.append(0, fp))


@dataclass(frozen=True, slots=True)
class RankedWeights:
    """Cumulated weights at each distinct score, the highest first.

    Attributes
    ----------
    thresholds : (k,) distinct scores in decreasing order, grouped by exact equality.
    true_positives, false_positives : (k,) weight of the positives and negatives with score ≥ thresholds[i].
    """

    thresholds: FloatArray
    true_positives: FloatArray
    false_positives: FloatArray


def sorted_by_class(scores: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the rows from the lowest score up, negatives first among equal scores: the one sort of everything.

    The classes are sorted apart and in halves, as plain numbers, which takes a third of what sorting positions takes; a
    stable sort then finds four runs and merges them, keeping the negatives before the positives they tie with.

    Parameters
    ----------
    scores : (n,) finite; not checked again here.
    labels : (n,) in {0, 1}.

    Examples
    --------
    >>> scores, labels = sorted_by_class(np.array([0.4, 0.9, 0.4]), np.array([1, 1, 0]))
    >>> scores.tolist(), labels.tolist()
    ([0.4, 0.4, 0.9], [0, 1, 1])
    """
    positive = labels == 1
    apart = np.concatenate([scores[~positive], scores[positive]])
    negatives = scores.shape[0] - int(np.count_nonzero(positive))
    sort_runs(half for part in np.split(apart, [negatives]) for half in np.array_split(part, 2))
    order = np.argsort(apart, kind="stable")
    return apart[order], (order >= negatives).astype(np.int64)


def rank_counts(scores: FloatArray, labels: IntArray) -> RankedCounts:
    """Sort once and cumulate; tied scores enter together, so row order never matters.

    Parameters
    ----------
    scores : (n,) finite, n ≥ 1; not checked again here.
    labels : (n,) in {0, 1}.
    """
    return cumulated_counts(*sorted_by_class(scores, labels))


def cumulated_counts(scores: FloatArray, labels: IntArray) -> RankedCounts:
    """Cumulate rows that are sorted already: scores (n,) never decreasing, labels (n,) in {0, 1}, n ≥ 1."""
    scores, labels = scores[::-1], labels[::-1]
    last, true_positives = _last_of_group(scores), np.cumsum(labels, dtype=np.int64)
    if last.shape[0] < scores.shape[0]:
        scores, true_positives = scores[last], true_positives[last]
    last += 1
    # −0.0 equals 0.0: adding 0.0 gives their group one spelling, whichever of its rows came last.
    return RankedCounts(scores + 0.0, true_positives, np.subtract(last, true_positives, out=last))


def rank_weights(scores: FloatArray, labels: IntArray, weights: FloatArray) -> RankedWeights:
    """Cumulate weights instead of rows, as `rank_counts` does; tied scores enter together.

    Parameters
    ----------
    scores : (n,) finite, n ≥ 1; not checked again here.
    labels : (n,) in {0, 1}.
    weights : (n,) not negative.
    """
    order = np.lexsort((weights, labels, scores))  # equal rows in one order, so that sums round the same
    return cumulated_weights(scores[order], labels[order], weights[order])


def cumulated_weights(scores: FloatArray, labels: IntArray, weights: FloatArray) -> RankedWeights:
    """Cumulate rows that are sorted already by score, label and weight, lowest first."""
    scores, labels, weights = scores[::-1], labels[::-1], weights[::-1]
    last = _last_of_group(scores)
    true_positives = np.cumsum(weights * labels)[last]
    false_positives = np.cumsum(weights * (1 - labels))[last]
    return RankedWeights(scores[last] + 0.0, true_positives, false_positives)


def _last_of_group(scores: FloatArray) -> IntArray:
    """Return the position of the last row of each run of equal scores."""
    # Equality, not a difference: 1e308 − (−1e308) overflows, and subnormal gaps are real gaps.
    return np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
