"""The rows of a reference, with or without labels, scored by what scores the rows that are judged."""

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headeval.cli.rows import Columns, read_subject, reading
from headeval.cli.sources import Source, check_models
from headeval.core.checks import FloatArray, IntArray
from headeval.core.near_duplicates import RowStream
from headeval.errors import UsageError
from headeval.files.category_rows import CategoryExamples
from headeval.files.embedded_rows import Keeping
from headeval.files.examples import Examples, file_names
from headeval.files.row_sample import RowSample
from headeval.files.tables import Tables
from headeval.files.unlabelled import UnlabelledRows, read_unlabelled
from headeval.files.vector_blocks import embedding_matrices


@dataclass(frozen=True, slots=True)
class ReferenceRows:
    """The rows of a reference.

    Attributes
    ----------
    scores : (n,) of the same kind as those that are judged.
    labels : (n,) in {0, 1}, or None.
    ids : (n,) the names of the rows, or None.
    digests : (n, 2) of their embeddings, or None.
    sample : the embeddings of all rows while they fit, else of some; empty without embeddings.
    stream : the embeddings of all rows, read once more; None without embeddings.
    """

    scores: FloatArray
    labels: IntArray | None
    ids: NDArray[np.object_] | None
    digests: NDArray[np.uint64] | None
    sample: RowSample
    stream: RowStream | None


def read_reference(tables: Tables, source: Source, columns: Columns, *, seed: int, quiet: bool) -> ReferenceRows:
    """Read the rows of a reference; labels are read where there is a column of them."""
    sample = RowSample(seed=[seed, 3])
    columns = dataclasses.replace(columns, weight=None, group=None)
    if all(columns.label in file.schema.names for file in tables.files):
        subject = read_subject(tables, source, columns, named=True, hold=False, on_block=sample.add, quiet=quiet)
        examples, scores, labels, ids = subject.examples, subject.scores, subject.labels, subject.ids
        stream = row_stream(tables, examples, quiet=quiet)
        digests = examples.embedding_digests
        return ReferenceRows(scores, labels, ids, digests, sample.finished(), stream)
    rows = _unlabelled(tables, source, columns, sample, quiet)
    values = rows.scores if rows.projected is None else rows.projected[:, 0]
    stream = row_stream(tables, rows, quiet=quiet)
    scores = np.asarray(values, dtype=np.float64)
    return ReferenceRows(scores, None, rows.ids, rows.embedding_digests, sample.finished(), stream)


def row_stream(tables: Tables, rows: Examples | CategoryExamples | UnlabelledRows, *, quiet: bool) -> RowStream | None:
    """Return the embeddings of rows that were read before, to be read once more; None where they have none."""
    if rows.dim is None:
        return None
    n = int(np.count_nonzero(rows.kept))
    return RowStream(n, rows.dim, lambda: embedding_matrices(tables, rows, track=reading(quiet)))


def _unlabelled(tables: Tables, source: Source, columns: Columns, sample: RowSample, quiet: bool) -> UnlabelledRows:
    identifier, head = columns.id_column(tables), source.head
    if head is None:
        return read_unlabelled(
            tables,
            score=_flagged_column(tables, source),
            score_kind=source.kind,
            identifier=identifier,
            track=reading(quiet),
        )
    check_models(head, tables, columns.embedding_model)
    return read_unlabelled(
        tables,
        embedding=columns.embedding,
        identifier=identifier,
        dim=head.dim,
        keeping=Keeping(hold=False, project=lambda rows: head.logits(rows)[:, None], on_block=sample.add),
        track=reading(quiet),
    )


def _flagged_column(tables: Tables, source: Source) -> str:
    """Return the one column that holds the scores of the flagged class."""
    if not source.class_columns or source.name in tables.column_names:
        return source.name
    if source.kind == "prob":
        return source.class_columns[-1]
    raise UsageError(
        f"--reference: the rows of {file_names(tables)} have no labels, and of rows without labels one column of "
        "scores is compared: give probabilities (--prob), or a reference with labels"
    )
