"""Rows become unit vectors whatever their length, type or scale."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headeval.core.vectors import unit_vectors

finite = st.floats(allow_nan=False, allow_infinity=False)


def exact_direction(row: list[float]) -> list[float]:
    with mpmath.workdps(60):
        norm = mpmath.sqrt(mpmath.fsum(mpmath.mpf(v) ** 2 for v in row))
        return [float(mpmath.mpf(v) / norm) if norm else 0.0 for v in row]


@pytest.mark.parametrize("scale", [1.0, 0.01, 100.0])
def test_length_does_not_matter(scale: float) -> None:
    assert unit_vectors([[3.0 * scale, 4.0 * scale]])[0] == pytest.approx([0.6, 0.8], rel=1e-15)


def test_zero_row_stays_zero_beside_others() -> None:
    assert unit_vectors([[0.0, 0.0], [3.0, 4.0], [-0.0, 0.0]]).tolist() == [[0.0, 0.0], [0.6, 0.8], [0.0, 0.0]]


@given(st.lists(finite, min_size=1, max_size=8))
def test_direction_is_exact_over_the_whole_range_of_float64(row: list[float]) -> None:
    # Components more than 1e-300 below the largest may be lost: they cannot move a product.
    assert unit_vectors([row])[0] == pytest.approx(exact_direction(row), rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("value", [5e-324, 2.3e-308, 1e-170, 1e-160, 1e-140, 1e140, 1e170, 1.7e308])
def test_huge_and_tiny_rows_have_length_one(value: float) -> None:
    assert unit_vectors([[value, -value]])[0] == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)], rel=1e-15)


@pytest.mark.parametrize("scale", [1e-100, 0.01, 1.0, 100.0, 1e100])
def test_ordinary_rows_are_the_plain_quotient(scale: float) -> None:
    """To the last bit, as others compute it, in whatever order the numbers lie in memory."""
    e = scale * np.random.default_rng(0).normal(size=(50, 37))
    expected = e / np.sqrt((e * e).sum(axis=1, keepdims=True))
    assert expected == pytest.approx(e / np.linalg.norm(e, axis=1, keepdims=True), rel=1e-15)
    for layout in (e, np.asfortranarray(e)):
        units = unit_vectors(layout)
        assert units.tolist() == expected.tolist()
        assert units.flags.c_contiguous


def test_an_overflow_or_underflow_of_squares_is_no_error_even_where_others_make_it_one() -> None:
    with np.errstate(all="raise"):
        assert unit_vectors([[1e300, 1e-300], [1e-300, 0.0], [1.0, 1e-200]]).tolist() == [[1, 0], [1, 0], [1, 1e-200]]


def test_rows_do_not_depend_on_their_neighbours() -> None:
    e = np.vstack([np.random.default_rng(1).normal(size=(5, 3)), [[1e200, 1.0, 0.0]], [[0.0, 0.0, 0.0]]])
    alone = np.vstack([unit_vectors(row[None, :]) for row in e])
    assert unit_vectors(e).tobytes() == alone.tobytes()


def test_input_is_left_alone_and_its_type_does_not_matter() -> None:
    e = np.array([[3.0, 4.0], [0.0, 2.0], [1e200, 0.0]])[:2]
    e.flags.writeable = False
    expected = unit_vectors(e).tolist()
    for same in (e.tolist(), e.astype(np.int32), e.astype(np.float16), e.astype(np.float32), np.asfortranarray(e)):
        assert unit_vectors(same).tolist() == expected
    assert e.tolist() == [[3.0, 4.0], [0.0, 2.0]]


def test_huge_input_is_left_alone() -> None:
    e = np.array([[1e200, 1e200]])
    unit_vectors(e)
    assert e.tolist() == [[1e200, 1e200]]


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_empty_tables_are_returned_as_they_are(shape: tuple[int, int]) -> None:
    assert unit_vectors(np.empty(shape)).shape == shape


def test_one_embedding_is_one_row() -> None:
    assert unit_vectors([3.0, 4.0]).tolist() == [[0.6, 0.8]]
