"""The rows of several categories, read once: what each head of a folder, or each column of scores, is judged on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headeval.cli.rows import Columns, reading
from headeval.cli.sources import Source, check_models
from headeval.cli.subject import Subject, subject_of
from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.category_rows import CategoryExamples, read_category_examples
from headeval.files.gathered_rows import Collect
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.joint_heads import JointHeads
from headeval.printable import listed, quoted

LONGEST_LABEL = 300


@dataclass(frozen=True, slots=True)
class CategorySubject:
    """The rows on which one category is judged: those whose label is known.

    Attributes
    ----------
    name : of the category, which is its label column.
    subject : the rows with their scores, as `read_subject` with `drop_unlabelled` returns them; None where no row can
        be judged.
    unknown : how many rows have no label of this category.
    why : there is no subject; empty where there is one.
    """

    name: str
    subject: Subject | None
    unknown: int
    why: str = ""


def read_category_subjects(
    tables: Tables,
    sources: Mapping[str, Source],
    columns: Columns,
    *,
    by: Sequence[str] = (),
    threshold: float | None = None,
    also: Mapping[str, LinearHead] | None = None,
    collect: Collect | None = None,
    quiet: bool,
) -> tuple[CategorySubject, ...]:
    """Read the labels of all categories and the scores of their heads in one pass, whatever labels are known where.

    Parameters
    ----------
    sources : what gives the scores of each category, by its name, which is its label column: heads of one width, as
        `read_heads` returns them, or columns of one kind. `columns.label` and `columns.drop_unlabelled` play no part.
    by : columns whose values are kept as text.
    threshold : at which every category is judged, instead of the one of its source.
    also : of each category another head that scores the same rows, if it takes embeddings of the same width.
    collect : reads the rows elsewhere.

    Raises
    ------
    DataError : for a category without its label column, or a row that cannot be used.
    HeadError : where the embeddings are of another model than a head's.
    """
    check_label_columns(tables, tuple(sources))
    heads = {name: source.head for name, source in sources.items() if source.head is not None}
    for head in heads.values():
        check_models(head, tables, columns.embedding_model)
    others = {name: head for name, head in (also or {}).items() if name in heads and head.dim == heads[name].dim}
    examples = read_category_examples(
        tables,
        labels=tuple(sources),
        positive=columns.positive,
        classes=[source.classes for source in sources.values()],
        **_scored(columns, sources, tuple(heads.values()), tuple(others.values())),
        weight=columns.weight,
        group=columns.group,
        by=by,
        hold=False,
        track=reading(quiet),
        collect=collect,
    )
    at = {name: len(heads) + index for index, name in enumerate(others)}
    return tuple(
        _subject(tables, examples, index, name, source, threshold=threshold, other=at.get(name))
        for index, (name, source) in enumerate(sources.items())
    )


def check_label_columns(tables: Tables, categories: Sequence[str]) -> None:
    """Refuse tables that lack the column with the labels of a category.

    Raises
    ------
    DataError : naming the columns, and what to do.
    """
    for file in tables.files:
        missing = [name for name in categories if name not in file.schema.names]
        if missing:
            there = [name for name in categories if name in file.schema.names]
            one = len(missing) == 1
            columns, which = ("column", "that category") if one else ("columns", "these categories")
            some = quoted(",".join(there), longest=LONGEST_LABEL)
            fewer = f"; judge fewer with --label {some}, or" if there else ": name other files, or"
            raise DataError(
                f"{shown(file.path)} has no {columns} {listed(missing)} with the labels of {which}{fewer} judge one "
                "head on another column: --head FOLDER/NAME.json --label COL"
            )


def _scored(
    columns: Columns, sources: Mapping[str, Source], heads: Sequence[LinearHead], others: Sequence[LinearHead]
) -> dict[str, Any]:
    """Return what is to be read and to be made of it: columns of scores, or the logits of heads."""
    if not heads:
        kinds = {source.kind for source in sources.values()}
        return {"scores": [source.name for source in sources.values()], "score_kind": kinds.pop()}
    return {"embedding": columns.embedding, "dim": heads[0].dim, "project": JointHeads((*heads, *others)).logits}


def _subject(
    tables: Tables,
    rows: CategoryExamples,
    index: int,
    name: str,
    source: Source,
    *,
    threshold: float | None,
    other: int | None,
) -> CategorySubject:
    category = rows.categories[index]
    if not category.known:
        return CategorySubject(name, None, category.unknown, f"none of {category.unknown:,} rows has a known label")
    if rows.weights is not None and not rows.weights[rows.known(index)].any():
        return CategorySubject(name, None, category.unknown, "all rows whose label is known have weight 0")
    examples = rows.examples(index)
    logits = examples.projected
    subject = subject_of(
        tables,
        examples,
        source,
        name,
        scores=examples.scores if logits is None else logits[:, index],
        threshold=threshold,
        also=None if logits is None or other is None else logits[:, other],
    )
    return CategorySubject(name, subject, category.unknown)
