"""The columns of the examples, gathered block by block."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.categories import MISSING, Categories
from headeval.files.coded_columns import Coded, CodedColumn
from headeval.files.embedded_rows import EmbeddedRows, Keeping
from headeval.files.growing import GrowingArray
from headeval.files.number_columns import read_class_scores, read_known_scores, read_scores, read_weights
from headeval.files.row_faults import Place, RowFaults
from headeval.files.tables import Block
from headeval.files.vectors import EmbeddingColumns, VectorReader
from headeval.printable import listed, quoted

Many = Literal["", "classes", "categories"]
# A column of so many values is no column of labels; without a stop, one of identifiers would be read to its end.
_MOST_LABELS = 1000
_LABELS_HOLD = {"": "a label has two", "classes": "too many for classes", "categories": "a label has two"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which columns to read, and how.

    Attributes
    ----------
    labels : the columns of the labels; several only of categories.
    score : a column of scores, or None.
    is_prob : whether scores must be probabilities.
    many : what the labels are: of two classes (""), of many classes, or of categories, any of which may be unknown.
    score_columns : a column of scores for each of the classes, or one for each of the categories.
    """

    labels: tuple[str, ...]
    embedding: EmbeddingColumns | None
    score: str | None
    is_prob: bool
    weight: str | None
    group: str | None
    by: tuple[str, ...]
    drop_unlabelled: bool
    dim: int | None
    many: Many = ""
    score_columns: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The names of all columns, each once."""
        vectors = () if self.embedding is None else self.embedding.columns
        return list(dict.fromkeys([*self.singles, *vectors]))

    @property
    def singles(self) -> list[str]:
        """The names of the columns that are no embeddings."""
        names = (*self.labels, self.score, *self.score_columns, self.weight, self.group, *self.by)
        return [name for name in names if name is not None]


class Collector:
    """Gathers the wanted columns of blocks.

    Attributes
    ----------
    wanted : what is gathered.
    faults : the rows that cannot be used.
    unlabelled : how many rows were left out since they have no label.
    embedded : what is kept of the embeddings, or None.
    """

    def __init__(self, wanted: Wanted, n_rows: int | None, keeping: Keeping) -> None:
        self.faults = RowFaults()
        self.unlabelled = 0
        self.wanted = wanted
        self._labels = [
            CodedColumn(name, n_rows, numbers_in_text=True, blank_is_missing=True) for name in wanted.labels
        ]
        self._groups = None
        if wanted.group is not None:
            self._groups = CodedColumn(wanted.group, n_rows, numbers_in_text=False, blank_is_missing=True)
        self._slices = {
            name: CodedColumn(name, n_rows, numbers_in_text=False, blank_is_missing=False) for name in wanted.by
        }
        self._vectors = None if wanted.embedding is None else VectorReader(wanted.embedding, dim=wanted.dim)
        self.embedded: EmbeddedRows | None = None
        if wanted.embedding is not None:
            self.embedded = EmbeddedRows(wanted.embedding.dtype, expected=n_rows, keeping=keeping)
        self._scores = GrowingArray(np.float64, expected=n_rows)
        self._many_scores = GrowingArray(np.float64, expected=n_rows)
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
        codes = [column.categories.codes(block.batch.column(column.name), place) for column in self._labels]
        batch, codes, place = self._labelled(block.batch, codes, place)
        if batch.num_rows == 0:
            return None
        for labels, by_row in zip(self._labels, codes, strict=True):
            labels.codes.append(by_row)
        self._refuse_identifiers(place)
        embeddings = None if self._vectors is None else self._vectors.read(batch, place)
        if self.wanted.score is not None:
            _append(self._scores, read_scores(batch, self.wanted.score, place, is_prob=self.wanted.is_prob))
        if self.wanted.score_columns:
            _append(self._many_scores, self._read_scores(batch, codes, place))
        if self.wanted.weight is not None:
            _append(self._weights, read_weights(batch, self.wanted.weight, place))
        if self._groups is not None:
            self._groups.codes.append(self._read_groups(batch, self._groups.categories, place))
        for name, column in self._slices.items():
            column.codes.append(column.categories.codes(batch.column(name), place))
        return None if self.faults else embeddings

    def labels(self) -> tuple[Coded, ...]:
        """Return the columns of labels, each with the values that it holds."""
        return tuple(column.coded() for column in self._labels)

    def kept(self) -> NDArray[np.bool_]:
        """Return which rows of the files have a label and were kept, shape (all rows,)."""
        return self._kept.array()

    def scores(self) -> NDArray[np.float64] | None:
        """Return the scores, shape (n,), or None."""
        return None if self.wanted.score is None else self._scores.array()

    def many_scores(self) -> NDArray[np.float64] | None:
        """Return a column of scores a class or category, shape (n, C), or None."""
        return self._many_scores.array() if self.wanted.score_columns else None

    def weights(self) -> NDArray[np.float64] | None:
        """Return the weights, shape (n,), or None."""
        return None if self.wanted.weight is None else self._weights.array()

    def groups(self) -> Coded | None:
        """Return the groups, or None."""
        return None if self._groups is None else self._groups.coded()

    def slices(self) -> dict[str, Coded]:
        """Return by column the values that slices are made of."""
        return {name: column.coded() for name, column in self._slices.items()}

    def _labelled(
        self, batch: pa.RecordBatch, codes: list[NDArray[np.int64]], place: Place
    ) -> tuple[pa.RecordBatch, list[NDArray[np.int64]], Place]:
        """Return the rows that have a label; of several labels they need one."""
        missing = np.logical_and.reduce([column == MISSING for column in codes])
        self._kept.append(~missing)
        if not missing.any():
            return batch, codes, place
        if not self.wanted.drop_unlabelled:
            label = f"{columns_text(self.wanted.labels)} has no label (null, NaN or empty)"
            place.fault(missing, label, advice="--drop-unlabelled leaves such rows out")
            return batch, codes, place
        self.unlabelled += int(missing.sum())
        with reading(place.path):
            kept = batch.filter(pa.array(~missing))
        return kept, [column[~missing] for column in codes], place.of(~missing)

    def _refuse_identifiers(self, place: Place) -> None:
        for column in self._labels:
            if len(column.categories) > _MOST_LABELS:
                raise DataError(
                    f"{shown(place.path)}: column {quoted(column.name)} holds more than {_MOST_LABELS} different "
                    f"values, {_LABELS_HOLD[self.wanted.many]}; name the column of the labels with --label"
                )

    def _read_scores(
        self, batch: pa.RecordBatch, codes: list[NDArray[np.int64]], place: Place
    ) -> NDArray[np.float64] | None:
        """Return the scores of all classes or categories."""
        names, is_prob = self.wanted.score_columns, self.wanted.is_prob
        if self.wanted.many == "categories":
            return read_known_scores(batch, names, [column != MISSING for column in codes], place, is_prob=is_prob)
        return read_class_scores(batch, names, place, is_prob=is_prob)

    def _read_groups(self, batch: pa.RecordBatch, groups: Categories, place: Place) -> NDArray[np.int64]:
        codes = groups.codes(batch.column(groups.name), place)
        if (codes == MISSING).any():
            place.fault(codes == MISSING, f"column {quoted(groups.name)} has no group (null, NaN or empty)")
        return codes


def columns_text(names: Sequence[str]) -> str:
    """Return columns by their names, for a message.

    Examples
    --------
    >>> columns_text(["hate"]), columns_text(["hate", "spam"])
    ("column 'hate'", "columns 'hate', 'spam'")
    """
    return f"column{'' if len(names) == 1 else 's'} {listed(names)}"


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


def _append(rows: GrowingArray, values: NDArray[Any] | None) -> None:
    if values is not None:
        rows.append(values)
