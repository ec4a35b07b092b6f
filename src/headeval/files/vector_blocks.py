"""Embeddings as a stream of matrices: with all columns beside them, or once more for rows that were read before."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.category_rows import CategoryExamples
from headeval.files.collecting import place_of, usable
from headeval.files.examples import Examples, Track, file_names, untracked
from headeval.files.fingerprint import row_digests
from headeval.files.numeric import plain_type
from headeval.files.row_faults import RowFaults
from headeval.files.tables import Block, TableFile, Tables
from headeval.files.unlabelled import UnlabelledRows
from headeval.files.vectors import DEFAULT_NAME, EmbeddingColumns, VectorReader, find_embedding
from headeval.printable import listed, quoted


def embedding_matrices(
    tables: Tables, examples: Examples | CategoryExamples | UnlabelledRows, *, track: Track = untracked
) -> Iterator[NDArray[Any]]:
    """Read the embeddings of the very same rows once more, matrix after matrix, each of shape (m, d) and not empty.

    Parameters
    ----------
    tables : the files that the examples were read from.
    examples : the rows, with or without their embeddings.
    track : wraps the blocks while they are read, to show progress.

    Raises
    ------
    DataError : where the files have changed since.
    ValueError : where the examples have no embeddings.
    """
    if examples.embedding_at is None or examples.dim is None:
        raise ValueError("the examples were read without embeddings")
    digests = None if isinstance(examples, UnlabelledRows) else examples.embedding_digests
    return _unchanged(
        tables, _embedding_matrices(tables, examples.embedding_at, examples.dim, examples.kept, track), digests
    )


def embedding_columns(tables: Tables, embedding: str) -> tuple[str, ...]:
    """Return the names of the columns that hold the embeddings: one of vectors, or one for each dimension.

    Raises
    ------
    DataError : where there are none, or where they cannot be told from others.
    """
    return find_embedding(tables, embedding).columns


def embedding_blocks(
    tables: Tables, *, embedding: str = DEFAULT_NAME, dim: int | None = None, track: Track = untracked
) -> Iterator[tuple[Block, NDArray[Any]]]:
    """Return block after block, with all its columns, and its embeddings, shape (n, d).

    Parameters
    ----------
    tables : the opened files; all must have the same columns, since their rows are to be written into one table.
    embedding : the column of vectors or the prefix of numbered columns.
    dim : the width that the embeddings must have.
    track : wraps the blocks while they are read, to show progress.

    Raises
    ------
    DataError : at once for columns that are missing, ambiguous or not the same in all files; while iterating, for
        rows that cannot be used.
    """
    where = one_table(tables, embedding)
    reader = VectorReader(where, dim=dim)
    blocks = track(tables.blocks(tables.column_names), tables.n_rows)
    return usable(blocks, lambda block, place: reader.read(block.batch, place))


def one_table(tables: Tables, embedding: str) -> EmbeddingColumns:
    """Return where the embeddings stand in files whose rows are to be written into one table.

    Raises
    ------
    DataError : for columns that are missing, ambiguous or not the same in all files.
    """
    where = find_embedding(tables, embedding)
    for file in tables.files:
        _check_columns(tables.files[0], file, where)
    return where


def _embedding_matrices(
    tables: Tables, where: EmbeddingColumns, dim: int, kept: NDArray[np.bool_], track: Track
) -> Iterator[NDArray[Any]]:
    faults, reader, first = RowFaults(), VectorReader(where, dim=dim), 0
    for block in track(tables.blocks(where.columns), tables.n_rows):
        place, batch = place_of(block, faults), block.batch
        wanted = kept[first : first + batch.num_rows]
        first += batch.num_rows
        if len(wanted) < batch.num_rows:
            break
        if not wanted.all():
            with reading(block.path):
                batch = batch.filter(pa.array(wanted))
            place = place.of(wanted)
        embeddings = reader.read(batch, place)
        faults.raise_if_any()
        if embeddings is not None and len(embeddings):
            yield embeddings
    if first != len(kept):
        raise _changed(tables)


def _unchanged(
    tables: Tables, matrices: Iterator[NDArray[Any]], digests: NDArray[np.uint64] | None
) -> Iterator[NDArray[Any]]:
    """Look at the ends of each matrix: files that were replaced hold other rows there."""
    first = 0
    for matrix in matrices:
        ends = [0, len(matrix) - 1]
        if digests is not None and (row_digests(matrix[ends]) != digests[first : first + len(matrix)][ends]).any():
            raise _changed(tables)
        first += len(matrix)
        yield matrix


def _changed(tables: Tables) -> DataError:
    return DataError(f"{file_names(tables)}: the rows have changed while they were read; run it again")


def _check_columns(first: TableFile, file: TableFile, where: EmbeddingColumns) -> None:
    """Refuse files whose rows cannot stand in one table."""
    for name in file.schema.names:
        file.field(name)
    if set(file.schema.names) != set(first.schema.names):
        odd = sorted(set(file.schema.names) ^ set(first.schema.names))
        raise DataError(f"{shown(first.path)} and {shown(file.path)} have different columns: {listed(odd)}")
    for name in set(first.schema.names) - set(where.columns):
        kinds = [_loose_type(first, name), _loose_type(file, name)]
        if kinds[0] != kinds[1]:
            raise DataError(
                f"column {quoted(name)} is of type {quoted(kinds[0])} in {shown(first.path)} "
                f"and {quoted(kinds[1])} in {shown(file.path)}"
            )


def _loose_type(file: TableFile, name: str) -> str:
    """Return the type as text, the layouts of text taken as one."""
    kind = str(plain_type(file.field(name).type))
    return "string" if kind in ("string", "large_string", "string_view") else kind
