"""The Evaluation record: right numbers by an independent route, and no number where there is none."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn import metrics as sk

from headeval import scored_rows
from headeval.core import threads
from headeval.evaluation import METRICS, Evaluation, evaluate
from headeval.metric import Metric

TEN_SCORES = [0.95, 0.90, 0.80, 0.70, 0.55, 0.45, 0.40, 0.30, 0.20, 0.10]
TEN_LABELS = [1, 1, 0, 1, 0, 1, 0, 0, 0, 0]
NEED_BOTH_CLASSES = {
    "auc",
    "ap",
    "recall_at_1pct_fpr",
    "recall_at_0_1pct_fpr",
    "partial_auc",
    "best_f1",
    "calibration_slope",
    "calibration_intercept",
}


def values(evaluation: Evaluation) -> dict[str, float | None]:
    return {info.name: metric.value for info, metric in evaluation.metrics()}


def test_ten_scored_examples_by_hand() -> None:
    found = values(evaluate(TEN_SCORES, TEN_LABELS, kind="prob"))
    expected = {
        "n": 10,
        "prevalence": 0.4,
        "auc": 21 / 24,
        "ap": (1 + 1 + 3 / 4 + 4 / 6) / 4,
        "accuracy": 7 / 10,
        "precision": 3 / 5,
        "recall": 3 / 4,
        "specificity": 4 / 6,
        "fpr": 2 / 6,
        "f1": 6 / 9,
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-15), name


def test_every_metric_agrees_with_scikit_learn_on_logits() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=500) * 2
    y = (rng.random(500) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-z))
    flagged = p >= 0.3
    found = values(evaluate(z, y, kind="logit", threshold=0.3))
    expected = {
        "auc": sk.roc_auc_score(y, z),
        "ap": sk.average_precision_score(y, z),
        "brier": sk.brier_score_loss(y, p),
        "log_loss": sk.log_loss(y, p),
        "accuracy": sk.accuracy_score(y, flagged),
        "precision": sk.precision_score(y, flagged),
        "recall": sk.recall_score(y, flagged),
        "specificity": sk.recall_score(1 - y, ~flagged),
        "f1": sk.f1_score(y, flagged),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-12), name


def test_pitfall_16_rates_are_at_the_threshold_and_not_at_one_half() -> None:
    low = values(evaluate(TEN_SCORES, TEN_LABELS, kind="prob", threshold=0.25))
    assert (low["recall"], low["precision"], low["fpr"]) == (1.0, 4 / 8, 4 / 6)
    exactly = values(evaluate(TEN_SCORES, TEN_LABELS, kind="prob", threshold=0.9))
    assert (exactly["recall"], exactly["precision"]) == (0.5, 1.0)  # 0.9 itself is flagged


@given(
    st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 1)), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
)
def test_row_order_changes_not_one_bit(rows: list[tuple[int, int]], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    first, second = (
        evaluate([z * 0.37 for z, _ in order], [y for _, y in order], kind="logit", n_resamples=20)
        for order in (rows, shuffled)
    )
    assert list(first.metrics()) == list(second.metrics())  # with their intervals
    assert (first.counts, first.noise) == (second.counts, second.noise)


@pytest.mark.parametrize(
    ("labels", "undefined"),
    [
        ([1, 1, 1], {*NEED_BOTH_CLASSES, "specificity", "fpr"}),
        ([0, 0, 0], {*NEED_BOTH_CLASSES, "recall"}),
    ],
)
def test_one_class_leaves_metrics_undefined_with_a_reason_never_a_number(
    labels: list[int], undefined: set[str]
) -> None:
    evaluation = evaluate([0.2, 0.6, 0.7], labels, kind="prob")
    missing = {info.name: metric for info, metric in evaluation.metrics() if metric.value is None}
    assert set(missing) == undefined
    assert all(metric.reason for metric in missing.values())


def test_precision_is_undefined_when_nothing_is_flagged() -> None:
    assert evaluate([0.1, 0.2], [0, 1], kind="prob").precision == Metric(None, "nothing is flagged")


def test_f1_is_undefined_only_without_positives_and_flags() -> None:
    assert evaluate([0.1, 0.2], [0, 0], kind="prob").f1.value is None
    assert evaluate([0.1, 0.2], [0, 1], kind="prob").f1.value == 0


def test_an_impossible_true_class_gives_an_infinite_log_loss_with_the_count() -> None:
    metric = evaluate([0.0, 1.0, 1.0, 0.5], [1, 0, 1, 0], kind="prob").log_loss
    assert metric.value == math.inf
    assert "2 rows" in metric.reason


def test_logits_decide_where_probabilities_saturate() -> None:
    logits = np.arange(50.0, 65.0)  # sigmoid(z) rounds to 1 from about 37 on
    labels = np.r_[0, np.ones(14)].astype(int)
    evaluation = evaluate(logits, labels, kind="logit")
    assert evaluation.auc.value == 1.0
    assert evaluation.log_loss.value == pytest.approx(50 / 15, rel=1e-12)
    assert any("saturation" in note for note in evaluation.notes)


@pytest.mark.parametrize("chosen", ["top-label", "top-label-left", "positive-class"])
def test_the_positive_class_table_stands_beside_any_chosen_convention(chosen: str) -> None:
    evaluation = evaluate(TEN_SCORES, TEN_LABELS, kind="prob", ece_convention=chosen)
    assert evaluation.calibration[0].convention == chosen
    assert evaluation.ece.value == evaluation.calibration[0].ece
    assert evaluation.reliability.convention == "positive-class"
    assert evaluation.ece_positive_class.value == evaluation.reliability.ece
    assert len({table.convention for table in evaluation.calibration}) == 2


def test_bins_and_binning_reach_every_table() -> None:
    evaluation = evaluate(TEN_SCORES, TEN_LABELS, kind="prob", n_bins=4, binning="equal-mass")
    assert {table.binning for table in evaluation.calibration} == {"equal-mass"}
    assert {table.n_bins for table in evaluation.calibration} == {4}


@pytest.mark.parametrize(
    ("scores", "labels", "options", "message"),
    [
        ([0.5, 1.5], [0, 1], {"kind": "prob"}, r"lie in \[0, 1\]"),
        ([0.5, math.nan], [0, 1], {"kind": "logit"}, "finite"),
        ([], [], {"kind": "logit"}, "at least one row"),
        ([0.5], [2], {"kind": "logit"}, "from 0 to 1"),
        ([0.5], [1], {"kind": "prob", "threshold": 1.1}, "between 0 and 1"),
        ([0.5], [1], {"kind": "score"}, "kind must be one of"),
        ([0.5], [1], {"kind": "prob", "confidence": 95}, "confidence"),
        ([0.5], [1], {"kind": "prob", "n_resamples": -1}, "n_resamples"),
        ([0.5], [1], {"kind": "prob", "seed": -1}, "seed"),
        ([0.5], [1], {"kind": "prob", "weights": [0.0]}, "not all zero"),
        ([0.5], [1], {"kind": "prob", "groups": [0, 1]}, "groups"),
        ([0.5], [1], {"kind": "prob", "prevalence": 1.0}, "prevalence"),
    ],
)
def test_a_broken_contract_is_a_value_error(
    scores: list[float], labels: list[int], options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(scores, labels, **options)


def test_the_names_that_requirements_rely_on_are_there() -> None:
    fixed = "auc ap ece mce brier log_loss accuracy precision recall specificity fpr f1 prevalence n"
    assert set(fixed.split()) <= set(METRICS)


@pytest.mark.parametrize(
    ("scores", "labels", "kind", "words"),
    [
        ([0.01, 0.02, 0.03, 0.09], [0, 0, 0, 1], "prob", "fall into one bin"),
        ([0.1 + i / 100 for i in range(40)], [1] * 20 + [0] * 20, "prob", "worse than chance"),
        ([i / 100 for i in range(40)], [0, 1] * 20, "prob", "does not show how well the scores rank"),
        ([0.1, 0.6, 0.9], [0, 1, 1], "logit", "are they probabilities"),
        ([0.6, 0.7], [0, 1], "prob", "every row is flagged"),
    ],
)
def test_what_would_be_misread_is_noted(scores: list[float], labels: list[int], kind: str, words: str) -> None:
    notes = evaluate(scores, labels, kind=kind).notes
    assert any(words in note for note in notes)
    tame = evaluate([-2.0 + i / 40 for i in range(160)], [0] * 100 + [1] * 60, kind="logit").notes
    assert not any(words in note for note in tame)
    unsure = evaluate([0.1, 0.6, 0.9], [1, 0, 0], kind="prob", confidence=None).notes
    assert any("worse than chance" in note for note in unsure)  # where nothing says how sure the AUC is


def numbers_in(value: Any) -> list[Any]:
    """Every number in a record, to whatever depth, less those in arrays."""
    if dataclasses.is_dataclass(value):
        return [number for field in dataclasses.fields(value) for number in numbers_in(getattr(value, field.name))]
    if isinstance(value, tuple):
        return [number for item in value for number in numbers_in(item)]
    return [value] if isinstance(value, int | float | np.generic) else []


WEIGHTED = {"weights": [1, 2, 0.5, 1, 1, 3, 1, 1, 2, 1]}
GROUPED = {"groups": [0, 0, 1, 1, 2, 2, 3, 3, 4, 5]}


@pytest.mark.parametrize("how", [{}, WEIGHTED, GROUPED, WEIGHTED | GROUPED])
def test_every_number_is_one_of_python(how: dict[str, Any]) -> None:
    """NumPy's own compare and print otherwise, and JSON cannot take them all."""
    found = numbers_in(evaluate(TEN_SCORES, TEN_LABELS, kind="prob", n_resamples=20, prevalence=0.1, per_day=9, **how))
    assert len(found) > 100
    assert {type(number) for number in found} <= {bool, int, float}


