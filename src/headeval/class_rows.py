"""Scored rows of C classes as every measure needs them: checked, put in order, logits kept where they are known."""

from dataclasses import dataclass
from typing import Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.bins import unit_weights
from headeval.core.checks import FloatArray, IntArray
from headeval.core.class_counts import ClassCounts
from headeval.core.class_scores import (
    class_log_odds,
    class_probabilities,
    losses_from_logits,
    losses_from_probabilities,
    order_of_contents,
    sums_are_off,
)
from headeval.scored_rows import ScoredRows, ScoreKind


@dataclass(frozen=True, slots=True)
class ClassRows:
    """Labelled rows with a score for each of C classes.

    Attributes
    ----------
    kind : what the scores are.
    s : (n, C) logits or probabilities; n ≥ 1, C ≥ 2.
    p : (n, C) probabilities.
    y : (n,) classes in {0, …, C−1}.
    predicted : (n,) the class of the largest score, the first of equal ones.
    top : the same rows as a question of two answers: was the predicted class right, with which confidence.
    counts : what the decisions come to, weighted where the rows are.
    """

    kind: ScoreKind
    s: FloatArray
    p: FloatArray
    y: IntArray
    predicted: IntArray
    top: ScoredRows
    counts: ClassCounts

    @classmethod
    def in_order(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        kind: ScoreKind,
        weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Return the rows in an order of their contents alone.

        Raises
        ------
        ValueError
            When a score is not finite, a probability not in [0, 1], the probabilities of a row do not add up to 1
            within what rounding to two digits does, a label is no class, a weight negative, or the lengths differ.
        """
        if kind not in get_args(ScoreKind):
            raise ValueError(f"kind must be one of {', '.join(get_args(ScoreKind))}, got {kind!r}")
        s = _checked_scores(scores, kind)
        y = checks.class_labels(labels, n=s.shape[0], n_classes=s.shape[1])
        w = None if weights is None else unit_weights(weights, n=s.shape[0])
        g = None if groups is None else checks.group_codes(groups, n=s.shape[0])
        order = order_of_contents(s, y, *(key for key in (w, g) if key is not None))
        s, y = s[order] + 0.0, y[order]  # −0.0 ties with 0.0, and must not be told from it later
        w, g = None if w is None else w[order], None if g is None else g[order]
        p = class_probabilities(s) if kind == "logit" else s
        predicted = s.argmax(axis=1)
        confidence, hit = p.max(axis=1), (predicted == y).astype(np.int64)
        top = ScoredRows("prob", confidence, hit, confidence, w, g)
        return cls(kind, s, p, y, predicted, top, ClassCounts.of_rows(y, predicted, w, n_classes=s.shape[1]))

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.y.shape[0])

    @property
    def n_classes(self) -> int:
        """How many classes there are, C."""
        return int(self.s.shape[1])

    @property
    def weights(self) -> FloatArray | None:
        """(n,) weights, None where all rows count alike."""
        return self.top.weights

    @property
    def groups(self) -> IntArray | None:
        """(n,) codes of rows that are not independent of each other; None where every row stands for itself."""
        return self.top.groups

    def losses(self) -> FloatArray:
        """Return −log(probability of the true class) of each row, (n,), in nats; infinite where that is 0."""
        return (losses_from_logits if self.kind == "logit" else losses_from_probabilities)(self.s, self.y)

    def ranking_scores(self) -> FloatArray:
        """Return what ranks each class, (C, n): its log-odds where logits are known, else its probability."""
        return class_log_odds(self.s) if self.kind == "logit" else self.s.T


def _checked_scores(scores: ArrayLike, kind: ScoreKind) -> FloatArray:
    s = (
        checks.probabilities("scores", scores, ndim=(2,))
        if kind == "prob"
        else checks.finite_array("scores", scores, ndim=2)
    )
    if s.shape[1] < 2:
        raise ValueError(f"scores must have a column for each of at least 2 classes, got shape {s.shape}")
    if not s.shape[0]:
        raise ValueError("scores must hold at least one row")
    if kind == "prob":
        off = sums_are_off(s)
        if off.any():
            found = f"{s[off][0].sum():g} in {np.count_nonzero(off)} rows"
            raise ValueError(f"the probabilities of a row must add up to 1, got {found}")
    return s
