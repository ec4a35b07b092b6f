"""Labelled examples from tables: embeddings or scores with their labels, weights, groups and slices."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.collecting import Collector, Wanted, place_of
from headeval.files.fingerprint import fingerprint, row_digests
from headeval.files.numeric import plain_type
from headeval.files.row_faults import RowFaults
from headeval.files.tables import Block, TableFile, Tables
from headeval.files.vectors import DEFAULT_NAME, EmbeddingColumns, VectorReader, find_embedding
from headeval.printable import listed, quoted

Track = Callable[[Iterable[Block], int | None], Iterable[Block]]


@dataclass(frozen=True, slots=True)
class Examples:
    """The labelled rows of some tables, in their order.

    Attributes
    ----------
    labels : shape (n,), 1 for the positive class.
    classes : (negative, positive), the names of the classes.
    embeddings : shape (n, d), float32 when every file stores float16 or float32, else float64; or None.
    scores : shape (n,), logits or probabilities as the column has them; or None.
    weights : shape (n,), not negative and not all zero; or None.
    groups : shape (n,), codes 0 to G - 1 in the order of the texts of the groups; or None.
    embedding_columns : the columns that hold the embeddings, one of vectors or one a dimension; empty without.
    slices : by column, the text of the value of each row, shape (n,); "(null)" for a null, or "(null, 2)" where that
        text occurs.
    unlabelled : how many rows were left out since they have no label.
    kept : which rows of the files these are, shape (n + unlabelled,).
    digests : of each row's embedding or score, shape (n, 2); see `headeval.files.fingerprint`.
    fingerprint : of rows and labels; the same rows in another order or in other files have the same.
    """

    labels: NDArray[np.uint8]
    classes: tuple[str, str]
    embeddings: NDArray[Any] | None
    embedding_columns: tuple[str, ...]
    scores: NDArray[np.float64] | None
    weights: NDArray[np.float64] | None
    groups: NDArray[np.int64] | None
    slices: Mapping[str, NDArray[np.object_]]
    unlabelled: int
    kept: NDArray[np.bool_]
    digests: NDArray[np.uint64]
    fingerprint: str


def untracked(blocks: Iterable[Block], n_rows: int | None) -> Iterable[Block]:  # noqa: ARG001 - the form of a Track
    """Return the blocks as they are."""
    return blocks


def read_examples(
    tables: Tables,
    *,
    label: str = "label",
    positive: str | None = None,
    classes: tuple[str, str] | None = None,
    embedding: str | None = None,
    score: str | None = None,
    score_kind: Literal["logit", "prob"] | None = None,
    weight: str | None = None,
    group: str | None = None,
    by: Sequence[str] = (),
    drop_unlabelled: bool = False,
    dim: int | None = None,
    track: Track = untracked,
) -> Examples:
    r"""Read the labelled rows of all files.

    Parameters
    ----------
    tables : the opened files.
    label : the column of the labels.
    positive : the value that is the positive class; needed unless the values are a known pair or `classes` is given.
    classes : the classes (negative, positive) of the head that is to be evaluated.
    embedding : the column of vectors or the prefix of numbered columns; None reads no embeddings.
    score : the column of scores; None reads none.
    score_kind : "prob" demands scores in [0, 1].
    weight, group : the columns of weights and of groups.
    by : columns whose values are kept as text, to evaluate slices.
    drop_unlabelled : leave rows without a label out instead of refusing them.
    dim : the width that the embeddings must have.
    track : wraps the blocks while they are read, to show progress.

    Raises
    ------
    DataError : for a missing column, a row that cannot be used, or labels of which no two classes can be made.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from headeval.files.tables import open_tables
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("label,z\nspam,1.5\nham,-2\n")
    ...     examples = read_examples(open_tables([folder]), positive="spam", score="z")
    >>> examples.labels.tolist(), examples.classes, examples.scores.tolist()
    ([1, 0], ('ham', 'spam'), [1.5, -2.0])
    """
    named = {label: "--label", weight: "--weight", group: "--group"} | dict.fromkeys(by, "--by")
    for file in tables.files:
        for column, option in named.items():
            if column is not None:
                file.field(column, option=option)
    wanted = Wanted(
        label=label,
        embedding=None if embedding is None else _embedding(tables, embedding, (label, score, weight, group, *by)),
        score=score,
        is_prob=score_kind == "prob",
        weight=weight,
        group=group,
        by=tuple(by),
        drop_unlabelled=drop_unlabelled,
        dim=dim,
    )
    collector = _collected(tables, wanted, track)
    labels, names = collector.labels(
        where=f"{_files(tables)}: column {quoted(label)}", positive=positive, classes=classes
    )
    embeddings, scores = collector.embeddings(), collector.scores()
    values = scores if embeddings is None else embeddings
    digests = row_digests(np.zeros(len(labels)) if values is None else values)
    return Examples(
        labels=labels,
        classes=names,
        embeddings=embeddings,
        embedding_columns=() if wanted.embedding is None else wanted.embedding.columns,
        scores=scores,
        weights=collector.weights(where=f"{_files(tables)}: column {quoted(weight)}"),
        groups=collector.groups(),
        slices=collector.slices(),
        unlabelled=collector.unlabelled,
        kept=collector.kept(),
        digests=digests,
        fingerprint=fingerprint(digests, labels),
    )


def require_both_classes(examples: Examples, tables: Tables) -> None:
    """Refuse examples of one class only, with which nothing can be fitted.

    Raises
    ------
    DataError : where all labels are the same.
    """
    n, positives = len(examples.labels), int(examples.labels.sum())
    if positives in (0, n):
        name = examples.classes[1 if positives else 0]
        raise DataError(f"{_files(tables)}: all {n} rows are {quoted(name)}: rows of both classes are needed")


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
    where = find_embedding(tables, embedding)
    for file in tables.files:
        _check_columns(tables.files[0], file, where)
    return _embedding_blocks(tables, where, dim, track)


def _collected(tables: Tables, wanted: Wanted, track: Track) -> Collector:
    collector = Collector(wanted, tables.n_rows)
    try:
        for block in track(tables.blocks(wanted.columns), tables.n_rows):
            collector.faults.raise_if_any(unless_in=block.path)
            collector.add(block)
    except MemoryError as error:
        raise DataError(f"{_files(tables)}: the rows do not fit into memory; use fewer of them") from error
    collector.faults.raise_if_any()
    return collector


def _embedding_blocks(
    tables: Tables, where: EmbeddingColumns, dim: int | None, track: Track
) -> Iterator[tuple[Block, NDArray[Any]]]:
    faults = RowFaults()
    reader = VectorReader(where, dim=dim)
    for block in track(tables.blocks(tables.column_names), tables.n_rows):
        faults.raise_if_any(unless_in=block.path)
        embeddings = reader.read(block.batch, place_of(block, faults))
        if embeddings is not None and not faults:
            yield block, embeddings
    faults.raise_if_any()


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


def _embedding(tables: Tables, name: str, taken: Sequence[str | None]) -> EmbeddingColumns:
    return find_embedding(tables, name, taken={column for column in taken if column is not None})


def _files(tables: Tables) -> str:
    more = len(tables.paths) - 1
    return shown(tables.paths[0]) + ("" if more == 0 else f" and {more} more file{'' if more == 1 else 's'}")
