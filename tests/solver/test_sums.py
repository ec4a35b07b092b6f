"""The sums over blocks are the plain formulas, whatever the rows, their weights, folds and lengths."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from headeval.solver.memory import ArraySource, row_logits
from headeval.solver.penalty_path import HeldOutLoss
from headeval.solver.rows import RowColumns, Rows, tile_rows, tiles
from headeval.solver.source import Sum
from headeval.solver.sums import Hessian, LossAndGradient, RowsMoved, Together, added

# Of a sum of a few hundred terms in float64, relative to the sum of their sizes.
DOUBLE = 1e-13
# float32 keeps about seven digits of each term.
SINGLE = 3e-5


def prepared(
    n: int = 700, d: int = 5, *, weighted: bool = False, folds: int = 0, seed: int = 0, dtype: str = "f4"
) -> Rows:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * rng.uniform(0.01, 100, (n, 1))).astype(dtype)
    X[:: max(2, n // 5)] = 0
    columns = RowColumns(
        rng.integers(0, 2, n).astype(np.uint8),
        rng.uniform(0, 3, n) * (rng.random(n) < 0.9) if weighted else None,
        rng.integers(0, folds, n).astype(np.int16) if folds else None,
    )
    return Rows.prepared(X, columns)


def vectors(k: int, d: int, *, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(k, d + 1)) * 2


def counted(rows: Rows, left_out: int | None) -> np.ndarray:
    s = np.ones(rows.n) if rows.columns.weights is None else rows.columns.weights
    return s if left_out is None or rows.columns.folds is None else s * (rows.columns.folds != left_out)


def extended(rows: Rows, w: np.ndarray) -> tuple[Any, Any, Any]:
    """Return (u, 1), z and p of each row in extended precision."""
    E = rows.embeddings.astype(np.longdouble)
    norms = np.sqrt((E * E).sum(axis=1, keepdims=True))
    Xa = np.column_stack([E / np.where(norms > 0, norms, 1), np.ones(rows.n, dtype=np.longdouble)])
    z = Xa @ w.astype(np.longdouble)
    return Xa, z, 1 / (1 + np.exp(-z))


def plain(rows: Rows, w: np.ndarray, left_out: int | None) -> tuple[float, np.ndarray, float, np.ndarray]:
    """Return loss, gradient, how many rows stand on the wrong side, and Hessian."""
    Xa, z, p = extended(rows, w)
    y, s = rows.columns.labels.astype(np.longdouble), counted(rows, left_out)
    loss = s @ (np.log1p(np.exp(z)) - y * z)
    wrong = np.count_nonzero((np.where(y > 0, z, -z) <= 0) & (s > 0))
    H = (Xa.T * (s * p * (1 - p))) @ Xa
    return float(loss), (Xa.T @ (s * (p - y))).astype(float), float(wrong), H.astype(float)


def whole(what: Sum, rows: Rows) -> tuple[np.ndarray, ...]:
    return ArraySource(rows).total(what)


CASES = [(False, 0), (True, 0), (False, 3), (True, 3)]


@pytest.mark.parametrize(("weighted", "folds"), CASES)
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_loss_and_gradient_are_the_plain_formulas(weighted: bool, folds: int, k: int) -> None:
    rows = prepared(weighted=weighted, folds=folds)
    W = vectors(k, rows.d)
    left_out = tuple((None, 0, 2, 1)[j % 4] if folds else None for j in range(k))
    losses, gradients, wrong = whole(LossAndGradient(W, left_out), rows)
    for j in range(k):
        loss, gradient, wrong_side, _ = plain(rows, W[j], left_out[j])
        assert losses[j] == pytest.approx(loss, rel=DOUBLE)
        np.testing.assert_allclose(gradients[j], gradient, rtol=0, atol=DOUBLE * rows.n * 3)
        assert wrong[j] == wrong_side


@pytest.mark.parametrize(("weighted", "folds"), CASES)
@pytest.mark.parametrize("single", [False, True])
def test_the_hessian_is_the_plain_formula(weighted: bool, folds: int, single: bool) -> None:
    rows = prepared(weighted=weighted, folds=folds)
    w, left_out = vectors(1, rows.d)[0], 1 if folds else None
    (H,) = whole(Hessian(w, left_out, single=single), rows)
    expected = plain(rows, w, left_out)[3]
    assert H.dtype == np.float64
    np.testing.assert_allclose(H, expected, rtol=0, atol=(SINGLE if single else DOUBLE) * np.trace(expected))


def test_the_gradient_is_the_slope_of_the_loss_and_the_hessian_that_of_the_gradient() -> None:
    rows = prepared(120, weighted=True, dtype="f8")
    w = vectors(1, rows.d)[0]

    def loss(v: np.ndarray) -> float:
        return float(whole(LossAndGradient(v[None], (None,)), rows)[0][0])

    def gradient(v: np.ndarray) -> np.ndarray:
        return whole(LossAndGradient(v[None], (None,)), rows)[1][0]

    np.testing.assert_allclose(gradient(w), optimize.approx_fprime(w, loss, 1e-6), atol=1e-3)
    step = 1e-5
    slopes = np.array([(gradient(w + step * e) - gradient(w - step * e)) / (2 * step) for e in np.eye(w.size)])
    np.testing.assert_allclose(whole(Hessian(w), rows)[0], slopes, atol=1e-6)


def test_float32_sums_are_near_those_in_float64() -> None:
    rows = prepared(2000, 30, weighted=True, folds=3)
    W, left_out = vectors(4, 30), (None, 0, 1, 2)
    near, exact = (whole(LossAndGradient(W, left_out, single=single), rows) for single in (True, False))
    np.testing.assert_allclose(near[0], exact[0], rtol=SINGLE)
    np.testing.assert_allclose(near[1], exact[1], atol=SINGLE * 2000)
    assert all(part.dtype == np.float64 for part in near)
    assert not np.array_equal(near[1], exact[1])  # that there is anything to compare


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_rows_beyond_float32_are_summed_in_float64(scale: float) -> None:
    rows = prepared(300, 6)
    far = Rows.prepared((rows.embeddings.astype("f8") * scale).astype("f4"), rows.columns)
    assert not far.moderate
    W = vectors(3, 6)
    near, exact = (whole(LossAndGradient(W, (None,) * 3, single=single), far) for single in (True, False))
    for a, b in zip(near, exact, strict=True):
        assert a.tobytes() == b.tobytes()
    np.testing.assert_allclose(exact[1], whole(LossAndGradient(W, (None,) * 3), rows)[1], atol=1e-3)


@pytest.mark.parametrize("left_out", [None, 0, 1])
def test_a_fold_left_out_is_the_same_as_its_rows_dropped(left_out: int | None) -> None:
    rows = prepared(weighted=True, folds=2)
    kept = rows.part(np.flatnonzero(rows.columns.folds != (-1 if left_out is None else left_out)))
    w = vectors(1, rows.d)[0]
    sums: list[tuple[Sum, Sum]] = [
        (LossAndGradient(w[None], (left_out,)), LossAndGradient(w[None], (None,))),
        (Hessian(w, left_out), Hessian(w)),
        (RowsMoved(w, 1.0, left_out), RowsMoved(w, 1.0)),
    ]
    for masked, dropped in sums:
        for a, b in zip(whole(masked, rows), whole(dropped, kept), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-9)


def test_whole_weights_count_like_repeated_rows() -> None:
    rows = prepared(200, folds=2)
    times = np.random.default_rng(0).integers(0, 4, 200)
    weighted = Rows(
        rows.embeddings,
        rows.inverse_norms,
        RowColumns(rows.columns.labels, times.astype(np.float64), rows.columns.folds),
    )
    repeated = rows.part(np.repeat(np.arange(200), times))
    W = vectors(2, rows.d)
    sums: list[Sum] = [LossAndGradient(W, (None, 1)), Hessian(W[0], 0), HeldOutLoss(W, (0, 1))]
    for what in sums:
        once, many = whole(what, weighted), whole(what, repeated)
        for number, (a, b) in enumerate(zip(once, many, strict=True)):
            if not (isinstance(what, LossAndGradient) and number == 2):  # that one counts rows, not weights
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_losses_are_those_of_each_folds_own_rows(weighted: bool) -> None:
    rows = prepared(weighted=weighted, folds=3)
    W, folds = vectors(6, rows.d), (0, 1, 2, 0, 1, 2)
    losses, weights = whole(HeldOutLoss(W, folds), rows)
    for j, fold in enumerate(folds):
        _, z, _ = extended(rows, W[j])
        s = counted(rows, None) * (rows.columns.folds == fold)
        expected = s @ (np.log1p(np.exp(z)) - rows.columns.labels * z)
        assert losses[j] == pytest.approx(float(expected), rel=1e-12)
        assert weights[j] == pytest.approx(float(s.sum()), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_moved_are_those_that_count_and_whose_logit_moves_by_more(weighted: bool) -> None:
    rows = prepared(weighted=weighted)
    change = vectors(1, rows.d)[0]
    _, z, _ = extended(rows, change)
    for by in (0.0, 0.5, 2.0, 100.0):
        (moved,) = whole(RowsMoved(change, by), rows)
        assert moved[0] == np.count_nonzero((np.abs(z) > by) & (counted(rows, None) > 0))


def test_a_row_far_on_its_own_side_still_pulls() -> None:
    """A residual p − 1 as a difference would be 0 from z = 37 on, and Newton's steps would end too early."""
    rows = Rows.prepared(np.array([[1.0], [1.0]]), RowColumns(np.array([1, 0], dtype=np.uint8)))
    for z in (40.0, 300.0):
        _, gradients, wrong = whole(LossAndGradient(np.array([[z, 0.0], [-z, 0.0]]), (None, None)), rows)
        assert wrong.tolist() == [1.0, 1.0]
        only = rows.part(slice(0, 1))
        g = whole(LossAndGradient(np.array([[z, 0.0]]), (None,)), only)[1]
        np.testing.assert_allclose(g, -np.exp(-z) * np.ones((1, 2)), rtol=1e-12)
        np.testing.assert_allclose(gradients[:, 0], [1.0, -1.0])


