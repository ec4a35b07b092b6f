"""Embedding columns in every shape a table can have, read as one matrix a block."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.locations import Location
from headeval.files.numeric import as_mask, is_number, is_text, plain, plain_type, read_numbers
from headeval.files.row_faults import Place
from headeval.files.tables import TableFile, Tables
from headeval.files.vector_text import read_vector_cells
from headeval.printable import listed, quoted

DEFAULT_NAME = "embedding"
# A prefix that does not end in a digit, then the number of the dimension.
_NUMBERED = re.compile(r"(?s)(|.*[^0-9])([0-9]{1,9})")
_TRANSPOSED_ROWS = 512  # rows a time, so that the columns read and the rows written stay in the cache together
_LIST_TYPES = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")


@dataclass(frozen=True, slots=True)
class EmbeddingColumns:
    """Where the embeddings stand.

    Attributes
    ----------
    columns : the one column of vectors, or the columns of the dimensions in the order of their numbers.
    wide : whether there is one column a dimension.
    dtype : float32 when every file stores float16 or float32, else float64.
    """

    columns: tuple[str, ...]
    wide: bool
    dtype: type[np.float32] | type[np.float64]

    @property
    def label(self) -> str:
        """What to call the columns in a message."""
        if not self.wide:
            return f"column {quoted(self.columns[0])}"
        return f"columns {quoted(self.columns[0])} to {quoted(self.columns[-1])}"


def find_embedding(tables: Tables, name: str, *, taken: Collection[str] = ()) -> EmbeddingColumns:
    """Find the column of vectors called `name`, or the numbered columns that make up the vectors.

    Parameters
    ----------
    name : a column; else the prefix of numbered columns (`emb_` or `emb` for `emb_0`, `emb_1`, …). Only for the
        default name, "embedding", any prefix is taken if there is just one.
    taken : columns with another meaning, which are never a dimension.

    Raises
    ------
    DataError : where there are no such columns, several sets of them, a gap in their numbers, columns that hold no
        numbers, or other columns in another file.
    """
    found = [_find(file, name, taken) for file in tables.files]
    first = tables.files[0]
    for file, columns in zip(tables.files, found, strict=True):
        if columns == found[0]:
            continue
        if (name,) in (columns, found[0]):
            whole, apart = (first, file) if found[0] == (name,) else (file, first)
            numbered = columns if apart is file else found[0]
            raise DataError(
                f"{shown(whole.path)} has a column {quoted(name)}, {shown(apart.path)} one column a dimension "
                f"({quoted(numbered[0])} to {quoted(numbered[-1])}): give them apart, or convert one of them"
            )
        raise DataError(
            f"{shown(first.path)} has the {len(found[0])} embedding columns {listed(found[0], longest=2)}, "
            f"but {shown(file.path)} the {len(columns)} columns {listed(columns, longest=2)}"
        )
    wide = found[0] != (name,)
    types = [_number_type(file.field(column).type) for file in tables.files for column in found[0]]
    single = all(pa.types.is_float16(kind) or pa.types.is_float32(kind) for kind in types)
    return EmbeddingColumns(found[0], wide, np.float32 if single else np.float64)


class VectorReader:
    """Reads the embeddings of one batch after the other and sees to it that all have one width.

    Parameters
    ----------
    where : the columns, as `find_embedding` found them.
    dim : the width that the head expects, or None.
    """

    def __init__(self, where: EmbeddingColumns, *, dim: int | None = None) -> None:
        self._where = where
        self._dim = dim
        self._width: int | None = None
        self._width_from: Location | None = None

    @property
    def width(self) -> int | None:
        """The width of the embeddings read so far."""
        return self._width

    def expect(self, width: int, path: Location) -> None:
        """Take it that the embeddings of a file have this width, as if its first rows had been read.

        Raises
        ------
        DataError : where it is not the width of the head or of the files before.
        """
        self._check_width(width, path)

    def read(self, batch: pa.RecordBatch, place: Place) -> NDArray[Any] | None:
        """Return the embeddings, shape (n, d); None where rows are at fault, which are noted in `place`.

        Raises
        ------
        DataError : where a column is of a type that holds no vectors of numbers, or the width is not the one of the
            head or of the files before.
        """
        if batch.num_rows == 0:
            return np.empty((0, self._width or self._dim or 0), dtype=self._where.dtype)
        if self._where.wide:
            self._check_width(len(self._where.columns), place.path)
            return _read_wide(batch, self._where, place)
        read = _read_column(batch.column(self._where.columns[0]), self._where.label, place)
        return None if read is None else self._matrix(*read, place)

    def _matrix(self, values: NDArray[Any], lengths: NDArray[np.int64], place: Place) -> NDArray[Any] | None:
        label = self._where.label
        if (lengths == 0).any():
            place.fault(lengths == 0, f"{label} has no numbers (width 0)")
            return None
        if self._width_from == place.path and self._width is not None:
            width = self._width
        else:
            widths, counts = np.unique(lengths, return_counts=True)
            width = int(widths[counts.argmax()])
            self._check_width(width, place.path)
        odd = lengths != width
        if odd.any():
            place.fault(odd, f"{label} has not the {width} numbers of the other rows", cells=lengths[odd].tolist())
            return None
        with np.errstate(over="ignore"):
            matrix = values.reshape(len(lengths), width).astype(self._where.dtype, copy=False)
        bad = None if _surely_finite(matrix) else ~np.isfinite(matrix).all(axis=1)
        if bad is not None and bad.any():
            place.fault(bad, f"{label} holds NaN or an infinity")
            return None
        return matrix

    def _check_width(self, width: int, path: Location) -> None:
        if self._dim is not None and width != self._dim:
            hint = f"the head expects {self._dim}: are they of another embedding model?"
            raise DataError(f"{shown(path)}: embeddings have {width} numbers, {hint}")
        if self._width is not None and self._width_from is not None and width != self._width:
            raise DataError(
                f"embeddings have {self._width} numbers in {shown(self._width_from)} but {width} in {shown(path)}"
            )
        self._width, self._width_from = width, path


def _surely_finite(matrix: NDArray[Any]) -> bool:
    """Whether the sum is finite: NaN and infinities never leave a sum again; without any it may still overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.add.reduce(matrix, axis=None)))


