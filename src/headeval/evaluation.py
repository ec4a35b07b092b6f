"""Everything a report says about one set of scored rows, as one frozen record, and how it is computed."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.calibrated import Calibrated, bin_intervals, calibration_metrics
from headeval.core import checks
from headeval.core.bins import Binning, Convention, ReliabilityTable
from headeval.core.brier import BrierParts
from headeval.core.calibration_evidence import CalibrationNoise
from headeval.core.intervals import Interval
from headeval.core.threads import side_by_side
from headeval.core.thresholds import ConfusionCounts, counted_outcomes, short_number
from headeval.core.traffic import Traffic
from headeval.evidence import Resampling, Sample, with_auc_interval, with_bootstrap_intervals
from headeval.measuring import Rankings, ranking_metrics, recall_by_fpr
from headeval.metric import Metric, MetricInfo, described
from headeval.rates import expected_traffic, rates_of_rows
from headeval.scored_rows import ScoredRows, ScoreKind


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a classifier did on labelled rows; every number that is shown anywhere comes from here.

    Attributes
    ----------
    classes : names of (negative, positive).
    threshold : a row is flagged when the probability of the positive class is ≥ this.
    counts : rows by the four outcomes at the threshold.
    calibration : the chosen ECE convention first, then another one beside it; positive-class is always there.
    noise : of each table of `calibration`, the ECE that chance alone would show.
    brier_parts : the Brier score taken apart over the positive-class bins.
    reliability_intervals : of the share of positives in each bin of the positive-class table; None in an empty bin.
    recall_by_fpr : recall at a false-positive rate of at most 0, 0.05, …, 1, 21 numbers; empty without both classes.
    best_f1_threshold : where `best_f1` is reached on these very rows; None where it is undefined.
    confidence : of all intervals; None where none were asked for.
    resampling : how the bootstrap intervals were drawn; None where there are none.
    weighted : whether rows were weighted; counts stay numbers of rows, while rates and other metrics are weighted.
    traffic : what the rates mean a day; None unless it was asked.
    notes : sentences a reader must not miss.
    """

    classes: tuple[str, str]
    threshold: float
    counts: ConfusionCounts
    calibration: tuple[ReliabilityTable, ...]
    noise: tuple[CalibrationNoise, ...]
    brier_parts: BrierParts
    reliability_intervals: tuple[Interval | None, ...]
    recall_by_fpr: tuple[float, ...]
    best_f1_threshold: float | None
    confidence: float | None
    resampling: Resampling | None
    weighted: bool
    traffic: Traffic | None
    notes: tuple[str, ...]
    n: Metric = described("rows", "data", "labelled rows judged", has_interval=False, scale="count")
    prevalence: Metric = described("prevalence", "data", "share of positives")
    auc: Metric = described("AUC", "ranking", "P(a random positive outscores a random negative)")
    ap: Metric = described("average precision", "ranking", "a random ranking scores the prevalence")
    recall_at_1pct_fpr: Metric = described("recall at FPR ≤ 1 %", "ranking", "at the ROC corner at or below that FPR")
    recall_at_0_1pct_fpr: Metric = described(
        "recall at FPR ≤ 0.1 %", "ranking", "at the ROC corner at or below that FPR"
    )
    partial_auc: Metric = described("partial AUC", "ranking", "FPR ≤ 0.1 only, 0.5 is chance (McClish)")
    best_f1: Metric = described("best F1", "ranking", "chosen on these very rows, so it flatters", has_interval=False)
    ece: Metric = described("ECE", "calibration", "mean gap between confidence and accuracy, chosen convention")
    ece_corrected: Metric = described("ECE corrected", "calibration", "less what chance adds to it", has_interval=False)
    mce: Metric = described("MCE", "calibration", "largest gap of a bin, chosen convention", has_interval=False)
    ece_positive_class: Metric = described("ECE positive-class", "calibration", "mean gap between p and share positive")
    brier: Metric = described("Brier score", "calibration", "mean (p - y)²; 0 is perfect")
    log_loss: Metric = described("log loss", "calibration", "nats a row; 0 is perfect", scale="positive")
    calibration_slope: Metric = described(
        "calibration slope", "calibration", "1 is right; below 1 the logits are too extreme", scale="any"
    )
    calibration_intercept: Metric = described(
        "calibration intercept", "calibration", "0 is right; below 0 the probabilities are too high", scale="any"
    )
    accuracy: Metric = described("accuracy", "decision", "decided rightly")
    precision: Metric = described("precision", "decision", "of the flagged, truly positive")
    recall: Metric = described("recall", "decision", "of the positives, flagged")
    specificity: Metric = described("specificity", "decision", "of the negatives, passed")
    fpr: Metric = described("FPR", "decision", "of the negatives, flagged")
    f1: Metric = described("F1", "decision", "harmonic mean of precision and recall")
    flag_rate: Metric = described("flag rate", "decision", "of all rows, flagged")

    @property
    def reliability(self) -> ReliabilityTable:
        """The positive-class table: does p mean the share of positives."""
        return next(table for table in self.calibration if table.convention == "positive-class")

    def metrics(self) -> Iterator[tuple[MetricInfo, Metric]]:
        """Yield every metric with its description, in the order of the fields."""
        for info in METRICS.values():
            yield info, getattr(self, info.name)


