"""How much a mean of placements varies and on how many rows that rests, by hand and in fractions."""

from fractions import Fraction

import numpy as np
import pytest

from headeval.core.delong import auc_interval, ranked_auc_interval
from headeval.core.placements import RankedRows, Spread, counted_spread, kish_size, placements, spread
from headeval.core.ranked import RankedCounts, rank_counts
from headeval.core.ranking import ranked_auc

# From the lowest score up, so that values can be given in the order of the rows: 3 positives and 4 negatives.
LABELS = np.array([0, 1, 0, 0, 1, 0, 1])
SCORES = np.arange(7.0)


def of_classes(positives: list[float], negatives: list[float]) -> np.ndarray:
    values = np.empty(7)
    values[LABELS == 1], values[LABELS == 0] = positives, negatives
    return values


def test_the_spread_of_a_mean_by_hand() -> None:
    """Positives 1, 2, 3 have the variance 1, negatives 1, 1, 2, 4 the variance 2; k = 36/14 and 64/22 carry them."""
    found = spread(RankedRows.checked(SCORES, LABELS), of_classes([1, 2, 3], [1, 1, 2, 4]))
    assert found.variance == pytest.approx(1 / 3 + 2 / 4)
    rests = (1 / 3) ** 2 / (36 / 14 - 1) + (2 / 4) ** 2 / (64 / 22 - 1)
    assert found.freedom == pytest.approx((1 / 3 + 2 / 4) ** 2 / rests)
    assert found.pairs == 3.0


def test_a_class_that_does_not_vary_takes_no_degree_of_freedom() -> None:
    """Nothing but zeros carries nothing: what varies are four negatives, so that three are free."""
    found = spread(RankedRows.checked(SCORES, LABELS), of_classes([0, 0, 0], [1, -1, -1, 1]))
    assert found.variance == pytest.approx(1 / 3)
    assert found.freedom == pytest.approx(3.0)


@pytest.mark.parametrize(("small", "freedom"), [(0.0, 0.0), (0.1, 1.1**2 / 1.01 - 1), (0.5, 1.5**2 / 1.25 - 1)])
def test_what_one_row_nearly_carries_has_nearly_no_degree_of_freedom(small: float, freedom: float) -> None:
    found = spread(RankedRows.checked(SCORES, LABELS), of_classes([0, 0, 0], [1, small, 0, 0]))
    assert found.freedom == pytest.approx(freedom, abs=1e-14)


def test_small_differences_vary_and_equal_values_do_not() -> None:
    rows = RankedRows.checked(SCORES, LABELS)
    tiny = spread(rows, 1 + 2.0**-26 * of_classes([1, 2, 3], [1, 1, 2, 4]))
    assert tiny.variance == pytest.approx(2.0**-52 * (1 / 3 + 2 / 4), rel=1e-6, abs=0)
    assert spread(rows, np.full(7, 0.1)) == Spread(0.0, 0.0, 3.0)
    assert spread(rows, np.zeros(7)) == Spread(0.0, 0.0, 3.0)


def test_one_unit_of_a_class_has_no_variance_and_makes_one_pair() -> None:
    assert spread(RankedRows.checked([3, 1, 2], [1, 0, 0]), np.ones(3)) == Spread(None, 0.0, 1.0)
    assert counted_spread(rank_counts(np.array([3.0, 1, 2]), np.array([1, 0, 0])), 1.0) == Spread(None, 0.0, 1.0)


def test_a_pair_takes_two_of_the_units_that_hold_both_classes() -> None:
    rows = RankedRows.checked([1, 2, 3, 4, 5, 6], [0, 1, 0, 1, 0, 1], groups=[1, 1, 2, 2, 3, 3])
    assert spread(rows, np.arange(6.0)).pairs == 1.5


def test_units_that_hold_both_classes_count_once() -> None:
    """Either class is carried by all five groups, so that four are free in each; but there are no more than five."""
    rows = RankedRows.checked(np.arange(10), [0, 1] * 5, groups=np.repeat(np.arange(5), 2))
    assert spread(rows, np.repeat([1.0, -1, 1, -1, 1], 2)).freedom == 4.0


def test_rows_that_vary_as_much_as_equal_ones() -> None:
    assert kish_size(np.zeros(3)) == 0.0
    assert kish_size(np.array([1.0, 2.0, 3.0])) == pytest.approx(36 / 14)
    assert kish_size(np.full(5, 1e-200)) == 5.0


def exact_variance(blocks: list[tuple[int, int]]) -> Fraction:
    """DeLong's variance from positives and negatives at each score, the highest first."""
    P, N = (sum(counts) for counts in zip(*blocks, strict=True))
    above, below, parts = 0, P, []
    for p, n in blocks:
        below -= p
        parts.append((Fraction(2 * above + n, 2 * N), Fraction(2 * below + p, 2 * P)))
        above += n
    variance = Fraction(0)
    for place, size in ((0, P), (1, N)):
        mean = sum(block[place] * lost[place] for block, lost in zip(blocks, parts, strict=True)) / size
        squares = sum(block[place] * (lost[place] - mean) ** 2 for block, lost in zip(blocks, parts, strict=True))
        variance += squares / (size - 1) / size
    return variance


@pytest.mark.parametrize(
    "blocks",
    [
        [(10**7 - 1, 0), (0, 1), (1, 0), (0, 10**7 - 1)],  # one of 10¹⁴ pairs is lost
        [(1, 0), (10**7 - 1, 10**7)],  # and all but some tie
        [(2, 1), (0, 2), (4, 4), (1, 0)],
    ],
)
def test_counts_have_the_variance_of_fractions(blocks: list[tuple[int, int]]) -> None:
    tp, fp = np.cumsum(blocks, axis=0).T
    ranked = RankedCounts(np.arange(len(blocks))[::-1].astype(float), tp, fp)
    expected = float(exact_variance(blocks))
    assert counted_spread(ranked, ranked_auc(ranked)).variance == pytest.approx(expected, rel=1e-9, abs=0)


def test_counts_of_constant_scores_do_not_vary() -> None:
    ranked = rank_counts(np.ones(7), LABELS)
    assert counted_spread(ranked, 0.5) == Spread(0.0, 0.0, 3.0)


@pytest.mark.parametrize(
    ("scores", "auc"),
    [
        ([3, 0, 2, 2, 1, 1, 0, 4, 5, 2], None),
        ([2, 0, 2, 0, 1, 1, 1, 1, 1, 1], 0.5),
        ([9, 9, 8, 7, 1, 2, 3, 4, 5, 5], 1.0),
        ([1, 1, 0, 2, 9, 8, 7, 6, 5, 4], 0.0),
    ],
)
def test_counts_and_rows_have_the_same_spread(scores: list[int], auc: float | None) -> None:
    labels = np.array([1] * 4 + [0] * 6)
    rows = RankedRows.checked(scores, labels)
    found, losses = placements(rows)
    assert auc is None or found == auc
    ranked = rank_counts(np.array(scores, dtype=np.float64), labels)
    counted, expected = counted_spread(ranked, found), spread(rows, losses if found >= 0.5 else 1 - losses)
    assert counted.variance == pytest.approx(expected.variance, rel=1e-12)
    assert counted.freedom == pytest.approx(expected.freedom, rel=1e-9)
    assert counted.pairs == expected.pairs
    interval, by_rows = ranked_auc_interval(ranked, confidence=0.9), auc_interval(scores, labels, confidence=0.9)
    assert (interval.lower, interval.upper) == pytest.approx((by_rows.lower, by_rows.upper), rel=1e-9)
    assert interval.method == by_rows.method
