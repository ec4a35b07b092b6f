"""What very many rows are spared, checked on few: the same bins, sums and fits by the short way and by the long one."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from headeval.core import bins, brier, cox, cox_many
from headeval.core.bins import Convention, bins_of_rows
from headeval.core.brier import parts_of_bins
from headeval.core.calibration import reliability_table
from headeval.core.calibration_evidence import noise_of_bins
from headeval.core.cox import cox_calibration

CONVENTIONS: tuple[Convention, ...] = ("top-label", "top-label-left", "positive-class")


def rows(n: int = 3000, seed: int = 0, *, ordered: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities with ties and values on the edges of bins."""
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(n) < 0.3, rng.integers(0, 31, n) / 30, rng.beta(0.4, 0.8, n))
    y = (rng.random(n) < p**1.3).astype(np.int64)
    order = np.argsort(p) if ordered else np.arange(n)
    return p[order], y[order]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(bins, "_MOST_ONE_BY_ONE", 100)
    monkeypatch.setattr(bins, "_BLOCK", 64)
    monkeypatch.setattr(brier, "_BLOCK", 50)
    return


def by_hand(convention: Convention, p: float, n_bins: int) -> tuple[int, float]:
    """Bin and confidence of a probability, in exact fractions but for the edges, which are floats."""
    one = p >= 0.5 if convention == "top-label" else p > 0.5
    confidence = p if convention == "positive-class" or one else 1.0 - p
    if convention == "top-label-left":
        return sum(confidence >= k / n_bins for k in range(1, n_bins)), confidence
    return sum(confidence > k / n_bins for k in range(1, n_bins)), confidence


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_many_rows_fall_into_the_bins_of_each_by_itself(convention: Convention, ordered: bool) -> None:
    p, y = rows(ordered=ordered)
    found = bins_of_rows(p, y, None, convention=convention, n_bins=15)
    expected = [by_hand(convention, value, 15) for value in p.tolist()]
    assert found.index.tolist() == [index for index, _ in expected]
    assert found.confidence.tolist() == [confidence for _, confidence in expected]
    assert (found.starts is not None) == ordered
    table = found.table()
    sums = [sum((Fraction(c) for index, c in expected if index == b), Fraction(0)) for b in range(15)]
    assert table.confidence.tolist() == pytest.approx(
        [float(total / max(n, 1)) for total, n in zip(sums, found.counts.tolist(), strict=True)], rel=1e-14
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_runs_give_the_table_the_noise_and_the_parts_of_single_rows(
    convention: Convention, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, y = rows(seed=3)
    p, y = p[abs(p - 0.54) > 0.06], y[abs(p - 0.54) > 0.06]  # a bin stays empty
    weights = np.random.default_rng(3).random(p.size) + 0.5 if weighted else None
    found = []
    for most in (10**6, 100):
        monkeypatch.setattr(bins, "_MOST_ONE_BY_ONE", most)
        rows_in_bins = bins_of_rows(p, y, weights, convention=convention, n_bins=12)
        table = rows_in_bins.table()
        noise = noise_of_bins(rows_in_bins, table, rng=np.random.default_rng(1), n_simulations=50)
        parts = parts_of_bins(rows_in_bins) if convention == "positive-class" else None
        found.append((table, noise, parts))
    (one, one_noise, one_parts), (other, other_noise, other_parts) = found
    assert one.counts.tolist() == other.counts.tolist()
    for name in ("confidence", "accuracy", "weight", "ece", "mce"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-15)
    for name in ("mean", "quantile", "p_value", "ece_corrected"):
        assert getattr(one_noise, name) == pytest.approx(getattr(other_noise, name), rel=1e-9)
    if one_parts is not None and other_parts is not None:
        for name in ("reliability", "resolution", "uncertainty", "within_bin_variance", "within_bin_covariance"):
            assert getattr(one_parts, name) == pytest.approx(getattr(other_parts, name), rel=1e-12, abs=1e-17)
        if not weighted:
            assert other_parts.score == pytest.approx(np.mean((p - y) ** 2), rel=1e-12)


@pytest.mark.usefixtures("many")
def test_the_contract_functions_take_many_rows_in_any_order() -> None:
    p, y = rows(ordered=True)
    mixed = np.random.default_rng(0).permutation(p.size)
    one, other = reliability_table(p, y), reliability_table(p[mixed], y[mixed])
    assert one.counts.tolist() == other.counts.tolist()
    assert one.ece == pytest.approx(other.ece, rel=1e-12)


def logits(n: int, seed: int, slope: float, intercept: float, spread: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = np.sort(spread * rng.normal(size=n) - 1)
    return z, (rng.random(n) < 1 / (1 + np.exp(-(slope * z + intercept)))).astype(np.int64)


@pytest.mark.parametrize(
    ("slope", "intercept", "spread"), [(1.0, 0.0, 1.5), (0.3, 1.0, 8.0), (2.5, -1.0, 0.3), (-0.4, 0.0, 2.0)]
)
def test_slope_and_intercept_of_many_rows_are_those_of_the_usual_way(
    slope: float, intercept: float, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To within a ten-millionth of a standard error, and with its interval."""
    z, y = logits(20_000, 4, slope, intercept, spread)
    usual = cox_calibration(z, y)
    monkeypatch.setattr(cox_many, "MANY", 1000)
    monkeypatch.setattr(cox_many, "_BLOCKS", 2**10)
    passes = []
    refined = cox.refined
    monkeypatch.setattr(cox, "refined", lambda *a, **k: passes.append(refined(*a, **k)) or passes[-1])
    found = cox_calibration(z, y)
    assert len(passes) == 2
    assert None not in passes
    for name in ("slope", "intercept"):
        value, interval = getattr(usual, name), getattr(usual, f"{name}_interval")
        width = interval.upper - interval.lower
        assert getattr(found, name) == pytest.approx(value, abs=1e-7 * width)
        again = getattr(found, f"{name}_interval")
        assert (again.lower, again.upper) == pytest.approx((interval.lower, interval.upper), abs=1e-4 * width)


@pytest.mark.parametrize("case", ["separated", "equal", "one class", "far", "unsorted", "one crossing"])
def test_what_the_short_way_cannot_do_is_done_the_usual_way(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    z, y = logits(3000, 5, 1.0, 0.0, 1.5)
    if case == "separated":
        y = (z > 0.3).astype(np.int64)
    elif case == "one crossing":
        y = (z > 0.3).astype(np.int64)
        y[100] = 1
    elif case == "equal":
        z = np.full(3000, 0.7)
    elif case == "one class":
        y = np.ones(3000, dtype=np.int64)
    elif case == "far":
        z[-1] = 1e5
    else:
        z, y = z[::-1].copy(), y[::-1].copy()
    usual = cox_calibration(z, y)
    monkeypatch.setattr(cox_many, "MANY", 1000)
    monkeypatch.setattr(cox_many, "_BLOCKS", 2**8)
    found = cox_calibration(z, y)
    assert (found.slope is None) == (usual.slope is None)
    assert (found.slope_reason, found.intercept_reason) == (usual.slope_reason, usual.intercept_reason)
    if usual.slope is not None:
        assert found.slope == pytest.approx(usual.slope, rel=1e-6)
    if usual.intercept is not None:
        assert found.intercept == pytest.approx(usual.intercept, rel=1e-6)