METRICS = {
    entry.name: MetricInfo(entry.name, **entry.metadata)
    for entry in dataclasses.fields(Evaluation)
    if "title" in entry.metadata
}


def evaluate(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    kind: ScoreKind,
    threshold: float = 0.5,
    classes: tuple[str, str] = ("0", "1"),
    ece_convention: Convention = "top-label",
    n_bins: int | None = None,
    binning: Binning = "equal-width",
    confidence: float | None = 0.95,
    n_resamples: int | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    prevalence: float | None = None,
    per_day: float | None = None,
) -> Evaluation:
    """Judge scores against labels, and say how sure each number is; nothing undefined becomes a number.

    Ranking and log loss use logits where they are known, since float probabilities saturate and tie. The
    rows are sorted first, so that their order changes no bit of the result.

    Parameters
    ----------
    scores : (n,) logits (log-odds of class 1) or probabilities of class 1, as `kind` says; n ≥ 1.
    labels : (n,) in {0, 1}.
    kind : "logit" or "prob".
    threshold : in [0, 1], on the probability.
    classes : names of (negative, positive).
    ece_convention, binning : of the metrics `ece` and `mce`, as for `reliability_table`.
    n_bins : bins of every calibration table; None takes each convention's default.
    confidence : of the intervals, in (0, 1); None computes none.
    n_resamples : of the bootstrap, ≥ 0; 0 leaves its intervals out, None takes 1,000, fewer beyond 100,000 rows.
        Of more than 100,000 rows without weights and groups, neighbours of one class are merged before they are drawn
        (`headeval.core.cells` says how little that moves an interval); the numbers themselves come from every row.
    seed : of all random numbers, ≥ 0.
    weights : (n,), not negative, not all zero; every metric is then weighted, counts stay numbers of rows.
    groups : (n,) codes; rows of one group (a conversation, a template) are not independent of each other, which
        widens the intervals.
    prevalence, per_day : share of positives in the traffic to come, and its size: both, or `prevalence` alone for
        the precision alone; neither leaves `traffic` out.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> evaluation = evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], kind="prob")
    >>> evaluation.auc.value, evaluation.recall.value, evaluation.precision.value
    (0.75, 1.0, 0.6666666666666666)
    >>> round(evaluation.recall.interval.lower, 2), evaluation.recall.interval.upper
    (0.34, 1.0)
    """
    if per_day is not None and prevalence is None:
        raise ValueError("per_day needs prevalence: how many of these rows are positive")
    rows = ScoredRows.in_order(scores, labels, kind=kind, weights=weights, groups=groups)
    threshold = checks.real_number("threshold", threshold, minimum=0.0, maximum=1.0)
    if not isinstance(classes, tuple) or len(classes) != 2 or not all(isinstance(name, str) for name in classes):
        raise ValueError(f"classes must be a tuple of the two names (negative, positive), got {classes!r}")
    confidence = None if confidence is None else checks.confidence_level(confidence)
    traffic = {"prevalence": prevalence, "per_day": per_day}
    asked = _Asked(threshold, classes, confidence, Resampling.planned(rows, n_resamples, seed), traffic)
    rankings, calibrated = side_by_side(
        lambda: Rankings.of(rows, confidence=confidence),
        lambda: Calibrated.of(rows, _conventions(ece_convention), n_bins, binning, confidence=confidence, seed=seed),
        rows=rows.n,
    )
    return _judge(rows, rankings, calibrated, asked)


