"""Labelled rows with the scores that are to be judged."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headeval.cli.row_notes import (
    class_note,
    copies_note,
    label_column_note,
    unlabelled_note,
    which_rows,
    zero_rows,
    zeros_note,
)
from headeval.cli.sources import Source
from headeval.core.checks import FloatArray, IntArray
from headeval.files.examples import Examples
from headeval.files.tables import Tables
from headeval.head_history import RowsSeen, rows_seen
from headeval.scored_rows import ScoredRows

if TYPE_CHECKING:
    from headeval.evaluation import Evaluation
    from headeval.multiclass import ClassEvaluation

DEFAULT_THRESHOLD = 0.5


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
    class_scores : (n, C) of more than two classes, logits or probabilities as `source.kind` says, in the order of
        `source.class_names`; None for two, and where the labels only tell the flagged class from the rest.
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
    class_scores: FloatArray | None = None

    @property
    def class_labels(self) -> IntArray | None:
        """The class of each row, (n,) index into `source.class_names`; None where there are no `class_scores`."""
        codes = self.examples.class_codes
        return None if self.class_scores is None or codes is None else codes.astype(np.int64)

    @property
    def class_logits(self) -> FloatArray | None:
        """What softmax makes the probabilities of, (n, C); of a probability its log, which is infinite at 0."""
        if self.class_scores is None or self.source.kind == "logit":
            return self.class_scores
        with np.errstate(divide="ignore"):
            logits: FloatArray = np.log(self.class_scores)
        return logits

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
    def _zeros(self) -> int:
        return 0 if self.examples.dim is None else zero_rows(self.examples.digests[:, 0], self.examples.dim)

    @property
    def label_notes(self) -> tuple[str, ...]:
        """What must be said of the labels, and of rows that no score can tell apart."""
        history = self.source.head.metrics if self.source.head else {}
        return (
            *class_note(self.source.classes, self.examples.classes),
            *label_column_note(history, self.label_column),
            *unlabelled_note(self.examples),
            *zeros_note(self._zeros),
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

    def evaluate_classes(self, rows: Any = slice(None), **options: Any) -> "ClassEvaluation | None":
        """Judge all classes on all rows, or those of a mask; None where there are two, or labels do not tell more."""
        if self.class_scores is None or self.class_labels is None or self.source.class_names is None:
            return None
        from headeval.multiclass import evaluate_classes

        weights, groups = self.examples.weights, self.examples.groups
        return evaluate_classes(
            self.class_scores[rows],
            self.class_labels[rows],
            kind=self.source.kind,
            classes=self.source.class_names,
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


def subject_of(
    tables: Tables,
    examples: Examples,
    source: Source,
    label_column: str,
    *,
    scores: FloatArray | None,
    threshold: float | None,
    ids: NDArray[np.object_] | None = None,
    also: FloatArray | None = None,
    class_scores: FloatArray | None = None,
) -> Subject:
    """Return rows that were read, with their scores, for judging; parameters as of `read_subject` and `Subject`."""
    seen = _seen(examples, source)
    return Subject(
        tables=tables,
        examples=examples,
        source=source,
        scores=np.asarray(scores, dtype=np.float64),
        labels=examples.labels.astype(np.int64),
        **_threshold(source, threshold),
        how=which_rows(examples, source, seen),
        seen=seen,
        label_column=label_column,
        ids=ids,
        also=also,
        class_scores=None if examples.class_codes is None else class_scores,
    )


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
