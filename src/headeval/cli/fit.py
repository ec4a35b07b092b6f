"""`headeval fit`: embeddings and labels → a linear head, judged on rows it has not seen."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headeval.cli import fit_options as asked
from headeval.cli import options
from headeval.cli.console import show
from headeval.cli.engine import check_engine, connected
from headeval.errors import DataError, FitError, UsageError
from headeval.printable import listed

if TYPE_CHECKING:
    from headeval.cli.rows import Columns
    from headeval.cli.training_rows import TrainingRows
    from headeval.files.examples import Examples
    from headeval.head import LinearHead
    from headeval.solver.penalty_path import Rule
    from headeval.solver.softmax_training import ClassTraining
    from headeval.solver.training import Training

DEFAULT_FOLDS = 5


def fit(
    data: options.Data,
    l2: asked.L2 = "1.0",
    l2_rule: asked.L2Rule = "best",
    label: options.Label = "label",
    positive: options.Positive = None,
    classes: options.Classes = None,
    embedding: options.Embedding = "embedding",
    embedding_model: options.EmbeddingModel = None,
    threshold: options.Threshold = 0.5,
    weight: options.Weight = None,
    group: options.Group = None,
    folds: asked.Folds = None,
    eval_data: asked.EvaluationData = None,
    drop_unlabelled: options.DropUnlabelled = False,
    memory: asked.Memory = None,
    engine: options.Engine = "local",
    scheduler: options.Scheduler = None,
    min_positives: options.MinPositives = options.MIN_POSITIVES,
    allow_missing: options.AllowMissing = False,
    output: asked.HeadOutput = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Fit a head on DATA and write it.

    The metrics shown are out-of-fold (or from --eval), never in-sample; the head written is fitted on all rows.
    More than two values of a label make one head of several classes (softmax), which flags the last of them. Several
    labels make a folder of heads, each fitted on the rows whose label of its category is known.
    """
    from headeval.files.atomic import check_output
    from headeval.files.tables import open_tables

    check_engine(engine, scheduler)
    if memory is not None and engine == "dask":
        raise UsageError("--memory is for rows that this process reads: with --engine dask the workers hold them")
    names = options.class_names(classes, positive)
    penalties, n_folds = asked.penalties(l2), _number_of_folds(folds, eval_data, l2, l2_rule)
    tables, eval_tables = open_tables(data), open_tables(eval_data) if eval_data else None
    labels = asked.several_labels(tables, label, (weight, group), classes=names)
    if labels is not None:
        from headeval.cli.fit_categories import CategoryOptions, fit_categories
        from headeval.cli.rows import Columns

        limits = (asked.memory_bytes(memory), min_positives, allow_missing, output or Path("heads"), force, quiet)
        wanted = CategoryOptions(data, labels, penalties, l2_rule, n_folds, threshold, *limits)
        columns = Columns(label, positive, embedding, embedding_model, True, weight, group)
        with connected(engine, scheduler) as cluster:
            fit_categories(tables, eval_tables, columns, wanted, cluster)
        return
    several = "several labels, --label a,b,c or a pattern, --label 'cat_*'"
    options.refuse_for_one(several, min_positives=min_positives, allow_missing=allow_missing)
    output = output or Path("linear-head.json")
    check_output(output, force=force, inputs=(*tables.paths, *(eval_tables.paths if eval_tables else ())))
    # Only now what is made of numpy and pyarrow: so far, whatever is wrong is told at once.
    from headeval.cli.fitted_head import fitted_head
    from headeval.cli.held_out import judged_on_other_rows, judged_out_of_fold
    from headeval.cli.row_notes import classes_note, unlabelled_note, zero_rows, zeros_note
    from headeval.cli.rows import Columns, class_counts, data_provenance, embedding_provenance
    from headeval.cli.training_rows import read_training
    from headeval.files.heads import write_head
    from headeval.render.document import with_evaluation
    from headeval.render.terminal import render_fit
    from headeval.report import FitSummary

    columns = Columns(label, positive, embedding, embedding_model, drop_unlabelled, weight, group, classes=names)
    with connected(engine, scheduler) as cluster:
        rows = read_training(
            tables,
            columns,
            named=eval_tables is not None,
            memory=asked.memory_bytes(memory),
            cluster=cluster,
            quiet=quiet,
        )
        training = _train(rows, penalties, l2_rule, n_folds, judged=eval_tables is None)
    examples = rows.examples
    model = embedding_model or tables.embedding_model
    head = fitted_head(examples, training, columns, model, threshold, rows.read_before)
    if eval_tables:
        held_out, more_notes = judged_on_other_rows(head, rows, tables, eval_tables, columns, quiet=quiet)
    else:
        held_out, more_notes = judged_out_of_fold(head, examples, training, n_folds, group), ()
    write_head(dataclasses.replace(head, metrics=with_evaluation(head.metrics, held_out)), output, force=force)
    provenance = data_provenance(data, examples) | embedding_provenance(examples, columns)
    provenance |= _head_provenance(head, rows, training, columns, output)
    notes = (
        *_notes(head, tables.embedding_model, training, weight),
        *classes_note(class_counts(examples), named=names is not None),
        *unlabelled_note(examples),
        *zeros_note(zero_rows(examples.digests[:, 0], examples.dim)),
        *more_notes,
    )
    show(render_fit(FitSummary(provenance, training.fit, held_out, notes, training.path)))


