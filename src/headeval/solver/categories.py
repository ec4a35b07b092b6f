"""Heads of many categories from one set of rows, in each of which a label may be unknown.

Few rows: each category is fitted by itself on the rows where its label is known, so that nothing else moves a bit of
it. Many rows, or rows that are read anew in every pass: with one penalty the categories and their folds share the
passes, and what is left is the work of each category's own: a sample of its rows, the Hessian of it, and one column of
a matrix product. Several penalties are tried for one category after the other; folds and penalties share its passes.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray, IntArray
from headeval.core.newton import LogisticFit
from headeval.core.threads import in_order, thread_count
from headeval.solver.category_sums import (
    CategoryLossAndGradient,
    OneCategory,
    categories_of,
)
from headeval.solver.descent import LATE, ROUNDS, ended, hessian_of, search, solving
from headeval.solver.exact import newton_on
from headeval.solver.folds import FoldError
from headeval.solver.lbfgs import Search, run
from headeval.solver.memory import ArraySource
from headeval.solver.optimum import FAR_PATIENCE, Start, start_from, starting_point
from headeval.solver.penalty_path import Rule
from headeval.solver.preconditioner import Factor
from headeval.solver.problems import Problem, problem_of, weight_of_a_row
from headeval.solver.rows import RowColumns
from headeval.solver.sample import sample_rows
from headeval.solver.source import Source
from headeval.solver.training import (
    FOLD_CLOSE_ENOUGH,
    NotConvergedError,
    Training,
    converged,
    dealt_folds,
    repeated_rows,
    train,
    trained_with_folds,
)

# Numbers of embeddings up to which each category is fitted by itself: sharing passes would hardly be quicker.
FEW_NUMBERS = 2**21


@dataclass(frozen=True, slots=True)
class NotTrained:
    """Why there is no head of a category.

    Attributes
    ----------
    reason : a clause.
    of_folds : whether the rows cannot be divided into the folds.
    """

    reason: str
    of_folds: bool = False


def train_categories(
    source: Source,
    *,
    penalties: Sequence[float],
    n_folds: int,
    identity: IntArray,
    groups: IntArray | None = None,
    rule: Rule = "best",
    auto: bool = False,
    judged: bool = True,
) -> tuple[Training | NotTrained, ...]:
    """Fit a head for each category on the rows where its label is known, as `train` does for one.

    Parameters
    ----------
    source : rows with `CategoryColumns`, both classes known in each category.
    identity, groups : (n,) codes of all rows.
    penalties, n_folds, rule, auto, judged : as for `train`; of several penalties each category gets its own, tried in
        passes of its own.

    Returns
    -------
    trained : one for each category, its out-of-fold logits those of its known rows, in their order. Its passes are
        those that all categories shared or, of several penalties, its own: the order of categories is no matter.
    """
    columns = categories_of(source.columns)
    if isinstance(source, ArraySource) and columns.n * source.d <= FEW_NUMBERS:

        def by_itself(category: int) -> Training | NotTrained:
            fitting = _known_rows(source, category, identity, groups)
            return _attempted(
                lambda: train(**fitting, penalties=penalties, n_folds=n_folds, rule=rule, auto=auto, judged=judged)
            )

        return tuple(in_order(by_itself, range(columns.n_categories), threads=thread_count()))
    found: dict[int, Training | NotTrained] = {}
    if n_folds:
        found |= _hold_out(source, n_folds, identity, groups)
    held = [category for category in range(columns.n_categories) if category not in found]
    if len(penalties) > 1:
        for category in held:
            one = OneCategory(source, category)
            found[category] = _attempted(
                partial(trained_with_folds, one, penalties, n_folds, rule=rule, auto=auto, judged=judged)
            )
    else:
        found |= _together(source, held, penalties[0], n_folds if judged else 0)
    return tuple(_finished(found[k], columns.known(k), identity) for k in range(columns.n_categories))


def _known_rows(source: ArraySource, category: int, identity: IntArray, groups: IntArray | None) -> dict[str, Any]:
    """Return what `train` takes of the rows whose label is known, as if there were no others."""
    columns = categories_of(source.columns)
    known = columns.known(category)
    rows = slice(None) if known.all() else np.flatnonzero(known)
    weights = None if columns.weights is None else columns.weights[rows]
    own = dataclasses.replace(source.rows.part(rows), columns=RowColumns(columns.labels[category][rows], weights))
    return {
        "source": ArraySource(own),
        "identity": _codes_among(identity, known),
        "groups": None if groups is None else _codes_among(groups, known),
    }


def _codes_among(codes: IntArray, known: NDArray[np.bool_]) -> IntArray:
    """Return the codes of some rows, numbered anew in their order."""
    return np.unique(codes[known], return_inverse=True)[1]


def _attempted(fitting: Callable[[], Training]) -> Training | NotTrained:
    try:
        return fitting()
    except FoldError as error:
        return NotTrained(str(error), of_folds=True)
    except NotConvergedError as error:
        return NotTrained(str(error))


def _finished(trained: Training | NotTrained, known: NDArray[np.bool_], identity: IntArray) -> Training | NotTrained:
    """Return a training with the logits of the known rows alone."""
    if isinstance(trained, NotTrained) or trained.out_of_fold is None:
        return trained
    repeated = repeated_rows(identity[known])
    return dataclasses.replace(trained, out_of_fold=trained.out_of_fold[known], repeated=repeated)


def _hold_out(source: Source, n_folds: int, identity: IntArray, groups: IntArray | None) -> dict[int, NotTrained]:
    """Deal the known rows of each category into its folds; return the categories that cannot be divided."""
    columns, failed = categories_of(source.columns), {}
    folds = np.zeros(columns.labels.shape, dtype=np.int16)
    for category, labels in enumerate(columns.labels):
        known = columns.known(category)
        try:
            folds[category, known] = dealt_folds(
                labels[known],
                n_folds,
                identity=_codes_among(identity, known),
                groups=None if groups is None else _codes_among(groups, known),
            )
        except FoldError as error:
            failed[category] = NotTrained(str(error), of_folds=True)
    source.hold_out(folds)
    return failed


def _together(source: Source, held: Sequence[int], l2: float, n_folds: int) -> dict[int, Training | NotTrained]:
    """Fit the categories, and each without its folds, in the same passes."""
    views = {category: OneCategory(source, category) for category in held}
    starts = (
        _sampled_starts(source, views, l2)
        if source.costly
        else {category: starting_point(view, l2=l2) for category, view in views.items()}
    )
    folds: list[int | None] = list(range(n_folds))
    fits: dict[int, list[LogisticFit]] = {}
    if source.costly:
        near = {category: start.w for category, start in starts.items()}
        fits = _fitted(views, starts, near, l2, [None, *folds], source)
    else:
        fits = _fitted(views, starts, {category: start.w for category, start in starts.items()}, l2, [None], source)
        if folds:
            without = _fitted(views, starts, {k: fit.w for k, (fit,) in fits.items()}, l2, folds, source)
            fits = {category: [*fits[category], *without[category]] for category in fits}
    return _judged(source, fits, l2)


def _judged(source: Source, fits: dict[int, list[LogisticFit]], l2: float) -> dict[int, Training | NotTrained]:
    """Return the trainings, with the logit of every row from the fit that has not seen it."""
    done: dict[int, Training | NotTrained] = {}
    for category, (fit, *fold_fits) in fits.items():

        def training(fit: LogisticFit = fit, fold_fits: Sequence[LogisticFit] = fold_fits) -> Training:
            converged(fit, "")
            for number, fold_fit in enumerate(fold_fits, start=1):
                converged(fold_fit, f"without fold {number}: ")
            return Training(fit, l2, source.passes)

        done[category] = _attempted(training)
    n_folds = max((len(some) for some in fits.values()), default=1) - 1
    if not n_folds:
        return done
    W = np.zeros((categories_of(source.columns).n_categories, n_folds, source.d + 1))
    for category, (_, *fold_fits) in fits.items():
        W[category] = [fold_fit.w for fold_fit in fold_fits]
    logits = source.logits(W)
    return {
        category: dataclasses.replace(trained, out_of_fold=logits[category], passes=source.passes)
        if isinstance(trained, Training)
        else trained
        for category, trained in done.items()
    }


def _fitted(
    views: Mapping[int, OneCategory],
    starts: Mapping[int, Start],
    near: Mapping[int, FloatArray],
    l2: float,
    left_out: Sequence[int | None],
    source: Source,
) -> dict[int, list[LogisticFit]]:
    """Return for each category the fits of all rows, or of all but those of a fold."""
    problems = {category: _problems(view.columns, category, l2, left_out) for category, view in views.items()}
    ways: dict[int, list[Search]] = {}
    for category, start in starts.items():
        if start.factor is not None:
            ways[category] = [
                search(views[category].columns, problem, start.factor, near[category]) for problem in problems[category]
            ]
    # The same for all of them, since it goes by the shape of the rows.
    patience = next((starts[category].patience for category in ways), 0)
    _descend(source, views, ways, starts, patience)
    return {
        category: [ended(view, way) for way in ways[category]]
        if category in ways
        else [newton_on(view, problem, near[category]) for problem in problems[category]]
        for category, view in views.items()
    }


def _problems(columns: RowColumns, category: int, l2: float, left_out: Sequence[int | None]) -> list[Problem]:
    enough = FOLD_CLOSE_ENOUGH * weight_of_a_row(columns)
    found = (problem_of(columns, l2, fold, 0.0 if fold is None else enough) for fold in left_out)
    return [dataclasses.replace(problem, category=category) for problem in found]


def _descend(
    source: Source,
    views: Mapping[int, OneCategory],
    ways: Mapping[int, Sequence[Search]],
    starts: Mapping[int, Start],
    patience: int,
) -> None:
    """Let the searches of all categories go on together; where one is late, its category gets a new Hessian."""
    every = [way for some in ways.values() for way in some]
    run(source, every, most_passes=patience, sum_of=_of_categories)
    for _ in range(ROUNDS):
        late = {category: [way for way in some if way.reason in LATE] for category, some in ways.items()}
        late = {category: some for category, some in late.items() if some}
        if not late:
            return
        for category, some in late.items():
            hessian = starts[category].hessian or hessian_of(views[category])
            factor = Factor.of(hessian(some[len(some) // 2].w), l2=some[0].problem.l2)
            if factor is not None:
                for way in some:
                    way.resume(solving(views[category].columns, way.problem, factor))
        run(source, every, most_passes=patience, sum_of=_of_categories)


def _of_categories(W: FloatArray, problems: Sequence[Problem], single: bool) -> CategoryLossAndGradient:
    categories = tuple(problem.category for problem in problems if problem.category is not None)
    return CategoryLossAndGradient(W, tuple(problem.left_out for problem in problems), single, categories)


def _sampled_starts(source: Source, views: Mapping[int, OneCategory], l2: float) -> dict[int, Start]:
    """Start from as many rows as memory holds, a share of them for each category, read in one pass."""
    most = max(1, source.most_sampled // max(len(views), 1))
    drawn = {category: sample_rows(view.columns, most) for category, view in views.items()}
    if not drawn:
        return {}
    positions = np.unique(np.concatenate([chosen for chosen, _ in drawn.values()]))
    rows = source.rows_at(positions)
    starts = {}
    for category, (chosen, s) in drawn.items():
        part = rows.part(np.searchsorted(positions, chosen))
        columns = RowColumns(categories_of(part.columns).labels[category], s)
        some = ArraySource(dataclasses.replace(part, columns=columns))
        starts[category] = dataclasses.replace(start_from(some, l2=l2), patience=FAR_PATIENCE)
    return starts