def test_new_measures_of_ten_rows_by_hand() -> None:
    """Best F1: at 0.7 three of four flagged are positive, 2·3/(2·3 + 1 + 1); in (0.40, 0.45] four of six, 8/(8 + 2)."""
    evaluation = evaluate(TEN_SCORES, TEN_LABELS, kind="prob", n_resamples=0)
    assert evaluation.flag_rate.value == 0.5
    assert (evaluation.best_f1.value, evaluation.best_f1_threshold) == (pytest.approx(0.8), 0.43)
    assert evaluation.recall_at_1pct_fpr.value == 0.5  # two positives outscore every negative
    assert evaluation.recall_at_0_1pct_fpr.value == 0.5
    # The ROC corner at 1/6 has a recall of 3/4, that at 2/6 one of 1.
    assert evaluation.recall_by_fpr[0] == 0.5
    assert evaluation.recall_by_fpr[4] == 0.75
    assert (len(evaluation.recall_by_fpr), evaluation.recall_by_fpr[-1]) == (21, 1.0)


def test_partial_auc_is_scikit_learns() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 400)
    z = rng.normal(size=400) + y
    found = evaluate(z, y, kind="logit", n_resamples=0).partial_auc.value
    assert found == pytest.approx(sk.roc_auc_score(y, z, max_fpr=0.1), abs=1e-12)


