"""Numbers as people read them: the one place where a float becomes text, the same in every format and locale."""

import math
from collections.abc import Sequence

from headeval.core.intervals import Interval
from headeval.metric import Metric

DIGITS = 4
UNDEFINED = "undefined"
NOTHING = "–"

_MOST_DIGITS = 17  # a float64 needs no more to be told from its neighbours
_FIXED_POINT_BELOW = 1e6


def number(value: float, digits: int = DIGITS) -> str:
    """Return `value` with `digits` decimals, never rounded on to 0 or 1 when it is neither.

    A share of 0.99996 is not "1.0000" and one of 0.00004 is not "0.0000": both would claim what was not
    measured. They become ">0.9999" and "<0.0001".

    Examples
    --------
    >>> number(0.87531), number(1.0), number(0.99996), number(0.00004), number(-0.00004)
    ('0.8753', '1.0000', '>0.9999', '<0.0001', '>-0.0001')
    """
    if math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= _FIXED_POINT_BELOW:
        return f"{value:.{digits + 2}g}"
    magnitude, unit = abs(value), 10.0**-digits
    text = f"{magnitude:.{digits}f}"
    if float(text) == 0 and magnitude > 0:
        return f"<{unit:.{digits}f}" if value > 0 else f">-{unit:.{digits}f}"
    if float(text) == 1 and magnitude < 1:
        return f">{1 - unit:.{digits}f}" if value > 0 else f"<-{1 - unit:.{digits}f}"
    return f"-{text}" if value < 0 else text


def signed(value: float, digits: int = DIGITS) -> str:
    """Return a difference with its sign; an exact zero has none.

    Examples
    --------
    >>> signed(0.0123), signed(-0.0123), signed(0.0), signed(0.00001)
    ('+0.0123', '-0.0123', '0.0000', '<+0.0001')
    """
    text = number(value, digits)
    if not value > 0:
        return text
    bound = text[0] if text[0] in "<>" else ""
    return f"{bound}+{text[len(bound) :]}"


def exact(value: float) -> str:
    """Return the shortest text that reads back as the same float: thresholds and bounds are not rounded.

    Examples
    --------
    >>> exact(0.5), exact(0.30000000000000004), exact(100.0)
    ('0.5', '0.30000000000000004', '100')
    """
    return number(value) if not math.isfinite(value) else repr(float(value)).removesuffix(".0")


def count(value: float) -> str:
    """Return a number of rows, with commas between thousands.

    Examples
    --------
    >>> count(1234567)
    '1,234,567'
    """
    return f"{int(value):,}"


def share(part: int, whole: int) -> str:
    """Return the fraction behind a rate, so that 7 of 8 is not taken for certainty.

    Examples
    --------
    >>> share(58, 81)
    '58/81'
    """
    return f"{count(part)}/{count(whole)}"


def scientific(value: float) -> str:
    """Return the order of magnitude of a residual.

    Examples
    --------
    >>> scientific(3.21e-13), scientific(0.0)
    ('3e-13', '0')
    """
    return f"{value:.0e}" if value else "0"


def metric_value(metric: Metric, *, whole: bool = False) -> str:
    """Return the number of a metric alone, for a column that has its reason beside it.

    Parameters
    ----------
    whole : for counts, which have no decimals.

    Examples
    --------
    >>> metric_value(Metric(0.87531)), metric_value(Metric(None, "nothing is flagged"))
    ('0.8753', 'undefined')
    """
    if metric.value is None:
        return UNDEFINED
    return count(metric.value) if whole else number(metric.value)


def interval_text(interval: Interval) -> str:
    """Return the bounds of an interval, each as `number` shows it.

    Examples
    --------
    >>> interval_text(Interval(0.84301, 0.99999, 0.95, "Wilson"))
    '[0.8430, >0.9999]'
    """
    return f"[{number(interval.lower)}, {number(interval.upper)}]"


def level(confidence: float) -> str:
    """Return a confidence as it heads a column of intervals.

    Examples
    --------
    >>> level(0.95), level(0.999)
    ('95 % interval', '99.9 % interval')
    """
    return f"{percent(confidence)} interval"


def percent(share: float) -> str:
    """Return a share that somebody chose, in per cent and unrounded.

    Examples
    --------
    >>> percent(0.95), percent(0.001)
    ('95 %', '0.1 %')
    """
    return f"{100 * share:.10g} %"


def measured(value: float, bound: float) -> str:
    """Return `value` with as many decimals as show on which side of `bound` it lies, at least four.

    Examples
    --------
    >>> measured(0.9612, 0.95), measured(0.949996, 0.95), measured(0.99996, 0.99995)
    ('0.9612', '0.949996', '0.99996')
    """
    if not math.isfinite(value):
        return number(value)
    for digits in range(DIGITS, _MOST_DIGITS + 1):
        text = number(value, digits)
        if text[0] not in "<>" and _order(float(text), bound) == _order(value, bound):
            return text
    return exact(value)


def edges(values: Sequence[float]) -> list[str]:
    """Return increasing edges of bins without trailing zeros, with as many decimals as tell them apart.

    Examples
    --------
    >>> edges([0.0, 0.1, 2 / 3, 1.0]), edges([0.0, 0.25001, 0.25002, 1.0])
    (['0', '0.1', '0.6667', '1'], ['0', '0.25001', '0.25002', '1'])
    """
    for digits in range(DIGITS, _MOST_DIGITS + 1):
        texts = [f"{value:.{digits}f}".rstrip("0").rstrip(".") for value in values]
        if len(set(texts)) == len(set(values)):
            return texts
    return [exact(value) for value in values]


def _order(value: float, bound: float) -> int:
    return (value > bound) - (value < bound)
