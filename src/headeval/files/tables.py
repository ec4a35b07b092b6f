"""Parquet and CSV files, opened together and read block by block."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.inputs import find_files, kind_of
from headeval.files.locations import Location, RemoteFile
from headeval.files.parts import TablePart, split
from headeval.files.read_ahead import read_ahead
from headeval.files.table_file import Block, TableFile
from headeval.printable import quoted

__all__ = ["Block", "TableFile", "TablePart", "Tables", "open_tables"]

_MODEL_KEY = "embedding_model"
_OPENED_TOGETHER = 16  # files of a store, each of which is a few requests away


@dataclass(frozen=True, slots=True)
class Tables:
    """One or more Parquet or CSV files that belong together.

    Attributes
    ----------
    paths : the files, in the order in which their rows count.
    column_names : the columns of the first file.
    metadata : the schema metadata that all files agree on; a CSV file has none, so with one it is empty.
    embedding_model : the model that the Parquet files name in their metadata, or None.
    n_rows : the number of rows of all files, or None when one is a CSV file.
    files : the opened files.
    """

    paths: tuple[Location, ...]
    column_names: tuple[str, ...]
    metadata: Mapping[str, str]
    embedding_model: str | None
    n_rows: int | None
    files: tuple[TableFile, ...]

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Return the rows of all files in order, block by block.

        Parameters
        ----------
        columns : the names to read, or None for all columns. Every file must have every one of them.

        Raises
        ------
        DataError : at once for a missing or ambiguous column; while iterating, for a damaged file.
        """
        wanted = None if columns is None else list(dict.fromkeys(columns))
        for file in self.files if wanted is not None else ():
            file.check(wanted or ())
        return read_ahead(block for file in self.files for block in file.blocks(wanted))

    def parts(self, rows_each: int) -> list[TablePart]:
        """Cut the tables into parts of about `rows_each` rows that can be read apart from each other.

        Together, in this order, they are all rows, each once. Parquet files are cut between their row groups, so a
        part can be longer; a CSV file is one part.
        """
        return [part for file in self.files for part in split(file, rows_each)]


def open_tables(data: Sequence[str]) -> Tables:
    r"""Open the files that the DATA arguments name; no rows are read yet.

    Parameters
    ----------
    data : paths of Parquet and CSV files, folders of them, or glob patterns; or URIs of these in a store.

    Raises
    ------
    DataError : for a file that is missing, unreadable, damaged, without rows, of another kind or given twice, and
        where two files name different embedding models.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("id,z\n007,1.5\n")
    ...     tables = open_tables([folder])
    ...     [block.batch.to_pylist() for block in tables.blocks()]
    [[{'id': '007', 'z': '1.5'}]]
    """
    files = _open_all(find_files(data))
    counts = [file.n_rows for file in files]
    known = [count for count in counts if count is not None]
    return Tables(
        paths=tuple(file.path for file in files),
        column_names=tuple(files[0].schema.names),
        metadata=_agreed(files),
        embedding_model=_embedding_model(files),
        n_rows=sum(known) if len(known) == len(counts) else None,
        files=files,
    )


def _open_all(paths: Sequence[Location]) -> tuple[TableFile, ...]:
    """Open the files in order; the first that cannot be opened is the one reported."""
    if not any(isinstance(path, RemoteFile) for path in paths):
        return tuple(map(_open, paths))
    with ThreadPoolExecutor(_OPENED_TOGETHER) as threads:
        try:
            return tuple(threads.map(_open, paths))
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _open(path: Location) -> TableFile:
    if kind_of(path) == "csv":
        return _open_csv(path)
    from headeval.files.parquet_rows import read_schema

    schema, row_groups = read_schema(path)
    n_rows = sum(rows for rows, _ in row_groups)
    return TableFile(path, schema, n_rows, 0, _texts(schema.metadata or {}), row_groups)


def _open_csv(path: Location) -> TableFile:
    import pyarrow as pa

    from headeval.files.csv_text import read_header

    names, offset = read_header(path)
    return TableFile(path, pa.schema([pa.field(name, pa.string()) for name in names]), None, offset, {})


def _texts(metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    texts = {}
    for key, value in metadata.items():
        try:
            texts[key.decode("utf-8")] = value.decode("utf-8")
        except UnicodeDecodeError:
            continue
    return texts


def _agreed(files: Sequence[TableFile]) -> dict[str, str]:
    first, *others = (file.metadata for file in files)
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _embedding_model(files: Sequence[TableFile]) -> str | None:
    named = [(file.metadata[_MODEL_KEY], file.path) for file in files if file.metadata.get(_MODEL_KEY, "").strip()]
    for model, path in named:
        if model != named[0][0]:
            raise DataError(
                f"the files hold embeddings of different models: {shown(named[0][1])} of {quoted(named[0][0])}, "
                f"{shown(path)} of {quoted(model)}"
            )
    return named[0][0] if named else None