def test_rates_have_the_intervals_of_scipy_to_show_and_to_guarantee() -> None:
    evaluation = evaluate(TEN_SCORES, TEN_LABELS, kind="prob", confidence=0.9, n_resamples=0)
    counts = {"accuracy": (7, 10), "precision": (3, 5), "recall": (3, 4), "specificity": (4, 6), "fpr": (2, 6)}
    counts |= {"prevalence": (4, 10), "flag_rate": (5, 10)}
    for name, (hits, n) in counts.items():
        metric = getattr(evaluation, name)
        for interval, method in ((metric.interval, "wilson"), (metric.guarantee, "exact")):
            expected = binomtest(hits, n).proportion_ci(0.9, method=method)
            assert (interval.lower, interval.upper) == pytest.approx((expected.low, expected.high), abs=1e-9), name
            assert interval.confidence == 0.9


def test_no_interval_is_without_width_or_without_its_value() -> None:
    rng = np.random.default_rng(9)
    for scores, labels in (([3.0] * 20 + [-3.0] * 20, [1] * 20 + [0] * 20), (rng.normal(size=60), np.arange(60) % 2)):
        evaluation = evaluate(scores, labels, kind="logit", n_resamples=100)
        for info, metric in evaluation.metrics():
            for interval in (metric.interval, metric.guarantee):
                if interval is not None:
                    assert interval.lower < interval.upper, info.name
                    assert metric.value is not None
        assert evaluation.auc.interval is not None
        assert evaluation.auc.interval.lower < evaluation.auc.value <= evaluation.auc.interval.upper


