"""The rows of a command: read from DATA, and scored by a head or by a column of scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headeval.cli.console import progress
from headeval.cli.row_notes import class_note, copies_note, label_column_note, unlabelled_note, which_rows
from headeval.cli.sources import Source, check_models
from headeval.core.checks import FloatArray, IntArray
from headeval.files.embedded_rows import OnBlock
from headeval.files.examples import Collect, Examples, read_examples, require_both_classes
from headeval.files.locations import masked_uri
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.head_history import RowsSeen, RowsUsed, rows_seen
from headeval.scored_rows import ScoredRows

if TYPE_CHECKING:
    from headeval.evaluation import Evaluation

DEFAULT_THRESHOLD = 0.5
DEFAULT_ID = "id"


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the command line says labels and embeddings are, and what else is known of a row.

    Attributes
    ----------
    identifier : the column that names a row; None takes `id` where there is one.
    """

    label: str
    positive: str | None
    embedding: str
    embedding_model: str | None
    drop_unlabelled: bool
    weight: str | None = None
    group: str | None = None
    identifier: str | None = None

    def id_column(self, tables: Tables) -> str | None:
        """Return the column that names the rows of these tables; None where they have no such column."""
        if self.identifier is not None:
            return self.identifier
        return DEFAULT_ID if all(DEFAULT_ID in file.schema.names for file in tables.files) else None


