"""Labelled examples from tables: embeddings or scores with their labels, weights, groups and slices."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.collecting import Collector, Wanted
from headeval.files.embedded_rows import Keeping, OnBlock, Project
from headeval.files.fingerprint import fingerprint, row_digests
from headeval.files.tables import Block, Tables
from headeval.files.vectors import EmbeddingColumns, find_embedding
from headeval.printable import quoted

Track = Callable[[Iterable[Block], int | None], Iterable[Block]]
Collect = Callable[[Tables, Wanted, Keeping, Track], Collector]


@dataclass(frozen=True)
class Examples:
    """The labelled rows of some tables, in their order.

    Attributes
    ----------
    labels : shape (n,), 1 for the positive class.
    classes : (negative, positive), the names of the classes.
    embedding_at : the columns of the embeddings; None where none were read.
    dim : the width of the embeddings; None where none were read.
    embeddings : shape (n, d), float32 when every file stores float16 or float32, else float64; None where none were
        read, or they are not held.
    projected : what was made of each row's embedding, shape (n, k), or None.
    scores : shape (n,), logits or probabilities as the column has them; or None.
    weights : shape (n,), not negative and not all zero; or None.
    groups : shape (n,), codes 0 to G - 1 in the order of the texts of the groups; or None.
    slices : by column, the text of the value of each row, shape (n,); "(null)" for a null, or "(null, 2)" where that
        text occurs.
    unlabelled : how many rows were left out since they have no label.
    kept : which rows of the files these are, shape (n + unlabelled,).
    embedding_digests : of each row's embedding, shape (n, 2), or None; see `digests`.
    """

    labels: NDArray[np.uint8]
    classes: tuple[str, str]
    embedding_at: EmbeddingColumns | None
    dim: int | None
    embeddings: NDArray[Any] | None
    projected: NDArray[np.float64] | None
    scores: NDArray[np.float64] | None
    weights: NDArray[np.float64] | None
    groups: NDArray[np.int64] | None
    slices: Mapping[str, NDArray[np.object_]]
    unlabelled: int
    kept: NDArray[np.bool_]
    embedding_digests: NDArray[np.uint64] | None

    @property
    def embedding_columns(self) -> tuple[str, ...]:
        """The columns that hold the embeddings, one of vectors or one a dimension; empty without."""
        return () if self.embedding_at is None else self.embedding_at.columns

    @cached_property
    def digests(self) -> NDArray[np.uint64]:
        """Of each row's embedding or score, shape (n, 2); see `headeval.files.fingerprint`."""
        if self.embedding_digests is not None:
            return self.embedding_digests
        return row_digests(np.zeros(len(self.labels)) if self.scores is None else self.scores)

    @cached_property
    def fingerprint(self) -> str:
        """Of rows and labels; the same rows in another order or in other files have the same."""
        return fingerprint(self.digests, self.labels)


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
    hold: bool = True,
    project: Project | None = None,
    on_block: OnBlock | None = None,
    track: Track = untracked,
    collect: Collect | None = None,
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
    hold : whether the embeddings stay in memory; where not, `embedding_matrices` reads them once more.
    project : what makes of embeddings, shape (m, d), the numbers to keep, shape (m, k); no row of them may depend on
        the others. It is called in other threads, for several blocks at the same time.
    on_block : is called with the number of rows before, and the embeddings of each block, which it must not change.
    track : wraps the blocks while they are read, to show progress.
    collect : reads the rows; None reads them in this process.

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
    collector = (collect or _collected)(tables, wanted, Keeping(hold, project, on_block), track)
    labels, names = collector.labels(
        where=f"{file_names(tables)}: column {quoted(label)}", positive=positive, classes=classes
    )
    embedded = collector.embedded
    return Examples(
        labels=labels,
        classes=names,
        embedding_at=wanted.embedding,
        dim=None if embedded is None else embedded.dim,
        embeddings=None if embedded is None else embedded.embeddings(),
        projected=None if embedded is None else embedded.projected(),
        scores=collector.scores(),
        weights=collector.weights(where=f"{file_names(tables)}: column {quoted(weight)}"),
        groups=collector.groups(),
        slices=collector.slices(),
        unlabelled=collector.unlabelled,
        kept=collector.kept(),
        embedding_digests=None if embedded is None else embedded.digests(),
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
        raise DataError(f"{file_names(tables)}: all {n} rows are {quoted(name)}: rows of both classes are needed")


def _collected(tables: Tables, wanted: Wanted, keeping: Keeping, track: Track) -> Collector:
    collector = Collector(wanted, tables.n_rows, keeping)
    try:
        collector.read(track(tables.blocks(wanted.columns), tables.n_rows))
    except MemoryError as error:
        raise DataError(f"{file_names(tables)}: the rows do not fit into memory; use fewer of them") from error
    pa.default_memory_pool().release_unused()  # what decoding took, and nothing will take again
    return collector


def _embedding(tables: Tables, name: str, taken: Sequence[str | None]) -> EmbeddingColumns:
    return find_embedding(tables, name, taken={column for column in taken if column is not None})


def file_names(tables: Tables) -> str:
    """Return the first file and how many more there are, for a message."""
    more = len(tables.paths) - 1
    return shown(tables.paths[0]) + ("" if more == 0 else f" and {more} more file{'' if more == 1 else 's'}")
