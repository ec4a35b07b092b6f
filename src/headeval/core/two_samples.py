"""Do two samples come from the same source: scores and shares of two sets of rows compared."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray
from headeval.core.intervals import Difference, Interval, wilson

# Up to these sizes the paths are counted, which takes less than 0.1 s.
_EXACT_ROWS = 10_000
_EXACT_PAIRS = 4_000_000
_FISHER_TABLES = 1_000_000  # beyond, the score test agrees to all digits shown


@dataclass(frozen=True, slots=True)
class KolmogorovSmirnov:
    """The two-sided two-sample test of Kolmogorov and Smirnov.

    Attributes
    ----------
    statistic : in [0, 1], the largest distance between the two empirical distribution functions.
    location : the smallest score at which it is reached.
    sign : 1 where more of `a` than of `b` lies at or below `location`, so that `a` has lower scores there; else -1.
    p_value : the chance of such a distance without a difference; with ties it is too large, never too small.
    """

    statistic: float
    location: float
    sign: Literal[-1, 1]
    p_value: float
    method: Literal["exact", "asymptotic"]


@dataclass(frozen=True, slots=True)
class PopulationStability:
    """The population stability index over quantile bins of a reference, and what chance alone makes of it.

    Attributes
    ----------
    value : Σ (q_b − p_b)·log(q_b / p_b) with shares p of the reference and q of the current rows, each count raised
        by ½ so that an empty bin has a logarithm.
    edges : (B−1,) inner edges; bin b holds the scores in (edges[b−1], edges[b]], the first and the last are open.
    reference_counts, counts : (B,) rows in each bin.
    mean_if_same, p95_if_same : its mean and its 95th percentile when both samples come from the same source.
    """

    value: float
    edges: FloatArray
    reference_counts: IntArray
    counts: IntArray
    mean_if_same: float
    p95_if_same: float


def ks_two_sample(a: ArrayLike, b: ArrayLike) -> KolmogorovSmirnov:
    """Compare two samples of scores by the largest distance between their distribution functions.

    The p-value is exact, by counting lattice paths, where max(n, m) ≤ 10,000 and n·m ≤ 4,000,000; else from
    Kolmogorov's limit with Stephens' correction. With ties either is conservative.

    Parameters
    ----------
    a, b : (n,) and (m,) finite, n and m ≥ 1.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Viehmann, Numerically more stable computation of the p-values for the two-sample Kolmogorov-Smirnov test,
    arXiv:2102.08037 (2021). Stephens, Journal of the Royal Statistical Society B 32 (1970).

    Examples
    --------
    Of the three places that one score can take among two others, the first and the last keep them apart.

    >>> test = ks_two_sample([1.0, 2.0], [3.0])
    >>> test.statistic, round(test.p_value, 12), test.location, test.sign
    (1.0, 0.666666666667, 2.0, 1)
    """
    a, b = (np.sort(_sample(name, values)) for name, values in (("a", a), ("b", b)))
    n, m = a.shape[0], b.shape[0]
    scores = np.unique(np.concatenate([a, b]))  # tied scores enter together
    # In integers, so that no rounding decides whether a path touches the boundary.
    gaps = np.searchsorted(a, scores, side="right") * m - np.searchsorted(b, scores, side="right") * n
    at = int(np.abs(gaps).argmax())
    gap = abs(int(gaps[at]))
    exact = max(n, m) <= _EXACT_ROWS and n * m <= _EXACT_PAIRS
    return KolmogorovSmirnov(
        statistic=gap / (n * m),
        location=float(scores[at]) + 0.0,
        sign=1 if gaps[at] >= 0 else -1,
        p_value=_share_of_paths_outside(gap, min(n, m), max(n, m)) if exact else _kolmogorov(gap / (n * m), n, m),
        method="exact" if exact else "asymptotic",
    )


def population_stability_index(
    reference: ArrayLike, current: ArrayLike, *, n_bins: int = 10
) -> PopulationStability | None:
    """Compare two samples of scores by the shares they have in quantile bins of the reference.

    Bins are cut at the borders between distinct scores that are nearest to the quantiles, so tied scores stay
    together and there can be fewer than `n_bins`. Without drift, PSI / (1/n + 1/m) is about χ² with B − 1 degrees
    of freedom: small samples exceed the customary limits 0.1 and 0.25 by chance, large ones hardly reach them.

    Parameters
    ----------
    reference, current : (n,) and (m,) finite, n and m ≥ 1.
    n_bins : ≥ 2.

    Returns
    -------
    index : None where all scores of the reference are the same, which makes one bin only.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Yurdakul and Naranjo, Statistical properties of the population stability index, Journal of Risk Model
    Validation 14 (2020).

    Examples
    --------
    Shares of 2½ of 5 and 2½ of 5 against 1½ of 5 and 3½ of 5: 0.2·log(5/3) + 0.2·log(7/5).

    >>> index = population_stability_index([1, 2, 3, 4], [2, 3, 4, 5], n_bins=2)
    >>> index.edges.tolist(), index.counts.tolist(), round(index.value, 6)
    ([2.0], [1, 3], 0.16946)
    """
    reference, current = np.sort(_sample("reference", reference)), _sample("current", current)
    edges = _quantile_edges(reference, checks.whole_number("n_bins", n_bins, minimum=2))
    if not edges.size:
        return None
    bins = edges.shape[0] + 1
    before, now = (np.bincount(np.searchsorted(edges, x), minlength=bins) for x in (reference, current))
    p, q = ((counts + 0.5) / (counts.sum() + 0.5 * bins) for counts in (before, now))
    scale = 1 / reference.shape[0] + 1 / current.shape[0]
    return PopulationStability(
        value=float((q - p) @ np.log(q / p)),
        edges=edges,
        reference_counts=before,
        counts=now,
        mean_if_same=(bins - 1) * scale,
        p95_if_same=_chi_square_quantile(0.95, bins - 1) * scale,
    )


def proportion_difference(k1: int, n1: int, k2: int, n2: int, *, confidence: float = 0.95) -> Difference:
    """Return k1/n1 − k2/n2 with Newcombe's interval from two Wilson intervals, and Fisher's exact p-value.

    The p-value sums the tables that are no likelier than the one seen; with more than a million tables it is that
    of the pooled score test.

    Parameters
    ----------
    k1, n1, k2, n2 : integers, 0 ≤ k ≤ n and n ≥ 1.
    confidence : in (0, 1), of the interval.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Newcombe, Interval estimation for the difference between independent proportions, Statistics in Medicine 17
    (1998), method 10.

    Examples
    --------
    Of the 6 ways to place two successes among four rows, 2 are as uneven as these.

    >>> difference = proportion_difference(2, 2, 0, 2)
    >>> difference.value, round(difference.p_value, 12), difference.interval.upper
    (1.0, 0.333333333333, 1.0)
    """
    n1, n2 = checks.whole_number("n1", n1, minimum=1), checks.whole_number("n2", n2, minimum=1)
    k1, k2 = checks.whole_number("k1", k1, minimum=0), checks.whole_number("k2", k2, minimum=0)
    if k1 > n1 or k2 > n2:
        raise ValueError(f"successes must not exceed the rows, got {k1} of {n1} and {k2} of {n2}")
    p1, p2 = k1 / n1, k2 / n2
    one, two = wilson(k1, n1, confidence=confidence), wilson(k2, n2, confidence=confidence)
    lower = p1 - p2 - math.hypot(p1 - one.lower, two.upper - p2)
    upper = p1 - p2 + math.hypot(one.upper - p1, p2 - two.lower)
    interval = Interval(max(lower, -1.0), min(upper, 1.0), confidence, "Newcombe")
    return Difference(p1 - p2, interval, _fisher(k1, n1, k2, n2))


def _sample(name: str, values: ArrayLike) -> FloatArray:
    array = checks.finite_array(name, values, ndim=1)
    if not array.size:
        raise ValueError(f"{name} must hold at least one score")
    return array


def _share_of_paths_outside(gap: int, n: int, m: int) -> float:
    """Return the share of lattice paths from (0, 0) to (n, m) that reach |i·m − j·n| ≥ gap; n ≤ m."""
    if gap == 0:
        return 1.0
    # share[i]: of the paths to (i, k − i), those that have been outside. It averages the shares of the two
    # points a path can come from, by how many come from either; nothing cancels, so small ones are accurate.
    share, i = np.ones(n + 2), np.arange(n + 1, dtype=np.float64)
    share[1] = 0.0  # shifted by one: there is no point before i = 0
    first = 0
    for k in range(1, n + m + 1):
        # |i·m − j·n| = |i·(n + m) − k·n| < gap
        low = max((k * n - gap) // (n + m) + 1, k - m, 0)
        high = min(-((-k * n - gap) // (n + m)) - 1, n, k)
        inside = slice(low, high + 1)
        share[low + 1 : high + 2] = (i[inside] * share[inside] + (k - i[inside]) * share[low + 1 : high + 2]) / k
        share[first + 1 : low + 1] = 1.0
        first = low
    return float(share[n + 1])


def _kolmogorov(statistic: float, n: int, m: int) -> float:
    """Return P(K ≥ x) of Kolmogorov's distribution at the statistic as Stephens scales it."""
    root = math.sqrt(n * m / (n + m))
    x = (root + 0.12 + 0.11 / root) * statistic
    if x < 1.0:  # here the alternating series needs many terms, and its dual few
        terms = (math.exp(-(((2 * k - 1) * math.pi) ** 2) / (8 * x * x)) for k in range(1, 6)) if x > 0.05 else ()
        return 1.0 - math.sqrt(2 * math.pi) / max(x, 0.05) * sum(terms)
    return 2.0 * sum((-1.0) ** (k - 1) * math.exp(-2.0 * (k * x) ** 2) for k in range(1, 6))


