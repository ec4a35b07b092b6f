"""Each argument of each public function of core, replaced by one of no use, is a ValueError that begins with its name.

What is just within the limits of an argument is taken. A function that checks nothing, as others have before it, is
listed as such.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pytest

import headeval.core
from headeval.core import (
    binomial,
    bins,
    bootstrap,
    bootstrap_bounds,
    brier,
    calibration,
    calibration_evidence,
    certify,
    checks,
    class_calibration,
    class_counts,
    class_scaling,
    class_scores,
    cox,
    curve_bands,
    delong,
    intervals,
    logistic,
    multinomial,
    near_duplicates,
    operating_points,
    paired,
    placements,
    proper_scores,
    ranking,
    rows_needed,
    scaling,
    student,
    thresholds,
    traffic,
    two_samples,
    weighted,
)

NAN, INF = float("nan"), float("inf")
TINY = float(np.nextafter(0.0, -1.0))
ABOVE_ONE = float(np.nextafter(1.0, 2.0))

# --- six rows that every function takes, and their values of no use

P = [0.9, 0.2, 0.4, 0.6, 0.3, 0.7]
OLD = [0.8, 0.1, 0.6, 0.7, 0.4, 0.2]
Z = [2.0, -1.0, -0.5, 1.0, -2.0, 1.5]
Y = [1, 0, 1, 0, 0, 1]
K = [2, 0, 1, 0, 1, 2]
CLASSES = [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3], [0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]
X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.5], [0.5, 0.5], [0.0, -1.0]]
ONES = [1.0] * 6

TEXT = ["a"] * 6
NUMBERS: list[Any] = [0.5, [P], [*P[:5], NAN], [*P[:5], INF], TEXT]  # one column, finite
TABLE: list[Any] = [P, [X], [[NAN, 0.0], *X[1:]], [["a", "b"]] * 6]  # two dimensions, finite
SHARES: list[Any] = [*NUMBERS, [*P[:5], ABOVE_ONE], [*P[:5], TINY]]
CLASS_SHARES: list[Any] = [P, [CLASSES], [[0.5, NAN]] * 6, [[0.5, TINY]] * 6, [[1.0]] * 6]
COLUMN: list[Any] = [0, [Y], Y[:5], [*Y, 1], TEXT, [0.5] * 6, [*Y[:5], -1]]
LABELS: list[Any] = [*COLUMN, [*Y[:5], 2]]
CLASS_LABELS: list[Any] = [*COLUMN, [*Y[:5], 3]]
ROW_WEIGHTS: list[Any] = [1.0, [ONES], ONES[:5], [0.0] * 6, [*ONES[:5], TINY], [*ONES[:5], NAN], TEXT]
GROUPS: list[Any] = ["a", [TEXT], TEXT[:5], [*ONES[:5], NAN]]
NO_NUMBER: list[Any] = [None, "0.5", True, NAN, INF, [0.5, 0.5], 10**400]
SHARE: list[Any] = [*NO_NUMBER, TINY, ABOVE_ONE]
CONFIDENCE: list[Any] = [*NO_NUMBER, 0.0, 1.0, TINY, ABOVE_ONE]
THRESHOLD: list[Any] = [None, "0.5", True, NAN]


def whole(minimum: int) -> list[Any]:
    return [minimum - 1, minimum + 0.5, float(minimum), True, str(minimum), None]


def real(minimum: float) -> list[Any]:
    return [*NO_NUMBER, float(np.nextafter(minimum, -1.0))]


@dataclass(frozen=True)
class Door:
    """A public function, a call of it that succeeds, and what it says of others.

    Attributes
    ----------
    good : the arguments of the call.
    refused : argument → values of no use.
    taken : argument → values at the edge of those of use.
    unchecked : arguments that the function asks nothing of.
    called : argument → how errors name it, where that is not its own name.
    """

    of: Callable[..., Any]
    good: dict[str, Any]
    refused: dict[str, list[Any]]
    taken: dict[str, list[Any]] = field(default_factory=dict)
    unchecked: frozenset[str] = frozenset()
    called: dict[str, str] = field(default_factory=dict)


DOORS: dict[str, Door] = {}


def door(of: Callable[..., Any], good: dict[str, Any], unchecked: str = "", /, **arguments: Any) -> None:
    """Enter a function; of each argument the values refused, or these and a tuple of those taken."""
    pairs = {name: values if isinstance(values, tuple) else (values, []) for name, values in arguments.items()}
    DOORS[f"{of.__module__.split('.')[-1]}.{of.__qualname__}"] = Door(
        of,
        good,
        {name: refused for name, (refused, _) in pairs.items()},
        {name: taken for name, (_, taken) in pairs.items()},
        frozenset(unchecked.split()),
    )


def errors_call(of: str, **names: str) -> None:
    DOORS[of] = replace(DOORS[of], called=names)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


LEVEL = (CONFIDENCE, [1e-6, 1 - 1e-6])
RATE = (SHARE, [0.0, 1.0])
WEIGHED: dict[str, Any] = {
    "weights": (ROW_WEIGHTS, [None, [0.0, *ONES[1:]]]),
    "groups": (GROUPS, [None, [*TEXT[:3], *"bbb"]]),
}
SCORED: dict[str, Any] = {"scores": NUMBERS, "labels": (LABELS, [np.array(Y, dtype=bool), np.array(Y, dtype=float)])}
TOP = calibration.reliability_table(P, Y)
POSITIVE = calibration.reliability_table(P, Y, convention="positive-class")
WEIGHTED = calibration.reliability_table(P, Y, weights=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
BINS: dict[str, Any] = {"n_bins": (whole(1)[:-1], [1, None]), "binning": ["quantile", None]}
CONVENTION: dict[str, Any] = {"convention": ["top_label", None]}

door(binomial.binomial_cdf, {"k": 1, "n": 3, "p": 0.5}, "k", n=(whole(0), [0]), p=RATE)
SHAPE = ([*real(0.0), 0, 1.1e150], [5e-324, 1e150])
door(binomial.beta_cdf, {"x": 0.5, "a": 2.0, "b": 1.0}, x=RATE, a=SHAPE, b=SHAPE)
door(binomial.beta_quantile, {"p": 0.5, "a": 2.0, "b": 1.0}, p=RATE, a=SHAPE, b=SHAPE)
door(
    bins.bins_of_rows,
    {"p": np.array(P), "y": np.array(Y), "weights": None, "convention": "top-label"},
    "p y weights",
    **CONVENTION,
    **BINS,
)
door(bins.checked_bins, {"convention": "top-label", "n_bins": None, "binning": "equal-mass"}, **CONVENTION, **BINS)
door(bins.unit_weights, {"weights": ONES, "n": 6}, "n", weights=(ROW_WEIGHTS, [None]))
door(
    bootstrap.replicates,
    {"measure": lambda weights: weights, "labels": Y, "n_resamples": 2, "rng": rng()},
    "measure rng stratified",
    labels=[[], *(values for values in LABELS if np.size(values) == 6)],
    n_resamples=(whole(1), [1]),
    sizes=(ROW_WEIGHTS, [None, ONES]),
    **WEIGHED,
)
FEW = (whole(0), [0])
VALUES = np.linspace(0.4, 0.6, 101)
door(
    bootstrap.bootstrap_interval,
    {"values": VALUES, "estimate": 0.5, "smaller": 9},
    "values estimate lower upper rows resolved method",
    smaller=FEW,
    confidence=LEVEL,
)
door(
    bootstrap.ece_interval,
    {"values": VALUES, "estimate": 0.5, "noise_quantile": 0.1},
    "values estimate noise_quantile bias_corrected rows",
    confidence=LEVEL,
)
door(
    bootstrap_bounds.degenerate_interval,
    {"estimate": 1.0, "smaller": 9},
    "estimate lower upper",
    smaller=FEW,
    confidence=LEVEL,
)
BINNED: dict[str, Any] = {"probs": SHARES, "labels": LABELS}
BINNED_TOP: dict[str, Any] = {
    "probs": ([values for values in BINNED["probs"] if values != [P]] + [[[1.0]] * 6], []),
    "labels": LABELS,
}
door(
    brier.brier_parts,
    {"probs": P, "labels": Y, "table": POSITIVE},
    table=[TOP, calibration.reliability_table(OLD, Y, convention="positive-class")],
    weights=ROW_WEIGHTS,
    **BINNED,
)
door(calibration.reliability_table, {"probs": P, "labels": Y}, weights=ROW_WEIGHTS, **CONVENTION, **BINS, **BINNED_TOP)
door(
    calibration.binned_rows,
    {"probs": P, "labels": Y, "table": TOP},
    table=[calibration.reliability_table(OLD, Y)],
    **BINNED_TOP,
)
door(calibration.reliability_bins, {"probs": P, "labels": Y}, n_bins=(whole(1), [1]), **BINNED_TOP)
door(calibration.ece, {"probs": P, "labels": Y}, n_bins=(whole(1), [1]), **BINNED_TOP)
door(
    calibration_evidence.calibration_noise,
    {"probs": P, "labels": Y, "table": TOP, "rng": rng()},
    "rng",
    table=[WEIGHTED],
    n_simulations=(whole(1), [1]),
    weights=(ROW_WEIGHTS, [None]),
    confidence=LEVEL,
    **BINNED_TOP,
)
COUNT = (whole(0), [0])
door(certify.allowed_errors, {"n": 9, "rate": 0.5, "confidence": 0.9}, n=COUNT, rate=RATE, confidence=LEVEL)
door(
    certify.certify_few_flagged,
    {"scores": P, "rate": 0.5, "confidence": 0.9},
    scores=NUMBERS,
    rate=RATE,
    confidence=LEVEL,
    n=([5, 6.0, "6"], [6, None]),
)
door(
    certify.edge_bound,
    {"flagged": 1, "n": 9, "confidence": 0.9},
    flagged=(whole(1), [1, 9]),
    n=([0, *whole(1)], [1]),
    confidence=(CONFIDENCE, [0.01, 0.99]),
)
door(
    certify.certify_few_missed,
    {"scores": P, "rate": 0.5, "confidence": 0.9},
    scores=(NUMBERS, [[]]),
    rate=RATE,
    confidence=LEVEL,
)
door(
    certify.certify_precision,
    {"probs": P, "labels": Y, "share": 0.5, "confidence": 0.9},
    probs=SHARES,
    labels=LABELS,
    share=RATE,
    confidence=LEVEL,
)
door(certify.checked_level, {"rate": 0.5, "confidence": 0.9}, rate=RATE, confidence=LEVEL)
NAMED: dict[str, Any] = {"name": "it"}
door(checks.finite_array, {**NAMED, "values": P, "ndim": 1}, "name ndim", values=(NUMBERS, [[]]))
door(checks.class_labels, {"labels": K, "n": 6, "n_classes": 3}, "n n_classes", labels=(CLASS_LABELS, [[2] * 6, ONES]))
door(checks.binary_labels, {"labels": Y, "n": 6}, "n", labels=(LABELS, [[0] * 6, ONES]))
door(checks.both_classes, {"labels": np.array(Y)}, labels=[np.zeros(6), np.ones(6), np.array([])])
door(checks.probabilities, {**NAMED, "values": P}, "name ndim", values=(SHARES, [[], [0.0, 1.0]]))
door(checks.sample_weights, {"weights": ONES, "n": 6}, "n name", weights=(ROW_WEIGHTS, [None]))
door(checks.group_codes, {"groups": TEXT, "n": 6}, "n", groups=(GROUPS, [ONES]))
door(checks.whole_number, {**NAMED, "value": 3, "minimum": 3}, "name minimum", value=(whole(3), [np.uint8(3)]))
door(checks.real_number, {**NAMED, "value": 0, "minimum": 0}, "name minimum maximum", value=(real(0.0), [1e300]))
door(checks.confidence_level, {"value": 0.9}, value=LEVEL)
door(checks.decision_threshold, {"value": 0.9}, value=(THRESHOLD, [INF, -INF]))
door(
    class_calibration.classwise_ece,
    {"probs": CLASSES, "labels": K},
    probs=[*CLASS_SHARES, np.empty((0, 3))],
    labels=CLASS_LABELS,
    weights=ROW_WEIGHTS,
    **BINS | {"n_bins": (whole(1)[:-1], [1])},
)
door(
    class_counts.confusion_matrix,
    {"labels": K, "predicted": K, "n_classes": 3},
    labels=[values for values in CLASS_LABELS if np.shape(values) == (6,)],
    predicted=CLASS_LABELS,
    n_classes=([1, 2.5, True], [4]),
)
SCALED: dict[str, Any] = {"threshold": RATE, "before": SHARES, "after": [*SHARES, P[:5], [*P, 0.5]]}
door(class_scaling.fit_class_temperature, {"logits": np.log(CLASSES), "labels": K}, logits=TABLE, labels=CLASS_LABELS)
door(class_scaling.closest_threshold, {"threshold": 0.5, "before": OLD, "after": P}, **SCALED)
door(class_scores.class_log_odds, {"logits": CLASSES}, logits=([*TABLE, [[1.0]] * 6], [[[0.0, 1.0]]]))
door(
    cox.cox_calibration,
    {"logits": Z, "labels": Y},
    logits=NUMBERS,
    labels=LABELS,
    confidence=(CONFIDENCE, [0.01]),
    **WEIGHED,
)
BANDS: dict[str, Any] = {
    "n_resamples": (whole(1), [1]),
    "confidence": LEVEL,
    "sizes": (ROW_WEIGHTS, [None, ONES]),
    **WEIGHED,
    **SCORED,
}
BAND: dict[str, Any] = {"scores": P, "labels": Y, "n_resamples": 2, "rng": rng(), "confidence": 0.9}
door(curve_bands.roc_band, {**BAND, "grid_fpr": [0.5]}, "rng", grid_fpr=(SHARES, [[0.0, 1.0]]), **BANDS)
door(curve_bands.pr_band, {**BAND, "grid_recall": [0.5]}, "rng", grid_recall=(SHARES, [[0.0, 1.0]]), **BANDS)
RANKED: dict[str, Any] = {"scores": P, "labels": Y}
ONE_CLASS: dict[str, Any] = {"labels": ([*LABELS, [0] * 6, [1] * 6], [])}
BASELINE = ([*NUMBERS, OLD[:5]], [Z])
door(delong.auc_interval, RANKED, confidence=LEVEL, **WEIGHED, **SCORED | ONE_CLASS)
door(
    delong.auc_difference,
    {**RANKED, "baseline": OLD},
    baseline=BASELINE,
    confidence=LEVEL,
    **WEIGHED,
    **SCORED | ONE_CLASS,
)
door(delong.delong_variance, RANKED, **WEIGHED, **SCORED | ONE_CLASS)
door(delong.weighted_auc, {**RANKED, "weights": None}, weights=ROW_WEIGHTS, **SCORED | ONE_CLASS)
door(placements.RankedRows.checked, RANKED, baseline=(BASELINE[0], [None, Z]), **WEIGHED, **SCORED | ONE_CLASS)
for bound in (intervals.wilson, intervals.clopper_pearson, intervals.upper_bound, intervals.lower_bound):
    door(
        bound,
        {"successes": 2, "n": 6, "confidence": 0.9},
        successes=([*real(0.0), 6.1], [0, 6]),
        n=([*real(0.0), 0], [2]),
        confidence=(CONFIDENCE, [0.01, 0.99]),
    )
door(intervals.effective_size, {"values": Y}, values=[*NUMBERS, []], **WEIGHED)
FIT: dict[str, Any] = {
    "X": (TABLE, [np.full((6, 1), 1e140)]),
    "iters": (whole(1), [1]),
    "l2": (real(0.0), [1e-9]),
    "y": LABELS,
}
FIT_WEIGHTS = (ROW_WEIGHTS, [None])
BEYOND = [[[1.1e140]] * 6, [[-1.1e140]] * 6, np.empty((0, 2))]
door(
    logistic.fit_logistic,
    {"X": X, "y": Y, "l2": 1.0},
    "fit_intercept",
    sample_weight=FIT_WEIGHTS,
    **FIT | {"X": ([*TABLE, *BEYOND], FIT["X"][1])},
)
door(
    logistic.logistic_regression_fit,
    {"X": X, "y": Y, "l2": 1.0, "iters": 20},
    "fit_intercept",
    **FIT | {"iters": (whole(1), []), "X": [*TABLE, *BEYOND]},
)
door(logistic.logistic_predict_proba, {"X": X, "w": [1.0] * 3}, "fit_intercept", X=TABLE, w=[*NUMBERS, [1.0] * 2])
door(
    multinomial.multinomial_fit,
    {"X": X, "y": K, "l2": 1.0, "n_classes": 3},
    sample_weight=FIT_WEIGHTS,
    n_classes=([1, 3.0, "3"], [4]),
    **FIT | {"y": CLASS_LABELS, "X": ([*TABLE, *BEYOND], FIT["X"][1])},
)
EMBEDDED: list[Any] = [P, [X], np.empty((0, 2)), [[NAN, 0.0]], [[INF, 0.0]], [["a", "b"]]]
PAIR: dict[str, Any] = {"X": EMBEDDED, "Y": [*EMBEDDED, [[1.0]]]}
door(
    near_duplicates.near_duplicates,
    {"X": X, "Y": X, "rng": rng()},
    "rng",
    min_cosine=([*SHARE, 0.0], [5e-324, 1.0]),
    max_products=(whole(1), [1]),
    block_rows=(whole(1), [1]),
    **PAIR,
)
door(near_duplicates.mean_shift, {"X": X, "Y": X, "rng": rng()}, "rng", n_permutations=(whole(1), [1]), **PAIR)
door(near_duplicates.embedding_pair, {"X": X, "Y": X}, **PAIR)
WEIGHTS: dict[str, Any] = {"weights": WEIGHED["weights"]}
door(operating_points.recall_at_fpr, {**RANKED, "max_fpr": 0.5}, max_fpr=RATE, **WEIGHTS, **SCORED | ONE_CLASS)
door(
    operating_points.recalls_at_fprs,
    {**RANKED, "max_fprs": [0.5]},
    max_fprs=(SHARES, [[], [0.0, 1.0]]),
    **WEIGHTS,
    **SCORED | ONE_CLASS,
)
door(operating_points.partial_auc, RANKED, max_fpr=([*SHARE, 0.0], [1e-9, 1.0]), **WEIGHTS, **SCORED | ONE_CLASS)
door(operating_points.best_f1, RANKED, **WEIGHTS, **SCORED | {"labels": ([*LABELS, [0] * 6], [[1] * 6])})
door(paired.mcnemar_exact, {"only_new": 1, "only_old": 2}, only_new=COUNT, only_old=COUNT)
door(proper_scores.brier_score, {"probs": P, "labels": Y}, **BINNED)
door(proper_scores.log_loss, {"probs": P, "labels": Y}, **BINNED)
door(proper_scores.log_loss_from_logits, {"logits": Z, "labels": Y}, logits=NUMBERS, labels=LABELS)
for curve in (ranking.roc_curve, ranking.roc_auc):
    door(curve, RANKED, **SCORED | ONE_CLASS)
for ranked in (ranking.pr_curve, ranking.average_precision):
    door(ranked, RANKED, **SCORED | {"labels": ([*LABELS, [0] * 6], [[1] * 6])})
NEEDED: dict[str, Any] = {"errors": COUNT, "rate": (SHARE, [0.01, 1.0]), "confidence": (CONFIDENCE, [0.01, 0.99])}
door(rows_needed.rows_needed, {"errors": 1, "rate": 0.5, "confidence": 0.9}, **NEEDED)
door(rows_needed.more_rows_needed, {"n": 9, "errors": 1, "rate": 0.5, "confidence": 0.9}, n=COUNT, **NEEDED)
door(
    scaling.fit_temperature,
    {"logits": np.log(CLASSES), "labels": K},
    logits=[*TABLE, [[1.0]] * 6, np.empty((0, 2))],
    labels=CLASS_LABELS,
    max_iter=(whole(1), [20]),
)
door(
    scaling.usable_temperature,
    {"logits": np.log(CLASSES), "labels": K},
    logits=[*TABLE, [[1.0]] * 6, np.empty((0, 2))],
    labels=CLASS_LABELS,
)
for fit in (scaling.fit_temperature_scaling, scaling.fit_platt_scaling):
    door(fit, {"logits": Z, "labels": Y}, logits=NUMBERS, **ONE_CLASS)
PLATT = scaling.Scaling("platt", 2.0, 1.0, 0.5, 0.4)
door(PLATT.carry_threshold, {"threshold": 0.5, "before": OLD, "after": P}, **SCALED)
FREEDOM = ([*real(0.0), 1.1e150], [0, 1e150])
door(student.student_quantile, {"confidence": 0.9, "freedom": 4.0}, confidence=LEVEL, freedom=FREEDOM)
door(student.student_tail, {"t": 1.0, "freedom": 4.0}, t=(real(0.0), [0]), freedom=FREEDOM)
COUNTS = thresholds.ConfusionCounts(1, 1, 1, 1)
door(COUNTS.f_beta, {"beta": 1.0}, beta=(real(0.0), [0, 1e300]))
door(
    thresholds.confusion_counts,
    {**RANKED, "threshold": 0.5},
    threshold=(THRESHOLD, [INF, -INF]),
    scores=(NUMBERS, []),
    labels=LABELS,
)
door(
    thresholds.decision_changes,
    {"before": OLD, "after": P, "threshold": 0.5},
    before=NUMBERS,
    after=[*NUMBERS, P[:5], [*P, 0.5]],
    threshold=(THRESHOLD, [INF, -INF]),
    threshold_after=(THRESHOLD[1:], [INF, -INF, None]),
)
DAY: dict[str, Any] = {
    "prevalence": ([*SHARE, 0.0, 1.0], [5e-324]),
    "per_day": ([*real(0.0)[1:], 0], [5e-324, None]),
    "confidence": ([0.0, 1.0, TINY, ABOVE_ONE, NAN], [0.01, None]),
}
door(traffic.traffic, {"counts": COUNTS, "prevalence": 0.1}, "counts", **DAY)
MAYBE = (SHARE[1:], [0.0, 1.0, None])
door(
    traffic.traffic_of_rates,
    {"recall": 0.5, "fpr": 0.1, "positives": 9, "negatives": 9, "prevalence": 0.1},
    recall=MAYBE,
    fpr=MAYBE,
    positives=[0, -1.0],
    negatives=[0, -1.0],
    **DAY,
)
door(two_samples.ks_two_sample, {"a": P, "b": OLD}, a=[*NUMBERS, []], b=[*NUMBERS, []])
door(
    two_samples.population_stability_index,
    {"reference": P, "current": OLD},
    reference=[*NUMBERS, []],
    current=[*NUMBERS, []],
    n_bins=(whole(2), [2]),
)
door(
    two_samples.proportion_difference,
    {"k1": 1, "n1": 5, "k2": 2, "n2": 6},
    k1=(whole(0), [0]),
    n1=(whole(1), [1]),
    k2=(whole(0), [0]),
    n2=(whole(1), [2]),
    confidence=(CONFIDENCE, [0.01, 0.99]),
)
PREPARED: dict[str, Any] = {"scores": P, "labels": Y, "probs": P, "losses": ONES, "tables": {}}
ROWS = weighted.SortedRows.prepare(**PREPARED)
door(
    weighted.SortedRows.prepare,
    PREPARED,
    "tables",
    probs=[*SHARES, P[:5]],
    losses=([[ONES], ONES[:5], [*ONES[:5], TINY], [*ONES[:5], NAN]], [[*ONES[:5], INF], [0.0] * 6]),
    **SCORED,
)
door(
    ROWS.measures,
    {"weights": ONES},
    weights=([1.0, ONES[:5], [[ONES]], [*ONES[:5], TINY], [*ONES[:5], INF], [*ONES[:5], NAN]], [[0.0] * 6, [ONES] * 2]),
)

for of in ("finite_array", "probabilities", "whole_number", "real_number"):
    errors_call(f"checks.{of}", values="it", value="it")
errors_call("checks.confidence_level", value="confidence")
errors_call("checks.decision_threshold", value="threshold")
errors_call("certify.certify_precision", share="rate")
errors_call("traffic.traffic_of_rates", positives="n", negatives="n")
errors_call("thresholds.decision_changes", threshold_after="threshold")
errors_call("class_counts.confusion_matrix", predicted="labels")
for of in ("logistic.fit_logistic", "logistic.logistic_regression_fit", "multinomial.multinomial_fit"):
    errors_call(of, y="labels")

# What takes what others have checked, or anything at all; `module.*` is all of a module.
CHECKS_NOTHING = """
    batch_resamples.* binomial.beta_log_odds bins.BinnedRows.* bins.ReliabilityTable.holding bins.bins_of_confidences
    bins.confidences bins.rows_of_table bootstrap_bounds.Support.* bootstrap_bounds.at_bounds
    bootstrap_bounds.normal_bounds bootstrap_bounds.percentile_bounds bootstrap_bounds.student_reach
    bootstrap_bounds.unseen_rows brier.parts_of_bins calibration_evidence.noise_of_bins cells.* certify.shows
    class_calibration.SimulatedLabels.* class_calibration.class_bins class_calibration.resampled_gaps
    class_counts.ClassCounts.* class_influence.* class_intervals.* class_ranking.* class_scores.brier_of_rows
    class_scores.class_probabilities class_scores.log_odds class_scores.losses_from_logits
    class_scores.losses_from_probabilities class_scores.order_of_contents class_scores.sums_are_off cox_many.*
    delong.ranked_auc_interval draws.* intervals.nonempty multinomial.MultinomialProblem.* multinomial.class_newton
    near_duplicates.RowStream.only newton.* operating_points.ranked_best_f1 operating_points.ranked_partial_auc
    operating_points.ranked_recall_at_fpr operating_points.ranked_recalls_at_fprs placed_precision.*
    placements.counted_spread placements.kish_size placements.placements placements.spread proper_scores.mean_loss
    proper_scores.mean_square ranked.* ranking.ranked_auc ranking.ranked_average_precision ranking.ranked_pr_curve
    ranking.ranked_roc_curve scaling.Scaling.apply scaling_intervals.* stable.* threads.* thresholds.counted_outcomes
    thresholds.short_number vectors.* weighted.SortedRows.calibration_measures weighted.SortedRows.ranking_measures
    weighted.block_size
