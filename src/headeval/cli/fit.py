"""`headeval fit`: embeddings and labels → a linear head, judged on rows it has not seen."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from headeval.cli import options
from headeval.cli.console import progress, show
from headeval.errors import DataError, FitError, UsageError
from headeval.printable import printable

if TYPE_CHECKING:
    from headeval.cli.rows import Columns
    from headeval.files.examples import Examples
    from headeval.files.tables import Tables
    from headeval.head import LinearHead
    from headeval.report import HeldOut
    from headeval.solver.training import Training

DEFAULT_FOLDS = 5


def fit(
    data: options.Data,
    l2: options.L2 = 1.0,
    label: options.Label = "label",
    positive: options.Positive = None,
    embedding: options.Embedding = "embedding",
    embedding_model: options.EmbeddingModel = None,
    threshold: options.Threshold = 0.5,
    weight: options.Weight = None,
    group: options.Group = None,
    folds: options.Folds = None,
    eval_data: options.EvaluationData = None,
    drop_unlabelled: options.DropUnlabelled = False,
    output: options.HeadOutput = Path("linear-head.json"),
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Fit a head on DATA and write it.

    The metrics shown are out-of-fold (or from --eval), never in-sample; the head written is fitted on all rows.
    """
    from headeval.cli.row_notes import unlabelled_note
    from headeval.cli.rows import Columns, data_provenance, embedding_provenance, read_training_rows, rows_used
    from headeval.files.atomic import check_output
    from headeval.files.heads import write_head
    from headeval.files.tables import open_tables
    from headeval.head import LinearHead
    from headeval.head_history import fit_history
    from headeval.render.document import with_evaluation
    from headeval.render.terminal import render_fit
    from headeval.report import FitSummary

    n_folds = _number_of_folds(folds, eval_data)
    tables, eval_tables = open_tables(data), open_tables(eval_data) if eval_data else None
    check_output(output, force=force, inputs=(*tables.paths, *(eval_tables.paths if eval_tables else ())))
    columns = Columns(label, positive, embedding, embedding_model, drop_unlabelled, weight, group)
    examples = read_training_rows(tables, columns, named=eval_tables is not None, quiet=quiet)
    training = _train(examples, l2, n_folds, quiet)
    head = LinearHead.binary(
        training.fit.w[:-1],
        float(training.fit.w[-1]),
        classes=examples.classes,
        embedding_model=embedding_model or tables.embedding_model or "unspecified",
        threshold=threshold,
        metrics=fit_history(rows_used(examples), training.fit, l2=l2, weight=weight, label=label),
    )
    if eval_tables:
        held_out, more_notes = _on_other_rows(head, examples, eval_tables, columns, quiet)
    else:
        held_out, more_notes = _out_of_fold(head, examples, training, n_folds, group), ()
    write_head(dataclasses.replace(head, metrics=with_evaluation(head.metrics, held_out)), output, force=force)
    provenance = data_provenance(data, examples) | embedding_provenance(examples, columns)
    provenance |= _head_provenance(head, examples, columns, l2, output)
    notes = (*_notes(head, tables.embedding_model, weight), *unlabelled_note(examples), *more_notes)
    show(render_fit(FitSummary(provenance, training.fit, held_out, notes)))


def _number_of_folds(folds: int | None, eval_data: list[str] | None) -> int:
    if eval_data and folds:
        raise UsageError("--folds and --eval exclude each other: the metrics are out-of-fold or from the file")
    return 0 if eval_data else DEFAULT_FOLDS if folds is None else folds


def _train(examples: "Examples", l2: float, n_folds: int, quiet: bool) -> "Training":
    import numpy as np

    from headeval.solver.folds import FoldError
    from headeval.solver.training import NotConvergedError, train

    try:
        return train(
            examples.embeddings,
            examples.labels.astype(np.int64),
            l2=l2,
            n_folds=n_folds,
            identity=np.unique(examples.digests[:, 0], return_inverse=True)[1],
            groups=examples.groups,
            sample_weight=examples.weights,
            track=progress("fitting folds", quiet=quiet),
        )
    except FoldError as error:
        joined = " (repeated embeddings join the groups they stand in)" if examples.groups is not None else ""
        raise DataError(f"{error}{joined}; choose fewer --folds, --eval FILE, or --folds 0 for no metrics") from error
    except NotConvergedError as error:
        raise FitError(f"no head was written: {error}") from error


