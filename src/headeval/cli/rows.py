"""The rows of a command: read from DATA, and scored by a head or by a column of scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headeval.cli.console import progress
from headeval.cli.sources import Source, check_models
from headeval.cli.subject import Subject, subject_of
from headeval.core.checks import FloatArray
from headeval.core.class_scores import log_odds
from headeval.files.embedded_rows import OnBlock
from headeval.files.examples import Collect, Examples, read_examples, require_both_classes
from headeval.files.locations import masked_uri
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.head_history import RowsUsed

DEFAULT_ID = "id"


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the command line says labels and embeddings are, and what else is known of a row.

    Attributes
    ----------
    identifier : the column that names a row; None takes `id` where there is one.
    classes : the names of the classes of a fit, the flagged one last; None takes those of the labels.
    """

    label: str
    positive: str | None
    embedding: str
    embedding_model: str | None
    drop_unlabelled: bool
    weight: str | None = None
    group: str | None = None
    identifier: str | None = None
    classes: tuple[str, ...] | None = None

    def id_column(self, tables: Tables) -> str | None:
        """Return the column that names the rows of these tables; None where they have no such column."""
        if self.identifier is not None:
            return self.identifier
        return DEFAULT_ID if all(DEFAULT_ID in file.schema.names for file in tables.files) else None


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
    """Return the labelled rows of all classes, where `named` with the names of the rows among the slices.

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
        many_classes=True,
        classes=columns.classes,
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


def class_counts(examples: Examples) -> dict[str, int]:
    """Return how many rows each class has, in the order of the classes."""
    codes = examples.labels if examples.class_codes is None else examples.class_codes
    counts = np.bincount(codes, minlength=len(examples.class_names))
    return dict(zip(examples.class_names, counts.tolist(), strict=True))


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
    logits, per_class = examples.projected, examples.class_scores
    if logits is not None and len(heads[0].classes) > 2:
        per_class = logits[:, : len(heads[0].classes)]
    return subject_of(
        tables,
        examples,
        source,
        columns.label,
        scores=_flagged_scores(examples, source, per_class),
        threshold=threshold,
        ids=None if identifier is None else examples.slices[identifier],
        also=logits[:, -1] if logits is not None and len(heads) > 1 else None,
        class_scores=per_class,
    )


def _flagged_scores(examples: Examples, source: Source, per_class: FloatArray | None) -> FloatArray | None:
    """Return the score of the flagged class, (n,), from those of all classes where these are known."""
    if per_class is not None:
        return log_odds(per_class) if source.kind == "logit" else per_class[:, -1]
    return examples.scores if examples.projected is None else examples.projected[:, 0]


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
        **source.label_rule(columns.positive),
        "weight": columns.weight,
        "group": columns.group,
        "by": by,
        "drop_unlabelled": columns.drop_unlabelled,
    }


def _scored(columns: Columns, source: Source, heads: Sequence[LinearHead]) -> dict[str, Any]:
    """Return what `read_examples` is to read and to make of it: columns of scores, or the logits of heads."""
    if not heads:
        columns_of = {"class_scores": source.class_columns} if source.class_columns else {"score": source.name}
        return {**columns_of, "score_kind": source.kind}
    head, *others = heads

    def project(embeddings: Any) -> FloatArray:
        """Of more than two classes the logit of each, which tell the log-odds; of two the log-odds alone."""
        first = head.logits(embeddings)[:, None] if len(head.classes) == 2 else head.class_logits(embeddings)
        return np.concatenate([first, *(other.logits(embeddings)[:, None] for other in others)], axis=1)

    return {"embedding": columns.embedding, "dim": head.dim, "project": project}


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
