"""What gives the scores of a command: a head, or columns of logits or of probabilities; never guessed."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headeval.cli.class_columns import class_columns, names_several
from headeval.errors import UsageError
from headeval.files.heads import check_embedding_model, one_model, read_head
from headeval.files.label_columns import label_columns
from headeval.files.scores import DeclaredScores, declarations_differ, declared_scores, declared_seen
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.head_history import RowsSeen
from headeval.printable import listed, quoted
from headeval.scored_rows import ScoreKind


@dataclass(frozen=True, slots=True)
class Source:
    """What gives the scores: a head, a column of logits or of probabilities, or one such column a class.

    Attributes
    ----------
    name : the head's file, the column, or the columns as they were asked for; as shown.
    kind : what the scores are; a head gives logits.
    head : None for columns.
    classes, threshold : of the head or of the score file's own metadata; None where nothing says. Of more than two
        classes these are the last and all others together, as `LinearHead.decision_classes`.
    seen : how many of the score file's rows had been seen, by its own metadata; None for a head, which tells itself.
    class_names : all classes where there are more than two, the flagged one last; else None.
    class_columns : the columns of the classes, in their order; empty for a head, and where one column has the scores.
    """

    name: str
    kind: ScoreKind
    head: LinearHead | None = None
    classes: tuple[str, str] | None = None
    threshold: float | None = None
    seen: RowsSeen | None = None
    class_names: tuple[str, ...] | None = None
    class_columns: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """The kind of thing that gives the scores, as a key of the provenance."""
        return "head" if self.head else "logit_column" if self.kind == "logit" else "probability_column"

    @property
    def columns(self) -> str:
        """What to call the columns of scores in a sentence."""
        several = self.class_columns and any(char in self.name for char in ",*?[")
        return f"column{'s' if several else ''} {self.name}"

    def label_rule(self, positive: str | None) -> dict[str, Any]:
        """Return what `read_examples` is told of the labels: their classes, and which value is positive.

        Of more than two classes `positive` only counts where it is none of them: it then names, in a column of two
        values, the one that means the flagged class.

        Raises
        ------
        UsageError : where `positive` is a class that is not flagged.
        """
        names = self.class_names
        if names is None or (positive is not None and positive not in names):
            may_name_them = self.head is None and bool(self.class_columns)
            return {"classes": self.classes, "positive": positive, "may_name_them": may_name_them}
        if positive in names[:-1]:
            raise UsageError(
                f"--positive {quoted(positive)} is a class that what is judged does not flag; "
                f"it flags {quoted(names[-1])}"
            )
        return {"classes": names}


def choose_source(
    tables: Tables,
    *,
    head: Path | None,
    logit: str | None,
    prob: str | None,
    classes: tuple[str, ...] | None = None,
    positive: str | None = None,
) -> Source:
    """Return the one source the options name, or the one the files declare; never a guess.

    Parameters
    ----------
    classes, positive : of --classes and --positive, which name the columns of several classes and the flagged one.
    """
    if sum(option is not None for option in (head, logit, prob)) > 1:
        raise UsageError("--head, --logit and --prob exclude each other: name the one thing to judge")
    declared = () if head is not None else declared_scores(tables)
    if classes is not None and logit is None and prob is None and (head is not None or declared):
        said = "the head" if head is not None else "the file itself"
        raise UsageError(f"--classes is for columns of --logit or --prob: {said} says which classes there are")
    if head is not None:
        return head_source(read_head(head), str(head))
    if logit is not None:
        return columns_source(tables, logit, "logit", declared, classes, positive)
    if prob is not None:
        return columns_source(tables, prob, "prob", declared, classes, positive)
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
    """Return the source for a head that is judged on embeddings."""
    names = head.classes if len(head.classes) > 2 else None
    return Source(name, "logit", head, head.decision_classes, head.threshold, class_names=names)


def check_models(head: LinearHead, tables: Tables, option: str | None) -> None:
    """Refuse embeddings that the option or the files' metadata ascribe to another model than the head's.

    Where the option names the head's model, files may write it with another owner (`owner/model`) or in another case.
    """
    check_embedding_model(head, name=option, source="--embedding-model")
    named = tables.embedding_model
    if option == head.embedding_model and named is not None and one_model(named, option):
        return
    check_embedding_model(head, name=tables.embedding_model, source=str(tables.paths[0]))


def model_of(head: LinearHead, tables: Sequence[Tables], option: str | None) -> str:
    """Return the embedding model for a report: the head's, and where neither files nor option name one that it is."""
    named = option is not None or all(part.embedding_model is not None for part in tables)
    named |= head.embedding_model == "unspecified"
    return head.embedding_model if named else f"{head.embedding_model} (of the head; the files name none)"


