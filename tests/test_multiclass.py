"""A classifier of many classes judged: against scikit-learn, against the binary evaluation, and at every edge."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from headeval.core.calibration import reliability_table
from headeval.core.class_scores import class_probabilities
from headeval.evaluation import evaluate
from headeval.metric import Metric
from headeval.multiclass import CLASS_METRICS, CLASS_RATES, ClassEvaluation, evaluate_classes

RNG = np.random.default_rng(8)
N = 400
NAMES = ("a", "b", "c")
Y = RNG.choice(3, size=N, p=[0.5, 0.3, 0.2])
Z = RNG.normal(size=(N, 3))
Z[np.arange(N), Y] += 1.2
P = class_probabilities(Z)
W = RNG.uniform(0.2, 3, size=N)
GROUPS = np.arange(N) // 4


def judged(scores: Any = Z, labels: Any = Y, **options: Any) -> ClassEvaluation:
    options = {"kind": "logit", "classes": NAMES, "n_resamples": 100} | options
    return evaluate_classes(scores, labels, **options)


def values(found: ClassEvaluation) -> dict[str, float | None]:
    named = {info.name: metric.value for info, metric in found.metrics()}
    each = {f"{rates.name}:{name}": getattr(rates, name).value for rates in found.per_class for name in CLASS_RATES}
    return named | each


def flat(found: ClassEvaluation) -> list[Any]:
    """Every number of a record, to be compared bit by bit."""

    def parts(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.tolist()
        if dataclasses.is_dataclass(value):
            return [parts(getattr(value, entry.name)) for entry in dataclasses.fields(value)]
        return [parts(part) for part in value] if isinstance(value, tuple) else value

    return parts(found)  # type: ignore[no-any-return]


def all_metrics(found: ClassEvaluation) -> list[tuple[str, Metric]]:
    own = [(info.name, metric) for info, metric in found.metrics()]
    return own + [(f"{r.name}:{name}", getattr(r, name)) for r in found.per_class for name in CLASS_RATES]


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("kind", ["logit", "prob"])
def test_numbers_are_those_of_scikit_learn(kind: str, weights: np.ndarray | None) -> None:
    found = judged(Z if kind == "logit" else P, kind=kind, weights=weights)
    called, options = P.argmax(axis=1), {"sample_weight": weights}
    expected = {
        "top1_accuracy": metrics.accuracy_score(Y, called, **options),
        "balanced_accuracy": metrics.balanced_accuracy_score(Y, called, **options),
        "macro_auc": metrics.roc_auc_score(Y, P, multi_class="ovr", average="macro", **options),
        "multiclass_log_loss": metrics.log_loss(Y, P, **options),
        "multiclass_brier": np.average(((P - np.eye(3)[Y]) ** 2).sum(axis=1), weights=weights),
    }
    for average in ("macro", "micro", "weighted"):
        four = metrics.precision_recall_fscore_support(Y, called, average=average, **options)
        expected |= {f"{average}_{name}": four[i] for i, name in enumerate(("precision", "recall", "f1"))}
    if weights is None:
        expected["hand_till_auc"] = metrics.roc_auc_score(Y, P, multi_class="ovo", average="macro")
    each = metrics.precision_recall_fscore_support(Y, called, **options)
    for c, name in enumerate(NAMES):
        expected |= {f"{name}:{rate}": each[i][c] for i, rate in enumerate(("precision", "recall", "f1"))}
        expected[f"{name}:auc"] = metrics.roc_auc_score(c == Y, P[:, c], **options)
        expected[f"{name}:ap"] = metrics.average_precision_score(c == Y, P[:, c], **options)
    measured = values(found)
    assert {name: measured[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert found.confusion.tolist() == metrics.confusion_matrix(Y, called).tolist()
    assert [rates.n for rates in found.per_class] == np.bincount(Y).tolist()
    assert [rates.predicted for rates in found.per_class] == np.bincount(called).tolist()


def test_calibration_errors_are_those_of_the_tables() -> None:
    found = judged(weights=W)
    table = reliability_table(P, Y, weights=W)
    own = [reliability_table(P[:, c], c == Y, convention="positive-class", n_bins=15, weights=W).ece for c in range(3)]
    assert found.top_label_ece.value == pytest.approx(table.ece)
    assert found.top_label_mce.value == pytest.approx(table.mce)
    assert found.reliability.counts.tolist() == table.counts.tolist()
    assert [rates.ece.value for rates in found.per_class] == pytest.approx(own)
    assert found.classwise_ece.value == pytest.approx(np.mean(own))
    fewer = judged(n_bins=4, binning="equal-mass")
    assert fewer.top_label_ece.value == pytest.approx(reliability_table(P, Y, n_bins=4, binning="equal-mass").ece)


def test_top_label_bins_by_hand() -> None:
    """Confidences 0.7, 0.6, 0.4, the third a tie that goes to the first class, which is right."""
    rows = [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.4, 0.4, 0.2]]
    found = judged(rows, [2, 1, 0], kind="prob", n_bins=5)
    assert found.reliability.counts.tolist() == [0, 1, 1, 1, 0]
    assert found.reliability.accuracy[1:4].tolist() == [1.0, 0.0, 1.0]
    assert found.top_label_ece.value == pytest.approx((0.6 + 0.6 + 0.3) / 3)
    assert found.confusion.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("options", [{}, {"weights": W}, {"groups": GROUPS}, {"weights": W, "groups": GROUPS}])
def test_two_classes_are_the_binary_evaluation(options: dict[str, Any]) -> None:
    """Also the intervals where both have a formula: of accuracy, rates and area."""
    y, z = (Y > 0).astype(int), Z[:, 1] - Z[:, 0]
    found = judged(Z[:, :2], y, classes=("no", "yes"), **options)
    binary = evaluate(z, y, kind="logit", n_resamples=0, **options)
    yes = found.per_class[1]
    same = [
        (found.top1_accuracy, binary.accuracy),
        (found.macro_auc, binary.auc),
        (found.hand_till_auc, binary.auc),
        (yes.auc, binary.auc),
        (yes.recall, binary.recall),
        (yes.precision, binary.precision),
        (yes.f1, binary.f1),
    ]
    for mine, other in same:
        assert mine.value == pytest.approx(other.value, abs=1e-12)
        assert mine.interval is not None
        assert other.interval is not None
        assert mine.interval.lower == pytest.approx(other.interval.lower, abs=1e-9)
        assert mine.interval.upper == pytest.approx(other.interval.upper, abs=1e-9)
        if other.guarantee:
            assert mine.guarantee is not None
            assert mine.guarantee.lower == pytest.approx(other.guarantee.lower, abs=1e-9)
            assert mine.guarantee.method == other.guarantee.method
    assert yes.ap.value == pytest.approx(binary.ap.value)
    assert found.multiclass_log_loss.value == pytest.approx(binary.log_loss.value)
    assert found.multiclass_brier.value == pytest.approx(2 * (binary.brier.value or 0))
    assert found.top_label_ece.value == pytest.approx(binary.ece.value)
    assert yes.prevalence.value == pytest.approx(binary.prevalence.value)


def test_weights_count_rows_as_often() -> None:
    times = RNG.integers(1, 4, size=N)
    again = np.repeat(np.arange(N), times)
    weighted, repeated = judged(weights=times), judged(Z[again], Y[again])
    assert values(weighted) == pytest.approx(values(repeated))
    assert weighted.weighted
    assert weighted.confusion.sum() == N  # counts stay numbers of rows


@pytest.mark.parametrize("kind", ["logit", "prob"])
def test_the_order_of_rows_changes_no_bit(kind: str) -> None:
    """Rows that tie in scores, label and weight are told apart by their group."""
    scores = np.round(Z, 1) if kind == "logit" else np.tile([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25]], (N // 2, 1))
    weights = np.round(W)
    moved = RNG.permutation(N)
    one = judged(scores, kind=kind, weights=weights, groups=GROUPS)
    other = judged(scores[moved], Y[moved], kind=kind, weights=weights[moved], groups=GROUPS[moved])
    assert repr(flat(one)) == repr(flat(other))


def test_the_seed_draws_the_same_and_another_one_does_not() -> None:
    assert flat(judged(seed=3)) == flat(judged(seed=3))
    assert judged(seed=3).multiclass_brier.interval != judged(seed=4).multiclass_brier.interval


def test_saturated_probabilities_rank_by_their_logits() -> None:
    """At logits of 40 and more every probability of class 0 rounds to 1; the log-odds still tell the rows apart."""
    z = np.array([[50.0, 0, 0], [45, 0, 0], [42, 0, 0], [41, 0, 0], [0, 9, 0], [0, 0, 9]])
    y = [0, 0, 1, 2, 1, 2]
    assert judged(z, y).per_class[0].auc.value == 1.0
    assert judged(class_probabilities(z), y, kind="prob").per_class[0].auc.value == pytest.approx(0.75)


def test_a_class_without_rows_is_named_and_leaves_no_average_silently() -> None:
    found = judged(np.c_[Z, Z[:, 0] - 9], classes=("a", "b", "c", "d\x1b[31m"))
    for name in ("macro_recall", "macro_precision", "macro_f1", "balanced_accuracy", "macro_auc", "hand_till_auc"):
        metric = getattr(found, name)
        assert metric.value is None
        assert metric.reason == "no row is of class 'd\\x1b[31m'"
        assert metric.interval is None
    last = found.per_class[-1]
    assert (last.n, last.predicted, last.prevalence.value) == (0, 0, 0.0)
    assert [getattr(last, name).value for name in ("auc", "ap", "recall", "precision", "f1")] == [None] * 5
    assert last.precision.reason == "the class is never predicted"
    assert last.recall.reason == last.auc.reason == "no row is of the class"
    assert found.weighted_f1.value is not None
    assert any("d\\x1b[31m" in note for note in found.notes)


def test_a_class_never_predicted_has_no_precision_but_a_recall_of_zero() -> None:
    z = Z.copy()
    z[:, 2] -= 99
    found = judged(z)
    assert found.macro_precision.value is found.weighted_precision.value is None
    assert found.macro_precision.reason == "class 'c' is never predicted, so that it has no precision"
    assert found.per_class[2].recall.value == found.per_class[2].f1.value == 0.0
    assert found.macro_recall.value is not None
    assert found.macro_f1.value is not None
    assert found.notes == ("never predicted: 'c'",)
    two = judged(z - [[0, 99, 0]])
    assert two.macro_precision.reason == "classes 'b', 'c' are never predicted, so that they have no precision"


def test_rows_of_no_weight_are_as_if_absent() -> None:
    without = judged(Z[Y < 2], Y[Y < 2], weights=W[Y < 2])
    found = judged(weights=np.where(Y < 2, W, 0.0))
    assert values(found) == pytest.approx(values(without))
    assert found.macro_auc.reason == "no row with any weight is of class 'c'"


def test_one_class_alone_has_no_area() -> None:
    found = judged(Z[Y == 1], Y[Y == 1])
    assert found.macro_auc.value is found.per_class[1].auc.value is found.per_class[1].ap.value is None
    assert found.macro_auc.reason == "every row is of one class"
    assert found.per_class[1].auc.reason == "every row is of the class"


def test_an_infinite_log_loss_counts_its_rows() -> None:
    found = judged([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0, 1]], [1, 2, 2], kind="prob")
    assert found.multiclass_log_loss.value == math.inf
    assert found.multiclass_log_loss.reason == "the true class was given probability 0 in 2 rows"
    assert found.multiclass_log_loss.interval is None
    none = judged([[1.0, 0, 0], [0.5, 0.5, 0]], [1, 0], kind="prob", weights=[0, 1])
    assert none.multiclass_log_loss.value == pytest.approx(math.log(2))


@pytest.mark.parametrize("scale", [1e308, 5.0])
def test_a_perfect_result_on_few_rows_is_no_certainty(scale: float) -> None:
    """Accuracy 12/12 has the exact bound r¹² = 0.025; every other bound of a share lies below 1 too."""
    y = np.repeat([0, 1, 2], 4)
    found = judged(np.eye(3)[y] * scale, y)
    assert found.top1_accuracy.value == found.hand_till_auc.value == found.macro_f1.value == 1.0
    assert found.top1_accuracy.guarantee is not None
    assert found.top1_accuracy.guarantee.lower == pytest.approx(0.025 ** (1 / 12))
    for name, metric in all_metrics(found):
        if metric.value == 1.0 and name != "multiclass_log_loss":
            assert metric.interval is not None, name
            assert metric.interval.lower < 0.95, name


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 14),
    st.integers(2, 4),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["", "w", "g", "wg"]),
    st.booleans(),
)
def test_intervals_have_a_width_and_hold_their_value(n: int, c: int, seed: int, extra: str, coarse: bool) -> None:
    """Whatever the rows: constant scores, one row, classes missing."""
    rng = np.random.default_rng(seed)
    z = rng.integers(2, size=(n, c)) * 3.0 if coarse else rng.normal(size=(n, c))
    weights = rng.integers(0, 3, size=n) + (np.arange(n) == 0) if "w" in extra else None
    groups = rng.integers(3, size=n) if "g" in extra else None
    y = rng.integers(c, size=n)
    found = evaluate_classes(
        z, y, kind="logit", classes=[str(i) for i in range(c)], n_resamples=40, weights=weights, groups=groups
    )
    for name, metric in all_metrics(found):
        assert (metric.value is None) == bool(metric.reason), name
        for interval in (metric.interval, metric.guarantee):
            if interval is not None:
                assert metric.value is not None, name
                assert interval.lower < interval.upper, name
                assert interval.lower - 1e-12 <= metric.value <= interval.upper + 1e-12, name
                assert interval.upper <= (math.inf if "log_loss" in name else 2 if "brier" in name else 1), name


def test_groups_widen_the_intervals() -> None:
    """Four copies of every row are as sure as one of each."""
    four = np.tile(np.arange(100), 4)
    plain, grouped = judged(Z[four], Y[four]), judged(Z[four], Y[four], groups=four)
    once = judged(Z[:100], Y[:100])
    for name in ("top1_accuracy", "macro_recall", "macro_f1", "macro_auc", "hand_till_auc", "multiclass_brier"):
        narrow, wide, alone = (
            interval.upper - interval.lower
            for interval in (getattr(found, name).interval for found in (plain, grouped, once))
        )
        assert wide > 1.5 * narrow, name
        assert wide == pytest.approx(alone, rel=0.25), name


def test_no_confidence_no_intervals() -> None:
    found = judged(confidence=None)
    assert found.resampling is None
    assert all(metric.interval is metric.guarantee is None for _, metric in all_metrics(found))
    assert values(found) == values(judged())
    few = judged(n_resamples=0)
    assert few.resampling is None
    assert few.multiclass_brier.interval is None
    assert few.macro_auc.interval is not None


def test_a_wider_confidence_is_a_wider_interval() -> None:
    one, other = judged(confidence=0.8), judged(confidence=0.99)
    for info, metric in one.metrics():
        wide = getattr(other, info.name).interval
        if metric.interval is not None:
            assert metric.interval.confidence == 0.8
            assert wide.lower <= metric.interval.lower < metric.interval.upper <= wide.upper, info.name


def test_metrics_come_with_what_formats_need() -> None:
    found = judged()
    assert [info.name for info, _ in found.metrics()] == list(CLASS_METRICS)
    assert {info.group for info in CLASS_METRICS.values()} == {"ranking", "calibration", "decision"}
    assert all(metric.interval for info, metric in found.metrics() if info.has_interval)
    assert all(getattr(rates, name).interval for rates in found.per_class for name in CLASS_RATES)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"kind": "odds"}, "kind must be one of"),
        ({"classes": ("a", "b")}, "classes must be 3 different names"),
        ({"classes": ("a", "b", "b")}, "classes must be 3 different names"),
        ({"classes": "abc"}, "classes must be the names"),
        ({"scores": P * 2, "kind": "prob"}, "lie in"),
        ({"scores": P / 2, "kind": "prob"}, "add up to 1, got 0.5 in 400 rows"),
        ({"scores": Z[:, :1], "classes": ("a",)}, "at least 2 classes"),
        ({"scores": np.empty((0, 3)), "labels": []}, "at least one row"),
        ({"labels": np.full(N, 3)}, "from 0 to 2"),
        ({"weights": -W}, "not be negative"),
        ({"groups": GROUPS[:5]}, "groups must be"),
        ({"confidence": 1.0}, "confidence must"),
        ({"n_bins": 0}, "n_bins must"),
        ({"seed": -1}, "seed must"),
    ],
)
def test_what_breaks_the_contract_is_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        judged(**options)


def test_probabilities_of_two_digits_add_up_well_enough() -> None:
    """Three times 0.33 is 0.99."""
    assert judged([[0.33, 0.33, 0.33], [0.34, 0.34, 0.33]], [0, 1], kind="prob").n == 2
