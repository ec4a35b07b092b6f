"""Parquet files as a stream of record batches that have been checked."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.numeric import is_number, plain_type

MOST_ROWS = 65_536
# What a block and the buffer of one column take. Reading a block takes several times its size, and larger ones were
# not faster; but with one column a dimension, each block costs a little for every column.
_BLOCK_BYTES, _BUFFER_BYTES = 2**23, 2**18
_ROWS_MEASURED = 16
_MANY_COLUMNS, _MANY_BLOCK_BYTES, _MANY_BUFFER_BYTES = 64, 2**25, 2**15


def read_schema(path: Path) -> tuple[pa.Schema, int]:
    """Return the Arrow schema and the number of rows of a Parquet file.

    Raises
    ------
    DataError : where the file is damaged or holds no rows.
    """
    with reading(path), path.open("rb") as stream:
        file = _opened(stream)
        schema, n_rows = file.schema_arrow, int(file.metadata.num_rows)
        # What was added when the file was closed stands beside the schema's own metadata.
        schema = schema.with_metadata({**(schema.metadata or {}), **(file.metadata.metadata or {})})
        str(schema.names)  # decodes the names now: they need not be UTF-8
    if n_rows <= 0:
        raise DataError(f"{shown(path)} holds no rows")
    return schema, n_rows


def read_batches(path: Path, columns: Sequence[str], n_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file in order, in batches of some MiB and at most 65,536 rows.

    Raises
    ------
    DataError : where the file is damaged; every batch is validated in full before it is yielded.
    """
    with reading(path):
        # A Python file, since pyarrow takes no path whose bytes are not UTF-8.
        stream = path.open("rb")
    with stream:
        rows = 0
        with reading(path):
            file = _opened(stream, len(columns))
            options: dict[str, Any] = {"batch_size": _batch_rows(file, columns), "columns": columns}
            batches = file.iter_batches(**options)
        while True:
            with reading(path):
                batch = next(batches, None)
                if batch is not None:
                    # Damaged files were seen to give columns of unequal lengths and offsets out of range.
                    batch.validate(full=True)
            if batch is None:
                break
            if batch.num_rows:
                rows += batch.num_rows
                yield batch
        if rows != n_rows:
            raise DataError(f"{shown(path)} is damaged: it announces {n_rows} rows and holds {rows}")


def _opened(stream: BinaryIO, columns: int = 0) -> pq.ParquetFile:
    # Pages are read through a buffer: without one, or with `pre_buffer`, a whole row group, often the whole table,
    # would be in memory beside the rows read from it.
    return pq.ParquetFile(
        stream,
        buffer_size=_MANY_BUFFER_BYTES if columns > _MANY_COLUMNS else _BUFFER_BYTES,
        pre_buffer=False,
        page_checksum_verification=True,
    )


def _batch_rows(file: pq.ParquetFile, columns: Sequence[str]) -> int:
    """Return how many rows make a block.

    The metadata of single column chunks would tell, but where they are damaged, asking for them ends the process.
    """
    n_rows = int(file.metadata.num_rows)
    stored = sum(file.metadata.row_group(number).total_byte_size for number in range(file.metadata.num_row_groups))
    # Repeated values take little room in the file, but their full room in memory: what is known of it counts, too.
    in_memory = sum(_row_bytes(file, field) for field in file.schema_arrow if field.name in set(columns))
    block = _MANY_BLOCK_BYTES if len(columns) > _MANY_COLUMNS else _BLOCK_BYTES
    return max(1, min(MOST_ROWS, int(block // max(1, stored // max(1, n_rows), in_memory))))


def _row_bytes(file: pq.ParquetFile, field: pa.Field) -> int:
    """Return what one row of a column takes in memory if it is a vector, else 0."""
    kind = plain_type(field.type)
    if pa.types.is_fixed_size_list(kind) and is_number(kind.value_type):
        return int(kind.list_size * kind.value_type.bit_width // 8)
    if not pa.types.is_nested(kind):
        return 0
    first = next(file.iter_batches(batch_size=_ROWS_MEASURED, columns=[field.name]), None)
    if first is None or first.num_rows == 0:
        return 0
    first.validate(full=True)
    return int(first.nbytes // first.num_rows)
