"""Penalties of a head of C classes tried on the same folds in the same passes, and one of them chosen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headeval.core.checks import FloatArray
from headeval.solver.lbfgs import MEMORY
from headeval.solver.penalty_path import CLOSE_ENOUGH, CLOSE_ON_A_GRID, Path, Rule, path_of
from headeval.solver.problems import problem_of, total_weight
from headeval.solver.rows import Rows, scratch, tile_rows
from headeval.solver.softmax import ClassStart, class_optima
from headeval.solver.softmax_plan import Form, form_for
from headeval.solver.softmax_sums import class_logits, narrow_tiles
from headeval.solver.source import Summable
from headeval.solver.sums import GROUP_TILES

_MOST_BYTES = 2**29  # of searches that share passes


@dataclass(frozen=True, slots=True)
class ClassHeldOutLoss:
    """Sum: (k,) losses of the rows that each problem's fold holds out, and (k,) their weights.

    Attributes
    ----------
    W : (k, C, d+1) weights, the intercepts last.
    folds : (k,) the fold of each.
    """

    W: FloatArray
    folds: tuple[int, ...]
    name = "held-out losses"
    large = False
    adds_in = np.float64

    def rows_at_once(self, d: int) -> int:
        """Return a few tiles: sums of this kind are small."""
        return GROUP_TILES * tile_rows(d)

    def of(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Return the sums over these rows."""
        losses, counted = np.zeros(len(self.W)), np.zeros(len(self.W))
        for tile in narrow_tiles(rows, self.W[..., 0].size):
            z = class_logits(scratch(tile.embeddings), tile.inverse_norms, self.W)
            z -= z[:, tile.columns.labels.astype(np.intp), np.arange(tile.n)][:, None]
            top = z.max(axis=1)
            with np.errstate(under="ignore"):
                loss = top + np.log(np.exp(z - top[:, None]).sum(axis=1))
            s = tile.columns.held_out(self.folds)
            losses += (s * loss).sum(axis=1)
            counted += s.sum(axis=1)
        return losses, counted


def class_path(
    source: Summable, start: ClassStart, penalties: Sequence[float], *, n_folds: int, rule: Rule, rough: bool
) -> tuple[Path, list[FloatArray]]:
    """Try penalties by the loss of rows that each fit has not seen.

    Parameters
    ----------
    source : rows that belong to folds.
    start : of a penalty in their middle.
    penalties : each > 0, no two equal.
    n_folds : ≥ 2.
    rough : whether fits may end early, as those of a grid do.

    Returns
    -------
    path : the penalties and their losses.
    fold_weights : (C, d+1) for each fold, about the optimum without it with the chosen penalty.
    """
    grid = sorted(penalties)
    enough = (CLOSE_ON_A_GRID if rough else CLOSE_ENOUGH) * total_weight(source.columns, None)
    near, fits = [start.W] * n_folds, dict[float, list[FloatArray]]()
    for some in _shared(source, start, grid[::-1], n_folds):
        problems = [problem_of(source.columns, l2, fold, enough) for l2 in some for fold in range(n_folds)]
        found = class_optima(source, problems, start, near * len(some))
        for place, l2 in enumerate(some):
            fits[l2] = [fit.w for fit in found[place * n_folds : (place + 1) * n_folds]]
        near = fits[some[-1]]
    W = np.stack([w for l2 in grid for w in fits[l2]])
    losses, counted = source.total(ClassHeldOutLoss(W, tuple(range(n_folds)) * len(grid)))
    path = path_of(grid, losses.reshape(-1, n_folds), counted.reshape(-1, n_folds), rule, rough=rough)
    return path, fits[path.chosen]


def _shared(source: Summable, start: ClassStart, grid: Sequence[float], n_folds: int) -> Iterator[Sequence[float]]:
    """Yield penalties whose fits are near enough to memory's bounds to share passes, from the largest on."""
    numbers = start.W.size
    of_a_penalty = 8 * numbers * 2 * (MEMORY + 3) * n_folds
    form = form_for(source.d, len(start.W))
    if form is not Form.PRODUCT:
        of_a_penalty += 4 * numbers * (numbers if form is Form.WHOLE else source.d + 1)
    each = max(1, _MOST_BYTES // of_a_penalty)
    return (grid[first : first + each] for first in range(0, len(grid), each))
