"""Scored rows as every measure needs them: checked, sorted once, with logits kept where they are known."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headeval.core import checks
from headeval.core.bins import unit_weights
from headeval.core.checks import FloatArray, IntArray
from headeval.core.intervals import effective_size
from headeval.core.placements import kish_size
from headeval.core.ranked import BLOCK, sorted_by_class
from headeval.core.stable import logit, sigmoid, softplus

ScoreKind = Literal["logit", "prob"]

_ROUNDING = 1e-12  # of sums of weights; equal ones make as many units as there are


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Labelled rows with their scores.

    Attributes
    ----------
    s : (n,) scores, logits or probabilities as `kind` says; n ≥ 1.
    y : (n,) labels in {0, 1}.
    p : (n,) probabilities of class 1.
    weights : (n,), not negative, the largest in [1, 2), as only their ratios count; None weighs all rows alike.
    groups : (n,) codes of rows that are not independent of each other; None where every row stands for itself.
    """

    kind: ScoreKind
    s: FloatArray
    y: IntArray
    p: FloatArray
    weights: FloatArray | None
    groups: IntArray | None

    @classmethod
    def checked(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        kind: ScoreKind,
        weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Return the rows in the order they are given.

        Raises
        ------
        ValueError
            When a score is not finite, a probability not in [0, 1], a label not in {0, 1}, a weight negative, or the
            lengths differ.
        """
        s, y, w, g = _checked(scores, labels, kind, weights, groups)
        return cls(kind, s, y, _by_blocks(sigmoid, s) if kind == "logit" else s, w, g)

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
        """Return the rows in an order of their contents alone, that of `order`; raises as `checked` does."""
        s, y, w, g = _checked(scores, labels, kind, weights, groups)
        if w is not None or g is not None:
            # The probabilities are computed once they are in order, and only then.
            rows = cls(kind, s, y, s, w, g)
            rows = rows.reordered(rows.order())
            s, y, w, g = rows.s, rows.y, rows.weights, rows.groups
        else:
            s, y = sorted_by_class(s, y)
        return cls(kind, s, y, _by_blocks(sigmoid, s) if kind == "logit" else s, w, g)

    def order(self, *also: FloatArray) -> IntArray:
        """Return positions that put the rows in an order of their contents alone: by score, label, weight and group.

        Parameters
        ----------
        also : (n,) keys that come between score and label, such as a second score.
        """
        last = [key for key in (self.groups, self.weights) if key is not None]
        order: IntArray = np.lexsort([*last, self.y, *also, self.s])
        return order

    def reordered(self, order: IntArray) -> Self:
        """Return the rows in another order, (n,) positions."""
        w, g = self.weights, self.groups
        return type(self)(
            self.kind,
            self.s[order],
            self.y[order],
            self.p[order],
            None if w is None else w[order],
            None if g is None else g[order],
        )

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.s.shape[0])

    @property
    def independent(self) -> bool:
        """Whether every row counts once and stands for itself, so that exact binomial bounds hold."""
        return self.weights is None and self.groups is None

    def losses(self) -> FloatArray:
        """Return −log(probability of the true class) of each row, (n,), in nats; infinite where that is 0."""
        if self.kind == "logit":
            return _by_blocks(lambda z, y: softplus(np.where(y == 1, -z, z)), self.s, self.y)
        with np.errstate(divide="ignore"):
            return _by_blocks(lambda p, y: -np.where(y == 1, np.log(p), np.log1p(-p)), self.p, self.y)

    def logits(self) -> FloatArray | None:
        """Return the log-odds, (n,); None where a probability is exactly 0 or 1, whose log-odds are infinite."""
        if self.kind == "logit":
            return self.s
        return _by_blocks(logit, self.p) if self.p.min() > 0 and self.p.max() < 1 else None

    def smaller_class(self) -> int:
        """Return the independent units of the smaller class."""
        positive = self.y == 1
        return min(self.units(positive), self.units(~positive))

    def units(self, rows: NDArray[np.bool_] | slice = slice(None)) -> int:
        """Return how many independent units the rows of a mask are: groups where there are any, else rows.

        Rows of no weight are as if absent, and unequal weights make fewer of the others (Kish's effective size).
        """
        if self.independent:
            return int(np.count_nonzero(rows)) if isinstance(rows, np.ndarray) else self.n
        seen = np.zeros(self.n, dtype=bool)
        seen[rows] = True if self.weights is None else self.weights[rows] > 0
        if not seen.any():
            return 0
        size = int(seen.sum()) if self.weights is None else int(kish_size(self.weights[seen]) * (1 + _ROUNDING))
        return size if self.groups is None else min(size, int(np.unique(self.groups[seen]).size))

    def effective_size(self, values: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
        """Return how many independent rows would tell the share of `values` among the rows of a mask as well.

        It is 0 where none of them has any weight.
        """
        if not (among.any() if self.weights is None else self.weights[among].any()):
            return 0.0
        return effective_size(
            values[among].astype(np.float64),
            weights=None if self.weights is None else self.weights[among],
            groups=None if self.groups is None else self.groups[among],
        )


def _checked(
    scores: ArrayLike, labels: ArrayLike, kind: ScoreKind, weights: ArrayLike | None, groups: ArrayLike | None
) -> tuple[FloatArray, IntArray, FloatArray | None, IntArray | None]:
    if kind not in get_args(ScoreKind):
        raise ValueError(f"kind must be one of {', '.join(get_args(ScoreKind))}, got {kind!r}")
    s = checks.probabilities("scores", scores) if kind == "prob" else checks.finite_array("scores", scores, ndim=1)
    y = checks.binary_labels(labels, n=s.shape[0])
    if not s.size:
        raise ValueError("scores must hold at least one row")
    # In a unit in which neither sums nor products of weights leave the range of float64.
    w = None if weights is None else unit_weights(weights, n=s.shape[0])
    return s, y, w, None if groups is None else checks.group_codes(groups, n=s.shape[0])


def _by_blocks(function: Callable[..., FloatArray], *columns: NDArray[Any]) -> FloatArray:
    """Apply an elementwise function block by block: what is between its steps stays in the cache of one core."""
    found = np.empty(columns[0].shape[0])
    for first in range(0, found.shape[0], BLOCK):
        found[first : first + BLOCK] = function(*(column[first : first + BLOCK] for column in columns))
    return found
