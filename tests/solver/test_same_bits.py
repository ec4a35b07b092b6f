"""The same bits whatever the threads and the blocks in which rows come; and where bits may differ, by how much."""

import threading
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headeval.core.logistic import fit_logistic
from headeval.core.vectors import unit_vectors
from headeval.solver.memory import ArraySource
from headeval.solver.optimum import optima
from headeval.solver.penalty_path import HeldOutLoss
from headeval.solver.rows import RowColumns, Rows, tile_rows
from headeval.solver.source import Sum
from headeval.solver.stream import StreamSource
from headeval.solver.sums import Hessian, LossAndGradient, RowsMoved, Together
from headeval.solver.training import Training, train

N, D = 4000, 300  # several tiles, and more than one group of them
# Fits from memory and from a disk take different ways to where ‖g‖∞ ≤ 1e-9: two of them are apart by 2·√301·1e-9/l2.
WAYS_AGREE = 4e-8


def some_rows(n: int = N, d: int = D, *, weighted: bool = True, dtype: str = "f4") -> tuple[np.ndarray, RowColumns]:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, d)) * np.exp(-np.arange(d) / 100) * rng.uniform(0.5, 2, (n, 1))).astype(dtype)
    z = unit_vectors(X) @ rng.normal(size=d) * 4
    columns = RowColumns(
        (z + rng.logistic(size=n) > 0).astype(np.uint8),
        rng.uniform(0, 2, n) if weighted else None,
        rng.integers(0, 3, n).astype(np.int16),
    )
    return X, columns


def memory(X: np.ndarray, columns: RowColumns, threads: int = 1) -> ArraySource:
    return ArraySource(Rows.prepared(X, columns), threads=threads)


def heights(X: np.ndarray, each: Iterable[int]) -> Callable[[str], Iterable[np.ndarray]]:
    bounds = np.cumsum(list(each))
    return lambda name: (part.copy() for part in np.split(X, bounds[:-1]))


