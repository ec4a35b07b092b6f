"""The parts of the Brier score against exact fractions, and the identity that makes them parts."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headeval.core.brier import BrierParts, brier_parts
from headeval.core.calibration import Binning, reliability_table
from headeval.core.proper_scores import brier_score

near_one = st.integers(1, 400).map(lambda k: 1 - k * 2.0**-52)
anything = st.one_of(st.floats(0, 1), st.floats(0, 1e-9), near_one, st.sampled_from([0.0, 0.1, 0.5, 1.0]))
weight = st.one_of(st.floats(0, 10), st.sampled_from([0.0, 1.0, 1e-9, 1e9]))
rows_of = st.lists(st.tuples(anything, st.integers(0, 1), weight), min_size=1, max_size=40)
NAMES = ("reliability", "resolution", "uncertainty", "within_bin_variance", "within_bin_covariance")


def parts_of(p: Any, y: Any, w: Any = None, n_bins: int = 10, binning: Binning = "equal-width") -> BrierParts:
    table = reliability_table(p, y, convention="positive-class", n_bins=n_bins, binning=binning, weights=w)
    return brier_parts(p, y, table, weights=w)


def exact_sum(terms: Iterable[float | Fraction]) -> Fraction:
    return sum((Fraction(term) for term in terms), Fraction(0))


def exact_brier(p: list[float], y: list[int], w: list[float]) -> Fraction:
    return exact_sum(Fraction(v) * (Fraction(a) - b) ** 2 for a, b, v in zip(p, y, w, strict=True)) / exact_sum(w)


def exact_parts(rows: list[tuple[float, int, float]], edges: list[float]) -> dict[str, Fraction]:
    """Straight from the definitions, with bins (lo, hi]."""
    total = exact_sum(w for _, _, w in rows)
    share = exact_sum(Fraction(w) * y for _, y, w in rows) / total
    parts = dict.fromkeys(NAMES, Fraction(0))
    parts["uncertainty"] = share * (1 - share)
    for b, hi in enumerate(edges):
        held = [(Fraction(p), y, Fraction(w)) for p, y, w in rows if p <= hi and w > 0 and (b == 0 or edges[b - 1] < p)]
        if not held:
            continue
        inside = exact_sum(w for _, _, w in held)
        p_mean = exact_sum(w * p for p, _, w in held) / inside
        y_mean = exact_sum(w * y for _, y, w in held) / inside
        parts["reliability"] += inside / total * (p_mean - y_mean) ** 2
        parts["resolution"] += inside / total * (y_mean - share) ** 2
        parts["within_bin_variance"] += exact_sum(w * (p - p_mean) ** 2 for p, _, w in held) / total
        parts["within_bin_covariance"] += 2 * exact_sum(w * (p - p_mean) * (y - y_mean) for p, y, w in held) / total
    return parts


@given(rows_of.filter(lambda rows: any(w for _, _, w in rows)), st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=150)
def test_each_part_is_the_exact_one(rows: list[tuple[float, int, float]], n_bins: int) -> None:
    p, y, w = (list(column) for column in zip(*rows, strict=True))
    exact = exact_parts(rows, [(b + 1) / n_bins for b in range(n_bins)])
    parts = parts_of(p, y, w, n_bins)
    slack = 1e-15 * float(max(map(abs, exact.values()))) + 1e-300  # products of tiny numbers underflow
    for name in NAMES:
        assert getattr(parts, name) == pytest.approx(float(exact[name]), rel=1e-14, abs=slack), name


@pytest.mark.parametrize("binning", ["equal-width", "equal-mass"])
@given(rows=rows_of.filter(lambda rows: any(w for _, _, w in rows)), n_bins=st.integers(1, 30), weighted=st.booleans())
@settings(max_examples=150)
def test_parts_add_up_to_the_brier_score(
    rows: list[tuple[float, int, float]], n_bins: int, weighted: bool, binning: Binning
) -> None:
    """The sum is off by no more than the rounding of its largest term, also where the score is a millionth of it."""
    p, y, w = (list(column) for column in zip(*rows, strict=True))
    parts = parts_of(p, y, w if weighted else None, n_bins, binning)
    exact = exact_brier(p, y, w if weighted else [1.0] * len(p))
    largest = max(abs(getattr(parts, name)) for name in NAMES)
    assert abs(Fraction(parts.score) - exact) <= 1e-15 * largest + 1e-300  # squares underflow


@pytest.mark.parametrize("sharp", [0, 1])
def test_many_rows_do_not_add_up_their_rounding(sharp: int) -> None:
    rng = np.random.default_rng(0)
    p = 0.9 + 0.1 * rng.random(50000) if sharp else rng.random(50000)
    y = np.zeros(50000, dtype=int) if sharp else (rng.random(50000) < p).astype(int)
    parts = parts_of(p, y)
    exact = exact_brier(p.tolist(), y.tolist(), [1.0] * 50000)
    assert abs(Fraction(parts.score) - exact) <= 1e-15 * max(parts.reliability, parts.uncertainty)
    assert parts.score == pytest.approx(brier_score(p, y), rel=1e-13)


@pytest.mark.parametrize("n_bins", [1, 2])
def test_probabilities_a_rounding_apart_keep_their_variance(n_bins: int) -> None:
    """Floats just below 1 lie 2⁻⁵³ apart; their mean does not, and what it is off by is taken off again."""
    rows = [(1 - k * 2.0**-53, int(k % 3 > 0), 1.0) for k in (0, 1, 1, 3, 4, 8, 9)]
    p, y, _ = (list(column) for column in zip(*rows, strict=True))
    exact, parts = exact_parts(rows, [(b + 1) / n_bins for b in range(n_bins)]), parts_of(p, y, None, n_bins)
    for name in NAMES:
        assert getattr(parts, name) == pytest.approx(float(exact[name]), rel=1e-13, abs=1e-40), name


def test_parts_by_hand() -> None:
    # Bins (0, ½] with p ¼ ¼ ½, one positive, and (½, 1] with p 1, one positive: p̄ ⅓ and 1, ȳ ⅓ and 1, ȳ ½ in all.
    parts = parts_of([0.25, 0.25, 0.5, 1.0], [0, 0, 1, 1], n_bins=2)
    assert parts.reliability == pytest.approx(0, abs=1e-30)
    assert parts.resolution == pytest.approx(3 / 4 * (1 / 6) ** 2 + 1 / 4 * (1 / 2) ** 2, rel=1e-15)
    assert parts.uncertainty == 0.25
    assert parts.within_bin_variance == pytest.approx((2 * (1 / 12) ** 2 + (1 / 6) ** 2) / 4, rel=1e-15)
    assert parts.within_bin_covariance == pytest.approx(2 * (2 / 12 / 3 + 2 / 3 / 6) / 4, rel=1e-15)
    assert parts.score == pytest.approx((1 / 16 + 1 / 16 + 1 / 4) / 4, rel=1e-15)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), min_size=1, max_size=40))
def test_within_bin_terms_vanish_where_every_bin_holds_one_probability(rows: list[tuple[int, int]]) -> None:
    p, y = [(b + 0.37) / 10 for b, _ in rows], [label for _, label in rows]
    parts = parts_of(p, y)
    assert parts.within_bin_variance == pytest.approx(0, abs=1e-31)
    assert parts.within_bin_covariance == pytest.approx(0, abs=1e-16)
    murphy = parts.reliability - parts.resolution + parts.uncertainty
    assert murphy == pytest.approx(brier_score(p, y), rel=1e-13, abs=1e-16)


def test_a_weight_of_two_is_the_row_twice() -> None:
    rng = np.random.default_rng(1)
    p, y, w = rng.random(60), rng.integers(0, 2, 60), rng.integers(0, 4, 60)
    weighted, repeated = parts_of(p, y, w), parts_of(np.repeat(p, w), np.repeat(y, w))
    for name in NAMES:
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), rel=1e-13), name


@given(rows_of)
def test_signs_and_limits(rows: list[tuple[float, int, float]]) -> None:
    p, y, _ = (list(column) for column in zip(*rows, strict=True))
    parts = parts_of(p, y)
    assert min(parts.reliability, parts.resolution, parts.uncertainty, parts.within_bin_variance) >= 0
    assert parts.resolution <= parts.uncertainty * (1 + 1e-14)
    if len(set(y)) == 1:
        assert (parts.resolution, parts.uncertainty, parts.within_bin_covariance) == (0, 0, 0)


def test_a_constant_at_the_prevalence_scores_the_uncertainty() -> None:
    parts = parts_of([0.25] * 8, [1, 1, 0, 0, 0, 0, 0, 0])
    assert (parts.reliability, parts.resolution, parts.uncertainty, parts.score) == (0, 0, 0.1875, 0.1875)


def test_the_table_must_be_a_positive_class_one_of_these_rows() -> None:
    p, y = [0.2, 0.9, 0.6], [0, 1, 0]
    with pytest.raises(ValueError, match="table must be a positive-class one, got top-label"):
        brier_parts(p, y, reliability_table(p, y))
    with pytest.raises(ValueError, match="table must be made of these rows"):
        brier_parts(p, y, reliability_table(p[:2], y[:2], convention="positive-class"))
