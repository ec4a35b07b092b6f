"""The binomial and beta distributions, exact enough to certify with: also far in the tails and for a billion rows.

One function carries everything: the logarithm of the beta distribution's lower tail. Its argument is given as x and
y = 1 − x, so that whichever of the two is small keeps all its digits.
"""

import math
from statistics import NormalDist

import numpy as np

from headeval.core import checks
from headeval.core.checks import FloatArray

# The continued fraction needs some √min(a, b) terms near the mean; beyond this size a fixed quadrature is quicker.
_LARGE = 2000.0
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(48)
_STOP = 1e-16
_FARTHEST_LOG_ODDS = 700.0  # beyond it x or y is no normal float64; a quantile there is 0.0 or 1.0


def binomial_cdf(k: int, n: int, p: float) -> float:
    """Return P(X ≤ k) for X ~ Binomial(n, p).

    Relative accuracy is about 1e-12 for n up to a million and 1e-10 for a billion, in either tail.

    Parameters
    ----------
    k : any integer; below 0 the answer is 0, from n on it is 1.
    n : number of trials ≥ 0.
    p : probability of a success, in [0, 1].

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    DLMF §8.17.5: P(X ≤ k) = I_{1−p}(n − k, k + 1).

    Examples
    --------
    >>> round(binomial_cdf(1, 3, 0.5), 12)
    0.5
    """
    n = checks.whole_number("n", n, minimum=0)
    p = checks.real_number("p", p, minimum=0, maximum=1)
    if k < 0:
        return 0.0
    if k >= n or p == 0:
        return 1.0
    return 0.0 if p == 1 else math.exp(_log_cdf(1 - p, p, float(n - k), float(k + 1)))


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) = P(B ≤ x) for B ~ Beta(a, b).

    Parameters
    ----------
    x : in [0, 1].
    a, b : shape parameters in (0, 1e150].

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    DLMF §8.17.

    Examples
    --------
    >>> round(beta_cdf(0.25, 2, 1), 12)  # x²
    0.0625
    """
    x = checks.real_number("x", x, minimum=0, maximum=1)
    a, b = _shape("a", a), _shape("b", b)
    return x if x in {0.0, 1.0} else math.exp(_log_cdf(x, 1 - x, a, b))


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the x at which I_x(a, b) = p: the inverse of `beta_cdf`.

    Relative accuracy is about 1e-13 in x. Where x would lie below 1e-304 it is 0.0.

    Parameters
    ----------
    p : in [0, 1].
    a, b : shape parameters in (0, 1e150].

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Notes
    -----
    Newton's method on log I_x as a function of the log odds u = log(x/(1 − x)). In u the beta density is
    log-concave, hence so is its integral, and Newton's method on a concave increasing function converges from
    everywhere: at most the first step goes beyond the root, all later ones rise towards it.

    Examples
    --------
    >>> round(beta_quantile(0.0625, 2, 1), 12)
    0.25
    """
    p = checks.real_number("p", p, minimum=0, maximum=1)
    a, b = _shape("a", a), _shape("b", b)
    if p in {0.0, 1.0}:
        return p
    return _logistic(beta_log_odds(p, a, b))


def beta_log_odds(p: float, a: float, b: float) -> float:
    """Return log(x/(1 − x)) of the quantile x of `beta_quantile`, for 0 < p < 1: finite where x rounds to 0 or 1."""
    return _log_odds_at(p, a, b) if p <= 0.5 else -_log_odds_at(1 - p, b, a)


def _log_odds_at(p: float, a: float, b: float) -> float:
    """Return u with I_σ(u)(a, b) = p ≤ 1/2."""
    goal = math.log(p)
    u = math.log(a / b) + NormalDist().inv_cdf(max(p, 1e-300)) * math.sqrt(1 / a + 1 / b)
    for i in range(200):
        u = min(max(u, -_FARTHEST_LOG_ODDS), _FARTHEST_LOG_ODDS)
        x, y = _logistic(u), _logistic(-u)
        log_cdf = _log_cdf(x, y, a, b)
        # dI/du is the density in u, x^a y^b / B(a, b). An I of 0 beside a b of nearly 0: all lies at the far end.
        rise = math.exp(log_cdf - _log_density(x, y, a, b))
        step = (goal - log_cdf) * rise if rise > 0 else 2 * _FARTHEST_LOG_ODDS
        at_the_edge = (u == -_FARTHEST_LOG_ODDS and step < 0) or (u == _FARTHEST_LOG_ODDS and step > 0)
        if at_the_edge:
            return math.copysign(math.inf, u)
        u += step
        # From the second step on u only rises; one that no longer does has met the rounding of log I.
        if abs(step) <= 4e-16 * max(1.0, abs(u)) or (i > 1 and step <= 0):
            break
    return u


def _log_cdf(x: float, y: float, a: float, b: float) -> float:
    """Return log I_x(a, b) for 0 < x < 1 and y = 1 − x."""
    if a < 1 and b * x < 1 and x <= 0.5:
        return _log_series(x, y, a, b)
    if b < 1 and a * y < 1 and y <= 0.5:
        return _log_of_rest(_log_series(y, x, b, a))
    if _excess(x, y, a, b) >= 0:
        return _log_tail(x, y, a, b)
    return _log_of_rest(_log_tail(y, x, b, a))


def _log_of_rest(log_share: float) -> float:
    """Return log(1 − e^log_share)."""
    return math.log(-math.expm1(log_share)) if log_share < 0 else -math.inf


def _excess(x: float, y: float, a: float, b: float) -> float:
    """Return a − (a + b)x, what the mean exceeds x by, from the smaller of x and y = 1 − x."""
    return a - (a + b) * x if x <= y else (a + b) * y - b


