"""How scores of C classes rank: one class against all others, and every class against every other (Hand and Till).

Both start from the same placements: of the rows of class i and the others, sorted by the score of class i, the loss of
a row is the share of the other side that it is ordered wrongly against, ties counting one half. The area of class i
against the rest is 1 − the mean loss of the rest; the area of i against j, A(i|j), is 1 − the mean loss of the rows of
class j alone. So one sort a class gives the areas of all pairs.
"""

from dataclasses import dataclass

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.core.placements import RankedRows, placements


@dataclass(frozen=True, slots=True)
class ClassPlacements:
    """One class ranked against the others by its own score.

    Attributes
    ----------
    auc : area of the class against the rest.
    pair_aucs : (C,) A(i|j) of this class i against each class j; NaN for itself and for classes without weight.
    losses : (n,) of the rows, in their order.
    balanced_losses : (n,) the same where every other class weighs alike; 1 − their mean over the class is the mean of
        `pair_aucs`.
    """

    auc: float
    pair_aucs: FloatArray
    losses: FloatArray
    balanced_losses: FloatArray


def class_placements(
    scores: FloatArray, labels: IntArray, weights: FloatArray | None, place: int, *, n_classes: int
) -> ClassPlacements:
    """Rank one class against the others; it and another one have rows of positive weight.

    Parameters
    ----------
    scores : (n,) of this class, finite.
    labels : (n,) in {0, …, C−1}.
    weights : (n,) ≥ 0, below 2; None counts every row once.
    place : the class, in {0, …, C−1}.
    """
    mine = labels == place
    auc, losses = placements(RankedRows((scores,), mine, weights, None))
    w = np.ones(labels.shape[0]) if weights is None else weights
    held = np.bincount(labels, w, n_classes).astype(np.float64, copy=False)
    pairs = _pair_aucs(losses, labels, weights, place, held)
    share = w / np.where(held > 0, held, 1.0)[labels]  # of a row in its class
    balanced = placements(RankedRows((scores,), mine, share, None))[1]
    return ClassPlacements(auc, pairs, losses, balanced)


def _pair_aucs(
    losses: FloatArray, labels: IntArray, weights: FloatArray | None, place: int, held: FloatArray
) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        if weights is None:
            # Twice a loss times the rows of the class is a whole number of half pairs: summed without rounding.
            halves = np.rint(2.0 * held[place] * losses)
            lost = np.bincount(labels, halves, held.shape[0])
            found = (2.0 * held[place] * held - lost) / (2.0 * held[place] * held)
        else:
            found = 1.0 - np.bincount(labels, weights * losses, held.shape[0]) / held
    found[place] = np.nan
    clipped: FloatArray = np.clip(found, 0.0, 1.0)
    return clipped
