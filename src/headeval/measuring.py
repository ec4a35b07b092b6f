"""The numbers of an evaluation that the order of the scores tells, or why there are none."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from headeval.core.delong import ranked_auc_interval, weighted_auc
from headeval.core.intervals import Interval
from headeval.core.operating_points import (
    BestF1,
    ranked_best_f1,
    ranked_partial_auc,
    ranked_recall_at_fpr,
    ranked_recalls_at_fprs,
)
from headeval.core.ranked import (
    RankedCounts,
    RankedWeights,
    cumulated_counts,
    cumulated_weights,
    rank_counts,
    rank_weights,
)
from headeval.core.ranking import ranked_auc, ranked_average_precision
from headeval.core.thresholds import ConfusionCounts
from headeval.metric import Metric
from headeval.scored_rows import ScoredRows


@dataclass(frozen=True, slots=True)
class Rankings:
    """Rows sorted and cumulated once, for everything that ranks.

    Attributes
    ----------
    by_score : at each distinct score.
    by_prob : at each distinct probability, which are fewer where logits saturate.
    best_f1 : over all thresholds on the probability; None where no row of any weight is positive.
    measures : of rows of both classes that are not weighted, what needs nothing else.
    auc_interval : of rows of both classes that are independent; None for others, or where none was asked for.
    """

    by_score: RankedCounts | RankedWeights
    by_prob: RankedCounts | RankedWeights
    best_f1: BestF1 | None
    measures: Mapping[str, float]
    auc_interval: Interval | None

    @classmethod
    def of(cls, rows: ScoredRows, *, confidence: float | None) -> Self:
        """Cumulate rows that are in the order of `ScoredRows.order`, and measure what the order tells."""
        by_score = ranked_scores(rows)
        if rows.kind == "prob":
            by_prob = by_score
        elif isinstance(by_score, RankedCounts):
            by_prob = _by_prob(by_score, rows)
        else:
            by_prob = rank_weights(rows.p, rows.y, np.ones(rows.n) if rows.weights is None else rows.weights)
        best = ranked_best_f1(by_prob) if by_prob.true_positives[-1] > 0 else None
        measures, interval = {}, None
        if isinstance(by_score, RankedCounts) and by_score.true_positives[-1] > 0 and by_score.false_positives[-1] > 0:
            measures = _measures(by_score)
            if rows.independent and confidence is not None:
                interval = ranked_auc_interval(by_score, confidence=confidence)
        return cls(by_score, by_prob, best, measures, interval)

    @property
    def n_scores(self) -> int:
        """How many distinct scores there are."""
        return int(self.by_score.thresholds.shape[0])

    @property
    def n_probs(self) -> int:
        """How many distinct probabilities these become; fewer where logits saturate."""
        return int(self.by_prob.thresholds.shape[0])


def _measures(ranked: RankedCounts) -> dict[str, float]:
    return {
        "auc": ranked_auc(ranked),
        "ap": ranked_average_precision(ranked),
        "recall_at_1pct_fpr": ranked_recall_at_fpr(ranked, max_fpr=0.01),
        "recall_at_0_1pct_fpr": ranked_recall_at_fpr(ranked, max_fpr=0.001),
        "partial_auc": ranked_partial_auc(ranked),
    }


def ranked_scores(rows: ScoredRows) -> RankedCounts | RankedWeights:
    """Cumulate rows that are in the order of `ScoredRows.order`, by score."""
    if rows.weights is None:
        return cumulated_counts(rows.s, rows.y)
    return cumulated_weights(rows.s, rows.y, rows.weights)


def _by_prob(by_score: RankedCounts, rows: ScoredRows) -> RankedCounts:
    """Merge the counts of scores that share a probability."""
    k = by_score.thresholds.shape[0]
    if k == rows.n and (rows.p[1:] > rows.p[:-1]).all():
        return RankedCounts(rows.p[::-1], by_score.true_positives, by_score.false_positives)
    p = rows.p[rows.n - (by_score.true_positives + by_score.false_positives)]
    if not (p[1:] <= p[:-1]).all():  # an exponential need not keep the order of neighbouring floats
        return rank_counts(rows.p, rows.y)
    last = np.flatnonzero(np.append(p[1:] != p[:-1], True))
    return RankedCounts(p[last], by_score.true_positives[last], by_score.false_positives[last])


def recall_by_fpr(rankings: Rankings, auc: Metric) -> tuple[float, ...]:
    """Return the recall at false-positive rates of at most 0, 0.05, …, 1; nothing without both classes."""
    if auc.value is None:
        return ()
    return tuple(ranked_recalls_at_fprs(rankings.by_score, max_fprs=np.arange(21) / 20).tolist())


def ranking_metrics(
    rows: ScoredRows, rankings: Rankings, counts: ConfusionCounts, weighed: Mapping[str, float]
) -> dict[str, Metric]:
    """Return what the order of the scores is worth; `weighed` holds the same of weighted rows."""
    names = ("auc", "ap", "recall_at_1pct_fpr", "recall_at_0_1pct_fpr", "partial_auc", "best_f1")
    if not counts.positives:
        return dict.fromkeys(names, Metric(None, "no row is positive"))
    if not counts.negatives:
        every = dict.fromkeys(names, Metric(None, "every row is positive"))
        # Shown as the number 1 it would look perfect and pass a gate.
        return every | {"ap": Metric(None, "trivial: every row is positive, so it is 1 whatever the scores")}
    best = {"best_f1": Metric(None if rankings.best_f1 is None else rankings.best_f1.f1)}
    if rows.weights is None:
        return {name: Metric(value) for name, value in rankings.measures.items()} | best
    if math.isnan(weighed["auc"]):
        return dict.fromkeys(names, Metric(None, "a class has no weight"))
    return {name: Metric(weighed[name]) for name in names} | {
        "auc": Metric(weighted_auc(rows.s, rows.y, rows.weights)),  # exactly 1 for a perfect ranking
        **best,
    }