def stream(X: np.ndarray, columns: RowColumns, height: int = 1000, *, threads: int = 1) -> StreamSource:
    each = [height] * (len(X) // height) + [len(X) % height] * (len(X) % height > 0)
    return StreamSource(heights(X, each), columns, X.shape[1], X.dtype, sample_bytes=X.nbytes // 3, threads=threads)


def every_sum(d: int) -> list[Sum]:
    W = np.random.default_rng(1).normal(size=(5, d + 1))
    return [
        LossAndGradient(W[:1], (None,)),
        LossAndGradient(W[:2], (None, 1)),
        LossAndGradient(W, (None, 0, 1, 2, None)),
        LossAndGradient(W, (None, 0, 1, 2, None), single=True),
        Hessian(W[0], 1),
        Hessian(W[0], single=True),
        RowsMoved(W[0], 1.0),
        HeldOutLoss(W, (0, 1, 2, 0, 1)),
        Together((LossAndGradient(W[:3], (None, 0, 1)), Hessian(W[0], single=True))),
    ]


def bits(sums: tuple[np.ndarray, ...]) -> list[bytes]:
    return [part.tobytes() for part in sums]


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_sums_have_the_same_bits_with_any_number_of_threads(threads: int) -> None:
    X, columns = some_rows()
    one, many, on_disk = memory(X, columns), memory(X, columns, threads), stream(X, columns, 700, threads=threads)
    for what in every_sum(D):
        assert bits(one.total(what)) == bits(many.total(what)) == bits(on_disk.total(what))
    w = np.random.default_rng(2).normal(size=(3, D + 1))
    assert one.logits(w[None]).tobytes() == many.logits(w[None]).tobytes() == on_disk.logits(w[None]).tobytes()


def test_threads_are_really_used() -> None:
    seen = set()

    class Watched(RowsMoved):
        def of(self, rows: Rows) -> tuple[np.ndarray]:
            seen.add(threading.current_thread().name)
            return super().of(rows)

    X, columns = some_rows(20_000, 60)
    memory(X, columns, 2).total(Watched(np.zeros(61), 1.0))
    assert all(name.startswith("headeval") for name in seen)


@pytest.mark.parametrize("height", [1, 7, 1000, N])
def test_sums_over_a_stream_have_the_bits_of_memory_whatever_the_blocks(height: int) -> None:
    X, columns = some_rows()
    held, streamed = memory(X, columns), stream(X, columns, height)
    for what in every_sum(D):
        assert bits(held.total(what)) == bits(streamed.total(what))


@given(cuts=st.lists(st.integers(1, 1200), min_size=1, max_size=8), d=st.sampled_from([30, 500]))
@settings(max_examples=8)
def test_blocks_of_any_heights_change_no_bit(cuts: list[int], d: int) -> None:
    n = sum(cuts)
    X, columns = some_rows(n, d)
    held = memory(X, columns)
    streamed = StreamSource(heights(X, cuts), columns, d, X.dtype, sample_bytes=10**6, threads=2)
    for what in every_sum(d)[1:6]:
        assert bits(held.total(what)) == bits(streamed.total(what))
    rows, expected = streamed.rows_at(np.arange(0, n, 3)), held.rows_at(np.arange(0, n, 3))
    assert rows.embeddings.tobytes() == expected.embeddings.tobytes()
    assert rows.columns.weights is not None
    assert expected.columns.weights is not None
    assert rows.columns.weights.tobytes() == expected.columns.weights.tobytes()


def trained(source: ArraySource | StreamSource, n_folds: int, penalties: tuple[float, ...] = (1.0,)) -> Training:
    return train(source, penalties=penalties, n_folds=n_folds, identity=np.arange(source.columns.n))


@pytest.mark.parametrize("penalties", [(1.0,), (0.1, 1.0)])
def test_a_fit_has_the_same_bits_with_any_number_of_threads_and_any_blocks(penalties: tuple[float, ...]) -> None:
    X, columns = some_rows(1500, 100)
    in_memory = [trained(memory(X, columns, threads), 3, penalties) for threads in (1, 3)]
    on_disk = [trained(stream(X, columns, h, threads=t), 3, penalties) for h, t in ((700, 1), (1500, 2), (11, 3))]
    for alike in (in_memory, on_disk):
        assert len({fit.fit.w.tobytes() for fit in alike}) == 1
        assert len({fit.out_of_fold.tobytes() for fit in alike if fit.out_of_fold is not None}) == 1
        assert len({fit.path for fit in alike}) == 1


def test_folds_change_no_bit_of_a_head_fitted_in_memory() -> None:
    for n, d in ((1500, 120), (200, 10), (200, 40)):
        X, columns = some_rows(n, d)
        with_folds, without = trained(memory(X, columns), 5), trained(memory(X, columns), 0)
        assert with_folds.fit.w.tobytes() == without.fit.w.tobytes()


@pytest.mark.parametrize(("d", "dtype"), [(5, "f4"), (24, "f8"), (60, "f4"), (60, "f8")])
def test_memory_and_disk_end_at_the_same_optimum(d: int, dtype: str) -> None:
    X, columns = some_rows(2000, d, dtype=dtype)
    held, streamed = trained(memory(X, columns), 3), trained(stream(X, columns), 3)
    np.testing.assert_allclose(streamed.fit.w, held.fit.w, atol=WAYS_AGREE)
    expected = fit_logistic(unit_vectors(X), columns.labels, l2=1.0, sample_weight=columns.weights)
    np.testing.assert_allclose(streamed.fit.w, expected.w, atol=WAYS_AGREE)
    assert held.out_of_fold is not None
    # folds are fitted to within 1e-12 of the loss, that is to about 1e-6 of a logit
    np.testing.assert_allclose(streamed.out_of_fold, held.out_of_fold, atol=1e-5)


def test_float64_copies_of_float32_rows_give_the_same_optimum() -> None:
    X, columns = some_rows(2000, 50)
    a, b = (optima(ArraySource.of(E, columns), l2=0.5)[0] for E in (X, X.astype(np.float64)))
    np.testing.assert_allclose(a.w, b.w, atol=WAYS_AGREE)


def test_an_embedding_alone_has_the_logit_that_it_has_among_others() -> None:
    X, columns = some_rows(500, 37)
    w = np.random.default_rng(3).normal(size=(1, 38))
    (together,) = memory(X, columns).logits(w[None])
    alone = [memory(X[i : i + 1], columns.part(slice(i, i + 1))).logits(w[None])[0, 0] for i in range(500)]
    assert together.tolist() == alone


def test_tiles_are_cut_where_rows_are_summed_in_one_order() -> None:
    # the sizes in this file must cross the bounds of tiles and of groups of them
    assert tile_rows(D) < N
    assert LossAndGradient(np.zeros((1, D + 1)), (None,)).rows_at_once(D) > tile_rows(D)
    assert LossAndGradient(np.zeros((1, 501)), (None,)).rows_at_once(500) < 2500
