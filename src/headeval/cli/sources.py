"""What gives the scores of a command: a head, or a column of logits or of probabilities; never guessed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headeval.errors import HeadError, UsageError
from headeval.files.heads import check_embedding_model, read_head
from headeval.files.scores import DeclaredScores, declarations_differ, declared_scores, declared_seen
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.head_history import RowsSeen
from headeval.printable import listed, printable, quoted
from headeval.scored_rows import ScoreKind


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


def choose_source(tables: Tables, *, head: Path | None, logit: str | None, prob: str | None) -> Source:
    """Return the one source the options name, or the one the files declare; never a guess."""
    if sum(option is not None for option in (head, logit, prob)) > 1:
        raise UsageError("--head, --logit and --prob exclude each other: name the one thing to judge")
    if head is not None:
        return head_source(read_head(head), str(head))
    declared = declared_scores(tables)
    if logit is not None:
        return column_source(tables, logit, "logit", declared)
    if prob is not None:
        return column_source(tables, prob, "prob", declared)
    if declarations_differ(tables):
        raise UsageError(
            "the files declare different scores, classes or thresholds: give --logit COL and --threshold T"
        )
    if not declared:
        raise UsageError(
            "nothing says what to judge: give --head HEAD, or --logit COL or --prob COL for a column of scores; "
            f"the columns are {listed(tables.column_names, longest=12)}"
        )
    return column_source(tables, declared[0].logit, "logit", declared)


def head_source(head: LinearHead, name: str) -> Source:
    """Return the source for a head that is judged on embeddings; one with more than two classes is refused."""
    if len(head.classes) != 2:
        raise HeadError(f"{printable(name)}: has {len(head.classes)} classes; only heads with two can be judged")
    return Source(name, "logit", head, (head.classes[0], head.classes[1]), head.threshold)


def check_models(head: LinearHead, tables: Tables, option: str | None) -> None:
    """Refuse embeddings that the option or the files' metadata ascribe to another model than the head's."""
    check_embedding_model(head, name=option, source="--embedding-model")
    check_embedding_model(head, name=tables.embedding_model, source=str(tables.paths[0]))


def column_source(tables: Tables, column: str, kind: ScoreKind, declared: Sequence[DeclaredScores]) -> Source:
    """Return the source for a column, with what the files declare of it; never of the kind it is declared not to be."""
    entry = next((entry for entry in declared if column in {entry.logit, entry.prob}), None)
    if entry is None:
        return Source(column, kind)
    if column != (entry.logit if kind == "logit" else entry.prob):
        own = "logit" if column == entry.logit else "prob"
        raise UsageError(f"the file itself says that column {quoted(column)} is a {own}: use --{own} {quoted(column)}")
    # What the file says of rows seen concerns its newest scores: a calibration has not changed the earlier ones.
    seen = declared_seen(tables) if entry is declared[0] else None
    return Source(column, kind, None, entry.classes, entry.threshold, seen)
