"""Labelled rows of several categories, read once: of each row some labels are known, and others may not be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import UNKNOWN
from headeval.errors import DataError
from headeval.files.category_labels import resolve_categories
from headeval.files.coded_columns import Coded
from headeval.files.collecting import Wanted, columns_text
from headeval.files.embedded_rows import Keeping, OnBlock, Project
from headeval.files.examples import Examples
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
from headeval.printable import quoted


@dataclass(frozen=True)
class Category:
    """The labels of one category.

    Attributes
    ----------
    name : the column.
    labels : shape (n,), 1 for the positive class, 0 for the negative one, `UNKNOWN` where the row has none.
    classes : (negative, positive), the names of the classes.
    known, positives : how many rows have a label, and how many of them are positive.
    unknown : how many rows of the files have none.
    """

    name: str
    labels: NDArray[np.uint8]
    classes: tuple[str, str]
    known: int
    unknown: int
    positives: int


@dataclass(frozen=True)
class CategoryExamples:
    """The rows of some tables that have a label in any of the categories, in their order.

    Attributes
    ----------
    categories : in the order in which they were named.
    labels : of all categories, shape (K, n), in {0, 1, UNKNOWN}.
    embedding_at, dim, embeddings, projected, embedding_digests : as `Examples` has them.
    scores : shape (n, K), a column for each category, NaN where its label is unknown; or None.
    weights : shape (n,), not negative; or None.
    groups : shape (n,), codes 0 to G - 1 in the order of the texts of the groups; or None.
    slice_columns : by column, what slices are made of.
    unlabelled : how many rows were left out since they have no label in any category.
    kept : which rows of the files these are, shape (n + unlabelled,).
    where : the files, for messages.
    weight : the column of the weights, for messages.
    """

    categories: tuple[Category, ...]
    labels: NDArray[np.uint8]
    embedding_at: EmbeddingColumns | None
    dim: int | None
    embeddings: NDArray[Any] | None
    projected: NDArray[np.float64] | None
    scores: NDArray[np.float64] | None
    weights: NDArray[np.float64] | None
    groups: NDArray[np.int64] | None
    slice_columns: Mapping[str, Coded]
    unlabelled: int
    kept: NDArray[np.bool_]
    embedding_digests: NDArray[np.uint64] | None
    where: str = field(repr=False)
    weight: str | None = field(repr=False)

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.labels.shape[1])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the categories."""
        return tuple(category.name for category in self.categories)

    @property
    def embedding_columns(self) -> tuple[str, ...]:
        """The columns that hold the embeddings, one of vectors or one a dimension; empty without."""
        return () if self.embedding_at is None else self.embedding_at.columns

    @cached_property
    def slices(self) -> Mapping[str, NDArray[np.object_]]:
        """By column, the text of the value of each row, shape (n,), as `Examples` has them."""
        return {name: column.row_texts() for name, column in self.slice_columns.items()}

    def known(self, i: int) -> NDArray[np.bool_]:
        """Return which rows have a label in category i, shape (n,)."""
        known: NDArray[np.bool_] = self.labels[i] != UNKNOWN
        return known

    def examples(self, i: int, *, embeddings: bool = True) -> Examples:
        """Return the rows that have a label in category i: what reading this label alone gives.

        Parameters
        ----------
        embeddings : whether they are copied, where they are held; of a category that all rows are known in they are
            these.

        Raises
        ------
        DataError : where no row has a label, and where all of these have weight 0.
        """
        category, rows = self.categories[i], self.known(i)
        if not category.known:
            raise DataError(
                f"{self.where}: column {quoted(category.name)} has no label in any of its {category.unknown} rows"
            )
        kept = self.kept.copy()
        kept[kept] = rows
        groups = None if self.groups is None else np.unique(self.groups[rows], return_inverse=True)[1]
        return Examples(
            labels=category.labels[rows],
            classes=category.classes,
            embedding_at=self.embedding_at,
            dim=self.dim,
            embeddings=_of(self.embeddings, rows) if embeddings else None,
            projected=_of(self.projected, rows),
            scores=None if self.scores is None else self.scores[rows, i],
            weights=usable_weights(_of(self.weights, rows), where=f"{self.where}: column {quoted(self.weight)}"),
            groups=groups,
            slices={name: column.of(rows).row_texts() for name, column in self.slice_columns.items()},
            unlabelled=category.unknown,
            kept=kept,
            embedding_digests=_of(self.embedding_digests, rows),
            class_names=category.classes,
        )


