"""One sort for everything: the same rows in the same order, and the same numbers however they are worked through."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from headeval.core import operating_points, ranked, threads
from headeval.core.delong import auc_interval, ranked_auc_interval
from headeval.core.operating_points import best_f1, partial_auc, recall_at_fpr, recalls_at_fprs
from headeval.core.ranked import cumulated_weights, rank_counts, rank_weights, sorted_by_class
from headeval.core.ranking import average_precision, roc_auc, roc_curve

FAR = [-1.7e308, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1e-310, 0.25, 1.0, 1e308, 1.7e308]
rows = st.lists(st.tuples(st.sampled_from(FAR), st.integers(0, 1)), min_size=1, max_size=40)


def columns(pairs: list[tuple[float, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([score for score, _ in pairs]), np.array([label for _, label in pairs])


def tied(n: int, seed: int, decimals: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Rows of both classes with many equal scores, also across the classes."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.3).astype(int)
    labels[:2] = 0, 1
    return np.round(rng.normal(size=n) + labels, decimals), labels


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (ranked, operating_points):
        monkeypatch.setattr(module, "BLOCK", 7)
    return


@given(rows)
def test_rows_come_from_the_lowest_score_up_and_negatives_before_the_positives_they_tie_with(
    pairs: list[tuple[float, int]],
) -> None:
    """Also zeros of either sign, which are equal, subnormals, and differences beyond the range of float64."""
    scores, labels = columns(pairs)
    expected = sorted(pairs)  # Python compares the pairs: score, then label, and −0.0 == 0.0
    found = sorted_by_class(scores, labels)
    assert list(zip(*(part.tolist() for part in found), strict=True)) == expected
    assert [part.dtype for part in found] == [np.float64, np.int64]


@given(rows)
def test_counts_are_those_of_every_threshold_by_itself(pairs: list[tuple[float, int]]) -> None:
    scores, labels = columns(pairs)
    counts = rank_counts(scores, labels)
    assert counts.thresholds.tolist() == sorted(set(scores.tolist()), reverse=True)
    for t, tp, fp in zip(counts.thresholds, counts.true_positives, counts.false_positives, strict=True):
        assert (tp, fp) == (sum(labels[scores >= t]), sum(1 - labels[scores >= t]))
    assert not np.signbit(counts.thresholds[counts.thresholds == 0]).any()


def test_two_threads_sort_what_one_sorts(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, labels = tied(5000, 1)
    one = [part.tobytes() for part in sorted_by_class(scores, labels)]
    monkeypatch.setattr(threads, "MANY", 0)
    assert [part.tobytes() for part in sorted_by_class(scores, labels)] == one


def test_side_by_side_returns_both_and_raises_what_either_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    for many in (0, 10):
        monkeypatch.setattr(threads, "MANY", many)
        assert threads.side_by_side(lambda: 1, lambda: "two", rows=5) == (1, "two")
        with pytest.raises(ZeroDivisionError):
            threads.side_by_side(lambda: 1, lambda: 1 // 0, rows=5)
        with pytest.raises(ZeroDivisionError):
            threads.side_by_side(lambda: 1 // 0, lambda: 1, rows=5)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("small_blocks")
def test_measures_of_many_blocks_are_scikit_learns(seed: int) -> None:
    """Groups of equal scores reach over the ends of blocks, or fill several."""
    scores, labels = tied(300, seed, decimals=seed % 3)
    fpr, tpr, thresholds = roc_curve(scores, labels)
    theirs = metrics.roc_curve(labels, scores, drop_intermediate=False)
    assert [fpr.tolist(), tpr.tolist(), thresholds.tolist()] == [part.tolist() for part in theirs]
    assert roc_auc(scores, labels) == pytest.approx(metrics.roc_auc_score(labels, scores), rel=1e-14)
    assert average_precision(scores, labels) == pytest.approx(
        metrics.average_precision_score(labels, scores), rel=1e-14
    )
    for rate in (0.001, 0.05, 0.1, 0.7, 1.0):
        expected = metrics.roc_auc_score(labels, scores, max_fpr=rate)
        assert partial_auc(scores, labels, max_fpr=rate) == pytest.approx(expected, abs=1e-13)
        reached = tpr[fpr <= rate].max()
        assert recall_at_fpr(scores, labels, max_fpr=rate) == reached
        assert recalls_at_fprs(scores, labels, max_fprs=[rate])[0] == reached
    found = best_f1(scores, labels)
    by_threshold = {t: metrics.f1_score(labels, scores >= t) for t in set(scores.tolist())}
    assert found.f1 == pytest.approx(max(by_threshold.values()), rel=1e-14)
    assert found.threshold == max(t for t, f1 in by_threshold.items() if f1 > found.f1 - 1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_the_area_of_many_blocks_is_the_exact_share_of_pairs() -> None:
    scores, labels = tied(400, 9, decimals=1)
    ones, zeros = scores[labels == 1][:, None], scores[labels == 0]
    twice_won = int(2 * (ones > zeros).sum() + (ones == zeros).sum())
    assert roc_auc(scores, labels) == float(Fraction(twice_won, 2 * ones.size * zeros.size))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("measure", [roc_auc, average_precision, partial_auc])
def test_a_perfect_ranking_of_many_blocks_is_exactly_1(measure) -> None:
    scores = np.arange(49 + 150) / 3
    assert measure(scores, (np.arange(199) >= 150).astype(int)) == 1.0


@pytest.mark.parametrize("block", [2, 100])
def test_of_equally_good_thresholds_in_two_blocks_the_highest_is_taken(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1 is 2·1/(1 + 4) after one row and 2·2/(6 + 4) after six."""
    monkeypatch.setattr(operating_points, "BLOCK", block)
    labels = np.array([1, 0, 0, 0, 0, 1, *[0] * 30, 1, 1])
    found = best_f1(-np.arange(labels.size), labels)
    assert (found.f1, found.threshold) == (0.4, 0.0)


