"""Operating points: corners of the ROC curve that exist, areas as scikit-learn has them, and traffic by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from sklearn.metrics import roc_auc_score, roc_curve

from headeval.core.operating_points import (
    best_f1,
    partial_auc,
    ranked_partial_auc,
    ranked_recall_at_fpr,
    recall_at_fpr,
    recalls_at_fprs,
)
from headeval.core.ranked import rank_counts
from headeval.core.thresholds import ConfusionCounts
from headeval.core.traffic import JOINT_METHOD, Projected, traffic, traffic_of_rates

ROUNDING = 1e-12

scored_rows = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 12).map(lambda k: k / 4), min_size=n, max_size=n),
        st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda y: 0 < sum(y) < len(y)),
        st.lists(st.integers(1, 5), min_size=n, max_size=n),
    )
)


def rates_at(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, t: float) -> tuple[float, float]:
    flagged = scores >= t
    recall = weights[flagged & (labels == 1)].sum() / weights[labels == 1].sum()
    return weights[flagged & (labels == 0)].sum() / weights[labels == 0].sum(), recall


@given(scored_rows, st.sampled_from([0.0, 0.01, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0]))
def test_recall_at_fpr_is_the_best_of_all_thresholds_that_keep_the_rate(rows: tuple, max_fpr: float) -> None:
    scores, labels, weights = map(np.array, rows)
    for w in (np.ones(len(scores)), weights):
        corners = [rates_at(scores, labels, w, t) for t in [np.inf, *scores]]
        best = max(recall for fpr, recall in corners if fpr <= max_fpr + ROUNDING)
        got = recall_at_fpr(scores, labels, max_fpr=max_fpr, weights=None if w is not weights else w)
        assert got == pytest.approx(best, abs=ROUNDING)


def test_recall_at_fpr_neither_interpolates_nor_takes_the_nearest_corner() -> None:
    # 100 negatives; the second positive is reached only together with the second negative, at FPR 0.02.
    scores = [100, 99, 98, 98, *range(97)]
    labels = [1, 0, 0, 1, *[0] * 97]
    assert recall_at_fpr(scores, labels, max_fpr=0.019) == 0.5
    assert recall_at_fpr(scores, labels, max_fpr=2 / 99) == 1.0


def test_counted_rows_lose_no_corner_and_win_none_by_rounding() -> None:
    scores, labels = [0.9, 0.7, 0.6, 0.4], [1, 0, 1, 0]
    for max_fpr, recall in ((0.5, 1.0), (np.nextafter(0.5, 0), 0.5)):
        assert recall_at_fpr(scores, labels, max_fpr=max_fpr) == recall
        assert ranked_recall_at_fpr(rank_counts(np.array(scores), np.array(labels)), max_fpr=max_fpr) == recall


def test_weights_count_at_several_rates_as_they_do_at_one() -> None:
    """The negatives weigh 1 and 3, the positives 1 and 4, in this order."""
    scores, labels, weights = [0.9, 0.7, 0.6, 0.4], [0, 1, 1, 0], [1, 1, 4, 3]
    recalls = recalls_at_fprs(scores, labels, max_fprs=[0.2, 0.25, 0.5], weights=weights)
    assert recalls.tolist() == [0.0, 1.0, 1.0]
    assert recalls_at_fprs(scores, labels, max_fprs=[0.2, 0.25, 0.5]).tolist() == [0.0, 0.0, 1.0]


def test_a_perfect_head_reaches_recall_1_at_any_rate_and_a_partial_area_of_exactly_1() -> None:
    scores, labels = [0.9, 0.8, 0.3, 0.2, 0.1], [1, 1, 0, 0, 0]
    assert recall_at_fpr(scores, labels, max_fpr=0.0) == 1.0
    for max_fpr in (0.001, 0.1, 1 / 3, 0.7, 1.0):
        assert partial_auc(scores, labels, max_fpr=max_fpr) == 1.0


@given(scored_rows, st.sampled_from([0.05, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.9, 1.0]))
def test_partial_auc_is_scikit_learns(rows: tuple, max_fpr: float) -> None:
    scores, labels, weights = map(np.array, rows)
    for w in (None, weights):
        expected = roc_auc_score(labels, scores, max_fpr=max_fpr, sample_weight=w)
        assert partial_auc(scores, labels, max_fpr=max_fpr, weights=w) == pytest.approx(expected, abs=1e-9)


def test_the_partial_area_goes_up_to_a_tenth_unless_another_rate_is_given() -> None:
    rng = np.random.default_rng(8)
    labels = np.arange(90) % 2
    scores = (rng.normal(size=90) + labels).round(1)
    expected = roc_auc_score(labels, scores, max_fpr=0.1)
    assert partial_auc(scores, labels) == pytest.approx(expected, abs=ROUNDING)
    assert ranked_partial_auc(rank_counts(scores, labels)) == pytest.approx(expected, abs=ROUNDING)


def f1_at(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, t: float) -> float:
    flagged, positive = scores >= t, labels == 1
    return 2 * weights[flagged & positive].sum() / (weights[flagged].sum() + weights[positive].sum())


@given(scored_rows)
def test_best_f1_is_the_best_of_all_thresholds_and_the_highest_of_them(rows: tuple) -> None:
    scores, labels, weights = map(np.array, rows)
    for w in (None, weights):
        tried = {t: f1_at(scores, labels, np.ones(len(scores)) if w is None else w, t) for t in scores.tolist()}
        best = best_f1(scores, labels, weights=w)
        assert best.f1 == pytest.approx(max(tried.values()), abs=ROUNDING)
        assert best.threshold == max(t for t, f1 in tried.items() if f1 >= max(tried.values()) - ROUNDING)


def test_a_single_positive_has_a_best_threshold() -> None:
    """With both rows flagged F1 is 2/3, with the upper one alone 0."""
    found = best_f1([0.9, 0.6], [0, 1])
    assert (found.f1, found.threshold, found.above) == (2 / 3, 0.6, -np.inf)


def test_whole_weights_are_copies_of_rows() -> None:
    rng = np.random.default_rng(3)
    scores, labels, weights = rng.integers(0, 9, 60) / 8, rng.integers(0, 2, 60), rng.integers(1, 4, 60)
    many, their = np.repeat(scores, weights), np.repeat(labels, weights)
    for rate in (0.01, 0.1, 0.3):
        assert recall_at_fpr(scores, labels, max_fpr=rate, weights=weights) == recall_at_fpr(many, their, max_fpr=rate)
    assert best_f1(scores, labels, weights=weights) == best_f1(many, their)


def test_equal_weights_that_round_do_not_lose_the_corner_at_the_very_rate() -> None:
    scores, labels = np.arange(200.0), np.r_[np.zeros(93), np.ones(100), np.zeros(7)]
    weights = np.full(200, 0.1)
    fpr, tpr, _ = roc_curve(labels, scores)
    assert recall_at_fpr(scores, labels, max_fpr=0.07, weights=weights) == tpr[fpr <= 0.07].max() == 1.0


def test_traffic_by_hand() -> None:
    # A hundred thousand rows a day, one in a thousand positive: 100 positives, 99,900 negatives.
    day = traffic(ConfusionCounts(80, 3, 20, 297), prevalence=0.001, per_day=100_000)
    assert day.true_alerts.value == pytest.approx(80)
    assert day.false_alerts.value == pytest.approx(999)
    assert day.alerts.value == pytest.approx(1079)
    assert day.misses.value == pytest.approx(20)
    assert day.precision.value == pytest.approx(80 / 1079)


def exact(k: int, n: int, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    return (beta.ppf(tail, k, n - k + 1) if k else 0.0, beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0)


@pytest.mark.parametrize(("tp", "fp"), [(80, 3), (100, 0), (0, 300), (0, 0)])
def test_one_rate_has_its_own_interval_and_two_rates_have_the_corners_of_both_at_a_shared_level(
    tp: int, fp: int
) -> None:
    share, rows = 0.02, 1000.0
    day = traffic(ConfusionCounts(tp, fp, 100 - tp, 300 - fp), prevalence=share, per_day=rows, confidence=0.9)
    (r_low, r_high), (f_low, f_high) = exact(tp, 100, 0.9), exact(fp, 300, 0.9)
    near = {"rel": 1e-9, "abs": 1e-12}
    assert [day.misses.interval.lower, day.misses.interval.upper] == pytest.approx(
        [rows * share * (1 - r_high), rows * share * (1 - r_low)], **near
    )
    assert [day.false_alerts.interval.lower, day.false_alerts.interval.upper] == pytest.approx(
        [rows * (1 - share) * f_low, rows * (1 - share) * f_high], **near
    )
    (r_low, r_high), (f_low, f_high) = exact(tp, 100, 0.95), exact(fp, 300, 0.95)
    assert [day.alerts.interval.lower, day.alerts.interval.upper] == pytest.approx(
        [rows * (share * r + (1 - share) * f) for r, f in ((r_low, f_low), (r_high, f_high))], **near
    )
    assert day.alerts.interval.confidence == 0.9
    if tp + fp:
        assert [day.precision.interval.lower, day.precision.interval.upper] == pytest.approx(
            [share * r / (share * r + (1 - share) * f) for r, f in ((r_low, f_high), (r_high, f_low))], **near
        )
    else:
        assert (day.precision.value, day.precision.interval) == (None, None)


def test_what_is_not_known_stays_undefined() -> None:
    no_positives = traffic(ConfusionCounts(0, 1, 0, 9), prevalence=0.1, per_day=10)
    assert no_positives.false_alerts.value == pytest.approx(0.9)
    undefined = (no_positives.alerts, no_positives.misses, no_positives.precision, no_positives.true_alerts)
    assert {(part.value, part.interval) for part in undefined} == {(None, None)}
    no_day = traffic(ConfusionCounts(1, 1, 1, 9), prevalence=0.1)
    assert no_day.alerts.value is None
    assert no_day.precision.value == pytest.approx(0.05 / (0.05 + 0.09))
    assert traffic(ConfusionCounts(1, 1, 1, 9), prevalence=0.1, confidence=None).precision.interval is None


def test_without_a_confidence_the_numbers_stand_alone() -> None:
    """Of ten rows a day 4 are positive, 3 of them found, and half of the 6 others are alerts too."""
    day = traffic(ConfusionCounts(3, 5, 1, 5), prevalence=0.4, per_day=10, confidence=None)
    assert (day.prevalence, day.per_day) == (0.4, 10.0)
    assert (day.alerts, day.true_alerts, day.false_alerts, day.misses, day.precision) == (
        *(Projected(x) for x in (6.0, 3.0, 3.0, 1.0)),
        Projected(0.5),
    )


def test_as_many_false_alerts_as_true_ones_are_half_of_all() -> None:
    assert traffic(ConfusionCounts(5, 5, 5, 5), prevalence=0.5, confidence=None).precision == Projected(0.5)


def test_every_interval_says_its_confidence_and_method() -> None:
    day = traffic(ConfusionCounts(3, 5, 1, 5), prevalence=0.4, per_day=0.5, confidence=0.9)
    assert {(x.interval.confidence, x.interval.method) for x in (day.alerts, day.precision)} == {(0.9, JOINT_METHOD)}
    single = (day.true_alerts, day.false_alerts, day.misses)
    assert {(x.interval.confidence, x.interval.method) for x in single} == {(0.9, "Clopper-Pearson")}


def test_effective_sizes_need_not_be_whole_and_make_wider_intervals() -> None:
    def width(n: float) -> float:
        day = traffic_of_rates(0.8, 0.1, positives=n, negatives=n, prevalence=0.1, per_day=100)
        return day.misses.interval.upper - day.misses.interval.lower

    assert width(12.5) > width(100.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        *(({"prevalence": share}, "prevalence must") for share in (0.0, 1.0, -0.1, 1.5)),
        *(({"per_day": rows}, "per_day must") for rows in (0, -1)),
    ],
)
def test_traffic_refuses_shares_and_days_that_are_none(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        traffic(ConfusionCounts(1, 1, 1, 9), **({"prevalence": 0.1, "per_day": 10} | wrong))


@pytest.mark.parametrize(("rates", "words"), [((1.5, 0.1), "recall must"), ((0.1, 1.5), "fpr must")])
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_traffic_refuses_rates_above_1(rates: tuple[float, float], words: str, confidence: float | None) -> None:
    with pytest.raises(ValueError, match=words):
        traffic_of_rates(*rates, positives=10, negatives=10, prevalence=0.1, confidence=confidence)


@pytest.mark.parametrize("measure", [recall_at_fpr, partial_auc])
@pytest.mark.parametrize("max_fpr", [-0.1, 1.5])
def test_false_positive_rates_outside_0_to_1_are_refused(measure, max_fpr: float) -> None:
    with pytest.raises(ValueError, match="max_fpr must"):
        measure([0.9, 0.7], [1, 0], max_fpr=max_fpr)


@pytest.mark.parametrize("measure", [lambda s, y: recall_at_fpr(s, y, max_fpr=0.1), partial_auc])
def test_one_class_or_nothing_is_refused(measure) -> None:
    for scores, labels in (([0.1, 0.2], [1, 1]), ([0.1, 0.2], [0, 0]), ([], [])):
        with pytest.raises(ValueError, match=r"both classes|at least one row"):
            measure(scores, labels)
    with pytest.raises(ValueError, match="at least one positive"):
        best_f1([0.1], [0])