def test_without_a_confidence_there_is_no_interval_anywhere() -> None:
    evaluation = evaluate(TEN_SCORES, TEN_LABELS, kind="prob", confidence=None, prevalence=0.1)
    assert not [info.name for info, metric in evaluation.metrics() if metric.interval or metric.guarantee]
    assert set(evaluation.reliability_intervals) == {None}
    assert (evaluation.confidence, evaluation.resampling) == (None, None)
    assert evaluation.traffic is not None
    assert evaluation.traffic.precision.interval is None


def test_without_resamples_formulas_still_give_their_intervals() -> None:
    evaluation = evaluate(TEN_SCORES, TEN_LABELS, kind="prob", n_resamples=0)
    assert evaluation.resampling is None
    having = {info.name for info, metric in evaluation.metrics() if metric.interval}
    assert {"auc", "recall", "fpr", "precision", "flag_rate"} <= having
    assert not having & {"ap", "brier", "log_loss", "ece", "ece_positive_class", "partial_auc", "best_f1", "n"}


def test_the_seed_alone_decides_what_is_drawn() -> None:
    def drawn(seed: int) -> Evaluation:
        return evaluate(TEN_SCORES, TEN_LABELS, kind="prob", n_resamples=50, seed=seed)

    assert drawn(1).log_loss == drawn(1).log_loss
    assert drawn(1).log_loss.interval != drawn(2).log_loss.interval
    assert drawn(1).noise == drawn(1).noise
    assert drawn(1).log_loss.value == drawn(2).log_loss.value


def test_a_weight_of_two_measures_as_two_rows() -> None:
    weights = np.array([1, 2, 3, 1, 1, 2, 1, 1, 2, 1])
    once = evaluate(TEN_SCORES, TEN_LABELS, kind="prob", weights=weights, n_resamples=0)
    often = evaluate(np.repeat(TEN_SCORES, weights), np.repeat(TEN_LABELS, weights), kind="prob", n_resamples=0)
    assert (once.weighted, often.weighted) == (True, False)
    assert (once.n.value, once.counts.positives) == (10, 4)
    for info, metric in often.metrics():
        if info.name not in {"n", "ece_corrected"}:  # chance knows how many rows there are
            assert getattr(once, info.name).value == pytest.approx(metric.value, abs=1e-9), info.name


