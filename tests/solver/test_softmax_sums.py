"""Sums over blocks for C classes are the sums of their definitions, with the same bits however rows are divided."""

import pickle

import numpy as np
import pytest
from scipy import special

from headeval.core.vectors import unit_vectors
from headeval.solver.memory import ArraySource
from headeval.solver.rows import RowColumns, Rows
from headeval.solver.softmax_hessians import ClassHessians, HessianTimes, MeanCurvature, SoftmaxHessian, zero_sum_basis
from headeval.solver.softmax_path import ClassHeldOutLoss
from headeval.solver.softmax_sums import ClassRowsMoved, SoftmaxLossAndGradient
from headeval.solver.source import Sum, threads_for
from headeval.solver.stream import StreamSource
from headeval.solver.sums import Together

C = 4


def some_rows(n: int = 60, d: int = 5, *, seed: int = 0, dtype: str = "f4") -> tuple[np.ndarray, RowColumns]:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * rng.uniform(0.1, 9, (n, 1))).astype(dtype)
    columns = RowColumns(rng.integers(0, C, n).astype(np.uint8), rng.uniform(0, 2, n), rng.integers(0, 3, n, np.int16))
    return X, columns


def weights(d: int, k: int = 1, *, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(k, C, d + 1))


def every_sum(d: int) -> list[Sum]:
    W = weights(d, 5)
    return [
        SoftmaxLossAndGradient(W[:1], (None,)),
        SoftmaxLossAndGradient(W, (None, 0, 1, 2, None)),
        SoftmaxLossAndGradient(W, (None, 0, 1, 2, None), single=True),
        SoftmaxHessian(W[0], 1),
        SoftmaxHessian(W[0], single=True, few=True),
        ClassHessians(W[0]),
        MeanCurvature(W[0]),
        HessianTimes(W[0], W[1], 2),
        ClassRowsMoved(W[0], 1.0),
        ClassHeldOutLoss(W, (0, 1, 2, 0, 1)),
        Together((SoftmaxLossAndGradient(W[:3], (None, 0, 1)), SoftmaxHessian(W[0], single=True))),
    ]


def dense(X: np.ndarray, columns: RowColumns, W: np.ndarray, left_out: int | None) -> tuple[np.ndarray, ...]:
    """Return s, (u, 1), the one-hot labels and p, from their definitions."""
    s = np.asarray(columns.weights) * (columns.folds != left_out)
    Xa = np.column_stack([unit_vectors(X), np.ones(len(X))])
    return s, Xa, np.eye(C)[columns.labels], special.softmax(Xa @ W.T, axis=1)


def test_loss_gradient_and_hessian_are_those_of_the_definition() -> None:
    X, columns = some_rows()
    source, W, V = ArraySource.of(X, columns), *weights(5, 2)
    for left_out in (None, 1):
        s, Xa, T, p = dense(X, columns, W, left_out)
        losses, gradients, wrong = source.total(SoftmaxLossAndGradient(W[None], (left_out,)))
        assert losses[0] == pytest.approx(-(s[:, None] * T * np.log(p)).sum(), rel=1e-12)
        np.testing.assert_allclose(gradients[0], (s[:, None] * (p - T)).T @ Xa, rtol=0, atol=1e-12)
        assert wrong[0] == np.count_nonzero((p.argmax(axis=1) != columns.labels) & (s > 0))
        A = np.einsum("nc,ce->nce", p, np.eye(C)) - np.einsum("nc,ne->nce", p, p)
        H = np.einsum("n,nce,nj,nk->cjek", s, A, Xa, Xa)
        Q = zero_sum_basis(C)
        inner = np.einsum("ca,cjek,eb->ajbk", Q, H, Q).reshape(18, 18)
        np.testing.assert_allclose(source.total(SoftmaxHessian(W, left_out))[0], inner, rtol=0, atol=1e-12)
        np.testing.assert_allclose(source.total(SoftmaxHessian(W, left_out, True))[0], inner, rtol=0, atol=1e-4)
        times = np.einsum("cjek,ek->cj", H, V)
        np.testing.assert_allclose(source.total(HessianTimes(W, V, left_out))[0], times, rtol=0, atol=1e-12)
        if left_out is None:
            np.testing.assert_allclose(source.total(ClassHessians(W))[0], np.einsum("cjck->cjk", H), rtol=0, atol=1e-4)
            np.testing.assert_allclose(
                source.total(MeanCurvature(W))[0], np.einsum("n,nce->ce", s, A), rtol=0, atol=1e-12
            )


def test_gradient_and_hessian_are_the_differences_of_the_loss_and_of_the_gradient() -> None:
    X, columns = some_rows()
    source, W, V = ArraySource.of(X, columns), *weights(5, 2)
    step = 1e-5

    def at(change: float) -> tuple[float, np.ndarray]:
        losses, gradients, _ = source.total(SoftmaxLossAndGradient((W + change * V)[None], (None,)))
        return float(losses[0]), gradients[0]

    (up, g_up), (_, g), (down, g_down) = at(step), at(0.0), at(-step)
    assert (up - down) / (2 * step) == pytest.approx(float((g * V).sum()), abs=1e-6)
    product = source.total(HessianTimes(W, V))[0]
    np.testing.assert_allclose((g_up - g_down) / (2 * step), product, rtol=0, atol=1e-6)