def _read_column(column: pa.Array, label: str, place: Place) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
    with reading(place.path):
        column = plain(column)
    if column.null_count:
        place.fault(as_mask(column.is_null()), f"{label} is null", advice="take these rows out of the file")
        return None
    return read_vector_cells(column, label, place) if is_text(column.type) else _read_lists(column, label, place)


def _read_lists(column: pa.Array, label: str, place: Place) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
    kind = column.type
    if not is_list(kind) or not is_number(kind.value_type):
        raise DataError(
            f"{shown(place.path)}: {label} must hold lists of numbers or JSON arrays, but it is of type {quoted(kind)}"
        )
    fixed = pa.types.is_fixed_size_list(kind)
    with reading(place.path):
        # `flatten` keeps to the rows of a slice; `values` would not.
        values = column.flatten()
        nulls = as_mask(values.is_null()) if values.null_count else None
        numbers = values.to_numpy(zero_copy_only=False)
        lengths = None if fixed else pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if lengths is None:
        lengths = np.full(len(column), kind.list_size)
    lengths = lengths.astype(np.int64, copy=False)
    if nulls is not None:
        rows = np.zeros(len(column), dtype=np.bool_)
        rows[np.repeat(np.arange(len(column)), lengths)[nulls]] = True
        place.fault(rows, f"{label} holds a null inside the vector")
        return None
    return numbers, lengths