@dataclass(frozen=True, slots=True)
class Subject:
    """Labelled rows with the scores that are to be judged.

    Attributes
    ----------
    scores : (n,) logits or probabilities, as `source.kind` says.
    labels : (n,) in {0, 1}.
    threshold_from : "option", "head", "score file" or "default".
    how : which rows these are, in words.
    seen : how many of the rows made the head, where that is known.
    label_column : the column of the labels.
    ids : (n,) the names of the rows; None where they were not read.
    also : (n,) logits of another head on the same embeddings, where they were asked for.
    """

    tables: Tables
    examples: Examples
    source: Source
    scores: FloatArray
    labels: IntArray
    threshold: float
    threshold_from: str
    how: str
    seen: RowsSeen | None
    label_column: str
    ids: NDArray[np.object_] | None = None
    also: FloatArray | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be said of rows that made the head, and of the labels."""
        if self.seen is None or not self.seen.either:
            return (*self.label_notes, *self._copies)
        about = "" if self.seen.exact else "about "
        made = f"{about}{self.seen.either:,} of the rows made what is judged, and flatter it: judge it on new rows"
        return (made, *self.label_notes, *self._copies)

    @property
    def _copies(self) -> tuple[str, ...]:
        """Only embeddings tell copies, and groups already say which rows are not independent."""
        if self.examples.embedding_at is None or self.examples.groups is not None:
            return ()
        return copies_note(self.examples.digests[:, 0])

    @property
    def label_notes(self) -> tuple[str, ...]:
        """What must be said of the labels alone."""
        history = self.source.head.metrics if self.source.head else {}
        return (
            *class_note(self.source.classes, self.examples.classes),
            *label_column_note(history, self.label_column),
            *unlabelled_note(self.examples),
        )

    def evaluate(self, rows: Any = slice(None), **options: Any) -> "Evaluation":
        """Judge all rows, or those of a mask."""
        from headeval.evaluation import evaluate

        weights, groups = self.examples.weights, self.examples.groups
        return evaluate(
            self.scores[rows],
            self.labels[rows],
            kind=self.source.kind,
            threshold=self.threshold,
            classes=self.examples.classes,
            weights=None if weights is None else weights[rows],
            groups=None if groups is None else groups[rows],
            **options,
        )

    def scored_rows(self) -> ScoredRows:
        """Return the rows in the order of the files."""
        return ScoredRows.checked(
            self.scores,
            self.labels,
            kind=self.source.kind,
            weights=self.examples.weights,
            groups=self.examples.groups,
        )


def read_training_rows(
    tables: Tables,
    columns: Columns,
    *,
    named: bool,
    quiet: bool,
    hold: bool = True,
    on_block: OnBlock | None = None,
    collect: Collect | None = None,
) -> Examples:
    """Return the labelled rows of both classes, where `named` with the names of the rows among the slices.

    Parameters
    ----------
    hold, on_block : whether the embeddings stay in memory, and what is shown each block of them.
    collect : reads the rows elsewhere.
    """
    identifier = columns.id_column(tables) if named else None
    examples = read_examples(
        tables,
        label=columns.label,
        positive=columns.positive,
        embedding=columns.embedding,
        weight=columns.weight,
        group=columns.group,
        by=[] if identifier is None else [identifier],
        drop_unlabelled=columns.drop_unlabelled,
        hold=hold,
        on_block=on_block,
        track=reading(quiet),
        collect=collect,
    )
    require_both_classes(examples, tables)
    return examples


def read_subject(
    tables: Tables,
    source: Source,
    columns: Columns,
    *,
    by: Sequence[str] = (),
    named: bool = False,
    threshold: float | None = None,
    hold: bool = True,
    also: LinearHead | None = None,
    on_block: OnBlock | None = None,
    collect: Collect | None = None,
    quiet: bool,
) -> Subject:
    """Read labels and scores; a head must fit the embeddings' own model.

    Parameters
    ----------
    by : columns whose values are kept as text.
    named : whether the names of the rows are read.
    threshold : at which is judged, instead of the one of the source.
    hold : whether the embeddings stay in memory.
    also : another head that scores the same rows while they are read, if it takes embeddings of the same width.
    on_block : is called with the embeddings of each block, see `read_examples`.
    collect : reads the rows elsewhere.
    """
    identifier = columns.id_column(tables) if named else None
    heads = _heads(tables, source, columns, also)
    examples = read_examples(
        tables,
        **_labelled(columns, source, (*by, *([] if identifier is None else [identifier]))),
        **_scored(columns, source, heads),
        hold=hold,
        on_block=on_block,
        track=reading(quiet),
        collect=collect,
    )
    logits = examples.projected
    seen = _seen(examples, source)
    return Subject(
        tables=tables,
        examples=examples,
        source=source,
        scores=np.asarray(examples.scores if logits is None else logits[:, 0], dtype=np.float64),
        labels=examples.labels.astype(np.int64),
        **_threshold(source, threshold),
        how=which_rows(examples, source, seen),
        seen=seen,
        label_column=columns.label,
        ids=None if identifier is None else examples.slices[identifier],
        also=logits[:, 1] if logits is not None and len(heads) > 1 else None,
    )


def _heads(tables: Tables, source: Source, columns: Columns, also: LinearHead | None) -> list[LinearHead]:
    """Return the heads that score the rows while they are read; none where a column holds the scores."""
    head = source.head
    if head is None:
        return []
    check_models(head, tables, columns.embedding_model)
    return [head] if also is None or also.dim != head.dim else [head, also]


def _labelled(columns: Columns, source: Source, by: Sequence[str]) -> dict[str, Any]:
    """Return what `read_examples` is to read beside the scores."""
    return {
        "label": columns.label,
        "positive": columns.positive,
        "classes": source.classes,
        "weight": columns.weight,
        "group": columns.group,
        "by": by,
        "drop_unlabelled": columns.drop_unlabelled,
    }


def _scored(columns: Columns, source: Source, heads: Sequence[LinearHead]) -> dict[str, Any]:
    """Return what `read_examples` is to read and to make of it: a column of scores, or the logits of heads."""
    if not heads:
        return {"score": source.name, "score_kind": source.kind}
    return {
        "embedding": columns.embedding,
        "dim": heads[0].dim,
        "project": lambda embeddings: np.stack([head.logits(embeddings) for head in heads], axis=1),
    }


def rows_used(examples: Examples) -> RowsUsed:
    """Return the record of these rows that a head keeps."""
    return RowsUsed(
        n=len(examples.labels),
        positives=int(examples.labels.sum()),
        fingerprint=examples.fingerprint,
        unlabelled=examples.unlabelled,
        digests=examples.digests[:, 0],
    )


def data_provenance(data: Sequence[str], examples: Examples) -> dict[str, Any]:
    """Return what a report says about the rows it was made from."""
    left_out = {"unlabelled_rows_left_out": examples.unlabelled} if examples.unlabelled else {}
    return {"data": [masked_uri(argument) for argument in data], **left_out}


def embedding_provenance(examples: Examples, columns: Columns) -> dict[str, str]:
    """Return which columns were taken for the embeddings, where that is not the one column that was named."""
    names = examples.embedding_columns
    return {} if names == (columns.embedding,) else {"embedding_columns": f"{names[0]} … {names[-1]}"}


def reading(quiet: bool) -> Any:
    """Return the progress bar of reading tables."""
    return progress("reading", quiet=quiet, size=lambda block: block.batch.num_rows)


def _threshold(source: Source, option: float | None) -> dict[str, Any]:
    if option is not None:
        return {"threshold": option, "threshold_from": "option"}
    if source.threshold is not None:
        return {"threshold": source.threshold, "threshold_from": "head" if source.head else "score file"}
    return {"threshold": DEFAULT_THRESHOLD, "threshold_from": "default"}


def _seen(examples: Examples, source: Source) -> RowsSeen | None:
    """Return how many of the rows had been seen; what a score file says of all its rows may not fit some of them."""
    if source.head:
        return rows_seen(source.head.metrics, examples.digests[:, 0])
    return None if examples.unlabelled else source.seen
