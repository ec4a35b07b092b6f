"""The rows of a command: read from DATA, and scored by a head or by a column of scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.cli.console import progress
from headeval.cli.row_notes import class_note, copies_note, label_column_note, unlabelled_note
from headeval.cli.sources import Source, check_models
from headeval.core.checks import FloatArray, IntArray
from headeval.evaluation import Evaluation, evaluate
from headeval.files.examples import Examples, read_examples, require_both_classes
from headeval.files.tables import Tables
from headeval.head_history import RowsSeen, RowsUsed, rows_seen
from headeval.scored_rows import ScoredRows

DEFAULT_THRESHOLD = 0.5
DEFAULT_ID = "id"

_USED = {"fitted": "used for the fit", "calibrated": "used for a calibration"}


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
        if self.examples.embeddings is None or self.examples.groups is not None:
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

    def evaluate(self, rows: Any = slice(None), **options: Any) -> Evaluation:
        """Judge all rows, or those of a mask."""
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


def read_training_rows(tables: Tables, columns: Columns, *, named: bool, quiet: bool) -> Examples:
    """Return the labelled embeddings of both classes, where `named` with the names of the rows among the slices."""
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
        track=reading(quiet),
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
    quiet: bool,
) -> Subject:
    """Read labels and scores, with the names of the rows where `named`; a head must fit the embeddings' own model."""
    head = source.head
    identifier = columns.id_column(tables) if named else None
    if head is not None:
        check_models(head, tables, columns.embedding_model)
    examples = _scored_examples(tables, source, columns, (*by, *([] if identifier is None else [identifier])), quiet)
    chosen, chosen_from = _threshold(source, threshold)
    seen = _seen(examples, source)
    scores = head.logits(examples.embeddings) if head and examples.embeddings is not None else examples.scores
    return Subject(
        tables=tables,
        examples=examples,
        source=source,
        scores=np.asarray(scores, dtype=np.float64),
        labels=examples.labels.astype(np.int64),
        threshold=chosen,
        threshold_from=chosen_from,
        how=_which_rows(examples, source, seen),
        seen=seen,
        label_column=columns.label,
        ids=None if identifier is None else examples.slices[identifier],
    )


def _scored_examples(tables: Tables, source: Source, columns: Columns, by: Sequence[str], quiet: bool) -> Examples:
    head = source.head
    return read_examples(
        tables,
        label=columns.label,
        positive=columns.positive,
        classes=source.classes,
        embedding=columns.embedding if head else None,
        score=None if head else source.name,
        score_kind=source.kind,
        weight=columns.weight,
        group=columns.group,
        by=by,
        drop_unlabelled=columns.drop_unlabelled,
        dim=head.dim if head else None,
        track=reading(quiet),
    )


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
    provenance: dict[str, Any] = {"data": list(data)}
    if examples.unlabelled:
        provenance["unlabelled_rows_left_out"] = examples.unlabelled
    return provenance


def embedding_provenance(examples: Examples, columns: Columns) -> dict[str, str]:
    """Return which columns were taken for the embeddings, where that is not the one column that was named."""
    names = examples.embedding_columns
    return {} if names == (columns.embedding,) else {"embedding_columns": f"{names[0]} … {names[-1]}"}


def reading(quiet: bool) -> Any:
    """Return the progress bar of reading tables."""
    return progress("reading", quiet=quiet, size=lambda block: block.batch.num_rows)


def _threshold(source: Source, option: float | None) -> tuple[float, str]:
    if option is not None:
        return option, "option"
    if source.threshold is not None:
        return source.threshold, "head" if source.head else "score file"
    return DEFAULT_THRESHOLD, "default"


def _seen(examples: Examples, source: Source) -> RowsSeen | None:
    """Return how many of the rows had been seen; what a score file says of all its rows may not fit some of them."""
    if source.head:
        return rows_seen(source.head.metrics, examples.digests[:, 0])
    return None if examples.unlabelled else source.seen


def _which_rows(examples: Examples, source: Source, seen: RowsSeen | None) -> str:
    """Say in words which rows are judged; rows that the head has seen are never passed over."""
    rows = f"{len(examples.labels):,} labelled rows"
    scored = "" if source.head else f", scored by column {source.name}"
    if source.seen and examples.unlabelled and source.seen.either:
        return f"{rows}{scored}; of all {source.seen.n:,} rows of the file {source.seen.either:,} made what is judged"
    if seen is None:
        return f"{rows}{scored}; which rows the {'head' if source.head else 'classifier'} was fitted on is not known"
    about = "" if seen.exact else "about "
    if seen.in_sample:
        used, words = getattr(seen, seen.in_sample), _USED[seen.in_sample]
        if 2 * used < seen.n:
            used, words = seen.either, "used for the fit or a calibration"
        which = "all" if used == seen.n else f"{about}{used:,} of"
        return f"IN-SAMPLE: {which} these {rows}{scored} were {words}; judge on other rows"
    parts = [f"{about}{getattr(seen, use):,} of them {words}" for use, words in _USED.items() if getattr(seen, use)]
    checked = (
        "of them"
        if seen.exact
        else f"of {seen.checked:,} rows that could be checked (the head keeps a sample of its own)"
    )
    none = f"none {checked} is recognised as one that made the head"
    return f"{rows}{scored}; {' and '.join(parts) or none}"
