"""The text of the values of a column of names: equal values have the same, whatever type they are stored in."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_WHOLE = 1e22  # up to which every whole float64 is written with its digits, as an integer is


def value_texts(values: pa.Array) -> list[str | None]:
    """Return the text of each value; None for a null.

    Numbers show neither scale nor exponent where they are whole, times end in no zeros, and a timestamp with a zone is
    its instant in UTC.

    Parameters
    ----------
    values : bool, numbers, text, dates, times, durations or timestamps.

    Raises
    ------
    pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid : for types that Arrow makes no text of.

    Examples
    --------
    >>> value_texts(pa.array([3.0, 0.5, 123456789012.0]))
    ['3', '0.5', '123456789012']
    >>> value_texts(pa.array([1500, 2000, None], pa.timestamp("ms", "Asia/Tokyo")))
    ['1970-01-01 00:00:01.5Z', '1970-01-01 00:00:02Z', None]
    """
    kind = values.type
    if pa.types.is_float16(kind):
        return value_texts(values.cast(pa.float32()))
    if pa.types.is_boolean(kind):
        return [None if value is None else str(value).lower() for value in values.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if value is None else _plain_decimal(value) for value in values.to_pylist()]
    if pa.types.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        return [None if ticks is None else _instant(ticks, kind.unit) + zone for ticks in _ticks(values)]
    if pa.types.is_duration(kind):
        return [None if ticks is None else f"{_seconds(ticks, kind.unit)} s" for ticks in _ticks(values)]
    texts: list[str | None] = values.cast(pa.large_string()).to_pylist()
    if pa.types.is_time(kind):
        return [None if text is None else _without_zeros(text) for text in texts]
    if pa.types.is_floating(kind):
        numbers = zip(texts, values.to_pylist(), strict=True)
        return [None if text is None else _whole(text, number) for text, number in numbers]
    return texts


def _ticks(values: pa.Array) -> list[int | None]:
    ticks: list[int | None] = values.view(pa.int64()).to_pylist()
    return ticks


def _instant(ticks: int, unit: str) -> str:
    whole, rest = divmod(ticks, _PER_SECOND[unit])
    try:
        text = (_EPOCH + timedelta(seconds=whole)).replace(tzinfo=None).isoformat(sep=" ")
    except OverflowError:  # beyond the years that have a calendar here
        return f"{_seconds(ticks, unit)} s after 1970"
    return _without_zeros(f"{text}.{rest * (10**9 // _PER_SECOND[unit]):09d}")


def _seconds(ticks: int, unit: str) -> str:
    return _plain_decimal(Decimal(ticks) / _PER_SECOND[unit])


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _plain_decimal(value: Decimal) -> str:
    """Return a decimal without exponent and closing zeros, so that no scale shows: Arrow writes 0 as 0E-18."""
    return _without_zeros(format(value, "f"))


def _whole(text: str, value: Any) -> str:
    """Arrow writes the float 123456789012 as 1.23456789012e+11, and the integer with its digits."""
    return str(int(value)) if abs(value) < _LONGEST_WHOLE and value == int(value) else text
