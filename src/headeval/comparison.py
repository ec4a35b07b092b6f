"""Two classifiers on the same rows: is the new one really better, and which rows does it decide otherwise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headeval.core.bootstrap import bootstrap_interval
from headeval.core.bootstrap_bounds import ROUNDING
from headeval.core.checks import FloatArray
from headeval.core.delong import auc_difference
from headeval.core.intervals import Difference, Interval
from headeval.core.paired import mcnemar_exact
from headeval.core.thresholds import DecisionChanges
from headeval.evaluation import METRICS, Evaluation
from headeval.evidence import AVERAGED, ECE_NAMES, RANKED, Resampling, prepared, resampled, resolved
from headeval.scored_rows import ScoredRows

ONE_CLASS_RATES, MIXED_RATES = ("recall", "specificity", "fpr"), ("accuracy", "precision", "f1", "flag_rate")
DECISION_RATES = ("accuracy", "precision", "recall", "specificity", "fpr", "f1", "flag_rate")
METHOD, UNSEEN_METHOD, APART_METHOD = "paired bootstrap", "exact, smaller class", "both intervals"
OWN_CLASS_METHOD = "exact, rows of its class"
COMPARED = (*RANKED, *AVERAGED)
# Drawn with as many rows of each class as there are, and drawn regardless of class: see `resampled`.
BY_CLASS, FREELY = (*RANKED, *ONE_CLASS_RATES), (*AVERAGED, *MIXED_RATES)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is judged beside a baseline, on the same rows; differences are new − baseline.

    Attributes
    ----------
    name : of the baseline, as shown.
    baseline : its evaluation, at its own threshold.
    differences : by metric.
    changes : rows that the new classifier flags and the baseline does not, and the other way round.
    only_new_right, only_baseline_right : rows that only one of the two decides rightly.
    mcnemar_p : two-sided exact p-value that neither decides more rows rightly; None where rows are weighted or come in
        groups, for which it does not hold.
    """

    name: str
    baseline: Evaluation
    differences: Mapping[str, Difference]
    changes: DecisionChanges
    only_new_right: int
    only_baseline_right: int
    mcnemar_p: float | None


def compare(
    new: Evaluation,
    baseline: Evaluation,
    new_rows: ScoredRows,
    baseline_rows: ScoredRows,
    *,
    name: str,
    resampling: Resampling | None,
) -> Comparison:
    """Compare two evaluations of the same rows.

    Parameters
    ----------
    new, baseline : evaluations of the rows.
    new_rows, baseline_rows : the same rows with the scores of each, in one and the same order (not sorted).
    name : of the baseline.
    resampling : of the paired bootstrap; None leaves its intervals out.

    Raises
    ------
    ValueError
        When the rows are not the same.
    """
    if not np.array_equal(new_rows.y, baseline_rows.y):
        raise ValueError("the two evaluations must be of the same rows")
    was, now = baseline_rows.p >= baseline.threshold, new_rows.p >= new.threshold
    right_before, right_now = was == (new_rows.y == 1), now == (new_rows.y == 1)
    only_new, only_old = np.count_nonzero(right_now & ~right_before), np.count_nonzero(right_before & ~right_now)
    found = _differences((new, baseline), (new_rows, baseline_rows), (now, was), resampling)
    return Comparison(
        name=name,
        baseline=baseline,
        differences={name: found[name] for name in METRICS if name in found},
        changes=DecisionChanges(int(np.count_nonzero(now & ~was)), int(np.count_nonzero(was & ~now))),
        only_new_right=int(only_new),
        only_baseline_right=int(only_old),
        mcnemar_p=mcnemar_exact(int(only_new), int(only_old)) if new_rows.independent else None,
    )


def _differences(
    evaluations: tuple[Evaluation, Evaluation],
    rows: tuple[ScoredRows, ScoredRows],
    flagged: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    resampling: Resampling | None,
) -> dict[str, Difference]:
    new, baseline = evaluations
    values = {
        name: _value(getattr(new, name).value, getattr(baseline, name).value) for name in ("auc", *BY_CLASS, *FREELY)
    }
    found = {name: Difference(value, None, None) for name, value in values.items() if value is not None}
    if new.confidence is None:
        return found
    if "auc" in found:
        found["auc"] = auc_difference(
            rows[0].s,
            rows[1].s,
            rows[0].y,
            confidence=new.confidence,
            weights=rows[0].weights,
            groups=rows[0].groups,
        )
    if resampling is None or not resampling.n_resamples:
        return found
    return found | _bootstrapped(found, evaluations, rows, flagged, resampling)