def _quantile_edges(ordered: FloatArray, n_bins: int) -> FloatArray:
    """Return values after which to cut, at the borders of tied blocks that are nearest to the quantiles."""
    n = ordered.shape[0]
    borders = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1  # rows below each border
    if not borders.size:
        return np.empty(0)
    wanted = np.arange(1, n_bins) * n  # n_bins times as many rows as wanted below: all in integers
    above = np.searchsorted(borders * n_bins, wanted).clip(max=borders.size - 1)
    below = (above - 1).clip(min=0)
    nearer = np.abs(borders[below] * n_bins - wanted) <= np.abs(borders[above] * n_bins - wanted)
    edges: FloatArray = ordered[borders[np.unique(np.where(nearer, below, above))] - 1] + 0.0
    return edges


def _chi_square_quantile(level: float, degrees: int) -> float:
    """Return the quantile by bisection of the tail, which is a finite sum for whole degrees of freedom."""
    low, high = 0.0, degrees + 20.0 * math.sqrt(degrees)
    while high - low > 1e-12 * high:
        x = (low + high) / 2
        low, high = (x, high) if _chi_square_tail(x, degrees) > 1 - level else (low, x)
    return high


def _chi_square_tail(x: float, degrees: int) -> float:
    odd = degrees % 2 / 2
    logs = (math.log(x / 2) * (k + odd) - x / 2 - math.lgamma(k + odd + 1) for k in range(degrees // 2))
    return (math.erfc(math.sqrt(x / 2)) if odd else 0.0) + math.fsum(map(math.exp, logs))


def _fisher(k1: int, n1: int, k2: int, n2: int) -> float:
    k, n = k1 + k2, n1 + n2
    first, last = max(0, k - n2), min(k, n1)
    if first == last:
        return 1.0
    if last - first > _FISHER_TABLES:
        z = abs(k1 / n1 - k2 / n2) / math.sqrt(k / n * (n - k) / n * (1 / n1 + 1 / n2))
        return math.erfc(z / math.sqrt(2))
    x = np.arange(first, last, dtype=np.float64)
    steps = np.log((n1 - x) * (k - x)) - np.log((x + 1) * (n2 - k + x + 1))
    logs = np.append(0.0, np.cumsum(steps))
    logs -= logs.max()
    chances = np.exp(logs)
    # Tables as likely as the one seen differ from it by rounding.
    return float(chances[logs <= logs[k1 - first] + 1e-7].sum() / chances.sum())
