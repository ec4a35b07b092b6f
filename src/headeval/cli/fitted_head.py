"""The head of a fit, with what it remembers of its making, and what must be said of it."""

from typing import TYPE_CHECKING

from headeval.cli.rows import Columns, class_counts, rows_used
from headeval.files.examples import Examples
from headeval.head import LinearHead
from headeval.head_history import fit_history
from headeval.solver.training import Training

if TYPE_CHECKING:
    from headeval.solver.softmax_training import ClassTraining

UNSPECIFIED = "unspecified"
# Of more than two classes only differences of logits mean anything: without a class that would be the reference,
# all are treated alike, and naming them in another order gives the same head.
PARAMETRISATION = "symmetric: the rows of W sum to zero, and so does b"


def fitted_head(
    examples: Examples,
    training: "Training | ClassTraining",
    columns: Columns,
    embedding_model: str | None,
    threshold: float,
    read_before: int,
) -> LinearHead:
    """Return the head, before it is judged.

    Parameters
    ----------
    examples : the rows of the fit.
    columns : where labels and weights stood.
    embedding_model : None where nothing names it.
    read_before : how many passes over the rows were made before the solver's own.
    """
    path, w, model = training.path, training.fit.w, embedding_model or UNSPECIFIED
    history = fit_history(
        rows_used(examples),
        training.fit,
        l2=training.l2,
        weight=columns.weight,
        label=columns.label,
        passes=training.passes + read_before,
        path=None if path is None else path.document(),
    )
    if examples.class_codes is None:
        return LinearHead.binary(
            w[:-1],
            float(w[-1]),
            classes=examples.classes,
            embedding_model=model,
            threshold=threshold,
            metrics=history,
        )
    history["fit"] |= {"rows_of_each_class": class_counts(examples), "parametrisation": PARAMETRISATION}
    return LinearHead(model, examples.class_names, w[:, :-1], w[:, -1], threshold, history)


def model_and_weight_notes(model: str, model_of_files: str | None, weight: str | None) -> tuple[str, ...]:
    """Say where nothing names the embedding model, or two names contradict each other, and that rows were weighted."""
    notes = []
    if model == UNSPECIFIED:
        notes.append(
            "no embedding model is named, so nothing will notice when this head meets other embeddings: "
            "give --embedding-model NAME"
        )
    elif model_of_files not in {None, model}:
        notes.append(f"--embedding-model was taken, though the files name another model, {model_of_files}")
    if weight:
        notes.append("the fit is weighted; the metrics count every row once")
    return tuple(notes)
