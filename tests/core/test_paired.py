"""McNemar's exact test against scipy and exact fractions."""

from fractions import Fraction
from math import comb

import pytest
from scipy import stats

from headeval.core.paired import mcnemar_exact


@pytest.mark.parametrize("n", [0, 1, 2, 7, 30])
def test_it_is_the_two_sided_binomial_test(n: int) -> None:
    for k in range(n + 1):
        tail = sum(Fraction(comb(n, i), 2**n) for i in range(min(k, n - k) + 1))
        assert mcnemar_exact(k, n - k) == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-13)


@pytest.mark.parametrize(
    ("only_new", "only_old"), [(1000, 1100), (10**6, 10**6 + 3000), (5 * 10**8, 5 * 10**8 + 40_000)]
)
def test_large_counts_agree_with_scipy(only_new: int, only_old: int) -> None:
    expected = stats.binomtest(only_new, only_new + only_old, 0.5).pvalue
    assert mcnemar_exact(only_new, only_old) == pytest.approx(expected, rel=1e-9)


def test_the_order_does_not_matter() -> None:
    assert mcnemar_exact(3, 9) == mcnemar_exact(9, 3)


@pytest.mark.parametrize("bad", [-1, 1.0, True])
def test_bad_counts_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match="only_old must be"):
        mcnemar_exact(1, bad)