"""


CHANGED = "__mutmut_"  # where functions are mutated, changed copies stand beside them


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions of core and the public methods of its public classes, by name."""
    for module in pkgutil.iter_modules(headeval.core.__path__):
        full = f"headeval.core.{module.name}"
        for name, thing in vars(importlib.import_module(full)).items():
            if name.startswith("_") or CHANGED in name or getattr(thing, "__module__", None) != full:
                continue
            if inspect.isfunction(thing):
                yield f"{module.name}.{name}", thing
            elif inspect.isclass(thing):
                for part, of in vars(thing).items():
                    method = of.__func__ if isinstance(of, classmethod) else of
                    if inspect.isfunction(method) and not part.startswith("_") and CHANGED not in part:
                        yield f"{module.name}.{name}.{part}", method


PUBLIC = dict(public())


def test_every_public_function_of_core_is_listed_once() -> None:
    assert len(PUBLIC) > 150
    found = {entry: {name for name in PUBLIC if fnmatchcase(name, entry)} for entry in CHECKS_NOTHING.split()}
    assert [entry for entry, names in found.items() if not names] == [], "there is no such function any more"
    listed = set().union(*found.values())
    assert sorted(PUBLIC.keys() - listed - DOORS.keys()) == [], "enter it into this file, with its arguments"
    assert sorted(listed & DOORS.keys()) == []
    assert DOORS.keys() <= PUBLIC.keys()
    assert [name for name in listed if "checks" in PUBLIC[name].__code__.co_names] == [], "it checks something"


@pytest.mark.parametrize("name", DOORS)
def test_an_argument_of_no_use_is_refused_by_its_name(name: str) -> None:
    entered = DOORS[name]
    entered.of(**entered.good)
    assert {*entered.refused, *entered.unchecked} == inspect.signature(entered.of).parameters.keys()
    for argument, values in entered.refused.items():
        called = entered.called.get(argument, argument)
        for value in values:
            message = said(entered, {argument: value})
            assert re.match(rf"(\w+ and )?{called} ", message), f"{argument}={value!r}: {message}"


def said(entered: Door, other: dict[str, Any]) -> str:
    try:
        return f"no error but {entered.of(**entered.good | other)}"
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", [name for name, entered in DOORS.items() if any(entered.taken.values())])
def test_what_is_just_within_the_limits_is_taken(name: str) -> None:
    entered = DOORS[name]
    for argument, values in entered.taken.items():
        for value in values:
            entered.of(**entered.good | {argument: value})
