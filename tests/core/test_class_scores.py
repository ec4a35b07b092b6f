"""Log-odds and losses of many classes against exact arithmetic, and an order that the order of rows cannot change."""

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics

from headeval.core.checks import FloatArray
from headeval.core.class_scores import (
    brier_of_rows,
    class_log_odds,
    class_probabilities,
    log_odds,
    losses_from_logits,
    losses_from_probabilities,
    order_of_contents,
    sums_are_off,
)
from headeval.core.proper_scores import brier_score

RNG = np.random.default_rng(3)


def exact_log_odds(row: list[float], place: int) -> float:
    with mpmath.workdps(60):
        others = mpmath.fsum(mpmath.exp(z) for c, z in enumerate(row) if c != place)
        return float(row[place] - mpmath.log(others))


@pytest.mark.parametrize("spread", [0.1, 3.0, 50.0, 400.0])
def test_log_odds_are_exact_where_probabilities_saturate(spread: float) -> None:
    """Where p rounds to 1, log p − log(1 − p) would be infinite; taking the class out of a sum would lose the rest."""
    z = spread * RNG.normal(size=(40, 5))
    expected = [[exact_log_odds(row, c) for row in z.tolist()] for c in range(5)]
    np.testing.assert_allclose(class_log_odds(z), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("spread", [0.3, 300.0])
def test_two_classes_are_the_difference_to_the_last_bit(spread: float) -> None:
    """A class taken away again from the sum of all would leave 1 ± 2⁻⁵³ of the other."""
    z = spread * RNG.normal(size=(500, 2))
    assert class_log_odds(z)[1].tolist() == (z[:, 1] - z[:, 0]).tolist()
    assert class_log_odds(z)[0].tolist() == (z[:, 0] - z[:, 1]).tolist()


@pytest.mark.parametrize("n_classes", [2, 3, 17])
def test_blocks_of_rows_change_nothing(n_classes: int) -> None:
    z = RNG.normal(size=(2**16 // n_classes + 5, n_classes))
    assert class_log_odds(z)[:, -1].tolist() == class_log_odds(z[-1:])[:, 0].tolist()
    p, y = class_probabilities(z), RNG.integers(n_classes, size=len(z))
    assert p[-1].tolist() == class_probabilities(z[-1:])[0].tolist()
    assert losses_from_logits(z, y)[-5:].tolist() == losses_from_logits(z[-5:], y[-5:]).tolist()
    assert brier_of_rows(p, y)[-5:].tolist() == brier_of_rows(p[-5:], y[-5:]).tolist()


def test_the_largest_logits_stay_finite() -> None:
    z = np.array([[1.7e308, -1.7e308, 0.0], [0.0, 0.0, -1.7e308]])
    found = class_log_odds(z)
    assert np.isfinite(found).all()
    assert np.argsort(found[:, 0]).tolist() == [1, 2, 0]
    assert np.isfinite(losses_from_logits(z, np.array([1, 0]))).all()
    largest = float(np.finfo(np.float64).max)  # a gap beyond the range of float64 is cut off
    assert class_log_odds([[1.7e308, -1.7e308, -1.7e308]]).ravel().tolist() == [largest, -largest, -largest]


@pytest.mark.parametrize("measure", [class_log_odds, class_probabilities, log_odds])
def test_an_underflow_is_no_error_even_where_others_make_it_one(measure: Callable[[FloatArray], FloatArray]) -> None:
    with np.errstate(all="raise"):
        assert np.isfinite(measure(np.array([[0.0, -800.0, -1600.0], [-710.0, 0.0, -740.0]]))).all()


def test_log_loss_is_that_of_scikit_learn() -> None:
    z, y = RNG.normal(size=(200, 4)), RNG.integers(4, size=200)
    p = class_probabilities(z)
    expected = metrics.log_loss(y, p, labels=range(4))
    assert losses_from_logits(z, y).mean() == pytest.approx(expected, rel=1e-12)
    assert losses_from_probabilities(p, y).mean() == pytest.approx(expected, rel=1e-12)


def test_logits_know_losses_that_probabilities_round_away() -> None:
    z = np.array([[800.0, 0.0, -5.0], [40.0, 0.0, 0.0]])
    assert losses_from_logits(z, np.array([1, 0])).tolist() == pytest.approx([800.0, 2 * float(mpmath.exp(-40))])
    assert losses_from_probabilities(np.array([[1.0, 0.0]]), np.array([1])).tolist() == [np.inf]
    assert str(losses_from_probabilities(np.array([[1.0, 0.0]]), np.array([0]))[0]) == "0.0"


def test_brier_is_that_of_each_class_added_up() -> None:
    """Brier's own form: for two classes twice the one of a binary classifier."""
    p, y = class_probabilities(RNG.normal(size=(90, 3))), RNG.integers(3, size=90)
    each = sum(brier_score(p[:, c], y == c) for c in range(3))
    assert brier_of_rows(p, y).mean() == pytest.approx(each)
    assert brier_of_rows(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 0])).tolist() == [2.0, 0.0]


FEW = hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(2, 4)), elements=st.integers(0, 2).map(float))


