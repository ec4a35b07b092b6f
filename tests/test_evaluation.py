"""The Evaluation record: right numbers by an independent route, and no number where there is none."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from headeval.evaluation import METRICS, Evaluation, Metric, evaluate

TEN_SCORES = [0.95, 0.90, 0.80, 0.70, 0.55, 0.45, 0.40, 0.30, 0.20, 0.10]
TEN_LABELS = [1, 1, 0, 1, 0, 1, 0, 0, 0, 0]


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
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = (
        evaluate([z * 0.37 for z, _ in order], [y for _, y in order], kind="logit") for order in (rows, shuffled)
    )
    assert values(first) == values(second)
    assert first.counts == second.counts


@pytest.mark.parametrize(
    ("labels", "undefined"),
    [
        ([1, 1, 1], {"auc", "ap", "specificity", "fpr"}),
        ([0, 0, 0], {"auc", "ap", "recall"}),
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
    evaluation = evaluate(TEN_SCORES, TEN_LABELS, kind="prob", ece_convention=chosen)  # type: ignore[arg-type]
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
    ],
)
def test_a_broken_contract_is_a_value_error(
    scores: list[float], labels: list[int], options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(scores, labels, **options)  # type: ignore[arg-type]


def test_the_names_that_requirements_rely_on_are_there() -> None:
    fixed = "auc ap ece mce brier log_loss accuracy precision recall specificity fpr f1 prevalence n"
    assert set(fixed.split()) <= set(METRICS)


@pytest.mark.parametrize(
    ("scores", "labels", "kind", "words"),
    [
        ([0.01, 0.02, 0.03, 0.09], [0, 0, 0, 1], "prob", "fall into one bin"),
        ([0.1, 0.6, 0.9], [1, 0, 0], "prob", "worse than chance"),
        ([0.1, 0.6, 0.9], [0, 1, 1], "logit", "are they probabilities"),
        ([0.6, 0.7], [0, 1], "prob", "every row is flagged"),
    ],
)
def test_what_would_be_misread_is_noted(scores: list[float], labels: list[int], kind: str, words: str) -> None:
    notes = evaluate(scores, labels, kind=kind).notes  # type: ignore[arg-type]
    assert any(words in note for note in notes)
    tame = evaluate([-2.0, 0.3, 1.5], [0, 0, 1], kind="logit").notes
    assert not any(words in note for note in tame)
