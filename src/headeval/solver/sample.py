"""A sample of the rows, in memory, that stands for all of them: where a fit begins."""

import dataclasses
from collections.abc import Sequence
from typing import Self

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.solver.descent import descend, hessian_of, penalised
from headeval.solver.lbfgs import Problem, Search
from headeval.solver.memory import ArraySource
from headeval.solver.plan import plan
from headeval.solver.preconditioner import Factor
from headeval.solver.problems import null_weights
from headeval.solver.rows import RowColumns
from headeval.solver.sums import Source

_ENOUGH = 0.1  # of a unit of loss a dimension: the sample is off by more than that anyway
_ROUNDS = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Sampled:
    """A sample of a source's rows, in memory, with weights that make it stand for all rows.

    Attributes
    ----------
    rows : the sample; the source itself where that is small.
    again : whether it pays to form the Hessian once more where the sample's fit ends.
    """

    rows: Source
    again: bool

    @classmethod
    def of(cls, source: Source) -> Self:
        """Return the sample that the plan for a source's shape wants."""
        planned = plan(source.columns.n, source.d)
        small = planned.rows >= source.columns.n
        return cls(source if small else sample_of(source, planned.rows), planned.again)

    def minimised(
        self, penalties: Sequence[float], *, factor: Factor | None = None, around: FloatArray | None = None
    ) -> list[FloatArray]:
        """Return about where the loss of the sample is least with each penalty, (d+1,) each."""
        null = null_weights(self.rows.columns, self.rows.d) if around is None else around
        H = None if factor else self.hessian(null)
        ways = {}
        for l2 in penalties:
            own = factor if H is None else Factor.of(penalised(H, l2))
            if own is not None:
                ways[l2] = Search(Problem(l2, None, 0.0, _ENOUGH * self.rows.d), own.solve, null)
        descend(self.rows, list(ways.values()), self.hessian, rounds=_ROUNDS, single=True)
        return [ways[l2].w if l2 in ways else null for l2 in penalties]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return the sample's Hessian (d+1, d+1) at w, without a penalty, from float32 products."""
        return hessian_of(self.rows)(w)


def sample_of(source: Source, most: int) -> ArraySource:
    """Return about `most` of the rows in memory, with weights that make them stand for all."""
    chosen, s = sample_rows(source.columns, most)
    rows = source.rows_at(chosen)
    return ArraySource(dataclasses.replace(rows, columns=RowColumns(rows.columns.labels, s)))


def sample_rows(columns: RowColumns, most: int) -> tuple[IntArray, FloatArray]:
    """Return increasing positions of about `most` rows and what each counts for.

    Each class gives in proportion to its rows, but at least a quarter of the sample as far as it has so many: of rare
    positives hardly any would be drawn otherwise. The draw is the same every time.
    """
    n, positions, counts = columns.n, [], []
    rng = np.random.default_rng(n)
    for value in (0, 1):
        rows = np.flatnonzero((columns.labels > 0) == bool(value))
        size = min(rows.size, max(round(most * rows.size / n), most // 4))
        positions.append(np.sort(rng.choice(rows, size=size, replace=False, shuffle=False)))
        counts.append(np.full(size, rows.size / max(size, 1)))
    both = np.concatenate(positions)
    order = np.argsort(both, kind="stable")
    s = np.concatenate(counts)[order]
    chosen = both[order]
    return chosen, s if columns.weights is None else s * columns.weights[chosen]
