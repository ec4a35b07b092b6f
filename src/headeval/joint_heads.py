"""Heads that score the same embeddings: brought to unit length once for all of them."""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from headeval.core.checks import FloatArray
from headeval.core.class_scores import log_odds
from headeval.head import LinearHead


class JointHeads:
    """Several heads of one width, or one; each scores with the bits that it has by itself.

    Parameters
    ----------
    heads : at least one.

    Raises
    ------
    ValueError
        There is no head, or they take embeddings of different widths.

    Examples
    --------
    >>> heads = [
    ...     LinearHead.binary(w, c, classes=("no", "yes"), embedding_model="m") for w, c in (([1, 2], -1), ([5, 0], 2))
    ... ]
    >>> JointHeads(heads).logits([[3.0, 4.0]]).round(12).tolist()
    [[1.2, 5.0]]
    """

    def __init__(self, heads: Sequence[LinearHead]) -> None:
        widths = sorted({head.dim for head in heads})
        if len(widths) != 1:
            raise ValueError(f"heads must be at least one and of the same width, got widths {widths}")
        self.heads = tuple(heads)
        self._ends = [0, *np.cumsum([len(head.classes) for head in heads]).tolist()]
        self._joint = self.heads[0]
        if len(heads) > 1:
            self._joint = LinearHead(
                heads[0].embedding_model,
                tuple(map(str, range(self._ends[-1]))),
                np.concatenate([head.W for head in heads]),
                np.concatenate([head.b for head in heads]),
                threshold=0.5,
            )

    @property
    def dim(self) -> int:
        """Length of an embedding."""
        return self._joint.dim

    def class_logits(self, embeddings: ArrayLike) -> tuple[FloatArray, ...]:
        """Return of each head the logits of its classes, (n, C); embeddings (n, dim) as of `LinearHead`."""
        z = self._joint.class_logits(embeddings)
        return tuple(z[:, start:end] for start, end in itertools.pairwise(self._ends))

    def logits(self, embeddings: ArrayLike) -> FloatArray:
        """Return of each head the log-odds of its last class, (n, k); embeddings (n, dim) as of `LinearHead`."""
        return np.stack([log_odds(z) for z in self.class_logits(embeddings)], axis=1)