def _log_tail(x: float, y: float, a: float, b: float) -> float:
    """Return log I_x(a, b) for x not above the mean a/(a + b)."""
    tail = _quadrature(x, y, a, b) if min(a, b) > _LARGE else _continued_fraction(x, y, a, b)
    return _log_density(x, y, a, b) + math.log(tail)


def _log_density(x: float, y: float, a: float, b: float) -> float:
    """Return log(x^a y^b / B(a, b)): the density of the log odds.

    Written with Stirling's formula taken out (Loader 2000, Fast and accurate computation of binomial probabilities):
    the naive sum of logarithms of Γ would lose as many digits as (a + b) log(a + b) has before the point.
    """
    n = a + b
    excess = _excess(x, y, a, b)
    deviance = _deviance(a, n, x, excess) + _deviance(b, n, y, -excess)
    correction = _stirling_error(n) - _stirling_error(a) - _stirling_error(b)
    return 0.5 * (math.log(a) + math.log(b) - math.log(2 * math.pi * n)) + correction - deviance


def _deviance(a: float, n: float, x: float, excess: float) -> float:
    """Return a log(a/(n x)) − excess, where excess = a − n x; without cancellation where the two are close."""
    mean = n * x
    if abs(excess) > 0.1 * (a + mean):
        return a * (math.log(a / n) - math.log(x)) - excess
    # log(a/mean) = 2 artanh v, and a = mean (1 + v)/(1 − v): Loader's series in v.
    v = excess / (a + mean)
    total, power, j = excess * v, 2 * a * v, 1
    while True:
        power *= v * v
        j += 2
        longer = total + power / j
        if longer == total:
            return total
        total = longer


def _stirling_error(a: float) -> float:
    """Return log Γ(a) − [(a − 1/2) log a − a + log(2π)/2]."""
    if a < 10:
        return math.lgamma(a) - ((a - 0.5) * math.log(a) - a + 0.5 * math.log(2 * math.pi))
    s = 1 / (a * a)
    # Bernoulli numbers B_{2k}/(2k(2k − 1)); the first term left out is below 1e-16 at a = 10.
    series = 1 / 360 - s * (
        1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360 - s * (1 / 156 - s * 3617 / 122400))))
    )
    return (1 / 12 - s * series) / a


def _continued_fraction(x: float, y: float, a: float, b: float) -> float:
    """Return I_x(a, b) / (x^a y^b / B(a, b)) by the modified Lentz method.

    The even part of DLMF 8.17.22, in terms of x, y and a − (a + b)x, all of them positive here: the fraction itself
    subtracts numbers near 1 where y is small (Didonato and Morris 1992, ACM TOMS algorithm 708).
    """
    start = _excess(x, y, a, b) + 1
    f = a * start / (a + 1)
    c, d, m = f, 0.0, 0
    while True:
        m += 1
        middle = a + 2 * m - 1
        numerator = (a + m - 1) * ((a + b + m - 1) / middle) * (m * (b - m) / middle) * x * x
        denominator = m + m * (b - m) * x / middle + (a + m) * (start + m * (1 + y)) / (middle + 2)
        d = 1 / (denominator + numerator * d)
        c = denominator + numerator / c
        f *= c * d
        if abs(c * d - 1) <= 2 * _STOP or m > 100_000:
            return 1 / f


def _log_series(x: float, y: float, a: float, b: float) -> float:
    """Return log I_x(a, b) for a < 1 and small x: the power series of DLMF 8.17.7 about 0.

    The continued fraction crawls where a shape below 1 (an effective size can leave next to nothing of a row) heaps
    the distribution up at an end.
    """
    total, coefficient, m = 0.0, 1.0, 0
    while abs(coefficient) > _STOP * a:
        m += 1
        coefficient *= (m - b) / m * x
        total += coefficient / (a + m)
    # Without the factor y^b, which the density has and the series has not.
    return _log_density(x, y, a, b) - b * math.log1p(-x) - math.log(a) + math.log1p(a * total)


def _quadrature(x: float, y: float, a: float, b: float) -> float:
    """Return the same ratio as an integral over the log odds below those of x, by Gauss and Legendre.

    At s below, the density is exp(b s − (a + b) log(1 + y (e^s − 1))) times that at x: for large a and b nearly
    exp(−excess·s − (a + b) x y s²/2), which 48 nodes integrate to the last digit.
    """
    n = a + b
    slope, curvature = _excess(x, y, a, b), n * x * y
    # Where slope·s + curvature·s²/2 = 40 the density has fallen below float64's resolution of the integral.
    end = 80 / (slope + math.sqrt(slope * slope + 80 * curvature))
    s: FloatArray = 0.5 * end * (_NODES + 1)
    # The same exponent twice, written from the smaller of x and y: the other form cancels terms of n·s.
    exponent = -a * s - n * np.log1p(x * np.expm1(-s)) if x <= y else b * s - n * np.log1p(y * np.expm1(s))
    return float(0.5 * end * (_NODE_WEIGHTS @ np.exp(exponent)))


def _logistic(u: float) -> float:
    """Return 1/(1 + e^−u), exact to the last digits for either sign; ±∞ give 1.0 and 0.0."""
    if u >= 0:
        return 1 / (1 + math.exp(-u))
    e = math.exp(u)
    return e / (1 + e)


def _shape(name: str, value: float) -> float:
    value = checks.real_number(name, value, minimum=0, maximum=1e150)
    if value == 0:
        raise ValueError(f"{name} must be greater than 0, got 0")
    return max(value, 1e-150)  # smaller ones give the same distribution; their ratio to n must be no zero