def _number_of_folds(folds: int | None, eval_data: list[str] | None, l2: str, rule: str) -> int:
    several = asked.penalties(l2) is None or "," in l2
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
) -> "Training | ClassTraining":
    import numpy as np

    from headeval.cli.training_rows import room_to_fit
    from headeval.solver.folds import FoldError
    from headeval.solver.penalty_path import AUTO
    from headeval.solver.training import NotConvergedError, train

    examples = rows.examples
    asked_for: dict[str, Any] = {
        "penalties": penalties or AUTO,
        "auto": penalties is None,
        "rule": rule,
        "n_folds": n_folds,
        "judged": judged,
        "identity": np.unique(examples.digests[:, 0], return_inverse=True)[1],
        "groups": examples.groups,
    }
    try:
        with room_to_fit(examples.dim):
            if examples.class_codes is None:
                return train(rows.source, **asked_for)
            from headeval.solver.softmax_training import train_classes

            return train_classes(rows.source, n_classes=len(examples.class_names), **asked_for)
    except FoldError as error:
        joined = " (repeated embeddings join the groups they stand in)" if examples.groups is not None else ""
        told = error.told(examples.class_names) + _spelled_alike(examples, error.label)
        raise DataError(f"{told}{joined}; choose fewer --folds, --eval FILE, or --folds 0 for no metrics") from error
    except NotConvergedError as error:
        raise FitError(f"no head was written: {error}") from error


def _spelled_alike(examples: "Examples", label: int | None) -> str:
    """Say which other class one of few rows may be a misspelling of."""
    from headeval.files.label_faults import spelled_alike

    if label is None:
        return ""
    name = examples.class_names[label]
    others = next((names for names in spelled_alike(examples.class_names) if name in names), [])
    return f" ({listed(others)} differ in case or spaces only)" if others else ""


def _head_provenance(
    head: "LinearHead", rows: "TrainingRows", training: "Training | ClassTraining", columns: "Columns", output: Path
) -> dict[str, object]:
    from headeval.cli.fitted_head import PARAMETRISATION
    from headeval.cli.rows import class_counts
    from headeval.render.classes import rows_of_classes

    provenance: dict[str, object] = {
        "fitted_on": rows_of_classes(class_counts(rows.examples), flagged="flagged class"),
        "label_column": columns.label,
        "embedding_model": f"{head.embedding_model} ({head.dim} dimensions)",
        "l2": training.l2,
    }
    if rows.examples.class_codes is not None:
        provenance["parametrisation"] = PARAMETRISATION
    if columns.weight:
        provenance["weights"] = columns.weight
    if rows.how:
        provenance["rows"] = f"{rows.how}; {training.passes + rows.read_before} passes over them"
    return provenance | {"written_to": str(output)}


def _notes(
    head: "LinearHead", model_of_files: str | None, training: "Training | ClassTraining", weight: str | None
) -> tuple[str, ...]:
    from headeval.cli.fitted_head import model_and_weight_notes
    from headeval.render.penalty_path import path_notes

    notes = model_and_weight_notes(head.embedding_model, model_of_files, weight)
    if training.path is None:
        return notes
    return (*notes, *path_notes(training.path, judged=training.out_of_fold is not None))
