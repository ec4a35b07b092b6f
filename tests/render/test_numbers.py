"""Numbers cannot be misread: no false 0 or 1, no lost sign, no bound that looks met and is not."""

import contextlib
import locale
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headeval.core.intervals import Interval
from headeval.metric import Metric
from headeval.render.numbers import (
    count,
    edges,
    exact,
    interval_text,
    level,
    measured,
    metric_value,
    number,
    percent,
    scientific,
    share,
    signed,
)

finite = st.floats(allow_nan=False, allow_infinity=False)
probabilities = st.floats(0, 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (1.0, "1.0000"),
        (0.87534, "0.8753"),
        (0.99996, ">0.9999"),
        (math.nextafter(1, 0), ">0.9999"),
        (0.99994, "0.9999"),
        (0.00004, "<0.0001"),
        (5e-324, "<0.0001"),
        (-0.00004, ">-0.0001"),
        (-0.99999, "<-0.9999"),
        (-0.25, "-0.2500"),
        (512.5, "512.5000"),
        (12345678.9, "1.23457e+07"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        (math.nan, "undefined"),
    ],
)
def test_a_number_is_shown_as_decided(value: float, text: str) -> None:
    assert number(value) == text


@given(probabilities, st.integers(1, 8))
def test_a_rounded_probability_is_true_of_the_value(value: float, digits: int) -> None:
    text = number(value, digits)
    if text[0] == "<":
        assert 0 < value < float(text[1:])
    elif text[0] == ">":
        assert float(text[1:]) < value < 1
    else:
        assert abs(float(text) - value) <= 0.5001 * 10**-digits
        assert (float(text) == 0) == (value == 0)
        assert (float(text) == 1) == (value == 1)


@given(finite)
def test_a_number_keeps_its_sign(value: float) -> None:
    text = number(value).lstrip("<>")
    assert text.startswith("-") == (value < 0)
    assert signed(value).lstrip("<>").startswith("+") == (value > 0)


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "+0.5000"), (-0.5, "-0.5000"), (0.0, "0.0000"), (1e-9, "<+0.0001"), (-1e-9, ">-0.0001")]
)
def test_a_difference_shows_its_sign(value: float, text: str) -> None:
    assert signed(value) == text


@given(finite)
def test_an_exact_number_reads_back_as_the_same_float(value: float) -> None:
    assert float(exact(value)) == value
    assert not exact(value).endswith(".0")


@given(probabilities, probabilities)
def test_a_measured_value_shows_on_which_side_of_the_bound_it_lies(value: float, bound: float) -> None:
    shown = float(measured(value, bound))
    assert (shown < bound, shown > bound) == (value < bound, value > bound)


def test_a_measured_value_that_equals_its_bound_looks_equal() -> None:
    third = 1 / 3
    assert float(measured(third, third)) == third
    assert measured(0.95, 0.95) == "0.9500"
    assert measured(math.inf, 0.5) == "∞"


@given(st.lists(probabilities, min_size=2, max_size=12, unique=True).map(sorted))
def test_different_edges_look_different(values: list[float]) -> None:
    assert len(set(edges(values))) == len(values)


def test_edges_have_no_trailing_zeros() -> None:
    assert edges([i / 10 for i in range(11)]) == ["0", *(f"0.{i}" for i in range(1, 10)), "1"]


def test_counts_have_commas_whatever_the_locale() -> None:
    before = locale.setlocale(locale.LC_ALL)
    with contextlib.suppress(locale.Error):  # where it is not installed, the plain check is left
        locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
    try:
        assert (count(1234567), share(1000, 2000), number(0.5)) == ("1,234,567", "1,000/2,000", "0.5000")
    finally:
        locale.setlocale(locale.LC_ALL, before)


def test_a_metric_without_a_number_is_called_undefined() -> None:
    assert metric_value(Metric(None, "nothing is flagged")) == "undefined"
    assert metric_value(Metric(math.inf, "p = 0 in 1 row")) == "∞"
    assert metric_value(Metric(1600.0), whole=True) == "1,600"
    assert metric_value(Metric(0.5)) == "0.5000"


def test_a_residual_is_shown_by_its_order_of_magnitude() -> None:
    assert (scientific(3.4e-13), scientific(0.0)) == ("3e-13", "0")


@given(finite, finite)
def test_an_interval_shows_its_ends_as_numbers_are_shown(lower: float, upper: float) -> None:
    assert interval_text(Interval(lower, upper, 0.95, "m")) == f"[{number(lower)}, {number(upper)}]"


@given(st.integers(1, 99_999))
def test_a_confidence_is_never_rounded(thousandths_of_a_per_cent: int) -> None:
    confidence = thousandths_of_a_per_cent / 100_000
    shown = percent(confidence)
    assert float(shown.removesuffix(" %")) == pytest.approx(100 * confidence, rel=1e-9, abs=0)
    assert level(confidence) == f"{shown} interval"
    assert level(0.95) == "95 % interval"
