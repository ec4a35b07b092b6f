"""Parquet and CSV files, opened together and read block by block."""

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headeval.errors import DataError
from headeval.files import csv_text, parquet_rows
from headeval.files.arrow_errors import reading, shown
from headeval.files.inputs import find_files
from headeval.printable import quoted

_MODEL_KEY = "embedding_model"
_NAMES_SHOWN = 12
_FAMILY = 3  # more numbered columns in a row than this are shown as a range


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of one file.

    Attributes
    ----------
    path : the file.
    first_row : position in the file of the first row, from 0, the header not counted.
    batch : the rows, at most 65,536; from a CSV file every column is text.
    is_csv : whether the file is a CSV file.
    """

    path: Path
    first_row: int
    batch: pa.RecordBatch
    is_csv: bool = False


@dataclass(frozen=True, slots=True)
class TableFile:
    """One opened file: its columns and what it says about itself; `n_rows` is None and `offset` used for CSV only."""

    path: Path
    schema: pa.Schema
    n_rows: int | None
    offset: int
    metadata: Mapping[str, str]

    @property
    def is_csv(self) -> bool:
        """Whether the file is a CSV file; its schema is text columns."""
        return self.n_rows is None

    def field(self, name: str, *, option: str = "") -> pa.Field:
        """Return the one column called `name`; `option` is the one that names it, for the message.

        Raises
        ------
        DataError : where there is no such column, or several.
        """
        positions = self.schema.get_all_field_indices(name)
        if len(positions) > 1:
            raise DataError(f"{shown(self.path)} has {len(positions)} columns {quoted(name)}: rename all but one")
        if not positions:
            names = list(self.schema.names)
            hint = _closest(name, names)
            advice = f"; name another with {option} COL" if option else ""
            raise DataError(
                f"{shown(self.path)} has no column {quoted(name)}{hint}; its columns are {_families(names)}{advice}"
            )
        return self.schema.field(positions[0])


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

    paths: tuple[Path, ...]
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
        if columns is not None:
            columns = list(dict.fromkeys(columns))
            for file in self.files:
                for name in columns:
                    file.field(name)
        return self._blocks(columns)

    def _blocks(self, columns: list[str] | None) -> Iterator[Block]:
        for file in self.files:
            first_row = 0
            for batch in _batches(file, columns):
                for start in range(0, batch.num_rows, parquet_rows.MOST_ROWS):
                    part = batch.slice(start, parquet_rows.MOST_ROWS)
                    yield Block(file.path, first_row, part, file.is_csv)
                    first_row += part.num_rows


def open_tables(data: Sequence[str]) -> Tables:
    r"""Open the files that the DATA arguments name; no rows are read yet.

    Parameters
    ----------
    data : paths of Parquet and CSV files, folders of them, or glob patterns.

    Raises
    ------
    DataError : for a file that is missing, unreadable, damaged, without rows, of another kind or given twice, and
        where two files name different embedding models.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("id,z\n007,1.5\n")
    ...     tables = open_tables([folder])
    ...     [block.batch.to_pylist() for block in tables.blocks()]
    [[{'id': '007', 'z': '1.5'}]]
    """
    files = tuple(_open_parquet(path) if kind == "parquet" else _open_csv(path) for path, kind in find_files(data))
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


def _open_parquet(path: Path) -> TableFile:
    schema, n_rows = parquet_rows.read_schema(path)
    return TableFile(path, schema, n_rows, 0, _texts(schema.metadata or {}))


def _open_csv(path: Path) -> TableFile:
    names, offset = csv_text.read_header(path)
    return TableFile(path, pa.schema([pa.field(name, pa.string()) for name in names]), None, offset, {})


def _batches(file: TableFile, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    if file.n_rows is not None:
        for batch in parquet_rows.read_batches(file.path, columns or file.schema.names, file.n_rows):
            with reading(file.path):
                ordered = batch if columns is None else batch.select(columns)
            yield ordered
        return
    names = tuple(file.schema.names)
    positions = range(len(names)) if columns is None else [names.index(name) for name in columns]
    for batch in csv_text.read_batches(file.path, names, file.offset):
        arrays = [batch.column(position) for position in positions]
        yield pa.RecordBatch.from_arrays(arrays, names=[names[position] for position in positions])


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


def _families(names: Sequence[str]) -> str:
    """Return the column names as text; numbered ones of one prefix as the first and the last."""
    shown_names = []
    for prefix, group in itertools.groupby(names, key=_prefix):
        members = list(group)
        if len(members) > _FAMILY and prefix is not None:
            shown_names.append(f"{quoted(members[0])} … {quoted(members[-1])}")
        else:
            shown_names += [quoted(name) for name in members]
    more = len(shown_names) - _NAMES_SHOWN
    return ", ".join(shown_names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _prefix(name: str) -> str | None:
    bare = name.rstrip("0123456789")
    return bare if bare != name else None


def _closest(name: str, names: Sequence[str]) -> str:
    folded = {other.strip().casefold(): other for other in names}
    close = difflib.get_close_matches(name.strip().casefold(), folded, n=1)
    return f" (did you mean {quoted(folded[close[0]])}?)" if close else ""
