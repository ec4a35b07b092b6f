"""How the classes of a classifier rank, each against the rest and against each other, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from headeval.class_decided import missing_classes, nothing
from headeval.class_rows import ClassRows
from headeval.core.checks import FloatArray, IntArray
from headeval.core.class_intervals import Variances, average_interval, sum_of_squares
from headeval.core.class_ranking import class_placements
from headeval.core.delong import auc_interval
from headeval.core.intervals import Interval
from headeval.core.placed_precision import average_precision_interval, placed_precision
from headeval.metric import Metric


@dataclass(frozen=True, slots=True)
class ClassRanked:
    """Ranking of all classes.

    Attributes
    ----------
    aucs, precisions : of each class against the rest.
    macro_auc, hand_till_auc : their averages.
    """

    aucs: tuple[Metric, ...]
    precisions: tuple[Metric, ...]
    macro_auc: Metric
    hand_till_auc: Metric

    @classmethod
    def of(cls, rows: ClassRows, names: Sequence[str], *, confidence: float | None) -> Self:
        """Rank rows class by class; `confidence` None leaves the intervals out."""
        present = rows.counts.actual > 0
        if np.count_nonzero(present) < 2:
            return cls._of_one_class(rows, present)
        averages, aucs, precisions = _Averages.empty(rows), [], []
        scores, absent = rows.ranking_scores(), Metric(None, f"{nothing(rows)} is of the class")
        for place in range(rows.n_classes):
            if not present[place]:
                aucs.append(absent)
                precisions.append(absent)
                continue
            own = np.ascontiguousarray(scores[place])
            averages.add(own, place, confidence)
            area, interval = averages.against_rest.areas[-1]
            aucs.append(Metric(area, interval=interval))
            precisions.append(_average_precision(rows, own, rows.y == place, confidence))
        lacking = Metric(None, missing_classes(rows, names))
        both = averages.against_rest, averages.of_pairs
        macro, pairs = (part.metric(confidence) if present.all() else lacking for part in both)
        return cls(tuple(aucs), tuple(precisions), macro, pairs)

    @classmethod
    def _of_one_class(cls, rows: ClassRows, present: NDArray[np.bool_]) -> Self:
        every, none = "every row is of the class", f"{nothing(rows)} is of the class"
        aucs = tuple(Metric(None, every if there else none) for there in present)
        precisions = tuple(
            Metric(None, f"trivial: {every}, so it is 1 whatever the scores" if there else none) for there in present
        )
        average = Metric(None, "every row is of one class")
        return cls(aucs, precisions, average, average)


@dataclass(slots=True)
class _Average:
    """An average of areas, one a class, and how much it varies."""

    groups: IntArray | None
    influence: FloatArray
    apart: float
    areas: list[tuple[float, Interval | None]]

    def add(self, area: float, interval: Interval | None, influence: FloatArray) -> None:
        """Add the area of a class, and by how much each row moves it."""
        self.areas.append((area, interval))
        self.influence += influence
        self.apart += sum_of_squares(influence, self.groups)

    def metric(self, confidence: float | None) -> Metric:
        """Return the average of the classes added, with its interval."""
        size = len(self.areas)
        found = Metric(min(1.0, float(np.mean([area for area, _ in self.areas]))))
        own = [(area, interval) for area, interval in self.areas if interval is not None]
        if confidence is None or len(own) < size:
            return found
        variances = Variances(sum_of_squares(self.influence, self.groups) / size**2, self.apart / size**2)
        return found.with_interval(
            average_interval(found.value or 0.0, own, np.full(size, 1.0 / size), variances, confidence=confidence)
        )


@dataclass(frozen=True, slots=True)
class _Averages:
    """Both averages of areas: of each class against the rest, and over all pairs."""

    rows: ClassRows
    share: FloatArray
    against_rest: _Average
    of_pairs: _Average

    @classmethod
    def empty(cls, rows: ClassRows) -> Self:
        w = np.ones(rows.n) if rows.weights is None else rows.weights
        held = rows.counts.actual
        share = w / np.where(held > 0, held, 1.0)[rows.y]
        return cls(rows, share, *(_Average(rows.groups, np.zeros(rows.n), 0.0, []) for _ in range(2)))

    def add(self, scores: FloatArray, place: int, confidence: float | None) -> None:
        """Rank a class, and add its areas."""
        rows, mine = self.rows, self.rows.y == place
        found = class_placements(scores, rows.y, rows.weights, place, n_classes=rows.n_classes)
        interval = self._interval(scores, mine, rows.weights, confidence)
        w = np.ones(rows.n) if rows.weights is None else rows.weights
        share = w / np.where(mine, w[mine].sum(), w[~mine].sum())
        self.against_rest.add(found.auc, interval, share * (1.0 - found.auc - found.losses))
        area, others = float(np.nanmean(found.pair_aucs)), rows.n_classes - 1.0
        # A row of the class moves the areas of all its pairs, one of another class only that of the two.
        expected = 1.0 - np.where(np.isnan(found.pair_aucs), area, found.pair_aucs)[rows.y]
        lost = np.where(mine, found.balanced_losses, found.losses)
        moved = self.share * (expected - lost) / np.where(mine, 1.0, others)
        if rows.n_classes > 2:
            interval = self._interval(scores, mine, self.share, confidence)
        self.of_pairs.add(area, interval, moved)

    def _interval(
        self, scores: FloatArray, mine: NDArray[np.bool_], weights: FloatArray | None, confidence: float | None
    ) -> Interval | None:
        if confidence is None:
            return None
        return auc_interval(scores, mine, confidence=confidence, weights=weights, groups=self.rows.groups)


def _average_precision(
    rows: ClassRows, scores: FloatArray, mine: NDArray[np.bool_], confidence: float | None
) -> Metric:
    found = placed_precision(scores, mine, rows.weights)
    metric = Metric(found.value)
    if confidence is None:
        return metric
    smaller = max(1, min(rows.top.units(mine), rows.top.units(~mine)))
    return metric.with_interval(average_precision_interval(found, rows.groups, smaller=smaller, confidence=confidence))
