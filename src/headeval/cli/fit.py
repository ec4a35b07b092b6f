"""`headeval fit`: embeddings and labels → a linear head, judged on rows it has not seen."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from headeval.cli import options
from headeval.cli.console import show
from headeval.cli.engine import check_engine, connected
from headeval.errors import DataError, FitError, UsageError

if TYPE_CHECKING:
    from headeval.cli.rows import Columns
    from headeval.cli.training_rows import TrainingRows
    from headeval.head import LinearHead
    from headeval.solver.penalty_path import Rule
    from headeval.solver.training import Training

DEFAULT_FOLDS = 5


def fit(
    data: options.Data,
    l2: options.L2 = "1.0",
    l2_rule: options.L2Rule = "best",
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
    memory: options.Memory = None,
    engine: options.Engine = "local",
    scheduler: options.Scheduler = None,
    output: options.HeadOutput = Path("linear-head.json"),
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Fit a head on DATA and write it.

    The metrics shown are out-of-fold (or from --eval), never in-sample; the head written is fitted on all rows.
    """
    from headeval.files.atomic import check_output
    from headeval.files.tables import open_tables

    check_engine(engine, scheduler)
    if memory is not None and engine == "dask":
        raise UsageError("--memory is for rows that this process reads: with --engine dask the workers hold them")
    penalties, n_folds = options.penalties(l2), _number_of_folds(folds, eval_data, l2, l2_rule)
    tables, eval_tables = open_tables(data), open_tables(eval_data) if eval_data else None
    check_output(output, force=force, inputs=(*tables.paths, *(eval_tables.paths if eval_tables else ())))
    # Only now what is made of numpy and pyarrow: so far, whatever is wrong is told at once.
    from headeval.cli.held_out import judged_on_other_rows, judged_out_of_fold
    from headeval.cli.row_notes import unlabelled_note
    from headeval.cli.rows import Columns, data_provenance, embedding_provenance
    from headeval.cli.training_rows import read_training
    from headeval.files.heads import write_head
    from headeval.render.document import with_evaluation
    from headeval.render.terminal import render_fit
    from headeval.report import FitSummary

    columns = Columns(label, positive, embedding, embedding_model, drop_unlabelled, weight, group)
    with connected(engine, scheduler) as cluster:
        rows = read_training(
            tables,
            columns,
            named=eval_tables is not None,
            memory=options.memory_bytes(memory),
            cluster=cluster,
            quiet=quiet,
        )
        training = _train(rows, penalties, l2_rule, n_folds, judged=eval_tables is None)
    examples = rows.examples
    head = _head(rows, training, columns, embedding_model or tables.embedding_model, threshold)
    if eval_tables:
        held_out, more_notes = judged_on_other_rows(head, rows, tables, eval_tables, columns, quiet=quiet)
    else:
        held_out, more_notes = judged_out_of_fold(head, examples, training, n_folds, group), ()
    write_head(dataclasses.replace(head, metrics=with_evaluation(head.metrics, held_out)), output, force=force)
    provenance = data_provenance(data, examples) | embedding_provenance(examples, columns)
    provenance |= _head_provenance(head, rows, training, columns, output)
    notes = (*_notes(head, tables.embedding_model, training, weight), *unlabelled_note(examples), *more_notes)
    show(render_fit(FitSummary(provenance, training.fit, held_out, notes, training.path)))


def _number_of_folds(folds: int | None, eval_data: list[str] | None, l2: str, rule: str) -> int:
    several = options.penalties(l2) is None or "," in l2
    if not several and rule != "best":
        raise UsageError(f"--l2-rule {rule} chooses among penalties: give --l2 auto, or several")
    if eval_data and folds:
        raise UsageError("--folds and --eval exclude each other: the metrics are out-of-fold or from the file")
    if several and folds == 0:
        raise UsageError(f"--l2 {l2} chooses among penalties by rows that each fit has not seen: it needs --folds")
    if eval_data:
        return DEFAULT_FOLDS if several else 0
    return DEFAULT_FOLDS if folds is None else folds


def _train(
    rows: "TrainingRows", penalties: tuple[float, ...] | None, rule: "Rule", n_folds: int, *, judged: bool
) -> "Training":
    import numpy as np

    from headeval.solver.folds import FoldError
    from headeval.solver.penalty_path import AUTO
    from headeval.solver.training import NotConvergedError, train

    examples = rows.examples
    try:
        return train(
            rows.source,
            penalties=penalties or AUTO,
            auto=penalties is None,
            rule=rule,
            n_folds=n_folds,
            judged=judged,
            identity=np.unique(examples.digests[:, 0], return_inverse=True)[1],
            groups=examples.groups,
        )
    except FoldError as error:
        joined = " (repeated embeddings join the groups they stand in)" if examples.groups is not None else ""
        raise DataError(f"{error}{joined}; choose fewer --folds, --eval FILE, or --folds 0 for no metrics") from error
    except NotConvergedError as error:
        raise FitError(f"no head was written: {error}") from error


def _head(
    rows: "TrainingRows", training: "Training", columns: "Columns", embedding_model: str | None, threshold: float
) -> "LinearHead":
    from headeval.cli.rows import rows_used
    from headeval.head import LinearHead
    from headeval.head_history import fit_history

    examples, path = rows.examples, training.path
    return LinearHead.binary(
        training.fit.w[:-1],
        float(training.fit.w[-1]),
        classes=examples.classes,
        embedding_model=embedding_model or "unspecified",
        threshold=threshold,
        metrics=fit_history(
            rows_used(examples),
            training.fit,
            l2=training.l2,
            weight=columns.weight,
            label=columns.label,
            passes=training.passes + rows.read_before,
            path=None if path is None else path.document(),
        ),
    )


def _head_provenance(
    head: "LinearHead", rows: "TrainingRows", training: "Training", columns: "Columns", output: Path
) -> dict[str, object]:
    from headeval.render.sections import in_sentence

    examples = rows.examples
    n, positives = len(examples.labels), int(examples.labels.sum())
    negative, positive = (in_sentence(name) for name in examples.classes)
    provenance: dict[str, object] = {
        "fitted_on": f"{n:,} rows: {positives:,} {positive} (flagged class), {n - positives:,} {negative}",
        "label_column": columns.label,
        "embedding_model": f"{head.embedding_model} ({head.dim} dimensions)",
        "l2": training.l2,
    }
    if columns.weight:
        provenance["weights"] = columns.weight
    if rows.how:
        provenance["rows"] = f"{rows.how}; {training.passes + rows.read_before} passes over them"
    return provenance | {"written_to": str(output)}


def _notes(head: "LinearHead", model_of_files: str | None, training: "Training", weight: str | None) -> tuple[str, ...]:
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
    if training.path is not None:
        from headeval.render.penalty_path import path_notes

        notes += path_notes(training.path, judged=training.out_of_fold is not None)
    return tuple(notes)