def _bootstrapped(
    found: Mapping[str, Difference],
    evaluations: tuple[Evaluation, Evaluation],
    rows: tuple[ScoredRows, ScoredRows],
    flagged: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    resampling: Resampling,
) -> dict[str, Difference]:
    """Both classifiers are measured on the same resamples, so that what they share cancels."""
    order = rows[0].order(rows[1].s)  # an order of the contents alone, whatever the order of the files
    new, baseline = (part.reordered(order) for part in rows)
    one, other = (
        _measures(part, its, mask[order]) for part, its, mask in zip((new, baseline), evaluations, flagged, strict=True)
    )
    drawn = resampled(
        new,
        resampling,
        ranked=lambda weights: _less(one[0](weights), other[0](weights)),
        averaged=lambda weights: _less(one[1](weights), other[1](weights)),
    )
    return {
        name: Difference(found[name].value, _interval(name, column, found[name].value, new, evaluations), None)
        for name, column in zip((*BY_CLASS, *FREELY), np.hstack(drawn).T, strict=True)
        if name in found
    }


def _less(new: FloatArray, baseline: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):  # two infinite losses have no difference
        return new - baseline


def _measures(
    rows: ScoredRows, evaluation: Evaluation, flagged: NDArray[np.bool_]
) -> tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]:
    """Return what measures BY_CLASS under weights (R, n), and what measures FREELY."""
    tables = dict(zip(ECE_NAMES, (evaluation.calibration[0], evaluation.reliability), strict=True))
    ready = prepared(rows, tables)
    wanted = [ready.names.index(name) for name in RANKED]
    positive = rows.y == 1
    outcomes = np.stack(
        [flagged & positive, flagged & ~positive, ~flagged & positive, ~flagged & ~positive], axis=1
    ).astype(np.float64)

    return (
        lambda weights: np.hstack(
            [ready.ranking_measures(weights)[:, wanted], _rates_of_one_class(weights @ outcomes)]
        ),
        lambda weights: np.hstack([ready.calibration_measures(weights), _rates_of_both_classes(weights @ outcomes)]),
    )


def _rates_of_one_class(counts: FloatArray) -> FloatArray:
    """Return ONE_CLASS_RATES, (R, 3), of weighted counts TP, FP, FN, TN, (R, 4); NaN where undefined."""
    tp, fp, fn, tn = counts.T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack([tp / (tp + fn), tn / (tn + fp), fp / (tn + fp)], axis=1)


def _rates_of_both_classes(counts: FloatArray) -> FloatArray:
    """Return MIXED_RATES, (R, 4), likewise."""
    tp, fp, fn, tn = counts.T
    n = tp + fp + fn + tn
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack([(tp + tn) / n, tp / (tp + fp), 2 * tp / (2 * tp + fp + fn), (tp + fp) / n], axis=1)


def _interval(
    name: str,
    drawn: FloatArray,
    value: float,
    rows: ScoredRows,
    evaluations: tuple[Evaluation, Evaluation],
) -> Interval | None:
    new, baseline = evaluations
    if new.confidence is None:
        return None
    if not resolved(name, rows):
        return _apart(getattr(new, name).interval, getattr(baseline, name).interval, new.confidence)
    least, most = (-np.inf, np.inf) if name == "log_loss" else (-1.0, 1.0)
    smaller = _units_of(name, rows)
    interval = bootstrap_interval(
        drawn, value, confidence=new.confidence, lower=least, upper=most, smaller=smaller, method=METHOD
    )
    if interval is not None or name == "log_loss" or not _constant(drawn):
        return interval
    # No resample differs: rows on which the two differ can still be missing by chance, but only so many.
    reach = 1 - ((1 - new.confidence) / 2) ** (1 / smaller)
    return Interval(
        max(-1.0, value - reach),
        min(1.0, value + reach),
        new.confidence,
        OWN_CLASS_METHOD if name in ONE_CLASS_RATES else UNSEEN_METHOD,
    )


def _units_of(name: str, rows: ScoredRows) -> int:
    """Return the independent units behind a difference: of the class that a rate is of, else of the smaller class."""
    if name in ONE_CLASS_RATES:
        return rows.units(rows.y == (1 if name == "recall" else 0)) or rows.units()
    return rows.smaller_class() or rows.units()  # one class only: what is left is measured on all rows


def _apart(new: Interval | None, baseline: Interval | None, confidence: float) -> Interval:
    """Return what two intervals leave for the difference of two shares, where pairing tells nothing more."""
    lower, upper = (0.0, 1.0) if new is None else (new.lower, new.upper)
    least, most = (0.0, 1.0) if baseline is None else (baseline.lower, baseline.upper)
    return Interval(lower - most, upper - least, confidence, APART_METHOD)


def _value(new: float | None, baseline: float | None) -> float | None:
    if new is None or baseline is None or not np.isfinite(new - baseline):
        return None
    return new - baseline


def _constant(drawn: FloatArray) -> bool:
    usable = drawn[np.isfinite(drawn)]
    return bool(usable.size) and float(np.ptp(usable)) < ROUNDING
