"""Thresholds that keep a rate within a bound, with a stated confidence, whatever the distribution of the scores.

A rate that only falls (or only grows) with the threshold is tested threshold by threshold, from the safest end on, each
by the exact binomial test at the full level, until the first one fails. To go wrong, the walk must pass the first bad
threshold it meets, whose one test does so with at most the level's probability: so all thresholds that passed are good
together (fixed-sequence testing). They form a half-line that ends at one of the scores.

Rows are taken as independent draws from the traffic that the promise is about.

References
----------
Angelopoulos, Bates, Candès, Jordan and Lei, Learn then test: calibrating predictive algorithms to achieve risk control,
Annals of Applied Statistics 19 (2025).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.binomial import binomial_cdf
from headeval.core.checks import FloatArray, IntArray

# The thresholds at which precision is tested, and where the walks down begin: fixed before any data is seen.
PRECISION_GRID = np.arange(1, 1000) / 1000
PRECISION_STARTS = (0.99, *(step / 20 for step in range(19, 0, -1)))

_BISECTED = 1e-12
_ROUNDING = 1e-9  # 1 - 0.9 is a little below 0.1: a probability of just that level must pass


@dataclass(frozen=True, slots=True)
class Certified:
    """The thresholds t with lower < t ≤ upper, where `closed` also lower itself, and where `grid` is given only of it.

    Attributes
    ----------
    lower : −∞ where nothing is asked from below.
    upper : ∞ where nothing is asked from above.
    n : the rows that the rate is about.
    errors_allowed : flagged or missed rows among them that a certified threshold may have, the one at a closed end
        included; −1 where the rows are too few to certify any. None for precision, whose rows depend on the threshold.
    grid : (k,) increasing, or None.
    closed : whether `lower` itself is certified: the row with that score, which is flagged then, stands alone.
    """

    lower: float
    upper: float
    n: int
    errors_allowed: int | None
    grid: FloatArray | None = None
    closed: bool = False

    @property
    def empty(self) -> bool:
        """Whether no threshold, of whatever scale, is certified."""
        return not (self.lower < self.upper or (self.closed and self.lower == self.upper)) or (
            self.grid is not None and not self.grid.size
        )


def allowed_errors(n: int, rate: float, *, confidence: float) -> int:
    """Return the most errors among n rows that still show an error rate of at most `rate`; −1 where not even none does.

    That is the largest k with P(Bin(n, rate) ≤ k) ≤ 1 − confidence.

    Parameters
    ----------
    n : rows, ≥ 0.
    rate, confidence : in [0, 1], and in (0, 1).

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    0.95¹⁴ is 0.488 and 0.95¹³ is 0.513.

    >>> allowed_errors(14, 0.05, confidence=0.5), allowed_errors(13, 0.05, confidence=0.5)
    (0, -1)
    """
    n = checks.whole_number("n", n, minimum=0)
    rate, delta = checked_level(rate, confidence)
    if rate == 1.0:
        return n
    below, above = -1, n  # P(Bin ≤ −1) = 0 is within the level, P(Bin ≤ n) = 1 is not
    while above - below > 1:
        middle = (below + above) // 2
        if shows(middle, n, rate, delta):
            below = middle
        else:
            above = middle
    return below


def certify_few_flagged(scores: ArrayLike, rate: float, *, confidence: float, n: int | None = None) -> Certified:
    """Return the thresholds at which a row like these is flagged, score ≥ t, with a probability of at most `rate`.

    With k = `allowed_errors` they are those above the (k+1)-th highest score, which flag at most k rows. That score
    itself is certified too, with k + 1 rows flagged, where it stands alone among the rows and `edge_bound` allows it.

    Parameters
    ----------
    scores : (m,) finite, of negatives for the false-positive rate, or of unlabelled benign rows.
    rate : in [0, 1].
    confidence : in (0, 1).
    n : the number of rows, where `scores` are only the highest of them.

    Raises
    ------
    ValueError
        When an argument breaks the above, or the highest scores given do not reach down to the threshold.

    Examples
    --------
    Of 1,000 negatives 5 may be flagged for an FPR of 1 %: P(Bin(1000, 0.01) ≤ 4) = 0.029, and ≤ 5 0.066.

    >>> found = certify_few_flagged(range(1000), 0.01, confidence=0.95)
    >>> found.lower, found.closed, found.errors_allowed
    (995.0, True, 5)
    """
    s = checks.finite_array("scores", scores, ndim=1)
    n = s.shape[0] if n is None else checks.whole_number("n", n, minimum=s.shape[0])
    k = allowed_errors(n, rate, confidence=confidence)
    if k < 0:
        return Certified(math.inf, math.inf, n, k)
    if k >= n:
        return Certified(-math.inf, math.inf, n, k)
    if k >= s.shape[0]:
        raise ValueError(f"scores must hold the highest {k + 1} of the {n} rows, got {s.shape[0]}")
    edge = float(np.partition(s, s.shape[0] - 1 - k)[s.shape[0] - 1 - k])
    alone = np.count_nonzero(s == edge) == 1 and (n == s.shape[0] or edge > s.min())
    closed = bool(alone) and edge_bound(k + 1, n, confidence=confidence) <= rate
    return Certified(edge, math.inf, n, k + 1 if closed else k, closed=closed)


def edge_bound(flagged: int, n: int, *, confidence: float) -> float:
    """Return the upper bound of the rate that is flagged from the r-th highest score on, where it stands alone.

    Of scores without ties the share of the population at or above the r-th highest of n exceeds α with probability
    P(Bin(n, α) ≤ r − 1), the order-statistic rule. An atom of the distribution at that score adds the samples that
    hold it exactly once: r rows at or above it, r − 1 of them above. Whatever its mass, those are at most a share
    c = ((r − 1)/r)^(r − 1) of the samples with r such rows, so that P(Bin ≤ r − 1) + c·P(Bin = r) bounds the error for
    every distribution. The bound is the α at which that is 1 − confidence.

    Parameters
    ----------
    flagged : r ≥ 1, the row at the threshold included.
    n : rows, ≥ r.
    confidence : in (0, 1).

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> edge_bound(5, 1000, confidence=0.95) < 0.01 < edge_bound(6, 1000, confidence=0.95)
    True
    """
    r = checks.whole_number("flagged", flagged, minimum=1)
    n = checks.whole_number("n", n, minimum=r)
    delta = (1 - checks.confidence_level(confidence)) * (1 + _ROUNDING)
    once = ((r - 1) / r) ** (r - 1)
    low, high = 0.0, 1.0
    while high - low > _BISECTED * high:
        rate = (low + high) / 2
        if (1 - once) * binomial_cdf(r - 1, n, rate) + once * binomial_cdf(r, n, rate) <= delta:
            high = rate
        else:
            low = rate
    return high


def certify_few_missed(scores: ArrayLike, rate: float, *, confidence: float) -> Certified:
    """Return the thresholds at which a row like these is missed, score < t, with a probability of at most `rate`.

    With k = `allowed_errors` they are those up to the (k+1)-th lowest score: at most k rows are missed.

    Parameters
    ----------
    scores : (m,) finite, of positives; recall ≥ β is a miss rate of at most 1 − β.
    rate, confidence : as for `certify_few_flagged`.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> certify_few_missed(range(299), 0.01, confidence=0.95).upper
    0.0
    """
    s = checks.finite_array("scores", scores, ndim=1)
    k = allowed_errors(s.shape[0], rate, confidence=confidence)
    if k < 0:
        return Certified(-math.inf, -math.inf, s.shape[0], k)
    if k >= s.shape[0]:
        return Certified(-math.inf, math.inf, s.shape[0], k)
    return Certified(-math.inf, float(np.partition(s, k)[k]), s.shape[0], k)


def certify_precision(probs: ArrayLike, labels: ArrayLike, share: float, *, confidence: float) -> Certified:
    """Return the thresholds of `PRECISION_GRID` where a flagged row is positive with probability ≥ `share`.

    Precision can rise and fall with the threshold, and at the safest end nothing is flagged. So walks begin at each of
    `PRECISION_STARTS` and go down the grid until the first threshold that fails, and the level is shared among them.
    Of m rows flagged at a fixed threshold the number of positives is binomial, whatever m is.

    Precision depends on the share of positives: the promise is about traffic with the share that these rows come from.

    Parameters
    ----------
    probs, labels : (n,) in [0, 1], and in {0, 1}.
    share, confidence : in [0, 1], and in (0, 1).

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> found = certify_precision([0.97] * 100 + [0.2] * 10, [1] * 100 + [0] * 10, 0.9, confidence=0.95)
    >>> found.grid.min().item(), found.grid.max().item()
    (0.201, 0.95)
    """
    p = checks.probabilities("probs", probs)
    y = checks.binary_labels(labels, n=p.shape[0])
    share, delta = checked_level(share, confidence)
    passes = _precision_test(p, y, 1 - share, delta / len(PRECISION_STARTS))
    certified = np.zeros(PRECISION_GRID.shape[0], dtype=bool)
    for start in PRECISION_STARTS:
        place = round(start * 1000) - 1
        while place >= 0 and not certified[place] and passes(place):  # below a certified one this walk has been walked
            certified[place] = True
            place -= 1
    return Certified(-math.inf, math.inf, p.shape[0], None, grid=PRECISION_GRID[certified])


def shows(errors: int, n: int, rate: float, delta: float) -> bool:
    """Tell whether so few errors among n rows show a rate of at most `rate` at level `delta`."""
    return binomial_cdf(errors, n, rate) <= delta * (1 + _ROUNDING)


def _precision_test(p: FloatArray, y: IntArray, rate: float, delta: float) -> Callable[[int], bool]:
    """Return the test of one threshold of the grid: are at most a share `rate` of the flagged negatives."""
    negatives, every = np.sort(p[y == 0]), np.sort(p)

    def passes(place: int) -> bool:
        threshold = PRECISION_GRID[place]
        flagged = every.shape[0] - int(np.searchsorted(every, threshold))
        wrong = negatives.shape[0] - int(np.searchsorted(negatives, threshold))
        return flagged > wrong and shows(wrong, flagged, rate, delta)

    return passes


def checked_level(rate: float, confidence: float) -> tuple[float, float]:
    """Return the rate and the level 1 − confidence of a test, both checked."""
    rate = checks.real_number("rate", rate, minimum=0.0, maximum=1.0)
    confidence = checks.real_number("confidence", confidence, minimum=0.0, maximum=1.0)
    if confidence in {0.0, 1.0}:
        raise ValueError("confidence must lie strictly between 0 and 1")
    return rate, 1 - confidence
