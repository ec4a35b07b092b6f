"""Areas of one class against the rest and of all pairs, against scikit-learn and counted pair by pair."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from headeval.core.checks import FloatArray, IntArray
from headeval.core.class_ranking import class_placements
from headeval.core.class_scores import class_log_odds, class_probabilities
from headeval.core.ranking import roc_auc

RNG = np.random.default_rng(11)
N, C = 300, 4
Y = RNG.choice(C, size=N, p=[0.5, 0.25, 0.15, 0.1])
Z = RNG.normal(size=(N, C))
Z[np.arange(N), Y] += 1.2
P = class_probabilities(Z)


def one_vs_rest_aucs(scores: FloatArray, labels: IntArray) -> FloatArray:
    """The area of each class against all others, ranked by its own column."""
    C = scores.shape[1]
    return np.array([class_placements(scores[:, c].copy(), labels, None, c, n_classes=C).auc for c in range(C)])


def hand_till_auc(scores: FloatArray, labels: IntArray) -> float:
    """Hand and Till's M: the mean of the areas of all ordered pairs of classes."""
    C = scores.shape[1]
    pairs = [class_placements(scores[:, c].copy(), labels, None, c, n_classes=C).pair_aucs for c in range(C)]
    return float(np.nanmean(pairs))


def counted_hand_till(scores: FloatArray, labels: IntArray) -> Fraction:
    """Every pair of rows compared, in exact fractions."""
    classes = range(scores.shape[1])
    areas = []
    for i, j in permutations(classes, 2):
        mine, other = scores[labels == i, i], scores[labels == j, i]
        wins = sum((Fraction(2 * (a > b) + (a == b), 2) for a in mine for b in other), Fraction(0))
        areas.append(wins / (len(mine) * len(other)))
    return sum(areas, Fraction(0)) / len(areas)


def test_hand_till_is_that_of_scikit_learn() -> None:
    assert hand_till_auc(P, Y) == pytest.approx(metrics.roc_auc_score(Y, P, multi_class="ovo", average="macro"))


def test_one_against_the_rest_is_that_of_scikit_learn() -> None:
    expected = metrics.roc_auc_score(Y, P, multi_class="ovr", average=None)
    assert one_vs_rest_aucs(P, Y).tolist() == pytest.approx(expected.tolist())


@given(st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_hand_till_counts_pairs_with_ties_one_half(n_classes: int, seed: int) -> None:
    """Scores of three values tie all the time; catches ties that win or lose, and a pair ranked by the wrong class."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=12)])
    s = rng.integers(3, size=(y.size, n_classes)).astype(float)
    assert hand_till_auc(s, y) == pytest.approx(float(counted_hand_till(s, y)), abs=1e-15)


def test_the_share_of_the_classes_does_not_matter_to_pairs() -> None:
    """Rows of one class repeated three times leave Hand and Till's area as it is, and change the macro one."""
    again = np.concatenate([np.arange(N), *[np.flatnonzero(Y == 3)] * 2])
    assert hand_till_auc(P[again], Y[again]) == pytest.approx(hand_till_auc(P, Y), abs=1e-12)
    assert abs(one_vs_rest_aucs(P[again], Y[again]).mean() - one_vs_rest_aucs(P, Y).mean()) > 1e-4


def test_two_classes_are_the_binary_area() -> None:
    y = (Y > 0).astype(int)
    z = np.stack([np.zeros(N), Z[:, 1]], axis=1)
    assert hand_till_auc(class_log_odds(z).T, y) == roc_auc(Z[:, 1], y)


def test_a_perfect_ranking_is_exactly_one() -> None:
    y = np.repeat([0, 1, 2], [3, 7, 11])
    s = np.eye(3)[y] + 0.01 * RNG.random((21, 3))
    assert hand_till_auc(s, y) == 1.0
    assert one_vs_rest_aucs(s, y).tolist() == [1.0, 1.0, 1.0]
    weighted = class_placements(s[:, 0].copy(), y, RNG.random(21), 0, n_classes=3)
    assert weighted.auc == 1.0
    assert weighted.pair_aucs[1:].tolist() == [1.0, 1.0]


def test_weights_count_rows_as_often() -> None:
    times = RNG.integers(1, 4, size=N)
    often = np.repeat(np.arange(N), times)
    weighted = class_placements(Z[:, 1].copy(), Y, times.astype(float), 1, n_classes=C)
    repeated = class_placements(Z[often, 1], Y[often], None, 1, n_classes=C)
    assert weighted.auc == pytest.approx(repeated.auc)
    assert weighted.pair_aucs == pytest.approx(repeated.pair_aucs, nan_ok=True)


def test_pairs_are_the_areas_of_two_classes_alone() -> None:
    found = class_placements(Z[:, 2].copy(), Y, None, 2, n_classes=C)
    for j in (0, 1, 3):
        two = (Y == 2) | (j == Y)
        assert found.pair_aucs[j] == pytest.approx(roc_auc(Z[two, 2], (Y == 2)[two]), abs=1e-15)
    assert np.isnan(found.pair_aucs[2])


def test_balanced_losses_average_to_the_pairs() -> None:
    """What the influence on Hand and Till's area is made of."""
    found = class_placements(Z[:, 2].copy(), Y, None, 2, n_classes=C)
    assert 1 - found.balanced_losses[Y == 2].mean() == pytest.approx(np.nanmean(found.pair_aucs))


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_the_shares_of_the_other_side_ordered_wrongly(weighted: bool) -> None:
    """Row by row and pair by pair, with ties; also where every other class weighs alike.

    A class of whose rows none has a weight is as one without rows; another class comes after the last that has any.
    """
    y = np.array([0, 0, 1, 1, 1, 2, 2, 0, 1, 3])
    s = np.array([0.9, 0.2, 0.2, 0.6, 0.1, 0.9, 0.3, 0.4, 0.4, 0.7])
    w = np.array([0.25, 0.5, 0.125, 0.25, 0.25, 1.5, 1.0, 0.125, 0.25, 0.0]) if weighted else np.ones(10)
    if not weighted:
        y[9] = 2
    found = class_placements(s, y, w if weighted else None, 0, n_classes=5)
    wrong = np.where(y == 0, 1.0, -1.0)[:, None] * (
        s[None] - s[:, None]
    )  # > 0 where the other row is on the wrong side
    lost = np.where(wrong > 0, 1.0, np.where(wrong == 0, 0.5, 0.0)) * ((y == 0)[:, None] != (y == 0)[None])
    held = np.array([w[y == c].sum() for c in range(5)])
    share = w / np.where(held == 0, 1.0, held)[y]
    for losses, weight in ((found.losses, w), (found.balanced_losses, share)):
        other = np.where(y == 0, weight[y != 0].sum(), weight[y == 0].sum())
        assert losses == pytest.approx(lost @ weight / other, abs=1e-15)
    pairs = [1 - (w * found.losses)[y == c].sum() / held[c] if held[c] else np.nan for c in range(5)]
    assert found.pair_aucs == pytest.approx([np.nan, *pairs[1:]], nan_ok=True)
    assert 1 - np.average(found.losses[y != 0], weights=w[y != 0]) == pytest.approx(found.auc)
    assert np.isnan(found.pair_aucs).tolist() == [True, False, False, True, True]
