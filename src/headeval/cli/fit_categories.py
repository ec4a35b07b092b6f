"""`headeval fit` for several label columns: a head a category, all of them over one reading of the rows."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headeval.category_fit import CategoryFit, CategoryFits
from headeval.category_summaries import LeftOut
from headeval.cli.console import show
from headeval.cli.fitted_head import UNSPECIFIED, fitted_head, model_and_weight_notes
from headeval.cli.held_out_categories import Judged, judged_on_other_rows, judged_out_of_fold
from headeval.cli.left_out_categories import report_left_out
from headeval.cli.row_notes import zero_rows, zeros_note
from headeval.cli.rows import Columns
from headeval.cli.training_rows import PlacedRows, category_columns, read_category_training, room_to_fit
from headeval.files.category_rows import Category, CategoryExamples
from headeval.files.head_folder import check_heads_output, write_heads
from headeval.files.locations import masked_uri
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.printable import listed, quoted
from headeval.render.category_fit import render_category_fits
from headeval.render.document import with_evaluation
from headeval.render.left_out import LIKE_THEM, much_left_out
from headeval.render.penalty_path import path_notes
from headeval.solver.categories import FEW_NUMBERS, NotTrained, train_categories
from headeval.solver.penalty_path import AUTO, Rule
from headeval.solver.training import Training

if TYPE_CHECKING:
    from headeval.cluster.work import Cluster

_LISTED = 12


@dataclass(frozen=True, slots=True)
class CategoryOptions:
    """What the command line says beside files and columns.

    Attributes
    ----------
    labels : the columns of the categories.
    penalties : l2; None for a grid.
    n_folds : 0 for none.
    min_positives : known rows of each class that a category needs.
    """

    data: list[str]
    labels: tuple[str, ...]
    penalties: tuple[float, ...] | None
    rule: Rule
    n_folds: int
    threshold: float
    memory: int | None
    min_positives: int
    allow_missing: bool
    output: Path
    force: bool
    quiet: bool


def fit_categories(
    tables: Tables, eval_tables: Tables | None, columns: Columns, wanted: CategoryOptions, cluster: "Cluster | None"
) -> None:
    """Fit a head for each category on the rows whose label of it is known, and write the heads into a folder.

    Raises
    ------
    FitError : at the end, where categories were left out and that was not allowed, or all were.
    """
    inputs = (*tables.paths, *(eval_tables.paths if eval_tables else ()))
    check_heads_output(wanted.output, wanted.labels, force=wanted.force, inputs=inputs)
    rows = read_category_training(
        tables,
        columns,
        wanted.labels,
        named=eval_tables is not None,
        memory=wanted.memory,
        cluster=cluster,
        quiet=wanted.quiet,
    )
    without = _too_few(rows.examples, wanted.min_positives)
    trained = _trained(rows, without, wanted, inputs, judged=eval_tables is None)
    model = columns.embedding_model or tables.embedding_model or UNSPECIFIED
    heads = _heads(rows, trained, columns, model, wanted.threshold)
    if eval_tables is None:
        judged = judged_out_of_fold(heads, rows.examples, trained, wanted.n_folds, columns.group)
    else:
        judged = judged_on_other_rows(heads, rows, tables, eval_tables, columns, quiet=wanted.quiet)
    if heads:
        finished = {
            name: dataclasses.replace(head, metrics=with_evaluation(head.metrics, judged.held_out[name]))
            for name, head in heads.items()
        }
        write_heads(wanted.output, finished, force=wanted.force)
    show(render_category_fits(_summary(rows, trained, without, heads, judged, tables, columns, wanted)))
    left_out = _left_out(rows.examples.categories, without)
    report_left_out(left_out, len(wanted.labels), "fitted", allow_missing=wanted.allow_missing, quiet=wanted.quiet)


def _too_few(examples: CategoryExamples, least: int) -> dict[str, str]:
    """Return why categories cannot be fitted, by their names: too few known rows of a class, or without a weight."""
    reasons = {}
    for category in examples.categories:
        known, positives, name = category.known, category.positives, category.name
        if not known:
            reasons[name] = "no row has a known label"
        elif positives in {0, known}:
            reasons[name] = f"all {known:,} known rows are {quoted(category.classes[int(positives > 0)])}"
        elif positives < least:
            reasons[name] = f"{positives:,} known positives, fewer than --min-positives {least:,}"
        elif known - positives < least:
            reasons[name] = f"{known - positives:,} known negatives, fewer than --min-positives {least:,}"
        elif examples.weights is not None:
            for value, what in ((1, "positive"), (0, "negative")):
                if not examples.weights[category.labels == value].any():
                    reasons[name] = f"all {what} rows have weight 0"
    return reasons


def _trained(
    rows: PlacedRows[CategoryExamples],
    without: dict[str, str],
    wanted: CategoryOptions,
    inputs: Sequence[Any],
    *,
    judged: bool,
) -> dict[str, Training]:
    """Return the trainings of the categories that are not left out; more of them may have to be, which is noted."""
    examples, penalties = rows.examples, wanted.penalties
    places = [i for i, name in enumerate(examples.names) if name not in without]
    if not places:
        return {}
    names = [examples.names[i] for i in places]
    # Heads of those that are left out may stand in the folder: better told now than after the work.
    check_heads_output(wanted.output, names, force=wanted.force, inputs=inputs)
    digests = examples.embedding_digests
    if digests is None:  # never: there are embeddings
        raise TypeError("the embeddings were not read")
    shared = digests.shape[0] * (examples.dim or 0) > FEW_NUMBERS and len(penalties or AUTO) == 1
    with room_to_fit(examples.dim, len(places) if shared else 1):
        found = train_categories(
            rows.source(category_columns(examples, places)),
            penalties=penalties or AUTO,
            auto=penalties is None,
            rule=wanted.rule,
            n_folds=wanted.n_folds,
            judged=judged,
            identity=np.unique(digests[:, 0], return_inverse=True)[1],
            groups=examples.groups,
        )
    without |= {name: _why(part) for name, part in zip(names, found, strict=True) if isinstance(part, NotTrained)}
    return {name: part for name, part in zip(names, found, strict=True) if isinstance(part, Training)}


def _why(part: NotTrained) -> str:
    return f"{part.reason}; choose fewer --folds, or --folds 0" if part.of_folds else part.reason


def _heads(
    rows: PlacedRows[CategoryExamples],
    trained: Mapping[str, Training],
    columns: Columns,
    model: str,
    threshold: float,
) -> dict[str, LinearHead]:
    heads = {}
    for i, name in enumerate(rows.examples.names):
        if name in trained:
            known, own = rows.examples.examples(i, embeddings=False), dataclasses.replace(columns, label=name)
            heads[name] = fitted_head(known, trained[name], own, model, threshold, rows.read_before)
    return heads


def _left_out(categories: Sequence[Category], without: Mapping[str, str]) -> tuple[LeftOut, ...]:
    return tuple(
        LeftOut(part.name, part.known, part.positives, part.unknown, without[part.name])
        for part in categories
        if part.name in without
    )


def _summary(
    rows: PlacedRows[CategoryExamples],
    trained: Mapping[str, Training],
    without: Mapping[str, str],
    heads: Mapping[str, LinearHead],
    judged: Judged,
    tables: Tables,
    columns: Columns,
    wanted: CategoryOptions,
) -> CategoryFits:
    fits = []
    for part in rows.examples.categories:
        if part.name in trained:
            training = trained[part.name]
            path, is_judged = training.path, training.out_of_fold is not None
            notes = () if path is None else tuple(path_notes(path, judged=is_judged))
            story, held_out = training.fit, judged.held_out[part.name]
            counts = (part.known, part.positives, part.unknown)
            other = judged.rows.get(part.name)
            fits.append(CategoryFit(part.name, *counts, training.l2, story, held_out, notes, other))
    model = columns.embedding_model or tables.embedding_model or UNSPECIFIED
    notes = model_and_weight_notes(model, tables.embedding_model, columns.weight) if heads else ()
    return CategoryFits(
        provenance=_provenance(rows, trained, model, columns, wanted),
        how=judged.how if heads else "nothing was fitted",
        threshold=wanted.threshold,
        fits=tuple(fits),
        left_out=_left_out(rows.examples.categories, without),
        notes=(*notes, *_unknown_note(fits), *_zeros_note(rows.examples), *judged.notes),
        leakage=judged.leakage,
    )


def _read(examples: CategoryExamples) -> int:
    return len(examples.kept)


def _zeros_note(examples: CategoryExamples) -> tuple[str, ...]:
    digests = examples.embedding_digests
    return () if digests is None else zeros_note(zero_rows(digests[:, 0], examples.dim))


def _unknown_note(fits: Sequence[CategoryFit]) -> tuple[str, ...]:
    """Say of which categories many of the rows judged are unknown."""
    much = [fit.name for fit in fits if much_left_out(fit.judged.unknown, fit.judged.known + fit.judged.unknown)]
    if not much:
        return ()
    rows = "rows" if fits[0].other is None else "rows of --eval"
    return (f"more than a tenth of the {rows} have no known label of {listed(much, longest=_LISTED)}: {LIKE_THEM}",)


def _provenance(
    rows: PlacedRows[CategoryExamples],
    trained: Mapping[str, Training],
    model: str,
    columns: Columns,
    wanted: CategoryOptions,
) -> dict[str, Any]:
    examples, total = rows.examples, _read(rows.examples)
    provenance: dict[str, Any] = {"data": [masked_uri(argument) for argument in wanted.data]}
    names = examples.embedding_columns
    if names != (columns.embedding,):
        provenance["embedding_columns"] = f"{names[0]} … {names[-1]}"
    provenance["rows"] = f"{total:,}, each category fitted on those whose label of it is known"
    if examples.unlabelled:
        provenance["rows"] += f"; {examples.unlabelled:,} have none of these labels"
    provenance["embedding_model"] = f"{model} ({examples.dim} dimensions)"
    penalties = sorted({training.l2 for training in trained.values()})
    if penalties:
        provenance["l2"] = penalties
    if columns.weight:
        provenance["weights"] = columns.weight
    if rows.how:
        made = [training.passes for training in trained.values()]
        shared = wanted.penalties is not None and len(wanted.penalties) == 1  # with several each has its own
        passes = max(made, default=0) if shared else sum(made)
        provenance["read"] = f"{rows.how}; {passes + rows.read_before} passes over them"
    if trained:
        provenance["written_to"] = f"{wanted.output}: {len(trained)} of {len(examples.names)} heads"
    return provenance
