"""Labelled examples from tables: embeddings or scores with their labels, weights, groups and slices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.class_labels import ClassRule, resolve_classes
from headeval.files.coded_columns import Coded
from headeval.files.collecting import Wanted
from headeval.files.embedded_rows import Keeping, OnBlock, Project
from headeval.files.fingerprint import fingerprint, row_digests
from headeval.files.gathered_rows import (
    Collect,
    Track,
    check_columns,
    embedded_fields,
    file_names,
    gathered,
    groups_and_slices,
    untracked,
    usable_weights,
)
from headeval.files.labels import LabelRule
from headeval.files.tables import Tables
from headeval.files.vectors import EmbeddingColumns
from headeval.printable import listed, quoted

__all__ = [
    "Collect",
    "Examples",
    "Track",
    "file_names",
    "read_examples",
    "require_both_classes",
    "untracked",
]


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
    class_names : all classes in their order, the last of which is flagged. Of more than two, the last is the positive
        class of `labels` and `classes`, against the rest.
    class_codes : which of more than two classes each row is of, an index into `class_names`, shape (n,); else None.
    class_scores : a column of scores for each class, in their order, shape (n, C); None where these were not read.
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
    class_names: tuple[str, ...]
    class_codes: NDArray[np.int16] | None = None
    class_scores: NDArray[np.float64] | None = None

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
        return fingerprint(self.digests, self.labels if self.class_codes is None else self.class_codes)


def read_examples(
    tables: Tables,
    *,
    label: str = "label",
    positive: str | None = None,
    classes: tuple[str, ...] | None = None,
    many_classes: bool = False,
    may_name_them: bool = False,
    embedding: str | None = None,
    score: str | None = None,
    score_kind: Literal["logit", "prob"] | None = None,
    class_scores: Sequence[str] = (),
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
    classes : the classes of the head that is to be evaluated, (negative, positive) or more, the last of which is the
        flagged one.
    many_classes : whether more than two values are classes where `classes` does not name them, see `resolve_classes`.
    may_name_them : whether --classes can name them, for messages.
    embedding : the column of vectors or the prefix of numbered columns; None reads no embeddings.
    score : the column of scores; None reads none.
    score_kind : "prob" demands scores in [0, 1], and of `class_scores` that those of a row add up to 1.
    class_scores : a column of scores for each class, in the order of the classes.
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
    check_columns(tables, [label], weight=weight, group=group, by=by, scores=class_scores)
    wanted = Wanted(
        labels=(label,),
        embedding=None,
        score=score,
        is_prob=score_kind == "prob",
        weight=weight,
        group=group,
        by=tuple(by),
        drop_unlabelled=drop_unlabelled,
        dim=dim,
        many="classes" if many_classes or len(classes or ()) > 2 else "",
        score_columns=tuple(class_scores),
    )
    rows = gathered(tables, wanted, embedding, Keeping(hold, project, on_block), track=track, collect=collect)
    (coded,) = rows.labels()
    where = f"{file_names(tables)}: column {quoted(label)}"
    if not len(coded.codes):
        raise DataError(f"{where} has no label in any of its {rows.unlabelled} rows")
    rule = resolve_classes(
        coded.counts(),
        where=where,
        positive=positive,
        classes=classes,
        many=many_classes,
        may_name_them=may_name_them,
    )
    groups, slices = groups_and_slices(tables, rows)
    return Examples(
        **_labelled(coded, rule),
        **embedded_fields(rows),
        scores=rows.scores(),
        weights=usable_weights(rows.weights(), where=f"{file_names(tables)}: column {quoted(weight)}"),
        groups=None if groups is None else groups.ranks(),
        slices={name: column.row_texts() for name, column in slices.items()},
        unlabelled=rows.unlabelled,
        kept=rows.kept(),
        class_scores=rows.many_scores(),
    )


def require_both_classes(examples: Examples, tables: Tables) -> None:
    """Refuse examples that lack a class, with which nothing can be fitted.

    Raises
    ------
    DataError : where all labels are the same, or, of more than two classes, one has no row.
    """
    n, positives = len(examples.labels), int(examples.labels.sum())
    codes, names = examples.class_codes, examples.class_names
    if codes is not None:
        missing = [name for name, rows in zip(names, np.bincount(codes, minlength=len(names)), strict=True) if not rows]
        if missing:
            raise DataError(f"{file_names(tables)}: no row is {listed(missing)}: rows of every class are needed")
    elif positives in (0, n):
        name = examples.classes[1 if positives else 0]
        raise DataError(f"{file_names(tables)}: all {n} rows are {quoted(name)}: rows of both classes are needed")


def _labelled(coded: Coded, rule: LabelRule | ClassRule) -> dict[str, Any]:
    """Return the fields of `Examples` that say what the rows are."""
    if isinstance(rule, LabelRule):
        labels = coded.mapped(dict.fromkeys(rule.positives, 1), np.uint8, 0)
        return {"labels": labels, "classes": rule.classes, "class_names": rule.classes}
    codes = coded.mapped(rule.codes, np.int16, -1)
    return {
        "labels": (codes == len(rule.names) - 1).astype(np.uint8),
        "classes": rule.classes,
        "class_names": rule.names,
        "class_codes": codes,
    }
