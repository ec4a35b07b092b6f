"""A weighted evaluation says of weighted rows what scikit-learn and repeated rows say."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn import metrics as sk

from headeval.core.intervals import clopper_pearson
from headeval.evaluation import evaluate

FEW: dict[str, Any] = {"n_resamples": 40}
# Sums of a few hundred terms of the size of 1, in another order.
ROUNDING = 1e-12


def sample(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits with ties, labels, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    z = np.round(2 * rng.normal(size=n), 1)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return z, y, rng.choice([0, 0.2, 1, 3.7], size=n)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["logit", "prob"])
def test_every_metric_is_that_of_scikit_learn_with_sample_weight(seed: int, kind: Any) -> None:
    z, y, w = sample(seed=seed)
    p = 1 / (1 + np.exp(-z))
    flagged = p >= 0.3
    weighted = {"sample_weight": w}
    expected = {
        "prevalence": np.average(y, weights=w),
        "auc": sk.roc_auc_score(y, z, **weighted),
        "ap": sk.average_precision_score(y, z, **weighted),
        "partial_auc": sk.roc_auc_score(y, z, max_fpr=0.1, **weighted),
        "brier": sk.brier_score_loss(y, p, **weighted),
        "log_loss": sk.log_loss(y, p, **weighted),
        "accuracy": sk.accuracy_score(y, flagged, **weighted),
        "precision": sk.precision_score(y, flagged, **weighted),
        "recall": sk.recall_score(y, flagged, **weighted),
        "specificity": sk.recall_score(1 - y, ~flagged, **weighted),
        "f1": sk.f1_score(y, flagged, **weighted),
        "flag_rate": np.average(flagged, weights=w),
        "best_f1": max(sk.f1_score(y, p >= t, **weighted) for t in np.unique(p)),
    }
    fpr, tpr, _ = sk.roc_curve(y, z, drop_intermediate=False, **weighted)
    expected |= {f"recall_at_{name}_fpr": tpr[fpr <= rate].max() for name, rate in (("1pct", 0.01), ("0_1pct", 0.001))}
    found = evaluate(z if kind == "logit" else p, y, kind=kind, threshold=0.3, weights=w, **FEW)
    assert found.weighted
    for name, value in expected.items():
        assert getattr(found, name).value == pytest.approx(value, abs=ROUNDING), name
    assert found.best_f1_threshold is not None
    reached = sk.f1_score(y, p >= found.best_f1_threshold, **weighted)
    assert reached == pytest.approx(expected["best_f1"], abs=ROUNDING)
    assert (found.counts.n, found.counts.positives) == (300, int(y.sum()))  # counts stay numbers of rows


ROWS = st.lists(
    st.tuples(st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.0]), st.integers(0, 1), st.integers(0, 3)),
    min_size=1,
    max_size=10,
).filter(lambda rows: any(weight for *_, weight in rows))


@settings(max_examples=50, deadline=None)
@given(ROWS)
def test_whole_weights_are_repeated_rows(rows: list[tuple[float, int, int]]) -> None:
    z, y, w = map(list, zip(*rows, strict=True))
    weighted = evaluate(z, y, kind="logit", weights=w, n_resamples=0)
    repeated = evaluate(np.repeat(z, w), np.repeat(y, w), kind="logit", n_resamples=0)
    for info, metric in weighted.metrics():
        if info.name in ("n", "ece_corrected"):  # rows counted, and a bias that repetition does not remove
            continue
        expected = getattr(repeated, info.name).value
        assert (metric.value is None) == (expected is None), info.name
        if expected is not None:
            assert metric.value == pytest.approx(expected, abs=1e-9), info.name


@settings(max_examples=30, deadline=None)
@given(ROWS, st.sampled_from([0.1, 3.0, 1e-200, 1e90]))
def test_the_unit_of_the_weights_changes_nothing(rows: list[tuple[float, int, int]], unit: float) -> None:
    z, y, w = map(list, zip(*rows, strict=True))
    first, second = (evaluate(z, y, kind="logit", weights=np.multiply(w, u), **FEW) for u in (1.0, unit))
    for info, metric in first.metrics():
        other = getattr(second, info.name)
        assert (metric.value is None, metric.interval is None) == (other.value is None, other.interval is None), (
            info.name
        )
        if metric.value is not None:
            assert other.value == pytest.approx(metric.value, rel=1e-9, abs=1e-9), info.name
        if metric.interval is not None:
            bounds = (metric.interval.lower, metric.interval.upper)
            assert (other.interval.lower, other.interval.upper) == pytest.approx(bounds, rel=1e-6, abs=1e-9), info.name


def test_rows_of_no_weight_are_as_if_absent_in_all_but_the_counts() -> None:
    z, y, _ = sample(60)
    with_others = evaluate(
        np.append(z, [9.0, -9.0, 0.1]),
        np.append(y, [0, 1, 1]),
        kind="logit",
        weights=np.append(np.ones(60), [0] * 3),
        **FEW,
    )
    without = evaluate(z, y, kind="logit", weights=np.ones(60), **FEW)
    assert (with_others.counts.n, without.counts.n) == (63, 60)
    for info, metric in without.metrics():
        if info.name == "n":
            continue
        other = getattr(with_others, info.name)
        assert other.value == pytest.approx(metric.value, abs=1e-12), info.name
        if info.group == "decision" or info.name in ("auc", "prevalence"):
            bounds = (metric.interval.lower, metric.interval.upper)
            assert (other.interval.lower, other.interval.upper) == pytest.approx(bounds, abs=1e-9), info.name


@pytest.mark.parametrize("label", [0, 1])
def test_a_class_of_no_weight_leaves_its_metrics_undefined_with_a_reason(label: int) -> None:
    y = np.array([0, 1, 0, 1])
    found = evaluate([0.2, 0.8, 0.6, 0.4], y, kind="prob", weights=y == label, prevalence=0.1, per_day=100.0, **FEW)
    undefined = {info.name for info, metric in found.metrics() if metric.value is None}
    of_both = {"auc", "ap", "partial_auc", "recall_at_1pct_fpr", "recall_at_0_1pct_fpr", "best_f1"}
    assert undefined == of_both | {"calibration_slope", "calibration_intercept"} | (
        {"specificity", "fpr"} if label else {"recall"}
    )
    for info, metric in found.metrics():
        assert bool(metric.reason) == (metric.value is None), info.name
        assert metric.value is not None or metric.interval is None
    assert (found.recall_by_fpr, found.best_f1_threshold) == ((), None)
    assert found.traffic is not None
    assert found.traffic.alerts.value is None


def test_a_perfect_ranking_is_exactly_one_whatever_the_weights() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        w = rng.uniform(0.1, 1, 40)
        found = evaluate(np.arange(40.0), np.arange(40) >= 30, kind="logit", weights=w, n_resamples=0)
        assert (found.auc.value, found.ap.value) == (1.0, 1.0)


def test_a_heavy_row_leaves_little_to_be_sure_of() -> None:
    """Ten perfect positives of which one has nearly all the weight are about one row: 1 − 0.025 is no bound then."""
    p, y = [0.9] * 10 + [0.1] * 10, [1] * 10 + [0] * 10
    w = np.array(([1.0] + [1e-4] * 9) * 2)
    found = evaluate(p, y, kind="prob", weights=w, **FEW)
    for metric in (found.recall, found.auc):
        assert metric.value == 1
        assert metric.gate_interval is not None
        assert metric.gate_interval.lower < 0.03
    assert found.ap.interval is None or found.ap.interval.lower < 0.03


def test_traffic_by_hand() -> None:
    """8 of 10 positives and 1 of 100 negatives flagged; 1 in 1,000 of 100,000 rows a day is positive."""
    scores = [0.9] * 8 + [0.1] * 2 + [0.9] + [0.1] * 99
    found = evaluate(scores, [1] * 10 + [0] * 100, kind="prob", prevalence=0.001, per_day=100_000.0, **FEW).traffic
    assert found is not None
    assert found.true_alerts.value == pytest.approx(80)
    assert found.misses.value == pytest.approx(20)
    assert found.false_alerts.value == pytest.approx(999)
    assert found.alerts.value == pytest.approx(1079)
    assert found.precision.value == pytest.approx(float(Fraction(80, 1079)))
    recall = binomtest(8, 10).proportion_ci(0.95)
    assert found.misses.interval is not None
    misses = (found.misses.interval.lower, found.misses.interval.upper)
    assert misses == pytest.approx((100 * (1 - recall.high), 100 * (1 - recall.low)))
    both = binomtest(8, 10).proportion_ci(0.975), binomtest(1, 100).proportion_ci(0.975)
    assert found.alerts.interval is not None
    alerts = (found.alerts.interval.lower, found.alerts.interval.upper)
    assert alerts == pytest.approx([100 * r + 99_900 * f for r, f in zip(*both, strict=True)])


def test_traffic_of_weighted_rows_uses_weighted_rates_and_effective_sizes() -> None:
    """Weights of 3 and 1: recall 3·2/(3·2 + 2) = 3/4 of positives that are worth 8²/20 = 3.2 rows by their weights."""
    p, y = [0.9, 0.9, 0.1, 0.1, 0.9, 0.1], [1, 1, 1, 1, 0, 0]
    w = [3.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    found = evaluate(p, y, kind="prob", weights=w, prevalence=0.5, **FEW).traffic
    assert found is not None
    assert found.precision.value == pytest.approx(0.75 / (0.75 + 0.5))
    assert found.precision.interval is not None
    widest = clopper_pearson(0.75 * 3.2, 3.2, confidence=0.975), binomtest(1, 2).proportion_ci(0.975)
    lower = widest[0].lower / (widest[0].lower + widest[1].high)
    assert found.precision.interval.lower <= lower + 1e-9
    assert evaluate(p, y, kind="prob", weights=w, **FEW).traffic is None


def test_without_negatives_there_is_no_traffic_to_speak_of_with_any_weights_or_groups() -> None:
    for recall, also in ((1 / 2, {}), (1 / 3, {"weights": [1.0, 2.0]}), (1 / 2, {"groups": [0, 1]})):
        found = evaluate([0.9, 0.2], [1, 1], kind="prob", prevalence=0.1, per_day=10.0, **also, **FEW).traffic
        assert found is not None
        assert (found.false_alerts.value, found.precision.value) == (None, None)
        assert found.true_alerts.value == pytest.approx(recall)


def test_saturated_logits_have_one_best_threshold_with_and_without_weights() -> None:
    """Logits that share a probability cannot be told apart by a threshold on the probability."""
    z, y = [50.0, 60.0, 70.0, -1.0], [0, 1, 1, 0]
    plain, weighted = (evaluate(z, y, kind="logit", weights=w, n_resamples=0) for w in (None, np.ones(4)))
    assert plain.best_f1.value == weighted.best_f1.value == pytest.approx(0.8)
    assert plain.best_f1_threshold == weighted.best_f1_threshold == 0.6  # a short number above σ(−1) = 0.27, up to 1
    assert math.isclose(weighted.auc.value or 0, 1.0)
