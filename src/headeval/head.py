"""LinearHead: the linear classifier on unit-length embeddings that a gateway evaluates."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headeval.core.checks import FloatArray, finite_array, real_number
from headeval.core.class_scores import log_odds
from headeval.core.stable import sigmoid, softmax
from headeval.core.vectors import unit_vectors

_BLOCK_NUMBERS = 2**17  # embedding entries worked on at a time: a block and its products stay in the cache

# Sums of products with unit vectors stay below 256 times the largest weight even for 65,536 dimensions.
# Larger weights than this are first divided by a power of two (exactly), so that no partial sum overflows.
_HUGE_WEIGHT = 2.0**900
_SHIFT = 64
_LARGEST_LOGIT = float(np.finfo(np.float64).max) / 4  # the difference of two such logits is still finite


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinearHead:
    """A linear classifier on embeddings, scored on unit vectors: softmax(W u + b) with u = e/‖e‖.

    The last class is the flagged one. Arrays are copied, float64 and read-only. Two heads are equal when
    they hold the same contents bit for bit (0.0 and −0.0 differ, and so do 1 and 1.0 in `metrics`).

    Parameters
    ----------
    embedding_model : name of the model whose embeddings the head was fitted on.
    classes : at least two distinct names; the last one is the flagged class.
    W : (C, dim), finite; row c scores class c.
    b : (C,), finite; one intercept a class.
    threshold : in [0, 1]; an embedding is flagged from this probability of the last class on.
    metrics : held-out metrics and provenance; anything that JSON can hold.

    Raises
    ------
    ValueError
        A shape does not fit, a number is not finite, or a name is empty or used twice.

    Examples
    --------
    >>> head = LinearHead("model", ("safe", "unsafe"), W=[[0, 0], [1, 2]], b=[0, -1], threshold=0.5)
    >>> head.class_logits([[3.0, 4.0], [0.0, 0.0]]).round(12).tolist()
    [[0.0, 1.2], [0.0, -1.0]]
    >>> head.probs([[3.0, 4.0]]).round(6).tolist()
    [0.768525]
    """

    embedding_model: str
    classes: tuple[str, ...]
    W: FloatArray
    b: FloatArray
    threshold: float
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_name("embedding_model", self.embedding_model)
        classes = _class_names(self.classes)
        W = _frozen("W", self.W, ndim=2)
        b = _frozen("b", self.b, ndim=1)
        if W.shape[0] != len(classes) or W.shape[1] < 1:
            raise ValueError(f"W must have shape ({len(classes)}, dim) with dim at least 1, got {W.shape}")
        if b.shape != (len(classes),):
            raise ValueError(f"b must have shape ({len(classes)},), got {b.shape}")
        if isinstance(self.threshold, bool):
            raise ValueError(f"threshold must be a number, got {self.threshold}")
        if not isinstance(self.metrics, Mapping):
            raise ValueError(f"metrics must be a mapping, got {type(self.metrics).__name__}")
        values = {
            "classes": classes,
            "W": W,
            "b": b,
            "threshold": real_number("threshold", self.threshold, minimum=0.0, maximum=1.0),
            "metrics": deepcopy(dict(self.metrics)),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def binary(
        cls,
        w: ArrayLike,
        c: float,
        *,
        classes: tuple[str, str],
        embedding_model: str,
        threshold: float = 0.5,
        metrics: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the head with p₁ = sigmoid(w·u + c); class 0 is the reference: W = [0; w], b = [0, c].

        Parameters
        ----------
        w : (dim,) weights, without the intercept (a fitted vector holds it as its last entry).
        c : intercept.
        classes : the two names, the flagged one last.
        embedding_model, threshold, metrics : as for `LinearHead`.

        Raises
        ------
        ValueError
            As `LinearHead`.
        """
        weights = finite_array("w", w, ndim=1)
        return cls(
            embedding_model=embedding_model,
            classes=classes,
            W=np.stack([np.zeros_like(weights), weights]),
            b=np.array([0.0, c]),
            threshold=threshold,
            metrics={} if metrics is None else metrics,
        )

    @property
    def dim(self) -> int:
        """Length of an embedding."""
        return int(self.W.shape[1])

    @property
    def decision_classes(self) -> tuple[str, str]:
        """The names of (not flagged, flagged): of more than two classes all but the last are not flagged."""
        flagged = self.classes[-1]
        return (self.classes[0] if len(self.classes) == 2 else f"not {flagged}", flagged)

    def class_logits(self, embeddings: ArrayLike) -> FloatArray:
        """Return W u + b, (n, C), for each embedding brought to unit length; a zero embedding stays zero.

        The result for a row does not depend on the other rows of the call, nor on how many there are:
        scoring in one call, row by row or in chunks gives the same bits.

        Parameters
        ----------
        embeddings : (n, dim), finite, of any length (norm) and numeric type.

        Raises
        ------
        ValueError
            `embeddings` is not 2-D, not finite, or has another number of columns than the head.
        """
        rows = np.asarray(embeddings)
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise ValueError(f"embeddings must have shape (n, {self.dim}), got {rows.shape}")
        logits = np.empty((rows.shape[0], len(self.classes)))
        size = max(1, _BLOCK_NUMBERS // self.dim)
        for start in range(0, rows.shape[0], size):
            block = finite_array("embeddings", rows[start : start + size], ndim=2)
            logits[start : start + size] = self._logits_of_block(block)
        return logits

    def _logits_of_block(self, block: FloatArray) -> FloatArray:
        # Not a matrix product: BLAS adds the products of a row in another order for one row than for many,
        # and einsum cuts long rows where its buffer ends. Multiplying and then summing each contiguous row
        # adds them in an order that depends on `dim` alone, so the bits are the same everywhere.
        u = np.ascontiguousarray(unit_vectors(np.ascontiguousarray(block)))
        logits = np.zeros((u.shape[0], len(self.classes)))
        products = np.empty_like(u)
        for c, weights in enumerate(self.W):
            largest = max(weights.max(), -weights.min())
            if largest == 0.0:  # the reference class of a binary head
                continue
            shift = _SHIFT if largest > _HUGE_WEIGHT else 0
            np.multiply(u, np.ldexp(weights, -shift) if shift else weights, out=products)
            with np.errstate(over="ignore"):
                logits[:, c] = np.ldexp(products.sum(axis=1), shift)
        with np.errstate(over="ignore"):
            logits += self.b
        return np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT, out=logits)

    def logits(self, embeddings: ArrayLike) -> FloatArray:
        """Return the log-odds of the last class, (n,): log p_last − log(1 − p_last).

        For two classes this is the difference of the class logits, which is w·u + c for a head made by
        `binary`; for more classes z_last − logsumexp(all others). Parameters and errors as for `class_logits`.

        Examples
        --------
        >>> head = LinearHead.binary([1, 2], -1, classes=("safe", "unsafe"), embedding_model="model")
        >>> head.logits([[300.0, 400.0]]).round(12).tolist()
        [1.2]
        """
        return log_odds(self.class_logits(embeddings))

    def probabilities(self, embeddings: ArrayLike) -> FloatArray:
        """Return softmax(W u + b), (n, C); parameters and errors as for `class_logits`."""
        return softmax(self.class_logits(embeddings))

    def probs(self, embeddings: ArrayLike) -> FloatArray:
        """Return the probability of the last class, (n,); parameters and errors as for `class_logits`."""
        return sigmoid(self.logits(embeddings))

    def flagged(self, embeddings: ArrayLike) -> NDArray[np.bool_]:
        """Return whether the probability of the last class reaches the threshold, bool (n,); equality flags."""
        flags: NDArray[np.bool_] = self.probs(embeddings) >= self.threshold
        return flags

    def with_temperature(self, temperature: float) -> Self:
        """Return the head with all logits divided by `temperature` (finite, > 0): W/T, b/T.

        Threshold and metrics are kept as they are, though they speak of the probabilities before.

        Raises
        ------
        ValueError
            `temperature` is not finite or not positive, or so small that the weights overflow.
        """
        T = real_number("temperature", temperature, minimum=0.0)
        if T == 0.0:
            raise ValueError("temperature must be greater than 0")
        with np.errstate(over="ignore"):
            return replace(self, W=self.W / T, b=self.b / T)

    def with_platt(self, slope: float, intercept: float) -> Self:
        """Return the two-class head whose logit is slope·z + intercept, where z is this head's logit.

        With (w₀, w₁) the rows of W: W = [0; a·(w₁ − w₀)], b = [0, a·(b₁ − b₀) + c] for slope a and intercept c.
        Threshold and metrics are kept as they are, though they speak of the probabilities before.

        Raises
        ------
        ValueError
            The head has more than two classes, a parameter is not finite, or the weights overflow.
        """
        if len(self.classes) != 2:
            raise ValueError(f"Platt scaling needs exactly two classes, the head has {len(self.classes)}")
        a = real_number("slope", slope, minimum=0.0)
        if a == 0.0:
            raise ValueError("slope must be greater than 0, or the ranking would be lost")
        c = real_number("intercept", intercept, minimum=-np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            w = a * (self.W[1] - self.W[0])
            intercept_1 = a * (self.b[1] - self.b[0]) + c
        return replace(self, W=np.stack([np.zeros_like(w), w]), b=np.array([0.0, intercept_1]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearHead):
            return NotImplemented
        return self._identity() == other._identity() and _identical(dict(self.metrics), dict(other.metrics))

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        numbers = (self.W.tobytes(), self.b.tobytes(), self.threshold.hex())
        return (self.embedding_model, self.classes, *numbers)

    def __repr__(self) -> str:
        return (
            f"LinearHead(embedding_model={self.embedding_model!r}, classes={self.classes!r}, dim={self.dim}, "
            f"threshold={self.threshold!r}, metrics={sorted(self.metrics, key=str)!r})"
        )


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ValueError(f"{what} must be a non-empty string, got {name!r}")
    if any("\ud800" <= char <= "\udfff" for char in name):  # no file could hold it
        raise ValueError(f"{what} must be valid Unicode, got {name!r}")


def _class_names(classes: Iterable[str]) -> tuple[str, ...]:
    if isinstance(classes, str):
        raise ValueError(f"classes must be a sequence of names, got the string {classes!r}")
    names = tuple(classes)
    for name in names:
        _check_name("each of classes", name)
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"classes must be at least two distinct names, got {names!r}")
    return names


def _frozen(name: str, values: ArrayLike, *, ndim: int) -> FloatArray:
    array: FloatArray = np.array(finite_array(name, values, ndim=ndim), order="C")
    array.flags.writeable = False
    return array


def _identical(a: object, b: object) -> bool:
    """Tell whether two JSON values are the same, types and the sign of zero included; NaN is itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_identical(value, b[key]) for key, value in a.items())
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_identical, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a.hex() == b.hex()
    return a == b
