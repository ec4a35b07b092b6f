"""Student's distribution, for quantities whose variance is estimated from few rows."""

import math

from headeval.core import checks
from headeval.core.binomial import beta_cdf, beta_log_odds


def student_quantile(confidence: float, freedom: float) -> float:
    """Return t with P(−t < T < t) = confidence for Student's T; inf where there is no degree of freedom.

    Parameters
    ----------
    confidence : in (0, 1).
    freedom : degrees of freedom ≥ 0, real.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> round(student_quantile(0.95, 4), 3)
    2.776
    """
    confidence = checks.confidence_level(confidence)
    freedom = checks.real_number("freedom", freedom, minimum=0, maximum=1e150)
    if freedom == 0:
        return math.inf
    # T²/(freedom + T²) has the Beta(1/2, freedom/2) distribution; its odds are T²/freedom.
    log_odds = beta_log_odds(confidence, 0.5, max(freedom / 2, 1e-150))
    return math.sqrt(freedom) * math.exp(log_odds / 2)


def student_tail(t: float, freedom: float) -> float:
    """Return P(|T| ≥ t) for Student's T with `freedom` ≥ 0 degrees of freedom and finite t ≥ 0; 1.0 with none.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> round(student_tail(2.776, 4), 3)
    0.05
    """
    t = checks.real_number("t", t, minimum=0)
    freedom = checks.real_number("freedom", freedom, minimum=0, maximum=1e150)
    if freedom == 0 or t == 0:
        return 1.0
    return beta_cdf(1 / (1 + t * t / freedom), freedom / 2, 0.5)
