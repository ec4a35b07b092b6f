"""The head of a fit, judged on rows that the fit has not seen: out of fold, or those of --eval."""

import dataclasses
from typing import TYPE_CHECKING

from headeval.cli.reference_rows import row_stream
from headeval.cli.row_notes import unlabelled_note
from headeval.cli.rows import Columns, read_subject
from headeval.cli.sources import head_source
from headeval.cli.training_rows import TrainingRows
from headeval.core.checks import FloatArray
from headeval.core.class_scores import log_odds
from headeval.drift import leakage
from headeval.evaluation import evaluate
from headeval.files.examples import Examples
from headeval.files.row_sample import RowSample
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.printable import printable
from headeval.report import HeldOut
from headeval.solver.training import FOLD_SEED, Training

if TYPE_CHECKING:
    from headeval.multiclass import ClassEvaluation
    from headeval.solver.softmax_training import ClassTraining


def judged_on_other_rows(
    head: LinearHead, rows: TrainingRows, tables: Tables, eval_tables: Tables, columns: Columns, *, quiet: bool
) -> tuple[HeldOut, tuple[str, ...]]:
    """Return how the head does on the rows of --eval, with what must be said of these rows."""
    in_all = all(columns.group in file.schema.names for file in eval_tables.files)
    # Weights are those of the fit; groups are a property of the rows, and widen the intervals where they are known.
    columns = dataclasses.replace(columns, weight=None, group=columns.group if in_all else None)
    examples, sample = rows.examples, RowSample(seed=[0, 2])
    subject = read_subject(
        eval_tables,
        head_source(head, "the fitted head"),
        columns,
        named=True,
        hold=False,
        on_block=sample.add,
        quiet=quiet,
    )
    sample = sample.finished()
    # Rows that are with the workers of a cluster are too many to be looked through once more from here.
    stream = None if rows.on_cluster else row_stream(tables, examples, quiet=quiet)
    leaked = leakage(
        subject.examples.digests,
        examples.digests,
        sample.embeddings,
        examples.embeddings if examples.embeddings is not None else stream,
        None if subject.ids is None else subject.ids.tolist(),
        next((ids.tolist() for ids in examples.slices.values()), None),
        rows=sample.rows,
    )
    names = ", ".join(printable(str(path)) for path in eval_tables.paths)
    held_out = HeldOut(
        f"{subject.how} (--eval {names})",
        subject.evaluate(),
        seen=subject.seen,
        leakage=leaked,
        classes=subject.evaluate_classes(),
    )
    return held_out, unlabelled_note(subject.examples, rows="rows of --eval")


def judged_out_of_fold(
    head: LinearHead,
    examples: Examples,
    training: "Training | ClassTraining",
    n_folds: int,
    group: str | None,
    *,
    n_resamples: int | None = None,
) -> HeldOut:
    """Return how heads that have not seen a row do on it; `n_resamples` as for `evaluate`."""
    if training.out_of_fold is None:
        return HeldOut("not judged: --folds 0 skips the out-of-fold metrics", None)
    grouped = f", whole groups of {group}" if group else ""
    copies = ""
    if training.repeated:
        copies = f" (repeated embeddings share a fold: {training.repeated:,} beyond the first of each)"
    how = f"out-of-fold: {n_folds} stratified folds{grouped}; each row is scored by a head that has not seen it{copies}"
    scores = training.out_of_fold
    evaluation = evaluate(
        scores if scores.ndim == 1 else log_odds(scores),
        examples.labels,
        kind="logit",
        threshold=head.threshold,
        classes=examples.classes,
        groups=examples.groups,
        n_resamples=n_resamples,
    )
    return HeldOut(how, evaluation, n_folds=n_folds, fold_seed=FOLD_SEED, classes=_all_classes(head, examples, scores))


def _all_classes(head: LinearHead, examples: Examples, scores: FloatArray) -> "ClassEvaluation | None":
    if examples.class_codes is None:
        return None
    from headeval.multiclass import evaluate_classes

    return evaluate_classes(scores, examples.class_codes, kind="logit", classes=head.classes, groups=examples.groups)
