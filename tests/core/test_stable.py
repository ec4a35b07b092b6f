"""Every exponential against 50-digit arithmetic, up to the ends of the float64 range."""

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from headeval.core.checks import FloatArray
from headeval.core.stable import logit, logsumexp, sigmoid, softmax, softplus

LOGITS = [0.0, -0.0, 1e-300, -1e-300, 0.5, -0.5, 1.0, -1.0, 5.5, -5.5, 36.7, -36.7, 40.0, -40.0, 700.0, -700.0]
# A rounded exponential, sum and quotient: a few units in the last place.
RELATIVE = 1e-15
finite = st.floats(allow_nan=False, allow_infinity=False)


def exact_sigmoid(z: float) -> float:
    with mpmath.workdps(50):
        return float(1 / (1 + mpmath.exp(-mpmath.mpf(z))))


def exact_softplus(z: float) -> float:
    with mpmath.workdps(400):  # 1 + e^(−700) needs 300 digits
        return float(mpmath.log(1 + mpmath.exp(mpmath.mpf(z))))


@pytest.mark.parametrize("z", LOGITS)
def test_sigmoid_keeps_full_relative_precision(z: float) -> None:
    assert sigmoid(z) == pytest.approx(exact_sigmoid(z), rel=RELATIVE, abs=0)


@pytest.mark.parametrize("z", LOGITS)
def test_softplus_keeps_full_relative_precision(z: float) -> None:
    assert softplus(z) == pytest.approx(exact_softplus(z), rel=RELATIVE, abs=0)


@pytest.mark.parametrize("p", [5e-324, 1e-300, 0.01, 0.25, 0.5, 0.625, 0.99, 1 - 2**-53])
def test_logit_keeps_full_precision(p: float) -> None:
    with mpmath.workdps(50):
        exact = mpmath.log(mpmath.mpf(p) / (1 - mpmath.mpf(p)))
    assert logit(p) == pytest.approx(float(exact), rel=RELATIVE, abs=2.3e-16)


def test_logit_of_certainty_is_infinite_and_any_type_is_taken() -> None:
    assert logit([0, 1]).tolist() == [-np.inf, np.inf]
    p = np.array([0.25, 0.5, 0.875], dtype=np.float32)
    assert logit(p).tolist() == logit(p.tolist()).tolist()
    assert logit(p).dtype == np.float64


@pytest.mark.parametrize("function", [sigmoid, softplus, logsumexp, softmax])
def test_an_underflow_is_no_error_even_where_others_make_it_one(function: Callable[[ArrayLike], FloatArray]) -> None:
    with np.errstate(all="raise"):
        assert np.isfinite(function([[-800.0, 0.0], [-710.0, -1500.0]])).all()


def test_sigmoid_is_exact_at_the_ends() -> None:
    z = [1000.0, -1000.0, 1e4, -1e4, 1e308, -1e308, np.inf, -np.inf]
    assert sigmoid(z).tolist() == [1.0, 0.0] * 4


def test_smallest_probabilities_are_not_lost() -> None:
    assert sigmoid(-744.0) > 0
    assert softplus(-744.0) > 0


def test_softplus_of_a_huge_logit_is_the_logit() -> None:
    assert softplus([1e308, -1e308, 1e4, -1e4]).tolist() == [1e308, 0.0, 1e4, 0.0]


@given(finite)
def test_sigmoid_and_its_mirror_sum_to_one(z: float) -> None:
    assert float(sigmoid(z) + sigmoid(-z)) == pytest.approx(1.0, abs=2.3e-16)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=6))
def test_softmax_and_logsumexp_match_exact_arithmetic(z: list[float]) -> None:
    with mpmath.workdps(60):
        powers = [mpmath.exp(mpmath.mpf(v)) for v in z]
        expected = [float(power / mpmath.fsum(powers)) for power in powers]
        log_total = float(mpmath.log(mpmath.fsum(powers)))
    assert softmax(z) == pytest.approx(expected, rel=2e-14, abs=0)
    assert float(logsumexp(z)) == pytest.approx(log_total, rel=1e-14, abs=1e-14)


def test_reference_softmax_of_the_zero_vectors_biases() -> None:
    assert softmax([0.0, -1.0]) == pytest.approx([0.731059, 0.268941], abs=5e-7)
    assert softmax([0.0, 1.2])[1] == pytest.approx(0.768525, abs=5e-7)


@pytest.mark.parametrize("z", [[1e308, -1e308], [0.0, -1e4], [1e4, 0.0]])
def test_softmax_survives_gaps_beyond_float64(z: list[float]) -> None:
    assert softmax(z).tolist() == [1.0, 0.0]
    assert float(logsumexp(z)) == z[0]


def test_softmax_and_logsumexp_work_along_the_last_axis() -> None:
    z = np.log(np.arange(1.0, 13.0)).reshape(2, 2, 3)
    assert np.exp(logsumexp(z)) == pytest.approx(np.array([[6.0, 15.0], [24.0, 33.0]]))
    assert softmax(z)[1, 0] == pytest.approx(np.array([7, 8, 9]) / 24)


@pytest.mark.parametrize("function", [sigmoid, softplus, logsumexp, softmax])
def test_input_is_left_alone_and_its_type_does_not_matter(function: Callable[[ArrayLike], FloatArray]) -> None:
    z = np.array([[-2.0, 0.0, 3.0], [1.0, 1.0, 1.0]])
    z.flags.writeable = False
    expected = function(z).tolist()
    for same in (z.tolist(), z.astype(np.int64), z.astype(np.float32), z.astype(np.int8)):
        result = function(same)
        assert result.dtype == np.float64
        assert result.tolist() == expected
