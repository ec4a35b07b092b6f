"""Tables written block by block; the file appears whole or not at all."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from headeval.errors import OutputError
from headeval.files.arrow_errors import shown
from headeval.files.atomic import atomic_file, check_output, refuse_remote
from headeval.files.locations import Location
from headeval.files.row_groups import RowGroups, grouped_schema
from headeval.printable import listed, printable, quoted

_PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
_CSV_SUFFIXES = frozenset({".csv"})
# Metadata that other libraries keep about the columns of one table; they misread a table with other columns by it.
_DESCRIBES_COLUMNS = frozenset({"pandas", "huggingface", "ARROW:schema"})


class TableWriter:
    """Writes record batches to an open file; the first one fixes the columns and their types."""

    def __init__(self, path: Path, file: BinaryIO, metadata: Mapping[str, str]) -> None:
        self._path = path
        self._file = file
        self._metadata = {key: value for key, value in metadata.items() if key not in _DESCRIBES_COLUMNS}
        self._writer: Any = None
        self._schema: pa.Schema | None = None
        self._groups: RowGroups | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of `batch`.

        Raises
        ------
        OutputError : where a column cannot be written in this format, or its type is not that of the rows before.
        """
        with self._telling():
            batch = _for_csv(batch, self._path) if _is_csv(self._path) else batch
            if self._schema is None:
                schema = batch.schema.with_metadata(self._metadata)
                self._schema = schema if _is_csv(self._path) else grouped_schema(schema)
                self._writer = self._open(self._schema)
                self._groups = None if _is_csv(self._path) else RowGroups(self._writer.write_batch)
            batch = batch.cast(self._schema) if batch.schema != self._schema else batch
            if self._groups is None:
                self._writer.write_batch(batch)
            else:
                self._groups.add(batch)

    def add_metadata(self, metadata: Mapping[str, str]) -> None:
        """Keep text that is known only after the rows; a CSV file has no place for it."""
        if self._writer is not None and not _is_csv(self._path):
            self._writer.add_key_value_metadata(dict(metadata))

    def close(self) -> None:
        """Complete the file.

        Raises
        ------
        OutputError : where nothing has been written, or the last rows cannot be.
        """
        if self._writer is None:
            raise OutputError(f"{shown(self._path)} is not written: there are no rows")
        with self._telling():
            if self._groups is not None:
                self._groups.flush()
        self._writer.close()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, ValueError, TypeError) as error:
            reason = printable((str(error).splitlines() or [""])[0], longest=160)
            raise OutputError(f"{shown(self._path)} cannot be written: {reason}") from error

    def abandon(self) -> None:
        """Let go of the file after an error; what is in it is of no use."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()
            if hasattr(self._writer, "is_open"):
                # Else pyarrow closes it once more when it is forgotten, and its complaint goes to the terminal.
                self._writer.is_open = False

    def _open(self, schema: pa.Schema) -> Any:
        repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
        if repeated:
            raise OutputError(f"{shown(self._path)}: several columns of the same name: {listed(repeated)}")
        if _is_csv(self._path):
            from pyarrow.csv import CSVWriter

            return CSVWriter(self._file, schema)
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(self._file, schema)


def check_table_output(path: Path, *, force: bool, inputs: Iterable[Location] = ()) -> None:
    """Refuse a table that could not be written, before any long work is done for it; nothing is created.

    Parameters
    ----------
    path : ends in .parquet (or .pq) or .csv, which decides the format.
    force : whether an existing file may be replaced.
    inputs : files that must not be replaced, also with `force`.

    Raises
    ------
    OutputError : where the name is a URI or has another suffix, or `headeval.files.atomic.check_output` refuses it.
    """
    refuse_remote(path)
    if path.suffix.lower() not in _PARQUET_SUFFIXES | _CSV_SUFFIXES:
        raise OutputError(f"{shown(path)}: the name must end in .parquet or .csv, which decides the format")
    check_output(path, force=force, inputs=inputs)


@contextmanager
def table_writer(path: Path, *, force: bool, metadata: Mapping[str, str]) -> Iterator[TableWriter]:
    r"""Open a table for writing; it appears at `path` when the block ends without an error.

    Parquet keeps the types of the columns and adds `metadata`. In CSV all text is quoted, so that it reads back byte
    for byte; a null is an empty cell without quotes, which most readers (this one too) take for empty text; columns of
    lists, structs or bytes are refused.

    Parameters
    ----------
    path : ends in .parquet (or .pq) or .csv, which decides the format.
    force : replace an existing file.
    metadata : text for the schema metadata of a Parquet file; what describes the columns of another table is left out.

    Raises
    ------
    OutputError : where the name has another suffix, or the file exists or cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with table_writer(Path(folder, "a.csv"), force=False, metadata={}) as writer:
    ...         writer.write(pa.RecordBatch.from_pydict({"id": ["007"], "z": [1.5]}))
    ...     Path(folder, "a.csv").read_text()
    '"id","z"\n"007",1.5\n'
    """
    check_table_output(path, force=force)
    with atomic_file(path, force=force) as file:
        writer = TableWriter(path, file, metadata)
        try:
            yield writer
            writer.close()
        except BaseException:  # an interrupt too: let go of the file, and the error goes on
            writer.abandon()
            raise


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() in _CSV_SUFFIXES


def _for_csv(batch: pa.RecordBatch, path: Path) -> pa.RecordBatch:
    """Return the batch with view layouts of text made plain."""
    arrays = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise OutputError(
                f"{shown(path)}: column {quoted(name)} of type {quoted(kind)} cannot be written as CSV; "
                "write a .parquet file instead"
            )
        arrays.append(column.cast(pa.string()) if pa.types.is_string_view(kind) else column)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
