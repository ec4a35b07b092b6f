import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from headeval.core.binomial import _stirling_error, beta_cdf, beta_log_odds, beta_quantile, binomial_cdf

ROUNDING = 2e-13  # a few hundred units in the last place of sums of logarithms
BILLION = 1e-10  # for n = 1e9 the rounding of n·p alone moves the tail by this much


def exact_cdf(k: int, n: int, p: Fraction) -> Fraction:
    return sum((math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1)), Fraction(0))


def summed_cdf(k: int, n: int, p: float) -> mpmath.mpf:
    """Add the terms downwards from k until they no longer count; for k below the mean."""
    with mpmath.workdps(40):
        q = mpmath.mpf(p)
        choose = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        term = mpmath.exp(choose + k * mpmath.log(q) + (n - k) * mpmath.log1p(-q))
        total, i = mpmath.mpf(0), k
        while i >= 0 and term > total * mpmath.mpf(10) ** -20:
            total += term
            term *= i * (1 - q) / ((n - i + 1) * q)
            i -= 1
        return total


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("p", [0.5, 0.1, 0.97, 1e-6])
def test_the_binomial_is_the_sum_of_its_terms_in_fractions(n, p):
    for k in range(n):
        assert binomial_cdf(k, n, p) == pytest.approx(float(exact_cdf(k, n, Fraction(p))), rel=ROUNDING, abs=0)


@pytest.mark.parametrize(
    ("k", "n", "p"),
    [
        (0, 10**9, 1e-8),
        (3, 10**9, 3e-8),
        (940, 10**9, 1e-6),
        (9_700, 10**9, 1e-5),
        (999_000, 10**9, 1e-3),
        (499_700_000, 10**9, 0.5),
    ],
)
def test_a_billion_rows_keep_ten_digits_in_the_tail(k, n, p):
    assert binomial_cdf(k, n, p) == pytest.approx(float(summed_cdf(k, n, p)), rel=BILLION, abs=0)


@pytest.mark.parametrize(
    ("k", "n", "p"), [(1000, 10**6, 0.002), (100, 10**4, 0.05), (20, 1000, 0.5), (2400, 5000, 0.6)]
)
def test_the_far_lower_tail_keeps_its_digits(k, n, p):
    expected = float(summed_cdf(k, n, p))
    assert 1e-300 < expected < 1e-14
    assert binomial_cdf(k, n, p) == pytest.approx(expected, rel=2e-12, abs=0)


@pytest.mark.parametrize(("k", "p"), [(9700, 1e-5), (9400, 1e-5), (95_000, 1e-4), (2400, 2.6e-6)])
def test_rare_events_among_a_billion_keep_twelve_digits(k, p):
    """Written from the larger of p and 1 − p the terms of the tail would cancel."""
    assert binomial_cdf(k, 10**9, p) == pytest.approx(float(summed_cdf(k, 10**9, p)), rel=1e-12, abs=0)


@pytest.mark.parametrize(("k", "p"), [(10_300, 1e-5), (10_600, 1e-5), (3_000, 2.6e-6)])
def test_more_events_than_expected_among_a_billion_keep_twelve_digits(k, p):
    """The other tail, P(X ≥ k) = I_p(k, n − k + 1), in which the beta distribution's x is the small one."""
    n = 10**9
    with mpmath.workdps(40):
        expected = float(summed_cdf(n - k, n, 1 - mpmath.mpf(p)))
    assert beta_cdf(p, k, n - k + 1) == pytest.approx(expected, rel=1e-12, abs=0)


def test_outcomes_outside_zero_to_n_are_certain_or_impossible():
    assert binomial_cdf(-1, 5, 0.3) == 0.0
    assert binomial_cdf(5, 5, 0.3) == binomial_cdf(9, 5, 0.3) == 1.0
    assert binomial_cdf(0, 0, 0.3) == 1.0
    assert (binomial_cdf(2, 5, 0.0), binomial_cdf(2, 5, 1.0)) == (1.0, 0.0)


def test_all_lies_below_one_and_nothing_below_zero():
    assert [beta_cdf(x, 2, 3) for x in (0, 1)] == [beta_quantile(p, 2, 3) for p in (0, 1)] == [0.0, 1.0]


