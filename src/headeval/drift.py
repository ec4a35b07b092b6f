"""Drift: how the judged rows differ from those of a reference, and which of them the reference already holds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headeval.core import checks
from headeval.core.checks import IntArray
from headeval.core.intervals import Difference
from headeval.core.near_duplicates import MeanShift, RowStream, mean_shift, near_duplicates
from headeval.core.two_samples import (
    KolmogorovSmirnov,
    PopulationStability,
    ks_two_sample,
    population_stability_index,
    proportion_difference,
)

MIN_COSINE = 0.99
EXAMPLES = 10

Ids = Sequence[object] | NDArray[Any]


@dataclass(frozen=True, slots=True)
class PrevalenceChange:
    """The share of positives here and in the reference.

    Attributes
    ----------
    positives, n, reference_positives, m : counts behind both shares.
    difference : here minus reference.
    """

    positives: int
    n: int
    reference_positives: int
    m: int
    difference: Difference


class LeakedRow(NamedTuple):
    """A row that the reference holds as well: its id, or its number counted from 1, on both sides."""

    row: str | int
    reference_row: str | int
    cosine: float


@dataclass(frozen=True, slots=True)
class Leakage:
    """Rows that the reference holds as well.

    Attributes
    ----------
    n : rows looked at.
    exact : those whose very embedding is in the reference.
    near : of the others, among the `compared`, those with a cosine of at least `min_cosine` to some row of it.
    compared : how many of the others were compared: all of them, a random sample, or none without embeddings.
    examples : at most 10, the exact ones first, then by falling cosine.
    """

    n: int
    exact: int
    near: int
    min_cosine: float
    compared: int
    examples: tuple[LeakedRow, ...]

    @property
    def others(self) -> int:
        """Rows whose embedding is not in the reference."""
        return self.n - self.exact


@dataclass(frozen=True, slots=True)
class Drift:
    """The rows of DATA beside those of a reference.

    Attributes
    ----------
    reference : the name of the reference, text from outside.
    n, m : rows of DATA and of the reference.
    ks : whether the scores have the same distribution; its `a` is DATA.
    psi, prevalence, mean_shift, leakage : None where `undefined` has a reason under the same name.
    shifted : how many rows of DATA and of the reference the mean shift is of: a random sample, or all; None means all.
    undefined : by name, why there is no value.
    """

    reference: str
    n: int
    m: int
    ks: KolmogorovSmirnov
    psi: PopulationStability | None = None
    prevalence: PrevalenceChange | None = None
    mean_shift: MeanShift | None = None
    leakage: Leakage | None = None
    undefined: Mapping[str, str] = field(default_factory=dict)
    shifted: tuple[int, int] | None = None

    @property
    def shift_sampled(self) -> bool:
        """Whether the mean shift is of random samples of the rows."""
        return self.mean_shift is not None and self.shifted not in {None, (self.n, self.m)}


def drift(
    scores: ArrayLike,
    reference_scores: ArrayLike,
    labels: ArrayLike | None = None,
    reference_labels: ArrayLike | None = None,
    embeddings: NDArray[Any] | None = None,
    reference_embeddings: NDArray[Any] | None = None,
    ids: Ids | None = None,
    reference_ids: Ids | None = None,
    digests: NDArray[np.uint64] | None = None,
    reference_digests: NDArray[np.uint64] | None = None,
    *,
    rows: IntArray | None = None,
    reference_rows: IntArray | None = None,
    reference_stream: RowStream | None = None,
    reference: str = "reference",
    confidence: float = 0.95,
    min_cosine: float = MIN_COSINE,
    seed: int = 0,
) -> Drift:
    """Compare rows with those of a reference; what either side lacks is left out, with a reason.

    Parameters
    ----------
    scores, reference_scores : (n,) and (m,) finite, on the same scale, of the same classifier.
    labels, reference_labels : (n,) and (m,) in {0, 1}, or None.
    embeddings, reference_embeddings : (n, d) and (m, d), or None; with `rows` or `reference_rows`, of these alone.
    ids, reference_ids : (n,) and (m,), what to call the rows; None numbers them from 1.
    digests, reference_digests : (n, 2) and (m, 2), equal where embeddings are; None does not look for leakage.
    rows, reference_rows : (k,) increasing, a random sample of rows, where the embeddings of all would be too many.
    reference_stream : the embeddings of all (m, d), where `reference_embeddings` are of a sample.
    reference : what to call the reference.
    confidence : in (0, 1), of the interval of the difference of prevalences.
    min_cosine : in (0, 1], from which on two embeddings count as nearly the same.
    seed : of the permutations, and of the sample of rows that are compared where there are too many.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> found = drift([0.1, 0.9], [0.2, 0.3], [0, 1])
    >>> found.ks.statistic, found.undefined["prevalence"]
    (0.5, 'the reference has no labels')
    """
    scores = checks.finite_array("scores", scores, ndim=1)
    reference_scores = checks.finite_array("reference_scores", reference_scores, ndim=1)
    n, m = len(scores), len(reference_scores)
    shifted = (n if rows is None else len(rows), m if reference_rows is None else len(reference_rows))
    _check_rows(n, digests=digests)
    _check_rows(m, reference_digests=reference_digests)
    _check_rows(shifted[0], embeddings=embeddings)
    _check_rows(shifted[1], reference_embeddings=reference_embeddings)
    ks, psi = ks_two_sample(scores, reference_scores), population_stability_index(reference_scores, scores)
    undefined = {} if psi else {"psi": "the scores of the reference are all the same"}
    undefined |= _lacking("prevalence", "labels", labels, reference_labels)
    undefined |= _lacking("mean_shift", "embeddings", embeddings, reference_embeddings)
    undefined |= _lacking("leakage", "embeddings to look for", digests, reference_digests)
    shift, leaked = _mean_shift(embeddings, reference_embeddings, seed), None
    if digests is not None and reference_digests is not None:
        both = (digests, reference_digests, embeddings, reference_stream or reference_embeddings, ids, reference_ids)
        leaked = leakage(*both, rows=rows, min_cosine=min_cosine, seed=seed)
    change = _prevalence_change(labels, reference_labels, n, m, confidence)
    return Drift(reference, n, m, ks, psi, change, shift, leaked, undefined, shifted)


def leakage(
    digests: NDArray[np.uint64],
    reference_digests: NDArray[np.uint64],
    embeddings: NDArray[Any] | None = None,
    reference_embeddings: NDArray[Any] | RowStream | None = None,
    ids: Ids | None = None,
    reference_ids: Ids | None = None,
    *,
    rows: IntArray | None = None,
    min_cosine: float = MIN_COSINE,
    seed: int = 0,
) -> Leakage:
    """Look for rows in a reference: by their digests, and for the others by the cosine of their embeddings.

    Parameters
    ----------
    digests, reference_digests : (n, 2) and (m, 2), equal where rows are.
    embeddings, reference_embeddings : (n, d) and (m, d); where either is None only equal rows are found. Those of the
        reference may also be read while they are compared.
    rows : (k,) increasing: the embeddings are of a random sample of rows, these; None where they are of all.
    ids, reference_ids : (n,) and (m,), what to call the rows; None numbers them from 1.
    min_cosine : in (0, 1], from which on two embeddings count as nearly the same.
    seed : of the sample of rows that are compared where there are too many.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> found = leakage(np.array([[1, 1], [2, 5]], np.uint64), np.array([[3, 3], [2, 5]], np.uint64))
    >>> found.exact, found.examples[0].row, found.examples[0].reference_row
    (1, 2, 2)
    """
    n, m = len(digests), len(reference_digests)
    rows = np.arange(n) if rows is None else rows
    _check_rows(n, digests=digests)
    _check_rows(len(rows), embeddings=embeddings)
    _check_rows(m, reference_digests=reference_digests)
    name, reference_name = _names(ids, n), _names(reference_ids, m)
    codes, reference_codes = _codes(digests, reference_digests)
    distinct, first = np.unique(reference_codes, return_index=True)
    place = np.searchsorted(distinct, codes).clip(max=max(distinct.size - 1, 0))
    known = distinct[place] == codes if distinct.size else np.zeros(codes.size, dtype=bool)
    exact, others = np.flatnonzero(known), np.flatnonzero(~known[rows])
    examples = [LeakedRow(name(i), reference_name(int(first[place[i]])), 1.0) for i in exact[:EXAMPLES].tolist()]
    near, compared = 0, 0
    if embeddings is not None and reference_embeddings is not None and others.size and first.size:
        first = np.sort(first)  # copies within the reference need no comparing
        reference = _of_rows(reference_embeddings, first, m)
        rng = np.random.default_rng([seed, 1])
        candidates = embeddings if others.size == len(embeddings) else embeddings[others]
        found = near_duplicates(candidates, reference, rng=rng, min_cosine=min_cosine)
        near, compared = found.rows.size, found.compared
        for i in np.argsort(-found.cosines, kind="stable")[: EXAMPLES - len(examples)].tolist():
            row, match = int(rows[others[found.rows[i]]]), int(first[found.matches[i]])
            examples.append(LeakedRow(name(row), reference_name(match), float(found.cosines[i])))
    return Leakage(n, exact.size, near, min_cosine, compared, tuple(examples))


def _of_rows(embeddings: NDArray[Any] | RowStream, rows: IntArray, n: int) -> NDArray[Any] | RowStream:
    if isinstance(embeddings, RowStream):
        if embeddings.n != n:
            raise ValueError(f"reference_embeddings must have {n} rows, got {embeddings.n}")
        return embeddings.only(rows)
    _check_rows(n, reference_embeddings=embeddings)
    return embeddings if len(rows) == n else embeddings[rows]


def _prevalence_change(
    labels: ArrayLike | None, reference_labels: ArrayLike | None, n: int, m: int, confidence: float
) -> PrevalenceChange | None:
    if labels is None or reference_labels is None:
        return None
    here = (int(checks.binary_labels(labels, n=n).sum()), n)
    there = (int(checks.binary_labels(reference_labels, n=m).sum()), m)
    return PrevalenceChange(*here, *there, proportion_difference(*here, *there, confidence=confidence))


def _mean_shift(
    embeddings: NDArray[Any] | None, reference_embeddings: NDArray[Any] | None, seed: int
) -> MeanShift | None:
    if embeddings is None or reference_embeddings is None:
        return None
    return mean_shift(embeddings, reference_embeddings, rng=np.random.default_rng([seed, 0]))


def _lacking(name: str, what: str, here: object | None, there: object | None) -> dict[str, str]:
    """Return why there is no value of this name, or nothing."""
    if here is None and there is None:
        return {name: f"neither side has {what}"}
    if here is None or there is None:
        return {name: f"{'these rows have' if here is None else 'the reference has'} no {what}"}
    return {}


def _codes(digests: NDArray[np.uint64], reference_digests: NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """Return whole numbers that are equal where the digests are, on either side."""
    both = np.concatenate([digests, reference_digests])
    order = np.lexsort((both[:, 1], both[:, 0]))
    codes = np.zeros(len(both), dtype=np.int64)
    codes[order[1:]] = np.cumsum((both[order[1:]] != both[order[:-1]]).any(axis=1))
    return codes[: len(digests)], codes[len(digests) :]


def _names(ids: Ids | None, n: int) -> Callable[[int], str | int]:
    """Return what gives a row, counted from 0, its name."""
    if ids is None:
        return lambda row: row + 1
    if len(ids) != n:
        raise ValueError(f"there must be an id for each of {n} rows, got {len(ids)}")
    return lambda row: str(ids[row])


def _check_rows(n: int, **tables: NDArray[Any] | None) -> None:
    for name, values in tables.items():
        if values is not None and (values.ndim != 2 or values.shape[0] != n):
            raise ValueError(f"{name} must be 2-D with {n} rows, got shape {values.shape}")