def test_held_out_losses_are_those_of_the_rows_of_each_fold() -> None:
    X, columns = some_rows()
    W = weights(5, 3)
    losses, counted = ArraySource.of(X, columns).total(ClassHeldOutLoss(W, (0, 1, 1)))
    for place, fold in enumerate((0, 1, 1)):
        s, _, T, p = dense(X, columns, W[place], None)
        s *= columns.folds == fold
        assert losses[place] == pytest.approx(-(s[:, None] * T * np.log(p)).sum(), rel=1e-12)
        assert counted[place] == pytest.approx(s.sum(), rel=1e-12)


def test_rows_far_on_their_own_side_still_count() -> None:
    """p rounds to 1, and p − 1 as a difference would be 0."""
    W = np.array([[[50.0, 0.0], [0.0, 0.0], [0.0, 0.0]]])
    source = ArraySource.of(np.ones((1, 1)), RowColumns(np.zeros(1, dtype=np.uint8)))
    losses, gradients, wrong = source.total(SoftmaxLossAndGradient(W, (None,)))
    r = np.exp(-50.0)
    assert losses[0] == pytest.approx(2 * r, rel=1e-12, abs=0.0)
    np.testing.assert_allclose(gradients[0, :, 0], [-2 * r, r, r], rtol=1e-12)
    assert wrong[0] == 0
    far = source.total(SoftmaxLossAndGradient(-1e4 * W, (None,)))
    assert far[0][0] == pytest.approx(5e5 + np.log(2))
    assert far[2][0] == 1


def test_a_row_on_the_border_is_not_on_its_own_side() -> None:
    source = ArraySource.of(np.ones((1, 1)), RowColumns(np.zeros(1, dtype=np.uint8)))
    assert source.total(SoftmaxLossAndGradient(np.zeros((1, 3, 2)), (None,)))[2][0] == 1


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_and_blocks_change_no_bit(threads: int) -> None:
    n, d = 9000, 150
    X, columns = some_rows(n, d)
    one = ArraySource(Rows.prepared(X, columns), threads=1)
    many = ArraySource(Rows.prepared(X, columns), threads=threads)
    heights = [slice(first, first + 701) for first in range(0, n, 701)]
    streamed = StreamSource(
        lambda name: (X[part].copy() for part in heights), columns, d, X.dtype, sample_bytes=X.nbytes, threads=threads
    )
    for what in every_sum(d):
        first = [part.tobytes() for part in one.total(what)]
        assert first == [part.tobytes() for part in many.total(what)]
        assert first == [part.tobytes() for part in streamed.total(what)]


def test_sums_can_be_sent_to_where_the_rows_are() -> None:
    X, columns = some_rows()
    source = ArraySource.of(X, columns)
    for what in every_sum(5):
        sent = pickle.loads(pickle.dumps(what))  # noqa: S301 - written a moment ago
        assert [a.tobytes() for a in source.total(sent)] == [a.tobytes() for a in source.total(what)]


def test_more_than_256_classes_have_wider_codes() -> None:
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(900, 3)), (np.arange(900) % 300).astype(np.int16)
    source = ArraySource.of(X, RowColumns(codes))  # type: ignore[arg-type]
    losses, *_ = source.total(SoftmaxLossAndGradient(np.zeros((1, 300, 4)), (None,)))
    assert losses[0] == pytest.approx(900 * np.log(300))


def test_large_sums_of_many_classes_do_not_wait_in_dozens() -> None:
    W = np.zeros((430, 385))
    assert threads_for(ClassHessians(W), 384, 64) <= 2
    assert threads_for(SoftmaxLossAndGradient(W[None], (None,)), 384, 64) == 64


@pytest.mark.parametrize("n_classes", [2, 3, 50])
def test_the_basis_is_orthonormal_and_sums_to_zero(n_classes: int) -> None:
    Q = zero_sum_basis(n_classes)
    np.testing.assert_allclose(Q.T @ Q, np.eye(n_classes - 1), rtol=0, atol=1e-14)
    np.testing.assert_allclose(Q.sum(axis=0), 0.0, rtol=0, atol=1e-14)


def test_rows_moved_are_those_that_count_and_have_a_logit_that_moves() -> None:
    X, columns = some_rows()
    s, folds = np.asarray(columns.weights), np.asarray(columns.folds)
    s[:20] = 0.0
    change = weights(5)[0]
    z = np.column_stack([unit_vectors(X), np.ones(60)]) @ change.T
    for left_out in (None, 1):
        counts = (s > 0) & (folds != (-1 if left_out is None else left_out))
        for by in (0.5, 1.5):
            expected = np.count_nonzero((np.abs(z) > by).any(axis=1) & counts)
            assert 0 < expected < counts.sum()
            assert ArraySource.of(X, columns).total(ClassRowsMoved(change, by, left_out))[0][0] == expected