@settings(max_examples=150, deadline=None)
@given(st.floats(-2, 4.5), st.floats(-2, 4.5), st.floats(-6, 6))
def test_the_beta_distribution_agrees_with_scipy(log_a, log_b, away):
    a, b = 10**log_a, 10**log_b
    mean = a / (a + b)
    x = mean + away * math.sqrt(mean * (1 - mean) / (a + b + 1))
    if 0 < x < 1:
        expected = special.betainc(a, b, x)
        assert beta_cdf(x, a, b) == pytest.approx(expected, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("x", [1e-5, 0.02, 0.1, 0.5, 0.93])
@pytest.mark.parametrize(("a", "b"), [(0.3, 0.7), (3, 98), (0.5, 40), (250, 0.5), (1, 1), (30, 700)])
def test_the_beta_distribution_agrees_with_mpmath(a, b, x):
    with mpmath.workdps(60):
        expected = float(mpmath.betainc(a, b, 0, mpmath.mpf(x), regularized=True))
    assert beta_cdf(x, a, b) == pytest.approx(expected, rel=3e-13, abs=1e-300)


def test_both_ways_of_computing_a_large_tail_agree(monkeypatch):
    """The quadrature for large shapes equals the continued fraction it replaces."""
    cases = [(x, a, b) for a, b in [(3000, 4000), (2500, 90_000)] for x in np.linspace(0.6, 1.3, 8) * a / (a + b)]
    quick = [beta_cdf(x, a, b) for x, a, b in cases]
    monkeypatch.setattr("headeval.core.binomial._LARGE", math.inf)
    slow = [beta_cdf(x, a, b) for x, a, b in cases]
    assert quick == pytest.approx(slow, rel=1e-11, abs=1e-300)


def test_large_shapes_take_no_long_fraction(monkeypatch):
    """Equal shapes have half of everything below ½."""
    monkeypatch.delattr("headeval.core.binomial._continued_fraction")
    assert beta_cdf(0.5, 3000, 3000) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("a", [10, 10.5, 12, 40])
def test_stirlings_error_has_all_digits_of_the_logarithm_it_is_added_to(a):
    """Where the sums of the tests above round to 1e-13, a wrong digit of a later term would go unseen."""
    with mpmath.workdps(40):
        expected = mpmath.loggamma(a) - (a - mpmath.mpf("0.5")) * mpmath.log(a) + a - mpmath.log(2 * mpmath.pi) / 2
    assert _stirling_error(a) == pytest.approx(float(expected), rel=0, abs=4e-18)


@settings(max_examples=200, deadline=None)
@given(st.floats(-1, 5), st.floats(-1, 5), st.floats(1e-12, 1 - 1e-12))
def test_the_quantile_inverts_the_distribution(log_a, log_b, p):
    a, b = 10**log_a, 10**log_b
    x = beta_quantile(p, a, b)
    if 1e-290 < x <= 0.5:  # above 1/2 the step between floats moves p by more than the tolerance
        assert beta_cdf(x, a, b) == pytest.approx(p, rel=1e-10)
    assert x == pytest.approx(stats.beta.ppf(p, a, b), rel=1e-7, abs=1e-13)


def test_quantiles_next_to_zero_keep_their_relative_digits():
    """1 − (1 − p)^(1/n) is the quantile of Beta(1, n): exact by expm1."""
    n = 10**9
    for p in (0.025, 0.5, 0.975):
        assert beta_quantile(p, 1, n) == pytest.approx(-math.expm1(math.log1p(-p) / n), rel=1e-13, abs=0)


@pytest.mark.parametrize("shape", [1e-3, 5e-4])
def test_log_odds_reach_as_far_as_x_and_its_complement_are_float64s(shape):
    """I_x(a, 1) = x^a and I_x(1, b) = 1 − (1 − x)^b: one of x and 1 − x is e^−699.5, or less than any normal float."""
    near, beyond = (math.exp(-u * shape) for u in (699.5, 700.5))
    assert beta_log_odds(near, shape, 1) == pytest.approx(-699.5, rel=1e-12)
    assert beta_log_odds(1 - near, 1, shape) == pytest.approx(699.5, rel=1e-12)
    assert (beta_log_odds(beyond, shape, 1), beta_log_odds(1 - beyond, 1, shape)) == (-math.inf, math.inf)


def test_log_odds_are_infinite_where_nothing_of_the_distribution_lies_between():
    """1 − (1 − x)^b = 0.3 with b = 1e-17 has 1 − x = e^−3.6e16, and x^a = 0.3 as small an x."""
    assert beta_log_odds(0.3, 1, 1e-17) == -beta_log_odds(0.3, 1e-17, 1) == math.inf


@pytest.mark.parametrize("x", [1e-13, 1e-9, 1e-4, 0.3])
@pytest.mark.parametrize(("a", "b"), [(1e-5, 3), (1e-3, 400), (0.2, 1e-4), (1e-15, 3)])
def test_next_to_no_row_left_in_a_shape_is_no_loss_of_digits(a, b, x):
    near_one = 1 - x
    with mpmath.workdps(60):
        near_zero, rest = mpmath.mpf(x), 1 - mpmath.mpf(near_one)
        expected = float(mpmath.betainc(a, b, 0, near_zero, regularized=True))
        mirrored = float(1 - mpmath.betainc(a, b, 0, rest, regularized=True))
    assert beta_cdf(x, a, b) == pytest.approx(expected, rel=1e-13)
    assert beta_cdf(near_one, b, a) == pytest.approx(mirrored, rel=1e-8, abs=1e-13)


@pytest.mark.parametrize(("a", "b"), [(1e-15, 3), (3, 1e-15)])
def test_next_to_no_row_left_takes_no_crawling_fraction(monkeypatch, a, b):
    """The continued fraction would take up to its limit of 100,000 terms here, some 60 ms."""
    monkeypatch.delattr("headeval.core.binomial._continued_fraction")
    assert 0 <= beta_cdf(1e-13 if a < b else 1 - 1e-13, a, b) <= 1


@settings(max_examples=300, deadline=1000)
@given(st.floats(-200, 15), st.floats(-200, 15), st.floats(0, 1))
def test_no_shape_crashes_or_runs_forever(log_a, log_b, p):
    assert 0 <= beta_quantile(p, 10**log_a, 10**log_b) <= 1


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (binomial_cdf, (1, -1, 0.5), "n must be at least 0"),
        (binomial_cdf, (1, 2.5, 0.5), "n must be an integer"),
        (binomial_cdf, (1, 2, 1.5), "p must be finite and between 0 and 1"),
        (beta_cdf, (0.5, 0, 1), "a must be greater than 0"),
        (beta_cdf, (-0.5, 1, 1), "x must be finite and between 0 and 1"),
        (beta_quantile, (0.5, 1, math.nan), "b must be finite"),
        (beta_quantile, (1.5, 1, 1), "p must be finite and between 0 and 1"),
        (beta_quantile, (0.5, 2e150, 1), "a must be finite and between 0 and 1e"),
    ],
)
def test_impossible_arguments_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)