def columns_source(
    tables: Tables,
    spec: str,
    kind: ScoreKind,
    declared: Sequence[DeclaredScores],
    classes: tuple[str, ...] | None = None,
    positive: str | None = None,
) -> Source:
    """Return the source for what --logit or --prob names: one column, or a column of each class.

    Raises
    ------
    UsageError : where columns and classes do not fit together, or nothing says which class is flagged.
    """
    if not names_several(tables, spec):
        source = column_source(tables, spec, kind, declared)
        if classes is None:
            return source
        if source.classes is not None:
            raise UsageError(f"--classes: the file itself says which classes column {quoted(spec)} is about")
        return dataclasses.replace(source, **_of_classes(classes))
    entry = _declared_classes(label_columns(tables, spec, option=f"--{kind}"), kind, declared)
    if entry is not None and classes in {None, entry.class_names} and positive in {None, entry.class_names[-1]}:
        return column_source(tables, entry.logit if kind == "logit" else entry.prob, kind, declared)
    columns, names = class_columns(tables, spec, kind, classes, positive)
    if len(columns) == 1:
        return column_source(tables, columns[0], kind, declared)
    return Source(spec, kind, class_columns=columns, **_of_classes(names))


def _declared_classes(
    columns: Sequence[str], kind: ScoreKind, declared: Sequence[DeclaredScores]
) -> DeclaredScores | None:
    """Return what the files declare of these very columns; refuse columns that they declare to be of the other kind."""
    for entry in declared:
        own, other = (entry.class_columns, entry.class_probs)[:: 1 if kind == "logit" else -1]
        if set(columns) & {*other, entry.prob if kind == "logit" else entry.logit}:
            right = "prob" if kind == "logit" else "logit"
            raise UsageError(f"the file itself says that of columns {listed(columns)} some are {right}s: use --{right}")
        if set(own) == set(columns):
            return entry
    return None


def _of_classes(names: tuple[str, ...]) -> dict[str, Any]:
    """Return what a source says of its classes; one column of scores can only tell the flagged one from the rest."""
    if len(names) == 2:
        return {"classes": names}
    return {"classes": (f"not {names[-1]}", names[-1]), "class_names": names}


def column_source(tables: Tables, column: str, kind: ScoreKind, declared: Sequence[DeclaredScores]) -> Source:
    """Return the source for a column, with what the files declare of it; never of the kind it is declared not to be."""
    entry = next((entry for entry in declared if column in {entry.logit, entry.prob}), None)
    if entry is None:
        return Source(column, kind)
    if column != (entry.logit if kind == "logit" else entry.prob):
        own = "logit" if column == entry.logit else "prob"
        raise UsageError(f"the file itself says that column {quoted(column)} is a {own}: use --{own} {quoted(column)}")
    # What the file says of rows seen concerns its newest scores: a calibration has not changed the earlier ones.
    newest = next(other for other in declared if other.category == entry.category)
    seen = declared_seen(tables, entry.category) if entry is newest else None
    source = Source(column, kind, None, entry.classes, entry.threshold, seen)
    if not entry.class_names:
        return source
    per_class = entry.class_columns if kind == "logit" else entry.class_probs
    return dataclasses.replace(source, class_names=entry.class_names, class_columns=per_class)