def _on_other_rows(
    head: "LinearHead", examples: "Examples", eval_tables: "Tables", columns: "Columns", quiet: bool
) -> "tuple[HeldOut, tuple[str, ...]]":
    from headeval.cli.row_notes import unlabelled_note
    from headeval.cli.rows import read_subject
    from headeval.cli.sources import head_source
    from headeval.drift import leakage
    from headeval.report import HeldOut

    in_all = all(columns.group in file.schema.names for file in eval_tables.files)
    # Weights are those of the fit; groups are a property of the rows, and widen the intervals where they are known.
    columns = dataclasses.replace(columns, weight=None, group=columns.group if in_all else None)
    subject = read_subject(eval_tables, head_source(head, "the fitted head"), columns, named=True, quiet=quiet)
    leaked = leakage(
        subject.examples.digests,
        examples.digests,
        subject.examples.embeddings,
        examples.embeddings,
        None if subject.ids is None else subject.ids.tolist(),
        next((ids.tolist() for ids in examples.slices.values()), None),
    )
    names = ", ".join(printable(str(path)) for path in eval_tables.paths)
    held_out = HeldOut(f"{subject.how} (--eval {names})", subject.evaluate(), seen=subject.seen, leakage=leaked)
    return held_out, unlabelled_note(subject.examples, rows="rows of --eval")


def _out_of_fold(
    head: "LinearHead", examples: "Examples", training: "Training", n_folds: int, group: str | None
) -> "HeldOut":
    from headeval.evaluation import evaluate
    from headeval.report import HeldOut
    from headeval.solver.training import FOLD_SEED

    if training.out_of_fold is None:
        return HeldOut("not judged: --folds 0 skips the out-of-fold metrics", None)
    grouped = f", whole groups of {group}" if group else ""
    copies = ""
    if training.repeated:
        copies = f" (repeated embeddings share a fold: {training.repeated:,} beyond the first of each)"
    how = f"out-of-fold: {n_folds} stratified folds{grouped}; each row is scored by a head that has not seen it{copies}"
    evaluation = evaluate(
        training.out_of_fold,
        examples.labels,
        kind="logit",
        threshold=head.threshold,
        classes=examples.classes,
        groups=examples.groups,
    )
    return HeldOut(how, evaluation, n_folds=n_folds, fold_seed=FOLD_SEED)


def _head_provenance(
    head: "LinearHead", examples: "Examples", columns: "Columns", l2: float, output: Path
) -> dict[str, object]:
    from headeval.render.sections import in_sentence

    n, positives = len(examples.labels), int(examples.labels.sum())
    negative, positive = (in_sentence(name) for name in examples.classes)
    provenance: dict[str, object] = {
        "fitted_on": f"{n:,} rows: {positives:,} {positive} (flagged class), {n - positives:,} {negative}",
        "label_column": columns.label,
        "embedding_model": f"{head.embedding_model} ({head.dim} dimensions)",
        "l2": l2,
    }
    if columns.weight:
        provenance["weights"] = columns.weight
    return provenance | {"written_to": str(output)}


def _notes(head: "LinearHead", model_of_files: str | None, weight: str | None) -> tuple[str, ...]:
    notes = []
    if head.embedding_model == "unspecified":
        notes.append(
            "no embedding model is named, so nothing will notice when this head meets other embeddings: "
            "give --embedding-model NAME"
        )
    elif model_of_files not in {None, head.embedding_model}:
        notes.append(f"--embedding-model was taken, though the files name another model, {model_of_files}")
    if weight:
        notes.append("the fit is weighted; the metrics count every row once")
    return tuple(notes)
