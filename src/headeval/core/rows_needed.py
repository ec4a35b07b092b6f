"""How many rows it takes to certify a rate."""

from collections.abc import Callable

from headeval.core import checks
from headeval.core.certify import checked_level, shows

ERRORS_PLANNED = (0, 1, 2, 5, 10)
MOST_ROWS = 10**12


def rows_needed(errors: int, rate: float, *, confidence: float) -> int:
    """Return the fewest rows among which so many errors still show an error rate of at most `rate`.

    Parameters
    ----------
    errors : ≥ 0.
    rate, confidence : in (0, 1], and in (0, 1).

    Raises
    ------
    ValueError
        When an argument breaks the above, or more than `MOST_ROWS` would be needed.

    Examples
    --------
    >>> rows_needed(0, 0.001, confidence=0.95), rows_needed(0, 0.01, confidence=0.95)
    (2995, 299)
    """
    errors = checks.whole_number("errors", errors, minimum=0)
    rate, delta = checked_level(rate, confidence)
    return _fewest(errors + 1, lambda n: shows(errors, n, rate, delta))


def more_rows_needed(n: int, errors: int, rate: float, *, confidence: float) -> tuple[int, int | None]:
    """Return how many more rows would show an error rate of at most `rate`, after `errors` among n.

    Parameters
    ----------
    n, errors : 0 ≤ errors ≤ n.
    rate : in (0, 1].
    confidence : in (0, 1).

    Returns
    -------
    without_errors : more rows, where none of them is an error.
    at_this_rate : more rows, where errors stay as frequent as so far, about; None where they are too frequent.

    Raises
    ------
    ValueError
        When an argument breaks the above, or more than `MOST_ROWS` would be needed.

    Examples
    --------
    >>> more_rows_needed(100, 0, 0.01, confidence=0.95)
    (199, 199)
    """
    n = checks.whole_number("n", n, minimum=0)
    without = max(rows_needed(errors, rate, confidence=confidence) - n, 0)
    rate, delta = checked_level(rate, confidence)
    if n and errors / n >= rate:
        return without, None
    try:
        total = _fewest(max(n, 1), lambda rows: shows(errors * rows // max(n, 1), rows, rate, delta))
    except ValueError:
        return without, None
    return without, max(total - n, without)


def _fewest(start: int, enough: Callable[[int], bool]) -> int:
    """Return the smallest n ≥ start that is enough, where more always are."""
    below, above = start - 1, start
    while not enough(above):
        below, above = above, 2 * above
        if above > MOST_ROWS:
            raise ValueError(f"more than {MOST_ROWS:,} rows would be needed")
    while above - below > 1:
        middle = (below + above) // 2
        if enough(middle):
            above = middle
        else:
            below = middle
    return above