def _read_wide(batch: pa.RecordBatch, where: EmbeddingColumns, place: Place) -> NDArray[Any] | None:
    columns = []
    for name in where.columns:
        numbers = read_numbers(batch.column(name), name, place)
        if numbers is not None:
            columns.append(numbers.astype(where.dtype, copy=False))
    if len(columns) < len(where.columns):
        return None
    matrix = np.empty((batch.num_rows, len(columns)), where.dtype)
    for start in range(0, batch.num_rows, _TRANSPOSED_ROWS):
        stop = start + _TRANSPOSED_ROWS
        matrix[start:stop] = np.stack([column[start:stop] for column in columns]).T
    return matrix


def _find(file: TableFile, name: str, taken: Collection[str]) -> tuple[str, ...]:
    if name in file.schema.names:
        file.field(name)
        return (name,)
    sets = _numbered_sets(file, taken)
    file.refuse_data_as_header([column for found in sets.values() for _, column in found])
    chosen = next((prefix for prefix in (name, f"{name}_") if prefix in sets), None)
    if chosen is None:
        if name != DEFAULT_NAME or not sets:
            file.field(name, option="--embedding")
        likely = [prefix for prefix, numbered in sets.items() if _may_be_vectors(file, numbered)] or list(sets)
        if len(likely) > 1:
            raise DataError(
                f"{shown(file.path)} has no column {quoted(name)} and several sets of numbered columns: "
                f"{listed(likely)}; choose one with --embedding"
            )
        chosen = likely[0]
    return _in_order(file, chosen, sets[chosen])


def _may_be_vectors(file: TableFile, numbered: list[tuple[int, str]]) -> bool:
    """Whether a set of numbered columns is taken for embeddings without being named."""
    return len(numbered) > 1 and any(_holds_numbers(file, name) for _, name in numbered)


def _numbered_sets(file: TableFile, taken: Collection[str]) -> dict[str, list[tuple[int, str]]]:
    """Return the numbered columns, each with its number, by prefix."""
    sets: dict[str, list[tuple[int, str]]] = {}
    for name in file.schema.names:
        if name not in taken and (match := _NUMBERED.fullmatch(name)) is not None:
            sets.setdefault(match[1], []).append((int(match[2]), name))
    return sets


def _in_order(file: TableFile, prefix: str, numbered: list[tuple[int, str]]) -> tuple[str, ...]:
    numbered.sort()
    names = tuple(name for _, name in numbered)
    for name in names:
        file.field(name)
    expected = 0 if numbered[0][0] == 0 else 1
    for index, (number, name) in enumerate(numbered):
        if number > expected:
            raise DataError(
                f"{shown(file.path)}: {quoted(f'{prefix}{expected}')} is missing among the numbered columns "
                f"{quoted(names[0])} to {quoted(names[-1])}"
            )
        if number < expected:
            raise DataError(
                f"{shown(file.path)}: the columns {quoted(names[index - 1])} and {quoted(name)} are one dimension twice"
            )
        expected += 1
    _refuse_other_types(file, names)
    return names


def _refuse_other_types(file: TableFile, names: Sequence[str]) -> None:
    wrong = [name for name in names if not _holds_numbers(file, name)]
    if wrong:
        raise DataError(
            f"{shown(file.path)}: the embedding columns must hold numbers, but {listed(wrong)} "
            f"{'is' if len(wrong) == 1 else 'are'} of type {quoted(file.field(wrong[0]).type)}"
        )


def _holds_numbers(file: TableFile, name: str) -> bool:
    """Whether a column may be a dimension; the text of a CSV file is looked at when it is read."""
    return file.is_csv or any(
        is_number(plain_type(file.schema.field(index).type)) for index in file.schema.get_all_field_indices(name)
    )


def is_list(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists, in any of Arrow's layouts."""
    return any(getattr(pa.types, name)(kind) for name in _LIST_TYPES)


def _number_type(kind: pa.DataType) -> pa.DataType:
    kind = plain_type(kind)
    return kind.value_type if is_list(kind) else kind