@pytest.mark.parametrize("seed", range(8))
def test_delongs_interval_from_counts_is_that_of_the_placements(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The placements are checked against their definition elsewhere; here ties, few positives and areas below ½."""
    monkeypatch.setattr(ranked, "BLOCK", 5 if seed % 2 else ranked.BLOCK)
    scores, labels = tied(150 if seed else 2, seed, decimals=seed % 3)
    if seed > 4:
        scores = -scores
    if seed in {3, 7}:
        labels = (np.arange(labels.size) == 7).astype(int) + (np.arange(labels.size) == 90)
    found, expected = (
        ranked_auc_interval(rank_counts(scores, labels), confidence=0.9),
        auc_interval(scores, labels, confidence=0.9),
    )
    assert (found.lower, found.upper) == pytest.approx((expected.lower, expected.upper), rel=1e-12)
    assert found.method == expected.method


def test_delongs_variance_does_not_lose_its_digits_near_1() -> None:
    """A single tie among a million pairs: the variance is of the order of 1e-9, and each placement is near 1."""
    scores = np.concatenate([np.zeros(1000), np.ones(999), [0.0]])
    labels = np.repeat([0, 1], 1000)
    found = ranked_auc_interval(rank_counts(scores, labels), confidence=0.95)
    expected = auc_interval(scores, labels)
    assert (found.lower, found.upper) == pytest.approx((expected.lower, expected.upper), rel=1e-13)


def test_weights_of_sorted_rows_cumulate_as_those_of_unsorted_ones() -> None:
    scores, labels = tied(200, 5, decimals=1)
    weights = np.random.default_rng(5).random(200)
    order = np.lexsort((weights, labels, scores))
    one, other = rank_weights(scores, labels, weights), cumulated_weights(scores[order], labels[order], weights[order])
    assert one.true_positives.tobytes() == other.true_positives.tobytes()
    assert one.false_positives.tobytes() == other.false_positives.tobytes()
    assert one.thresholds.tolist() == sorted(set(scores.tolist()), reverse=True)
    for t, tp, fp in zip(one.thresholds, one.true_positives, one.false_positives, strict=True):
        assert tp == pytest.approx(weights[(scores >= t) & (labels == 1)].sum(), rel=1e-13)
        assert fp == pytest.approx(weights[(scores >= t) & (labels == 0)].sum(), rel=1e-13, abs=1e-15)
    zeros = rank_weights(np.array([-0.0, -0.0]), np.array([0, 1]), np.ones(2))
    assert not np.signbit(zeros.thresholds).any()