@given(FEW, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_reach_the_order_of_contents(s: FloatArray, random: object) -> None:
    """Rows of few values tie in some columns and not in others."""
    n = s.shape[0]
    key = (np.arange(n) % 2).astype(np.int64)
    moved = np.array(sorted(range(n), key=lambda _: random.random()))  # type: ignore[attr-defined]
    one, other = order_of_contents(s, key), order_of_contents(s[moved], key[moved])
    assert sorted(one.tolist()) == list(range(n))
    first, second = (
        [*map(tuple, np.c_[rows, of].tolist())]
        for rows, of in ((s[one], key[one]), (s[moved][other], key[moved][other]))
    )
    assert first == second == sorted(first)


@pytest.mark.parametrize("n_classes", [3, 5, 40])
def test_rows_with_the_same_logits_in_another_order_tie_exactly(n_classes: int) -> None:
    """As they do in exact arithmetic: what a sum rounds away would rank rows that are alike."""
    rng = np.random.default_rng(n_classes)
    values = np.array([-0.7, 0.4, 1.9, 2.0])
    z = values[rng.integers(0, 4, size=(300, n_classes))]
    permuted = np.take_along_axis(z, np.argsort(rng.random(z.shape), axis=1), axis=1)
    for i in range(300):
        first, second = class_log_odds(z[i : i + 1])[:, 0], class_log_odds(permuted[i : i + 1])[:, 0]
        assert sorted(first) == sorted(second)
        for value in values:  # and within a row, classes with the same logit
            assert len(set(first[z[i] == value])) <= 1
    others = np.column_stack([permuted[:, :-1], z[:, -1]])
    again = np.column_stack([np.sort(permuted[:, :-1], axis=1)[:, ::-1], z[:, -1]])
    assert log_odds(others).tolist() == log_odds(again).tolist()


def test_a_class_beyond_the_range_of_float64_keeps_the_log_odds_finite() -> None:
    z = np.array([[1.5e308, -1.5e308, -1.5e308], [-1.5e308, 0.0, 1.5e308]])
    assert np.isfinite(log_odds(z)).all()
    assert log_odds(z)[0] < -1e308 < 1e308 < log_odds(z)[1]
    assert log_odds(np.array([[-1.5e308, -1.5e308, 1.5e308]])).tolist() == [float(np.finfo(np.float64).max)]


@pytest.mark.parametrize(
    ("row", "off"),
    [
        ([0.75, 0.75] + [0.0] * 98, True),  # only numbers that are not 0 can have been rounded up
        ([0.0] * 250, True),
        ([0.0] * 100 + [0.7], False),  # a hundred numbers below 0.005 may be lost
        ([0.5, 0.5, 0.01], False),
        ([0.5, 0.5, 0.0], False),
        ([0.5123456, 0.5, 0.0], True),
        ([0.6] * 2, True),
        ([0.51, 0.51, 0.0], True),  # two numbers were rounded up by 0.005 each at the most
        ([0.5051234, 0.5, 0.0], True),  # not rounded, so that only 0.002 is forgiven
        ([0.11] * 5 + [0.10] * 5, False),  # ten were, and 0.002 more
        ([0.11] * 6 + [0.10] * 4, True),
        ([0.09] * 5 + [0.10] * 5, False),
        ([0.09] * 6 + [0.10] * 4, True),
    ],
)
def test_a_sum_is_off_where_no_rounding_explains_it(row: list[float], off: bool) -> None:
    other = [0.123456, 0.876544, *[0.0] * (len(row) - 2)]  # of which nothing follows for the row
    assert sums_are_off(np.array([row, other, row])).tolist() == [off, False, off]