@dataclass(frozen=True, slots=True)
class _Asked:
    threshold: float
    classes: tuple[str, str]
    confidence: float | None
    resampling: Resampling
    traffic: dict[str, float | None]


def _judge(rows: ScoredRows, rankings: Rankings, calibrated: Calibrated, asked: _Asked) -> Evaluation:
    counts = counted_outcomes(rows.p >= asked.threshold, rows.y == 1)
    resampling = asked.resampling if asked.confidence is not None and asked.resampling.n_resamples else None
    sample, weighed = None, {}
    if rows.weights is not None or resampling is not None:
        sample = Sample.of(rows, rankings.by_score, calibrated)
    if rows.weights is not None and sample is not None:
        weighed = dict(zip(sample.measures.names, sample.measures.measures(rows.weights).tolist(), strict=True))
    values = {
        "n": Metric(float(counts.n)),
        **ranking_metrics(rows, rankings, counts, weighed),
        **calibration_metrics(rows, calibrated, weighed),
        **calibrated.cox,
        **rates_of_rows(rows, asked.threshold, confidence=asked.confidence, counts=counts),
    }
    if asked.confidence is not None:
        values = with_auc_interval(rows, values, rankings.auc_interval, confidence=asked.confidence)
    if asked.confidence is not None and resampling is not None and sample is not None:
        values = with_bootstrap_intervals(
            rows, values, sample, calibrated, confidence=asked.confidence, resampling=resampling
        )
    return Evaluation(
        classes=asked.classes,
        threshold=asked.threshold,
        counts=counts,
        calibration=calibrated.tables,
        noise=calibrated.noise,
        brier_parts=calibrated.brier_parts,
        reliability_intervals=bin_intervals(rows, calibrated, confidence=asked.confidence),
        recall_by_fpr=recall_by_fpr(rankings, values["auc"]),
        best_f1_threshold=_best_f1_threshold(rankings, values["best_f1"]),
        confidence=asked.confidence,
        resampling=resampling,
        weighted=rows.weights is not None,
        traffic=expected_traffic(rows, counts, asked.threshold, confidence=asked.confidence, **asked.traffic),
        notes=_notes(rows, rankings, counts, calibrated.reliability, values["auc"]),
        **values,
    )


def _best_f1_threshold(rankings: Rankings, metric: Metric) -> float | None:
    """Return a short number that reaches the best F1: the last digits of a score would say nothing."""
    best = rankings.best_f1
    return None if metric.value is None or best is None else short_number(best.above, best.threshold)


def _conventions(chosen: Convention) -> tuple[Convention, Convention]:
    """The operator's question, whether 0.9 means 90 %, is answered beside whatever was chosen."""
    return (chosen, "top-label" if chosen == "positive-class" else "positive-class")


def _notes(
    rows: ScoredRows, rankings: Rankings, counts: ConfusionCounts, table: ReliabilityTable, auc: Metric
) -> tuple[str, ...]:
    """Return what would otherwise be misread; each is decided by the numbers alone."""
    notes = []
    if rows.kind == "logit":
        if rankings.n_probs < rankings.n_scores:
            notes.append(
                f"the probabilities collapse (float saturation): {rankings.n_scores:,} distinct logits become "
                f"{rankings.n_probs:,} distinct probabilit{'y' if rankings.n_probs == 1 else 'ies'}; "
                "the ranking metrics use the logits"
            )
        if rows.s[0] >= 0 and rows.s[-1] <= 1:
            notes.append("all logits lie between 0 and 1: are they probabilities?")
    if table.binning == "equal-width" and np.count_nonzero(table.counts) == 1 and rows.p.min() < rows.p.max():
        notes.append(
            "all probabilities fall into one bin, where ECE only compares their mean with the prevalence; "
            "--binning equal-mass divides them"
        )
    if auc.value is not None:
        surely = auc.value if auc.interval is None else auc.interval.upper
        if surely < 0.5:
            notes.append("the scores rank worse than chance (AUC below 0.5): is the positive class the right one?")
        elif auc.interval is not None and auc.interval.lower <= 0.5:
            notes.append("the interval of the AUC holds 0.5: on so few rows it does not show how well the scores rank")
    if counts.flagged == counts.n:
        notes.append("every row is flagged at this threshold")
    return tuple(notes)