def test_together_is_one_after_the_other() -> None:
    rows = prepared(3000, 40, folds=2)
    W = vectors(3, 40)
    parts: tuple[Sum, ...] = (LossAndGradient(W, (None, 0, 1)), Hessian(W[0], single=True))
    both = Together(parts)
    assert both.name == "3 gradients and Hessian"
    for a, b in zip(both.of(rows), [part for what in parts for part in what.of(rows)], strict=True):
        assert a.tobytes() == b.tobytes()
    source = ArraySource(rows)
    source.total(both)
    assert source.passes == 1


@given(n=st.integers(0, 5000), d=st.integers(1, 20_000))
def test_tiles_are_all_rows_once_and_their_bounds_go_by_the_dimension_alone(n: int, d: int) -> None:
    found = list(tiles(n, d))
    assert [row for tile in found for row in range(tile.start, tile.stop)] == list(range(n))
    assert all(tile.start % tile_rows(d) == 0 for tile in found)


@pytest.mark.parametrize("d", [1, 24, 768, 4096, 300_000])
def test_rows_summed_at_once_are_whole_tiles(d: int) -> None:
    w = np.zeros(d + 1)
    sums: list[Sum] = [
        LossAndGradient(w[None], (None,)),
        Hessian(w),
        RowsMoved(w, 1.0),
        HeldOutLoss(w[None], (0,)),
        Together((Hessian(w), RowsMoved(w, 1.0))),
    ]
    for what in sums:
        assert what.rows_at_once(d) % tile_rows(d) == 0
    assert 2 * Hessian(w).rows_at_once(d) >= min(d, 2**31)


