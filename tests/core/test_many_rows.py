"""What very many rows are spared, checked on few: the same bins, sums and fits by the short way and by the long one."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, special

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
    kept = (abs(p - 0.54) > 0.06) & (p < 0.9)  # a bin in the middle stays empty, and that of p near 1
    p, y = p[kept], y[kept]
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


def test_blocks_are_means_of_neighbours_with_a_weight_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of seven rows in four blocks, {0}, {1, 2}, {3, 4} and {5, 6}; what has no row has no place."""
    monkeypatch.setattr(cox_many, "MANY", 6)
    monkeypatch.setattr(cox_many, "_BLOCKS", 4)
    z, y = np.array([-9.0, -1, 0, 0, 3, 5, 10]), np.array([0, 0, 1, 0, 0, 1, 1])
    found = cox_many.blocks_of_rows(z, y, largest=10.0)
    assert found is not None
    assert [part.tolist() for part in found] == [[-9, -0.5, 1.5, -0.5, 7.5], [0, 0, 0, 1, 1], [0.5, 0.5, 1, 0.5, 1]]
    assert found[1].dtype == np.int64
    assert cox_many.blocks_of_rows(z[1:], y[1:], largest=10.0) is None  # no need of six rows
    assert cox_many.blocks_of_rows(z, y, largest=9.9) is None
    assert cox_many.blocks_of_rows(-z[::-1], y[::-1], largest=9.9) is None
    assert cox_many.blocks_of_rows(z[[0, 1, 2, 3, 5, 4, 6]], y, largest=10.0) is None  # not in order


SCALES = [(0.0, 1.0), (-1.0, 1.5), (3.0, 0.2)]


def optimum(z: np.ndarray, y: np.ndarray, *, fixed: bool) -> tuple[float, float, float]:
    """Slope, intercept and the variance of what is asked for, by scipy and from the textbook's information."""

    def gradient(at: np.ndarray) -> np.ndarray:
        off = special.expit(at[1] * z + at[0]) - y
        return np.array([off.sum(), off @ z])

    if fixed:
        a, b = optimize.brentq(lambda a: gradient(np.array([a, 1.0]))[0], -20, 20, xtol=1e-14, rtol=1e-14), 1.0
    else:
        a, b = optimize.root(gradient, [0.0, 1.0], tol=1e-14).x
    v = special.expit(b * z + a) * special.expit(-b * z - a)
    if fixed:
        return b, a, 1 / v.sum()
    return b, a, float(np.linalg.inv([[v.sum(), v @ z], [v @ z, v @ z**2]])[1, 1])


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("scale", SCALES)
def test_all_rows_refine_a_start_to_their_own_optimum(
    scale: tuple[float, float], fixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the unit in which the steps are made, and however many rows are summed at once."""
    z, y = logits(2500, 6, 0.8, 0.5, 1.5)
    b, a, variance = optimum(z, y, fixed=fixed)
    for rows_at_once, off in ((2**13, 0.3), (700, -0.3), (700, 0.01)):
        monkeypatch.setattr(cox_many, "_AT_ONCE", rows_at_once)
        start = b if fixed else b - off
        found = cox_many.refined(z, y, start, a + off, scale=scale, fixed=fixed)
        assert found is not None
        error = variance**0.5
        assert found.b == (1.0 if fixed else pytest.approx(b, abs=1e-6 * error))
        assert found.a == pytest.approx(a, abs=1e-5 * error)
        assert found.variance == pytest.approx(variance, rel=1e-3)


@pytest.mark.parametrize("fixed", [False, True])
def test_at_the_optimum_nothing_moves_and_the_variance_is_its_own(fixed: bool) -> None:
    z, y = logits(2500, 7, 1.3, -0.5, 1.5)
    b, a, variance = optimum(z, y, fixed=fixed)
    found = cox_many.refined(z, y, b, a, scale=(-1.0, 1.5), fixed=fixed)
    assert found is not None
    assert (found.b, found.a, found.variance) == pytest.approx((b, a, variance), rel=1e-10)


def test_an_information_of_nearly_one_direction_is_not_inverted() -> None:
    """The least determinant is a part in 10¹² of the diagonal's product, whatever the unit of either feature."""
    for squares, total in ((1.0, 1.0), (1e6, 1e6), (1e-6, 1e6), (1e6, 1e-6)):
        for left, regular in ((1e-11, True), (1e-13, False)):
            products = (squares * total * (1 - left)) ** 0.5
            found = cox_many._inverse(np.array([squares, products, total]))
            assert (found is not None) == regular
    found = cox_many._inverse(np.array([5.0, 2.0, 1.0]))
    assert found is not None
    assert found.tolist() == [[1, -2], [-2, 5]]


@pytest.mark.parametrize("fixed", [False, True])
def test_what_gives_no_line_is_none(fixed: bool) -> None:
    z, y = logits(2500, 6, 0.8, 0.5, 1.5)
    for scale in ((0.0, 0.0), (0.0, np.inf), (0.0, np.nan), (0.0, -1.0)):
        assert cox_many.refined(z, y, 1.0, 0.0, scale=scale, fixed=fixed) is None
    assert cox_many.refined(z, y, 1.0, 800.0, scale=(0.0, 1.0), fixed=fixed) is None  # no row is of influence
    assert cox_many.refined(np.full(10, 0.5), y[:10], 1.0, 0.0, scale=(0.5, 1.0), fixed=False) is None  # no slope


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


@pytest.mark.parametrize(
    "case", ["separated", "equal", "one class", "far", "unsorted", "one crossing", "no information", "hardly any"]
)
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
    elif case in {"no information", "hardly any"}:
        z = np.repeat([-1000.0, 1000.0], 1500)
        y = (z > 0).astype(np.int64)
        if case == "hardly any":
            y[[0, -1]] = 1, 0
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
