"""What happens at each threshold of a slider: the counts and rates that `evaluate` gives there."""

import dataclasses
import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.thresholds import ConfusionCounts
from headeval.core.traffic import Traffic
from headeval.evaluation import Evaluation
from headeval.metric import Metric
from headeval.rates import expected_traffic, rates, rates_of_rows
from headeval.scored_rows import ScoredRows

MOST_STEPS = 1500
_FEWEST_STEPS = 31
_MOST_WEIGHTED_STEPS, _ROWS_OF_ALL_STEPS = (
    201,
    5_000_000,
)  # each step of weighted or grouped rows needs all of them again
_MOST_DECIMALS = 17  # a float64 needs no more to be told from its neighbours


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `evaluate` gives at thresholds between which no score lies.

    Attributes
    ----------
    metrics : the rates, by the name of their field of `Evaluation`.
    """

    counts: ConfusionCounts
    metrics: Mapping[str, Metric]
    traffic: Traffic | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """What happens at each threshold of a slider; steps between which no score lies share an outcome.

    Attributes
    ----------
    thresholds : (k,) increasing; but for the one in use, decimals that can be typed.
    in_use : index of the threshold in use.
    outcome : (k,) index into `outcomes` of each threshold.
    """

    thresholds: tuple[float, ...]
    in_use: int
    outcome: tuple[int, ...]
    outcomes: tuple[Outcome, ...]

    def at(self, step: int, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation of the same rows as it would be at the threshold of a step, but for its notes."""
        found = self.outcomes[self.outcome[step]]
        moved: dict[str, Any] = {"counts": found.counts, "traffic": found.traffic, **found.metrics}
        return dataclasses.replace(evaluation, threshold=self.thresholds[step], **moved)


def sweep(
    rows: ScoredRows,
    threshold: float,
    *,
    confidence: float | None,
    prevalence: float | None = None,
    per_day: float | None = None,
) -> Sweep:
    """Return what happens at every step, by the very counts and rates of `evaluate` there.

    Parameters
    ----------
    threshold : the one in use, in [0, 1]; it is among the steps as it stands.
    confidence, prevalence, per_day : as for `evaluate`.
    """
    order = np.argsort(rows.p, kind="stable")
    probs, found = rows.p[order], np.append(0, np.cumsum(rows.y[order]))
    most = (
        MOST_STEPS if rows.independent else max(_FEWEST_STEPS, min(_MOST_WEIGHTED_STEPS, _ROWS_OF_ALL_STEPS // rows.n))
    )
    thresholds = np.union1d(typed_thresholds(probs, most=most), threshold)
    # A row is flagged when its probability ≥ threshold: `below` counts the rows that are not.
    below, first, outcome = np.unique(np.searchsorted(probs, thresholds), return_index=True, return_inverse=True)
    positives, asked = int(found[-1]), _Asked(confidence, prevalence, per_day)
    outcomes = []
    for passed, missed, at in zip(below.tolist(), found[below].tolist(), thresholds[first].tolist(), strict=True):
        counts = ConfusionCounts(
            true_positives=positives - missed,
            false_positives=rows.n - passed - (positives - missed),
            false_negatives=missed,
            true_negatives=passed - missed,
        )
        outcomes.append(_outcome(rows, counts, at, asked))
    return Sweep(
        thresholds=tuple(thresholds.tolist()),
        in_use=int(np.searchsorted(thresholds, threshold)),
        outcome=tuple(outcome.tolist()),
        outcomes=tuple(outcomes),
    )


def typed_thresholds(probs: FloatArray, *, most: int = MOST_STEPS) -> list[float]:
    """Return thresholds that tell rows apart: an even grid of decimals over [0, 1], finer where many scores are.

    The interval between two decimals that holds the most rows is divided in ten, again and again, while there is
    anything to tell apart and at most `most` thresholds stand in all.

    Parameters
    ----------
    probs : (n,) in increasing order.
    most : at least 11.

    Examples
    --------
    >>> typed_thresholds(np.array([0.25, 0.251, 0.9]), most=150)[24:28]
    [0.24, 0.25, 0.251, 0.252]
    """
    decimals = 3 if most > 1000 else 2 if most > 100 else 1
    found = {float(f"{step}e-{decimals}") for step in range(10**decimals + 1)}
    few = max(1, probs.shape[0] // most)
    crowded: list[tuple[int, int, int]] = []

    def consider(step: int, decimals: int) -> None:
        first, last = np.searchsorted(probs, (float(f"{step}e-{decimals}"), float(f"{step + 1}e-{decimals}")))
        if last - first > few and probs[first] != probs[last - 1] and decimals < _MOST_DECIMALS:
            heapq.heappush(crowded, (int(first - last), step, decimals))

    for step in range(10**decimals):
        consider(step, decimals)
    while crowded and len(found) + 9 <= most:
        _, step, decimals = heapq.heappop(crowded)
        for finer in range(10 * step, 10 * step + 10):
            found.add(float(f"{finer}e-{decimals + 1}"))
            consider(finer, decimals + 1)
    return sorted(found)


@dataclass(frozen=True, slots=True)
class _Asked:
    confidence: float | None
    prevalence: float | None
    per_day: float | None


def _outcome(rows: ScoredRows, counts: ConfusionCounts, threshold: float, asked: _Asked) -> Outcome:
    if rows.independent:
        metrics = rates(counts, confidence=asked.confidence)
    else:
        metrics = rates_of_rows(rows, threshold, confidence=asked.confidence)
    day = expected_traffic(
        rows,
        counts,
        threshold,
        prevalence=asked.prevalence,
        per_day=asked.per_day,
        confidence=asked.confidence,
    )
    return Outcome(counts, metrics, day)