def test_sums_are_added_in_float64() -> None:
    total: Any = None
    for part in (np.array([2.0**24], dtype=np.float32), np.array([1.0], dtype=np.float32)):
        total = added(total, (part,))
    assert total[0].tolist() == [2.0**24 + 1]  # which float32 cannot hold


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_pitfall_14_every_sum_is_over_unit_vectors(dtype: str) -> None:
    """A head is scored on unit vectors: the length of an embedding must not count."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 7))
    columns = RowColumns(rng.integers(0, 2, 300).astype(np.uint8), folds=rng.integers(0, 2, 300).astype(np.int16))
    lengths = rng.uniform(0.01, 100.0, (300, 1))
    plain_rows, scaled = (Rows.prepared((X * by).astype(dtype), columns) for by in (1.0, lengths))
    w = vectors(1, 7)[0]
    sums: list[Sum] = [
        LossAndGradient(w[None], (None,)),
        LossAndGradient(w[None], (None,), single=True),
        Hessian(w),
        RowsMoved(w, 0.5),
        HeldOutLoss(w[None], (1,)),
    ]
    for what in sums:
        for a, b in zip(whole(what, scaled), whole(what, plain_rows), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(row_logits(scaled, w[None, None]), row_logits(plain_rows, w[None, None]), atol=1e-5)


def test_a_zero_row_counts_for_the_intercept_alone() -> None:
    rows = Rows.prepared(np.zeros((2, 3), dtype=np.float32), RowColumns(np.array([1, 0], dtype=np.uint8)))
    w = np.array([5.0, -3.0, 2.0, 0.0])
    losses, gradients, _ = whole(LossAndGradient(w[None], (None,)), rows)
    assert losses[0] == pytest.approx(2 * np.log(2), rel=1e-15)
    assert gradients[0].tolist() == [0.0, 0.0, 0.0, 0.0]
    (H,) = whole(Hessian(w), rows)
    assert H[-1, -1] == 0.5
    assert not H[:-1].any()
