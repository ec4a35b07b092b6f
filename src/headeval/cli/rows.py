"""The rows of a command: read from DATA, and scored by a head or by a column of scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headeval.cli.console import progress
from headeval.core.checks import FloatArray, IntArray
from headeval.errors import HeadError, UsageError
from headeval.evaluation import Evaluation, ScoreKind, evaluate
from headeval.files.examples import Examples, read_examples, require_both_classes
from headeval.files.heads import check_embedding_model, read_head
from headeval.files.scores import DeclaredScores, declarations_differ, declared_scores, declared_seen
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.head_history import RowsSeen, RowsUsed, rows_seen
from headeval.printable import listed, printable, quoted

DEFAULT_THRESHOLD = 0.5

_USED = {"fitted": "used for the fit", "calibrated": "used for a calibration"}


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the command line says labels and embeddings are."""

    label: str
    positive: str | None
    embedding: str
    embedding_model: str | None
    drop_unlabelled: bool


@dataclass(frozen=True, slots=True)
class Source:
    """What gives the scores: a head, or a column of logits or of probabilities.

    Attributes
    ----------
    name : the head's file or the column, as shown.
    kind : what the scores are; a head gives logits.
    head : None for a column.
    classes, threshold : of the head or of the score file's own metadata; None where nothing says.
    seen : how many of the score file's rows had been seen, by its own metadata; None for a head, which tells itself.
    """

    name: str
    kind: ScoreKind
    head: LinearHead | None = None
    classes: tuple[str, str] | None = None
    threshold: float | None = None
    seen: RowsSeen | None = None

    @property
    def what(self) -> str:
        """The kind of thing that gives the scores, as a key of the provenance."""
        return "head" if self.head else "logit_column" if self.kind == "logit" else "probability_column"


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

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be said of rows that made the head."""
        if self.seen is None or not self.seen.either:
            return ()
        about = "" if self.seen.exact else "about "
        return (f"{about}{self.seen.either:,} of the rows made what is judged, and flatter it: judge it on new rows",)

    def evaluate(self, rows: Any = slice(None), **options: Any) -> Evaluation:
        """Judge all rows, or those of a mask."""
        return evaluate(
            self.scores[rows],
            self.labels[rows],
            kind=self.source.kind,
            threshold=self.threshold,
            classes=self.examples.classes,
            **options,
        )


def read_training_rows(
    tables: Tables, columns: Columns, *, weight: str | None, group: str | None, quiet: bool
) -> Examples:
    """Return the labelled embeddings of both classes."""
    examples = read_examples(
        tables,
        label=columns.label,
        positive=columns.positive,
        embedding=columns.embedding,
        weight=weight,
        group=group,
        drop_unlabelled=columns.drop_unlabelled,
        track=reading(quiet),
    )
    require_both_classes(examples, tables)
    return examples


def choose_source(tables: Tables, *, head: Path | None, logit: str | None, prob: str | None) -> Source:
    """Return the one source the options name, or the one the files declare; never a guess."""
    if sum(option is not None for option in (head, logit, prob)) > 1:
        raise UsageError("--head, --logit and --prob exclude each other: name the one thing to judge")
    if head is not None:
        return head_source(read_head(head), str(head))
    declared = declared_scores(tables)
    if logit is not None:
        return _column_source(tables, logit, "logit", declared)
    if prob is not None:
        return _column_source(tables, prob, "prob", declared)
    if declarations_differ(tables):
        raise UsageError(
            "the files declare different scores, classes or thresholds: give --logit COL and --threshold T"
        )
    if not declared:
        raise UsageError(
            "nothing says what to judge: give --head HEAD, or --logit COL or --prob COL for a column of scores; "
            f"the columns are {listed(tables.column_names, longest=12)}"
        )
    return _column_source(tables, declared[0].logit, "logit", declared)


def head_source(head: LinearHead, name: str) -> Source:
    """Return the source for a head that is judged on embeddings; one with more than two classes is refused."""
    if len(head.classes) != 2:
        raise HeadError(f"{printable(name)}: has {len(head.classes)} classes; only heads with two can be judged")
    return Source(name, "logit", head, (head.classes[0], head.classes[1]), head.threshold)


def read_subject(
    tables: Tables,
    source: Source,
    columns: Columns,
    *,
    by: Sequence[str] = (),
    threshold: float | None = None,
    quiet: bool,
) -> Subject:
    """Read labels and scores; a head must have been made for the embeddings' own model."""
    head = source.head
    if head is not None:
        check_models(head, tables, columns.embedding_model)
    examples = read_examples(
        tables,
        label=columns.label,
        positive=columns.positive,
        classes=source.classes,
        embedding=columns.embedding if head else None,
        score=None if head else source.name,
        score_kind=source.kind,
        by=by,
        drop_unlabelled=columns.drop_unlabelled,
        dim=head.dim if head else None,
        track=reading(quiet),
    )
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
    )


def check_models(head: LinearHead, tables: Tables, option: str | None) -> None:
    """Refuse embeddings that the option or the files' metadata ascribe to another model than the head's."""
    check_embedding_model(head, name=option, source="--embedding-model")
    check_embedding_model(head, name=tables.embedding_model, source=str(tables.paths[0]))


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


def _column_source(tables: Tables, column: str, kind: ScoreKind, declared: Sequence[DeclaredScores]) -> Source:
    entry = next((entry for entry in declared if column in {entry.logit, entry.prob}), None)
    if entry is None:
        return Source(column, kind)
    if column != (entry.logit if kind == "logit" else entry.prob):
        own = "logit" if column == entry.logit else "prob"
        raise UsageError(f"the file itself says that column {quoted(column)} is a {own}: use --{own} {quoted(column)}")
    # What the file says of rows seen concerns its newest scores: a calibration has not changed the earlier ones.
    seen = declared_seen(tables) if entry is declared[0] else None
    return Source(column, kind, None, entry.classes, entry.threshold, seen)


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
    if seen.in_sample:
        return f"IN-SAMPLE: at least half of these {rows}{scored} were {_USED[seen.in_sample]}; judge on other rows"
    about = "" if seen.exact else "about "
    parts = [f"{about}{getattr(seen, use):,} of them {words}" for use, words in _USED.items() if getattr(seen, use)]
    checked = "of them" if seen.exact else f"of the {seen.checked:,} that the head can tell of"
    none = f"none {checked} is recognised as one that made the head"
    return f"{rows}{scored}; {' and '.join(parts) or none}"
