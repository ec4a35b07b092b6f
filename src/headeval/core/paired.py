"""Two classifiers on the same rows: did one decide more of them rightly."""

from headeval.core import checks
from headeval.core.binomial import binomial_cdf


def mcnemar_exact(only_new: int, only_old: int) -> float:
    """Return the two-sided p-value of McNemar's test: rows that both decide alike say nothing.

    Of the other rows, each is as likely won by either when neither classifier is better, so that the smaller
    count is binomial with probability ½. The p-value is 2·P(at most the smaller count), at most 1.

    Parameters
    ----------
    only_new, only_old : integers ≥ 0, the rows that only the new, or only the old classifier decides rightly.

    Returns
    -------
    p_value : 1.0 where there is no such row.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    McNemar, Note on the sampling error of the difference between correlated proportions or percentages,
    Psychometrika 12 (1947).

    Examples
    --------
    One loss in five: 2·(1 + 5)/32.

    >>> round(mcnemar_exact(4, 1), 12)
    0.375
    """
    only_new = checks.whole_number("only_new", only_new, minimum=0)
    only_old = checks.whole_number("only_old", only_old, minimum=0)
    return min(1.0, 2.0 * binomial_cdf(min(only_new, only_old), only_new + only_old, 0.5))