def read_category_examples(
    tables: Tables,
    *,
    labels: Sequence[str],
    positive: str | None = None,
    classes: Sequence[tuple[str, str] | None] | None = None,
    embedding: str | None = None,
    scores: Sequence[str] = (),
    score_kind: Literal["logit", "prob"] | None = None,
    weight: str | None = None,
    group: str | None = None,
    by: Sequence[str] = (),
    dim: int | None = None,
    hold: bool = True,
    project: Project | None = None,
    on_block: OnBlock | None = None,
    track: Track = untracked,
    collect: Collect | None = None,
) -> CategoryExamples:
    r"""Read the rows of all files that have a label in any of several categories.

    A null, a NaN and the empty cell of a CSV file are unknown labels. Where a label is unknown, nothing is asked of the
    row's score in this category; a row without any label is left out, whatever else it holds.

    Parameters
    ----------
    labels : the columns of the categories.
    positive : the value that is the positive class in every column whose values are no known pair.
    classes : for each category the classes (negative, positive) of the head that is to be evaluated, or None.
    scores : the columns of scores, one for each category.
    tables, embedding, score_kind, weight, group, by, dim, hold, project, on_block, track, collect : as `read_examples`
        has them.

    Raises
    ------
    DataError : for a missing column, a row that cannot be used, labels of which no two classes can be made, and where
        no row has any label.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from headeval.files.tables import open_tables
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("hate,spam\n1,\n,0\n,1\n")
    ...     rows = read_category_examples(open_tables([folder]), labels=["hate", "spam"])
    >>> rows.labels.tolist(), rows.categories[0].unknown, rows.examples(1).labels.tolist()
    ([[1, 255, 255], [255, 0, 1]], 2, [0, 1])
    """
    if len(scores) not in (0, len(labels)):
        raise ValueError("there must be one column of scores for each category")
    check_columns(tables, labels, weight=weight, group=group, by=by, scores=scores)
    wanted = Wanted(
        labels=tuple(labels),
        embedding=None,
        score=None,
        is_prob=score_kind == "prob",
        weight=weight,
        group=group,
        by=tuple(by),
        drop_unlabelled=True,
        dim=dim,
        many="categories",
        score_columns=tuple(scores),
    )
    rows = gathered(tables, wanted, embedding, Keeping(hold, project, on_block), track=track, collect=collect)
    where, (groups, slices) = file_names(tables), groups_and_slices(tables, rows)
    coded = dict(zip(labels, rows.labels(), strict=True))
    counts = {name: column.counts() for name, column in coded.items()}
    if not any(counts.values()):
        have = "have" if len(labels) > 1 else "has"
        raise DataError(f"{where}: {columns_text(labels)} {have} no label in any of {rows.unlabelled} rows")
    rules = resolve_categories(counts, where=where, positive=positive, classes=classes)
    known = np.stack([_codes(column, rule) for column, rule in zip(coded.values(), rules, strict=True)])
    return CategoryExamples(
        categories=tuple(
            _category(name, row, rule, rows.unlabelled) for name, row, rule in zip(labels, known, rules, strict=True)
        ),
        labels=known,
        **embedded_fields(rows),
        scores=rows.many_scores(),
        weights=rows.weights(),
        groups=None if groups is None else groups.ranks(),
        slice_columns=slices,
        unlabelled=rows.unlabelled,
        kept=rows.kept(),
        where=where,
        weight=weight,
    )


def _codes(column: Coded, rule: LabelRule) -> NDArray[np.uint8]:
    return column.mapped({text: int(text in rule.positives) for text in column.texts}, np.uint8, UNKNOWN)


def _category(name: str, labels: NDArray[np.uint8], rule: LabelRule, left_out: int) -> Category:
    known, positives = int(np.count_nonzero(labels != UNKNOWN)), int(np.count_nonzero(labels == 1))
    return Category(name, labels, rule.classes, known, left_out + len(labels) - known, positives)


def _of(values: NDArray[Any] | None, rows: NDArray[np.bool_]) -> NDArray[Any] | None:
    return values if values is None or rows.all() else values[rows]
