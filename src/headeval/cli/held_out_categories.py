"""The heads of several categories, judged on rows that the fit has not seen: out of fold, or those of --eval."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.category_fit import RowsJudged
from headeval.cli import held_out
from headeval.cli.reference_rows import row_stream
from headeval.cli.rows import Columns, reading
from headeval.cli.sources import check_models, head_source
from headeval.cli.subject import subject_of
from headeval.cli.training_rows import PlacedRows
from headeval.drift import Leakage, leakage
from headeval.evidence import shared_resamples
from headeval.files.category_rows import CategoryExamples, read_category_examples
from headeval.files.row_sample import RowSample
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.joint_heads import JointHeads
from headeval.printable import listed, printable
from headeval.report import HeldOut
from headeval.solver.training import Training

_SKIPPED = "not judged: --folds 0 skips the out-of-fold metrics"
_NO_ROWS = "not judged: no row of --eval has a known label"


@dataclass(frozen=True, slots=True)
class Judged:
    """How heads do on rows they have not seen.

    Attributes
    ----------
    how : which rows these are, in words.
    held_out : by category.
    notes : what must be said of the rows.
    leakage : which rows of --eval are, or nearly are, rows of the fit.
    rows : of --eval, by category; none where the rows of the fit are judged.
    """

    how: str
    held_out: Mapping[str, HeldOut]
    notes: tuple[str, ...] = ()
    leakage: Leakage | None = None
    rows: Mapping[str, RowsJudged] = field(default_factory=dict)


def judged_out_of_fold(
    heads: Mapping[str, LinearHead],
    examples: CategoryExamples,
    trained: Mapping[str, Training],
    n_folds: int,
    group: str | None,
) -> Judged:
    """Return how, in each category, heads that have not seen a row do on it."""

    def judge(name: str) -> HeldOut:
        known = examples.examples(examples.names.index(name), embeddings=False)
        n_resamples = shared_resamples(len(known.labels), len(heads))
        return held_out.judged_out_of_fold(heads[name], known, trained[name], n_folds, group, n_resamples=n_resamples)

    found = {name: judge(name) for name in heads}
    if not n_folds:
        return Judged(_SKIPPED, found)
    grouped = f", whole groups of {group}" if group else ""
    copies = "; repeated embeddings share a fold" if any(training.repeated for training in trained.values()) else ""
    how = f"out-of-fold: {n_folds} stratified folds of each category's known rows{grouped}{copies}; each row is scored "
    return Judged(f"{how}by a head that has not seen it", found)


def judged_on_other_rows(
    heads: Mapping[str, LinearHead],
    rows: PlacedRows[CategoryExamples],
    tables: Tables,
    eval_tables: Tables,
    columns: Columns,
    *,
    quiet: bool,
) -> Judged:
    """Return how the heads do on the rows of --eval, which are read once for all of them.

    Raises
    ------
    DataError : for a category without its label column there, or a row that cannot be used.
    HeadError : where their embeddings are of another model.
    """
    if not heads:
        return Judged("", {})
    for head in heads.values():
        check_models(head, eval_tables, columns.embedding_model)
    others, sample, digests = _read(heads, eval_tables, columns, quiet=quiet)
    names = ", ".join(printable(str(path)) for path in eval_tables.paths)

    def judge(name: str) -> HeldOut:
        i = others.names.index(name)
        if not others.categories[i].known:
            return HeldOut(_NO_ROWS, None)
        known, source = others.examples(i), head_source(heads[name], "the fitted head")
        scores = None if known.projected is None else known.projected[:, i]
        subject = subject_of(eval_tables, known, source, name, scores=scores, threshold=None)
        evaluation = subject.evaluate(n_resamples=shared_resamples(len(known.labels), len(heads)))
        return HeldOut(f"{subject.how} (--eval {names})", evaluation, seen=subject.seen)

    found = {name: judge(name) for name in heads}
    missing = [name for name, part in found.items() if part.evaluation is None]
    notes = (f"no row of --eval has a known label of {listed(missing)}",) if missing else ()
    leaked = _leakage(rows, tables, others, sample, digests, quiet=quiet)
    how = f"each category on the rows whose label of it is known (--eval {names})"
    rows_of = {part.name: RowsJudged(part.known, part.positives, part.unknown) for part in others.categories}
    return Judged(how, found, notes, leaked, rows_of)


def _read(
    heads: Mapping[str, LinearHead], tables: Tables, columns: Columns, *, quiet: bool
) -> tuple[CategoryExamples, RowSample, NDArray[np.uint64]]:
    """Return the rows with the logits of all heads, and a sample of their embeddings."""
    # Weights are those of the fit; groups are a property of the rows, and widen the intervals where they are known.
    in_all = all(columns.group in file.schema.names for file in tables.files)
    identifier, sample = columns.id_column(tables), RowSample(seed=[0, 2])
    joint = JointHeads(list(heads.values()))
    rows = read_category_examples(
        tables,
        labels=tuple(heads),
        positive=columns.positive,
        classes=[head.decision_classes for head in heads.values()],
        embedding=columns.embedding,
        dim=joint.dim,
        group=columns.group if in_all else None,
        by=[] if identifier is None else [identifier],
        hold=False,
        project=joint.logits,
        on_block=sample.add,
        track=reading(quiet),
    )
    digests = rows.embedding_digests
    if digests is None:  # never: there are embeddings
        raise TypeError("the embeddings were not read")
    return rows, sample.finished(), digests


def _leakage(
    rows: PlacedRows[CategoryExamples],
    tables: Tables,
    others: CategoryExamples,
    sample: RowSample,
    digests: NDArray[np.uint64],
    *,
    quiet: bool,
) -> Leakage:
    """Look for the rows of --eval among those of the fit, whatever labels they have."""
    examples = rows.examples
    if examples.embedding_digests is None:  # never: there are embeddings
        raise TypeError("the embeddings were not read")
    # Rows that are with the workers of a cluster are too many to be looked through once more from here.
    stream = None if rows.on_cluster else row_stream(tables, examples, quiet=quiet)
    return leakage(
        digests,
        examples.embedding_digests,
        sample.embeddings,
        examples.embeddings if examples.embeddings is not None else stream,
        _names(others),
        _names(examples),
        rows=sample.rows,
    )


def _names(rows: CategoryExamples) -> Any:
    return next((ids.tolist() for ids in rows.slices.values()), None)
