"""The columns of the examples, gathered block by block."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.categories import MISSING, Categories
from headeval.files.embedded_rows import EmbeddedRows, Keeping
from headeval.files.growing import GrowingArray
from headeval.files.labels import resolve_labels
from headeval.files.numeric import read_numbers
from headeval.files.row_faults import Place, RowFaults
from headeval.files.tables import Block
from headeval.files.vectors import EmbeddingColumns, VectorReader
from headeval.printable import quoted

NULL_SLICE = "(null)"
# With larger ones, products of weights and their sums would leave the range of float64.
_HEAVIEST = 1e100
# A column of so many values is no column of labels; without a stop, one of identifiers would be read to its end.
_MOST_LABELS = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which columns to read, and how."""

    label: str
    embedding: EmbeddingColumns | None
    score: str | None
    is_prob: bool
    weight: str | None
    group: str | None
    by: tuple[str, ...]
    drop_unlabelled: bool
    dim: int | None

    @property
    def columns(self) -> list[str]:
        """The names of all columns, each once."""
        singles = (self.label, self.score, self.weight, self.group, *self.by)
        vectors = () if self.embedding is None else self.embedding.columns
        return list(dict.fromkeys([*(name for name in singles if name is not None), *vectors]))


class Collector:
    """Gathers the wanted columns of blocks.

    Attributes
    ----------
    faults : the rows that cannot be used.
    unlabelled : how many rows were left out since they have no label.
    embedded : what is kept of the embeddings, or None.
    """

    def __init__(self, wanted: Wanted, n_rows: int | None, keeping: Keeping) -> None:
        self.faults = RowFaults()
        self.unlabelled = 0
        self._wanted = wanted
        self._labels = _CodedColumn(wanted.label, n_rows, numbers_in_text=True, blank_is_missing=True)
        self._groups = None
        if wanted.group is not None:
            self._groups = _CodedColumn(wanted.group, n_rows, numbers_in_text=False, blank_is_missing=True)
        self._slices = {
            name: _CodedColumn(name, n_rows, numbers_in_text=False, blank_is_missing=False) for name in wanted.by
        }
        self._vectors = None if wanted.embedding is None else VectorReader(wanted.embedding, dim=wanted.dim)
        self.embedded: EmbeddedRows | None = None
        if wanted.embedding is not None:
            self.embedded = EmbeddedRows(wanted.embedding.dtype, expected=n_rows, keeping=keeping)
        self._scores = GrowingArray(np.float64, expected=n_rows)
        self._weights = GrowingArray(np.float64, expected=n_rows)
        self._kept = GrowingArray(np.bool_, expected=n_rows)

    def read(self, blocks: Iterable[Block]) -> None:
        """Take the rows of all blocks.

        Raises
        ------
        DataError : for rows that cannot be used, and where a column is of a type that cannot be used at all.
        """
        matrices = (embeddings for block in blocks if (embeddings := self._add(block)) is not None)
        if self.embedded is None:
            deque(matrices, maxlen=0)
        else:
            self.embedded.gather(matrices)
        self.faults.raise_if_any()

    def _add(self, block: Block) -> NDArray[Any] | None:
        """Take the rows of a block; return their embeddings, if there are any and no row so far is at fault."""
        self.faults.raise_if_any(unless_in=block.path)
        place = place_of(block, self.faults)
        codes = self._labels.categories.codes(block.batch.column(self._wanted.label), place)
        batch, codes, place = self._labelled(block.batch, codes, place)
        if batch.num_rows == 0:
            return None
        self._labels.codes.append(codes)
        self._refuse_identifiers(place)
        embeddings = None if self._vectors is None else self._vectors.read(batch, place)
        if self._wanted.score is not None:
            _append(self._scores, read_scores(batch, self._wanted.score, place, is_prob=self._wanted.is_prob))
        if self._wanted.weight is not None:
            _append(self._weights, _read_weights(batch, self._wanted.weight, place))
        if self._groups is not None:
            self._groups.codes.append(self._read_groups(batch, self._groups.categories, place))
        for name, column in self._slices.items():
            column.codes.append(column.categories.codes(batch.column(name), place))
        return None if self.faults else embeddings

    def labels(
        self, *, where: str, positive: str | None, classes: tuple[str, str] | None
    ) -> tuple[NDArray[np.uint8], tuple[str, str]]:
        """Return the labels, shape (n,), and the names of the classes (negative, positive).

        Raises
        ------
        DataError : where no row has a label, or the values do not make two classes.
        """
        codes = self._labels.codes.array()
        if not len(codes):
            raise DataError(f"{where} has no label in any of its {self.unlabelled} rows")
        texts = self._labels.categories.texts
        counts = dict(zip(texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True))
        rule = resolve_labels(counts, where=where, positive=positive, classes=classes)
        is_positive = np.array([text in rule.positives for text in texts], dtype=np.uint8)
        return is_positive[codes], rule.classes

    def kept(self) -> NDArray[np.bool_]:
        """Return which rows of the files have a label and were kept, shape (all rows,)."""
        return self._kept.array()

    def scores(self) -> NDArray[np.float64] | None:
        """Return the scores, shape (n,), or None."""
        return None if self._wanted.score is None else self._scores.array()

    def weights(self, *, where: str) -> NDArray[np.float64] | None:
        """Return the weights, shape (n,), or None.

        Raises
        ------
        DataError : where all weights are zero.
        """
        if self._wanted.weight is None:
            return None
        weights = self._weights.array()
        if not weights.any():
            raise DataError(f"{where}: all weights are 0")
        return weights

    def groups(self) -> NDArray[np.int64] | None:
        """Return the groups, shape (n,), numbered in the order of their texts, which no row order changes; or None."""
        if self._groups is None:
            return None
        texts = self._groups.categories.texts
        rank = np.empty(len(texts), dtype=np.int64)
        rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        groups: NDArray[np.int64] = rank[self._groups.codes.array()]
        return groups

    def slices(self) -> Mapping[str, NDArray[np.object_]]:
        """Return by column the text of each row, shape (n,); for a null what `null_text` says."""
        slices = {}
        for name, column in self._slices.items():
            texts = column.categories.texts
            # The last element is the one that the code MISSING, -1, stands for.
            slices[name] = np.array([*texts, null_text(texts)], dtype=object)[column.codes.array()]
        return slices

    def _labelled(
        self, batch: pa.RecordBatch, codes: NDArray[np.int64], place: Place
    ) -> tuple[pa.RecordBatch, NDArray[np.int64], Place]:
        missing = codes == MISSING
        self._kept.append(~missing)
        if not missing.any():
            return batch, codes, place
        if not self._wanted.drop_unlabelled:
            label = f"column {quoted(self._wanted.label)} has no label (null, NaN or empty)"
            place.fault(missing, label, advice="--drop-unlabelled leaves such rows out")
            return batch, codes, place
        self.unlabelled += int(missing.sum())
        labelled = pa.array(~missing)
        with reading(place.path):
            kept = batch.filter(labelled)
        return kept, codes[~missing], place.of(~missing)

    def _refuse_identifiers(self, place: Place) -> None:
        if len(self._labels.categories) > _MOST_LABELS:
            column = f"column {quoted(self._wanted.label)}"
            raise DataError(
                f"{shown(place.path)}: {column} holds more than {_MOST_LABELS} different values, "
                "a label has two; name the column of the labels with --label"
            )

    def _read_groups(self, batch: pa.RecordBatch, groups: Categories, place: Place) -> NDArray[np.int64]:
        codes = groups.codes(batch.column(groups.name), place)
        if (codes == MISSING).any():
            place.fault(codes == MISSING, f"column {quoted(groups.name)} has no group (null, NaN or empty)")
        return codes


