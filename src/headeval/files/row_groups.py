"""Rows put into row groups by their contents alone, so that a Parquet file does not show in which blocks they came."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MOST_ROWS = 65_536
MOST_BYTES = 2**24
_UNKNOWN_BYTES = 16  # of a value whose size nothing tells
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)


class RowGroups:
    """Gathers rows until they make a row group: so many rows or bytes, whichever comes first.

    Parameters
    ----------
    write : takes each row group, as one batch of contiguous columns.
    """

    def __init__(self, write: Callable[[pa.RecordBatch], None]) -> None:
        self._write = write
        self._held: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows of a schema that `grouped_schema` gave; row groups that are full are written."""
        for part, nbytes in self._cut(batch):
            self._held.append(part)
            self._rows += part.num_rows
            self._bytes += nbytes
            if self._rows == MOST_ROWS or self._bytes >= MOST_BYTES:
                self.flush()

    def flush(self) -> None:
        """Write the rows that are held."""
        if self._held:
            whole = pa.concat_batches([_decoded(part) for part in self._held])
            self._write(_encoded(whole, self._held[0].schema))
            self._held, self._rows, self._bytes = [], 0, 0

    def _cut(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield the parts of a batch that end where row groups do, or with it, and their bytes."""
        totals = np.cumsum(sum((row_bytes(column) for column in batch.columns), np.zeros(batch.num_rows, np.int64)))
        start, before = 0, 0
        while start < batch.num_rows:
            full = int(np.searchsorted(totals, before + MOST_BYTES - self._bytes)) + 1
            stop = min(full, start + MOST_ROWS - self._rows, batch.num_rows)
            yield batch.slice(start, stop - start), int(totals[stop - 1]) - before
            start, before = stop, int(totals[stop - 1])


def grouped_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema in which rows are gathered: one dictionary has the values of many blocks, and needs wide codes.

    Examples
    --------
    >>> grouped_schema(pa.schema({"team": pa.dictionary(pa.int8(), pa.string())})).field("team").type.index_type
    DataType(int32)
    """
    fields = [
        field.with_type(pa.dictionary(pa.int32(), field.type.value_type, field.type.ordered))
        if pa.types.is_dictionary(field.type)
        else field
        for field in schema
    ]
    return pa.schema(fields, schema.metadata)


def row_bytes(column: pa.Array) -> NDArray[np.int64]:
    """Return about how many bytes each row takes, (n,): by its own value, wherever the column was cut.

    Examples
    --------
    >>> row_bytes(pa.array(["a", None, "abc"])).tolist()
    [1, 0, 3]
    >>> row_bytes(pa.array([[1.0, 2.0], []])).tolist()
    [16, 0]
    """
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return row_bytes(column.storage)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        column = column.cast(pa.large_binary())
    if pa.types.is_large_binary(column.type) or any(test(kind) for test in _TEXT):
        return _whole(pc.binary_length(column))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        ends = np.concatenate([[0], np.cumsum(_whole(pc.list_value_length(column)))])
        totals = np.concatenate([[0], np.cumsum(row_bytes(column.flatten()))])
        sizes: NDArray[np.int64] = np.diff(totals[ends])
        return sizes
    if pa.types.is_struct(kind):
        return sum(map(row_bytes, column.flatten()), np.zeros(len(column), np.int64))
    plain = pa.types.is_primitive(kind) or pa.types.is_fixed_size_binary(kind)
    return np.full(len(column), max(1, kind.bit_width // 8) if plain else _UNKNOWN_BYTES)


def _whole(lengths: pa.Array) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = pc.fill_null(lengths, 0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _recoded(kind: pa.DataType) -> bool:
    """Whether a dictionary may be made anew: the order of an ordered one is part of the data."""
    return pa.types.is_dictionary(kind) and not kind.ordered


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    # The dictionary of a block tells which values the block has, and some that it was cut off from.
    fields = [field.with_type(field.type.value_type) if _recoded(field.type) else field for field in batch.schema]
    return batch.cast(pa.schema(fields, batch.schema.metadata))


def _encoded(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with dictionaries of its values in the order in which they first occur."""
    columns = [
        column.dictionary_encode() if _recoded(field.type) else column
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
