"""Parquet files as a stream of record batches that have been checked."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.locations import Location, RemoteFile
from headeval.files.numeric import is_number, plain_type

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MOST_ROWS = 65_536
# What a block and the buffer of one column take. Reading a block takes several times its size, and larger ones were
# not faster; but with one column a dimension, each block costs a little for every column.
_BLOCK_BYTES, _BUFFER_BYTES = 2**23, 2**18
_ROWS_MEASURED = 16
# Equal rows take next to no room, so a small file can hold very many. More than this are counted before they are
# believed: memory is set aside for as many as a file announces.
_ROWS_A_BYTE = 8
_MANY_COLUMNS, _MANY_BLOCK_BYTES, _MANY_BUFFER_BYTES = 64, 2**25, 2**15
# What may be held of a file in a store; with many columns small buffers would be thousands of requests a row group.
_FETCHED_BYTES, _MANY_FETCHED_BYTES, _LARGEST_FETCHED_BUFFER = 2**26, 2**29, 2**23


def read_schema(path: Location) -> tuple[pa.Schema, tuple[tuple[int, int], ...]]:
    """Return the Arrow schema of a Parquet file, and the rows and the uncompressed bytes of each row group.

    Raises
    ------
    DataError : where the file is damaged or holds no rows.
    """
    with reading(path), path.open("rb") as stream:
        file = _opened(stream)
        schema, n_rows = file.schema_arrow, int(file.metadata.num_rows)
        row_groups = tuple(map(file.metadata.row_group, range(file.metadata.num_row_groups)))
        groups = tuple((int(group.num_rows), int(group.total_byte_size)) for group in row_groups)
        # What was added when the file was closed stands beside the schema's own metadata.
        schema = schema.with_metadata({**(schema.metadata or {}), **(file.metadata.metadata or {})})
        str(schema.names)  # decodes the names now: they need not be UTF-8
        if n_rows > _ROWS_A_BYTE * stream.seek(0, os.SEEK_END):
            groups = tuple((_held(file, number), size) for number, (_, size) in enumerate(groups))
    if n_rows <= 0:
        raise DataError(f"{shown(path)} holds no rows")
    if min((rows for rows, _ in groups), default=0) < 0 or sum(rows for rows, _ in groups) != n_rows:
        held = sum(rows for rows, _ in groups)
        raise DataError(f"{shown(path)} is damaged: it announces {n_rows} rows and its row groups {held}")
    return schema, groups


def read_batches(path: Location, columns: Sequence[str], groups: range, n_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some row groups of a Parquet file in order, in batches of some MiB and at most 65,536 rows.

    Parameters
    ----------
    groups : the numbers of the row groups.
    n_rows : how many rows they hold.

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
            remote = isinstance(path, RemoteFile)
            file = _opened(stream, len(columns), remote=remote)
            size = _batch_rows(file, columns)
            batches = _fetched(stream, file, groups, size, columns) if remote else _read(file, groups, size, columns)
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


def _held(file: "ParquetFile", group: int) -> int:
    """Count the rows that a row group holds, by its first column that is no list, if there is one."""
    columns = [field.name for field in file.schema_arrow if not pa.types.is_nested(field.type)]
    few = MOST_ROWS if columns else _ROWS_MEASURED
    names = (columns or file.schema_arrow.names)[:1]
    return sum(batch.num_rows for batch in file.iter_batches(few, row_groups=[group], columns=names))


def _read(
    file: "ParquetFile", groups: Iterable[int], batch_size: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    # A batch across row groups would need coded values within lists or structs in pieces, which pyarrow does not do.
    together = not any(_holds_codes_inside(field.type) for field in file.schema_arrow if field.name in set(columns))
    for numbers in [list(groups)] if together else [[number] for number in groups]:
        yield from file.iter_batches(batch_size, row_groups=numbers, columns=list(columns))


def _holds_codes_inside(kind: pa.DataType) -> bool:
    """Whether lists, structs or maps of this type hold dictionary-encoded values at any depth."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return any(pa.types.is_dictionary(one) or _holds_codes_inside(one) for one in inner)


def _fetched(
    stream: BinaryIO, file: "ParquetFile", groups: range, batch_size: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield batches of a file in a store, where every request takes its time, whatever it asks for.

    Row groups that fit into the memory set aside are fetched in a few large pieces; larger ones through buffers.
    """
    most = _MANY_FETCHED_BYTES if len(columns) > _MANY_COLUMNS else _FETCHED_BYTES
    whole = _opened(stream, len(columns), remote=True, of=file)
    sizes = [max(0, int(file.metadata.row_group(number).total_byte_size)) for number in groups]
    begin = 0
    while begin < len(groups):
        end, size = begin + 1, sizes[begin]
        while end < len(groups) and size + sizes[end] <= most:
            end, size = end + 1, size + sizes[end]
        yield from _read(whole if size <= most else file, groups[begin:end], batch_size, columns)
        begin = end


def _opened(
    stream: BinaryIO, columns: int = 0, *, remote: bool = False, of: "ParquetFile | None" = None
) -> "ParquetFile":
    """Open a file; with `of`, the same file once more, to fetch whole row groups."""
    from pyarrow.parquet import ParquetFile  # not for who reads CSV

    # Pages are read through a buffer: without one, or with `pre_buffer`, all row groups that are asked for together,
    # often the whole table, would be in memory beside the rows read from them.
    buffer = _MANY_BUFFER_BYTES if columns > _MANY_COLUMNS else _BUFFER_BYTES
    if remote:
        held = _MANY_FETCHED_BYTES // 2 if columns > _MANY_COLUMNS else _FETCHED_BYTES
        buffer = max(buffer, min(_LARGEST_FETCHED_BUFFER, held // max(1, columns)))
    return ParquetFile(
        stream,
        metadata=None if of is None else of.metadata,
        buffer_size=buffer,
        pre_buffer=of is not None,
        page_checksum_verification=True,
    )


def _batch_rows(file: "ParquetFile", columns: Sequence[str]) -> int:
    """Return how many rows make a block.

    The metadata of single column chunks would tell, but where they are damaged, asking for them ends the process.
    """
    n_rows = int(file.metadata.num_rows)
    stored = sum(file.metadata.row_group(number).total_byte_size for number in range(file.metadata.num_row_groups))
    # Repeated values take little room in the file, but their full room in memory: what is known of it counts, too.
    wanted = set(columns)
    in_memory = sum(_row_bytes(file, field) for field in file.schema_arrow if field.name in wanted)
    block = _MANY_BLOCK_BYTES if len(columns) > _MANY_COLUMNS else _BLOCK_BYTES
    return max(1, min(MOST_ROWS, int(block // max(1, stored // max(1, n_rows), in_memory))))


def _row_bytes(file: "ParquetFile", field: pa.Field) -> int:
    """Return what one row of a column takes in memory if it is a vector, else 0."""
    kind = plain_type(field.type)
    if pa.types.is_fixed_size_list(kind) and is_number(kind.value_type):
        return int(kind.list_size * kind.value_type.bit_width // 8)
    if not pa.types.is_nested(kind):
        return 0
    first = next(_read(file, range(file.metadata.num_row_groups), _ROWS_MEASURED, [field.name]), None)
    if first is None or first.num_rows == 0:
        return 0
    first.validate(full=True)
    return int(first.nbytes // first.num_rows)