def null_text(texts: Collection[str]) -> str:
    """Return what stands for a null beside the values `texts`: "(null)", or with a number where that is a value.

    Examples
    --------
    >>> null_text(["en"]), null_text(["en", "(null)"]), null_text(["(null)", "(null, 2)"])
    ('(null)', '(null, 2)', '(null, 3)')
    """
    text, number = NULL_SLICE, 1
    while text in texts:
        number += 1
        text = f"({NULL_SLICE[1:-1]}, {number})"
    return text


def read_scores(batch: pa.RecordBatch, name: str, place: Place, *, is_prob: bool) -> NDArray[np.float64] | None:
    """Return a column of scores, shape (n,); None, its faults noted, where a row is no number or no probability."""
    scores = read_numbers(batch.column(name), name, place)
    if scores is None or not is_prob:
        return scores
    outside = (scores < 0) | (scores > 1)
    if outside.any():
        label = f"column {quoted(name)} is no probability in [0, 1]"
        percent = scores.min() >= 0 and scores.max() <= 100
        advice = "if it holds per cent, divide by 100; " if percent else ""
        advice += f"if it holds logits, use --logit {quoted(name)}"
        place.fault(outside, label, advice=advice, cells=scores[outside].tolist())
    return scores


def place_of(block: Block, faults: RowFaults) -> Place:
    """Return where the rows of a block come from; they are numbered from 1 within their file."""
    first = block.first_row + 1
    rows = np.arange(first, first + block.batch.num_rows, dtype=np.int64)
    return Place(block.path, rows, block.is_csv, faults)


def usable(
    blocks: Iterable[Block], read: Callable[[Block, Place], NDArray[Any] | None]
) -> Iterator[tuple[Block, NDArray[Any]]]:
    """Return block after block with what is read from it, until a row is at fault.

    Raises
    ------
    DataError : for the rows at fault, once their file has been read.
    """
    faults = RowFaults()
    for block in blocks:
        faults.raise_if_any(unless_in=block.path)
        values = read(block, place_of(block, faults))
        if values is not None and not faults:
            yield block, values
    faults.raise_if_any()


class _CodedColumn:
    """A column of names and the code of each row."""

    def __init__(self, name: str, n_rows: int | None, *, numbers_in_text: bool, blank_is_missing: bool) -> None:
        self.categories = Categories(name, numbers_in_text=numbers_in_text, blank_is_missing=blank_is_missing)
        self.codes = GrowingArray(np.int32, expected=n_rows)


def _append(rows: GrowingArray, values: NDArray[Any] | None) -> None:
    if values is not None:
        rows.append(values)


def _read_weights(batch: pa.RecordBatch, name: str, place: Place) -> NDArray[np.float64] | None:
    weights = read_numbers(batch.column(name), name, place)
    if weights is None:
        return None
    negative, heavy = weights < 0, weights > _HEAVIEST
    if negative.any():
        place.fault(negative, f"column {quoted(name)} is a negative weight", cells=weights[negative].tolist())
    if heavy.any():
        label = f"column {quoted(name)} is a weight above {_HEAVIEST:g}"
        place.fault(heavy, label, advice="divide all weights by a large number", cells=weights[heavy].tolist())
    return weights