def test_groups_of_copies_are_as_sure_as_one_row_each() -> None:
    """Ten copies of each row tell no more than the row itself."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=60)
    y = (rng.random(60) < 1 / (1 + np.exp(-2 * z))).astype(int)
    single = evaluate(z, y, kind="logit", n_resamples=0)
    copies = [np.repeat(values, 10) for values in (z, y, np.arange(60))]
    grouped = evaluate(copies[0], copies[1], kind="logit", groups=copies[2], n_resamples=0)
    blind = evaluate(copies[0], copies[1], kind="logit", n_resamples=0)

    def width(evaluation: Evaluation, name: str) -> float:
        interval = getattr(evaluation, name).interval
        return float(interval.upper - interval.lower)

    for name in ("auc", "recall", "fpr", "accuracy", "calibration_slope"):
        assert getattr(grouped, name).value == pytest.approx(getattr(single, name).value, abs=1e-12)
        assert width(grouped, name) == pytest.approx(width(single, name), rel=0.06), name
        assert width(blind, name) < 0.5 * width(single, name), name


def test_traffic_is_projected_from_recall_and_fpr() -> None:
    traffic = evaluate(TEN_SCORES, TEN_LABELS, kind="prob", prevalence=0.01, per_day=1000, n_resamples=0).traffic
    assert traffic is not None
    alerts = 10 * 3 / 4 + 990 * 2 / 6
    assert traffic.alerts.value == pytest.approx(alerts)
    assert traffic.misses.value == pytest.approx(10 / 4)
    assert traffic.precision.value == pytest.approx(10 * 3 / 4 / alerts)
    recall = binomtest(3, 4).proportion_ci(0.95)
    assert traffic.misses.interval is not None
    assert traffic.misses.interval.lower == pytest.approx(10 * (1 - recall.high), abs=1e-9)


@pytest.mark.parametrize("how", [{}, {"weights": [1, 2, 3]}, {"groups": [0, 0, 1]}])
@pytest.mark.parametrize("label", [0, 1])
def test_traffic_of_one_class_is_half_known(label: int, how: dict[str, Any]) -> None:
    traffic = evaluate([0.2, 0.6, 0.7], [label] * 3, kind="prob", prevalence=0.1, per_day=10, **how).traffic
    assert traffic is not None
    assert traffic.precision.value is None
    assert (traffic.misses.value is None, traffic.false_alerts.value is None) == (label == 0, label == 1)


def test_a_class_without_weight_leaves_its_measures_undefined() -> None:
    evaluation = evaluate(
        [0.2, 0.6, 0.7, 0.1], [1, 1, 0, 0], kind="prob", weights=[1, 2, 0, 0], prevalence=0.1, n_resamples=20
    )
    missing = {info.name: metric for info, metric in evaluation.metrics() if metric.value is None}
    assert set(missing) == {*NEED_BOTH_CLASSES, "specificity", "fpr"}
    assert all(metric.reason and metric.interval is None for metric in missing.values())
    assert evaluation.recall.value == pytest.approx(2 / 3)
    assert evaluation.traffic is not None
    assert evaluation.traffic.precision.value is None


@pytest.mark.parametrize("kind", ["logit", "prob"])
@pytest.mark.parametrize("also", [{}, {"weights": True}, {"groups": True}])
def test_two_threads_compute_what_one_computes(
    kind: str, also: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    z = np.round(rng.normal(size=700), 2)
    labels = (rng.random(700) < 1 / (1 + np.exp(-z))).astype(int)
    scores = z if kind == "logit" else 1 / (1 + np.exp(-z))
    options = {name: rng.integers(1, 9, 700) for name in also}
    one = evaluate(scores, labels, kind=kind, n_resamples=30, **options)
    monkeypatch.setattr(threads, "MANY", 0)
    assert repr(evaluate(scores, labels, kind=kind, n_resamples=30, **options)) == repr(one)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, object])
def test_labels_of_any_type_are_the_same_labels(dtype: type) -> None:
    scores, labels = np.array([0.9, 0.4, 0.7, 0.2]), np.array([1, 0, 0, 1])
    if dtype is object:
        with pytest.raises(ValueError, match="labels must be numbers"):
            evaluate(scores, labels.astype(object), kind="prob")
        return
    found, expected = (evaluate(scores, given, kind="prob", n_resamples=20) for given in (labels.astype(dtype), labels))
    assert repr(found) == repr(expected)
    for wrong in (np.array([1, 0, 2, 1]), np.array([1, 0, -1, 1])):
        with pytest.raises(ValueError, match="labels must be integers from 0 to 1"):
            evaluate(scores, wrong, kind="prob")


def test_logits_whose_probabilities_are_out_of_order_by_a_rounding_rank_by_their_own_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An exponential need not keep the order of neighbouring floats; what is flagged goes by probability."""
    z = np.array([-2.0, -1.0, 0.5, 1.0, 2.0])
    wrong = np.array([0.1, 0.3, 0.6, 0.5999999999999999, 0.9])
    monkeypatch.setattr(scored_rows, "sigmoid", lambda s: wrong)
    found = evaluate(z, [0, 0, 0, 1, 1], kind="logit", n_resamples=0, confidence=None)
    assert found.auc.value == 1.0  # of the logits
    best = max(sk.f1_score([0, 0, 0, 1, 1], wrong >= t) for t in wrong)
    assert found.best_f1.value == pytest.approx(best)
