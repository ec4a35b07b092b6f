"""A sample of the rows, in memory, that stands for all of them: where a fit begins."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from headeval.core.checks import FloatArray, IntArray
from headeval.core.threads import in_order, thread_count
from headeval.solver.descent import descend, hessian_of
from headeval.solver.lbfgs import Search
from headeval.solver.memory import ArraySource
from headeval.solver.plan import Plan, plan
from headeval.solver.preconditioner import Factor
from headeval.solver.problems import problem_of_a_sample
from headeval.solver.rows import RowColumns
from headeval.solver.source import Summable

_ROUNDS = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Sampled:
    """A sample of a source's rows, in memory, with weights that make it stand for all rows.

    Attributes
    ----------
    rows : the sample; the source itself where that is small.
    plan : how much work it is worth.
    """

    rows: Summable
    plan: Plan

    @classmethod
    def of(cls, source: Summable) -> Self:
        """Return the sample that the plan for a source's shape wants."""
        planned = plan(source.columns.n, source.d)
        small = planned.rows >= source.columns.n
        return cls(source if small else sample_of(source, planned.rows), planned)

    def factors(self, penalties: Sequence[float], w: FloatArray) -> dict[float, Factor]:
        """Return the factors of the Hessian at w with each penalty, without those that are singular in float32."""
        H = self.hessian(w)
        found = in_order(lambda l2: Factor.of(H, l2=l2), penalties, threads=thread_count())
        return {l2: factor for l2, factor in zip(penalties, found, strict=True) if factor is not None}

    def minimised(self, factors: Mapping[float, Factor], w: FloatArray) -> dict[float, FloatArray]:
        """Return about where the loss of the sample is least with each penalty, (d+1,), beginning at w."""
        columns, d = self.rows.columns, self.rows.d
        ways = {l2: Search(problem_of_a_sample(columns, l2, d), factor.solve, w) for l2, factor in factors.items()}
        descend(self.rows, list(ways.values()), self.hessian, rounds=_ROUNDS if len(ways) == 1 else 0, single=True)
        return {l2: way.w for l2, way in ways.items()}

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return the sample's Hessian (d+1, d+1) at w, without a penalty, from float32 products."""
        return hessian_of(self.rows)(w)


def sample_of(source: Summable, most: int) -> ArraySource:
    """Return about `most` of the rows in memory, with weights that make them stand for all."""
    chosen, s = sample_rows(source.columns, most)
    rows = source.rows_at(chosen)
    return ArraySource(dataclasses.replace(rows, columns=RowColumns(rows.columns.labels, s)))


def sample_rows(columns: RowColumns, most: int) -> tuple[IntArray, FloatArray]:
    """Return increasing positions of about `most` rows and what each counts for.

    Each class gives in proportion to its rows, but at least a quarter of the sample as far as it has so many: of rare
    positives hardly any would be drawn otherwise. The draw is the same every time.
    """
    positions, counts = [], []
    rng = np.random.default_rng(columns.n)
    there = True if columns.weights is None else columns.weights > 0  # rows of no weight are as if absent
    classes = [np.flatnonzero((columns.labels == 0) & there), np.flatnonzero((columns.labels > 0) & there)]
    rarer = min(rows.size for rows in classes)
    fewest = min(rarer, max(round(most * rarer / max(sum(rows.size for rows in classes), 1)), most // 4))
    for rows in classes:
        size = fewest if rows.size == rarer else min(rows.size, most - fewest)
        positions.append(np.sort(rng.choice(rows, size=size, replace=False, shuffle=False)))
        counts.append(np.full(size, rows.size / max(size, 1)))
    both = np.concatenate(positions)
    order = np.argsort(both, kind="stable")
    s = np.concatenate(counts)[order]
    chosen = both[order]
    return chosen, s if columns.weights is None else s * columns.weights[chosen]
