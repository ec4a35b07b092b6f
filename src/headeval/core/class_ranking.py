"""How scores of C classes rank: one class against all others, and every class against every other (Hand and Till).

Both start from the same placements: of the rows of class i and the others, sorted by the score of class i, the loss of
a row is the share of the other side that it is ordered wrongly against, ties counting one half. The area of class i
against the rest is 1 − the mean loss of the rest; the area of i against j, A(i|j), is 1 − the mean loss of the rows of
class j alone. So one sort a class gives the areas of all pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
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


def hand_till_auc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean over all pairs of classes of how well the two are told apart (Hand and Till's M).

    For classes i and j, A(i|j) is the probability that a random row of i has a higher score of class i than a random
    row of j, ties counting one half; A(i, j) is the mean of A(i|j) and A(j|i), and M their mean over all pairs. It
    does not depend on how frequent the classes are. For two classes it is the AUC.

    Parameters
    ----------
    scores : (n, C) finite, C ≥ 2; column c ranks class c. Log-odds (`class_log_odds`) rank as probabilities do.
    labels : (n,) in {0, …, C−1}, all present.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Hand and Till, A simple generalisation of the area under the ROC curve for multiple class classification problems,
    Machine Learning 45 (2001).

    Examples
    --------
    Class 0 is told from 1 in both directions; of the others A(2|1) alone is a tie.

    >>> hand_till_auc([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.2, 0.6, 0.2]], [0, 1, 2])
    0.9166666666666666
    """
    s, y = _checked(scores, labels)
    classes = s.shape[1]
    means = [
        float(np.nanmean(class_placements(s[:, c].copy(), y, None, c, n_classes=classes).pair_aucs))
        for c in range(classes)
    ]
    return float(np.mean(means))


def one_vs_rest_aucs(scores: ArrayLike, labels: ArrayLike) -> FloatArray:
    """Return the AUC of each class against all others, (C,), ranked by its own column.

    Parameters
    ----------
    scores : (n, C) finite, C ≥ 2.
    labels : (n,) in {0, …, C−1}, all present.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Provost and Domingos, Well-trained PETs: improving probability estimation trees, CeDER working paper IS-00-04, Stern
    School of Business, New York University (2000), on areas of one class against the rest.

    Examples
    --------
    >>> one_vs_rest_aucs([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.2, 0.6, 0.2]], [0, 1, 2]).tolist()
    [1.0, 1.0, 0.75]
    """
    s, y = _checked(scores, labels)
    classes = s.shape[1]
    return np.array([class_placements(s[:, c].copy(), y, None, c, n_classes=classes).auc for c in range(classes)])


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, IntArray]:
    s = checks.finite_array("scores", scores, ndim=2)
    if s.shape[1] < 2:
        raise ValueError(f"scores must have a column for each of at least 2 classes, got shape {s.shape}")
    y = checks.class_labels(labels, n=s.shape[0], n_classes=s.shape[1])
    missing = np.flatnonzero(np.bincount(y, minlength=s.shape[1]) == 0)
    if missing.size:
        raise ValueError(f"labels must hold every class, got none of class {missing[0]}")
    return s, y
