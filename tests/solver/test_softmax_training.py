"""A head of C classes and its folds: each as if fitted by itself, from memory, from a disk, and with the same bits."""

from collections.abc import Iterable

import numpy as np
import pytest
from scipy import special

from headeval.core.multinomial import multinomial_fit
from headeval.core.newton import LogisticFit
from headeval.core.vectors import unit_vectors
from headeval.solver import softmax, softmax_path
from headeval.solver.folds import FoldError
from headeval.solver.memory import ArraySource
from headeval.solver.penalty_path import AUTO
from headeval.solver.problems import Problem
from headeval.solver.rows import RowColumns, Rows
from headeval.solver.softmax import ClassStart, class_optima
from headeval.solver.softmax_training import ClassTraining, train_classes
from headeval.solver.source import Source
from headeval.solver.stream import StreamSource
from headeval.solver.training import NotConvergedError

C = 3
MOST_PASSES, MOST_PASSES_OF_A_PATH = 20, 30
SAME_LOGIT = 2e-5  # a fold's fit ends where 1e-12 of a row's loss is left to gain


@pytest.fixture(autouse=True)
def _as_if_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows go straight to the reference; here they take the way of many."""
    monkeypatch.setattr(softmax, "FEW_PRODUCTS", 0)


def some_rows(n: int = 900, d: int = 10, *, sharpness: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, d)) * np.exp(-np.arange(d) / d) * rng.uniform(0.1, 9, (n, 1))).astype("f4")
    y = (unit_vectors(X) @ rng.normal(size=(d, C)) * sharpness + rng.gumbel(size=(n, C))).argmax(axis=1)
    y[:C] = np.arange(C)
    return X, y.astype(np.uint8)


class Counted:
    """Embeddings handed out block by block, and how often."""

    def __init__(self, X: np.ndarray, height: int) -> None:
        self.X, self.height, self.passes = X, height, 0

    def __call__(self, name: str) -> Iterable[np.ndarray]:
        self.passes += 1
        return (self.X[first : first + self.height].copy() for first in range(0, len(self.X), self.height))


def streamed(X: np.ndarray, y: np.ndarray, height: int = 100, *, threads: int = 1, share: float = 0.3) -> StreamSource:
    sample_bytes = int(share * X.nbytes)
    return StreamSource(
        Counted(X, height), RowColumns(y), X.shape[1], X.dtype, sample_bytes=sample_bytes, threads=threads
    )


def trained(
    source: Source, penalties: tuple[float, ...] = (1.0,), n_folds: int = 4, **options: object
) -> ClassTraining:
    options = {"identity": np.arange(source.columns.n), "n_classes": C} | options
    return train_classes(source, penalties=penalties, n_folds=n_folds, **options)  # type: ignore[arg-type]


def test_out_of_fold_logits_are_those_of_fits_without_the_fold() -> None:
    X, y = some_rows()
    source = ArraySource.of(X, RowColumns(y))
    training = trained(source)
    folds, U = source.columns.folds, unit_vectors(X)
    assert folds is not None
    assert training.out_of_fold is not None
    assert training.out_of_fold.shape == (900, C)
    for fold in range(4):
        W = multinomial_fit(U[folds != fold], y[folds != fold], 1.0, n_classes=C).w
        inside = folds == fold
        assert {1, 2, 0} == set(y[inside].tolist())
        logits = U[inside] @ W[:, :-1].T + W[:, -1]
        np.testing.assert_allclose(training.out_of_fold[inside], logits, rtol=0, atol=SAME_LOGIT)
    whole = multinomial_fit(U, y, 1.0, n_classes=C).w
    np.testing.assert_allclose(training.fit.w, whole, rtol=0, atol=1e-8)


def test_folds_change_no_bit_of_the_head_in_memory() -> None:
    X, y = some_rows()
    alone, beside = (trained(ArraySource.of(X, RowColumns(y)), n_folds=k) for k in (0, 4))
    assert alone.out_of_fold is None
    assert alone.fit.w.tobytes() == beside.fit.w.tobytes()


@pytest.mark.parametrize("small", [True, False])
def test_rows_from_a_disk_give_the_head_of_memory_in_few_passes(small: bool) -> None:
    X, y = some_rows(3000, 10)
    held, source = trained(ArraySource.of(X, RowColumns(y))), streamed(X, y, share=0.2 if small else 2.0)
    training = trained(source)
    np.testing.assert_allclose(training.fit.w, held.fit.w, rtol=0, atol=1e-8)
    assert training.out_of_fold is not None
    assert held.out_of_fold is not None
    np.testing.assert_allclose(training.out_of_fold, held.out_of_fold, rtol=0, atol=SAME_LOGIT)
    assert training.passes == source.passes <= MOST_PASSES


def test_threads_and_blocks_change_no_bit() -> None:
    X, y = some_rows(4000, 70)
    rows = Rows.prepared(X, RowColumns(y))
    one, two = trained(ArraySource(rows, threads=1)), trained(ArraySource(rows, threads=2))
    few, many = trained(streamed(X, y, 97)), trained(streamed(X, y, 1500, threads=3))
    for a, b in ((one, two), (few, many)):
        assert a.fit.w.tobytes() == b.fit.w.tobytes()
        assert a.out_of_fold is not None
        assert b.out_of_fold is not None
        assert a.out_of_fold.tobytes() == b.out_of_fold.tobytes()


def test_copies_share_a_fold_and_get_the_same_bits_as_groups_do() -> None:
    X, y = some_rows(600)
    X[300:], y[300:] = X[:300], y[:300]
    source = ArraySource.of(X, RowColumns(y))
    training = trained(source, identity=np.tile(np.arange(300), 2))
    assert training.repeated == 300
    assert training.out_of_fold is not None
    assert training.out_of_fold[300:].tobytes() == training.out_of_fold[:300].tobytes()
    groups = np.arange(600) // 7
    source = ArraySource.of(X, RowColumns(y))
    trained(source, groups=groups, identity=np.arange(600))
    folds = source.columns.folds
    assert folds is not None
    assert all(len(set(folds[groups == group].tolist())) == 1 for group in range(groups.max() + 1))


@pytest.mark.parametrize("from_disk", [False, True])
def test_of_several_penalties_the_one_with_the_least_loss_out_of_fold_is_taken(from_disk: bool) -> None:
    X, y = some_rows(1500, 10)
    grid = (100.0, 0.01, 3.0)
    source = streamed(X, y) if from_disk else ArraySource.of(X, RowColumns(y))
    training = trained(source, grid)
    assert training.path is not None
    assert [point.l2 for point in training.path.points] == sorted(grid)
    U, folds = unit_vectors(X), source.columns.folds
    assert folds is not None
    for point in training.path.points:
        losses = np.zeros(len(y))
        for fold in range(4):
            inside = folds == fold
            W = multinomial_fit(U[~inside], y[~inside], point.l2, n_classes=C).w
            logits = U[inside] @ W[:, :-1].T + W[:, -1]
            losses[inside] = -special.log_softmax(logits, axis=1)[np.arange(inside.sum()), y[inside]]
        assert point.log_loss == pytest.approx(losses.mean(), abs=1e-5)
    assert training.l2 == min(training.path.points, key=lambda point: point.log_loss).l2
    whole = multinomial_fit(U, y, training.l2, n_classes=C).w
    np.testing.assert_allclose(training.fit.w, whole, rtol=0, atol=1e-8)
    if from_disk:
        assert training.passes <= MOST_PASSES_OF_A_PATH


def test_a_grid_is_tried_in_passes_that_its_penalties_share() -> None:
    X, y = some_rows(1500, 10)
    training = trained(streamed(X, y), AUTO, auto=True, rule="one-se")
    assert training.path is not None
    assert training.path.rough
    assert len(training.path.points) == len(AUTO)
    best = min(training.path.points, key=lambda point: point.log_loss)
    assert training.l2 >= best.l2
    assert training.passes <= MOST_PASSES_OF_A_PATH


def test_unjudged_there_are_no_logits() -> None:
    X, y = some_rows(400)
    training = trained(ArraySource.of(X, RowColumns(y)), (0.1, 1.0), judged=False)
    assert training.out_of_fold is None
    assert training.path is not None


def test_a_class_with_too_few_rows_is_named() -> None:
    X, y = some_rows(100)
    y[:] = np.arange(100) % 2
    y[:3] = 2
    with pytest.raises(FoldError, match=r"4 folds need at least 4 rows of each class, class 3 of 3 has 3") as caught:
        trained(ArraySource.of(X, RowColumns(y)))
    assert caught.value.label == 2


@pytest.mark.parametrize("from_disk", [False, True])
def test_separated_classes_without_a_penalty_are_said_to_have_no_head(from_disk: bool) -> None:
    X, _ = some_rows(300)
    y = (unit_vectors(X) @ np.random.default_rng(1).normal(size=(10, C))).argmax(axis=1).astype(np.uint8)
    source = streamed(X, y) if from_disk else ArraySource.of(X, RowColumns(y))
    with pytest.raises(NotConvergedError, match="separated") as caught:
        trained(source, (0.0,))
    assert "without fold" not in str(caught.value)  # it is the head itself that does not arrive


def test_too_many_classes_without_a_penalty_are_asked_for_one_before_anything_is_read() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 200)).astype("f4"), (np.arange(800) % 40).astype(np.uint8)
    source = streamed(X, y)
    with pytest.raises(NotConvergedError, match="--l2 above 0"):
        trained(source, (0.0,), n_classes=40)
    assert source.passes == 0


def test_pitfall_17_groups_and_copies_together_share_a_fold() -> None:
    X, y = some_rows(600)
    groups, identity = np.arange(600) // 3, np.arange(600)
    identity[300:320] = identity[:20]  # copies of rows of other groups, which tie these
    source = ArraySource.of(X, RowColumns(y))
    trained(source, groups=groups, identity=identity)
    folds = source.columns.folds
    assert folds is not None
    for codes in (groups, identity):
        assert all(len(set(folds[codes == code].tolist())) == 1 for code in set(codes.tolist()))


@pytest.mark.parametrize("from_disk", [False, True])
def test_pitfall_18_no_head_is_judged_by_a_fit_without_a_fold_that_does_not_arrive(from_disk: bool) -> None:
    """Three rows, of one fold, keep the classes apart from being separable."""
    X, _ = some_rows(600)
    z = unit_vectors(X) @ np.random.default_rng(1).normal(size=(10, C))
    y, gap = z.argmax(axis=1).astype(np.uint8), np.diff(np.sort(z, axis=1)[:, 1:], axis=1)[:, 0]
    odd = np.array([np.flatnonzero(y == label)[gap[y == label].argmax()] for label in range(C)])
    y[odd] = (y[odd] + 1) % C
    groups = np.arange(600)
    groups[odd] = 600
    source = streamed(X, y, share=2.0) if from_disk else ArraySource.of(X, RowColumns(y))
    with pytest.raises(NotConvergedError) as caught:
        trained(source, (0.0,), groups=groups)
    assert source.columns.folds is not None
    (fold,) = set(source.columns.folds[odd].tolist())
    assert str(caught.value).startswith(f"without fold {fold + 1}: ")
    assert trained(ArraySource.of(X, RowColumns(y)), (0.0,), n_folds=0).fit.converged


def test_pitfall_21_the_smallest_of_several_penalties_must_be_one_that_can_be_fitted() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 200)).astype("f4"), (np.arange(800) % 40).astype(np.uint8)
    source = streamed(X, y)
    with pytest.raises(NotConvergedError, match="--l2 above 0"):
        trained(source, (1.0, 1e-12), n_classes=40)
    assert source.passes == 0


def test_without_a_penalty_rows_on_a_disk_are_read_few_times() -> None:
    """Newton's method is done with on the sample."""
    X, y = some_rows(3000, 10)
    training = trained(streamed(X, y, share=0.3), (0.0,))
    assert training.fit.converged
    assert training.passes <= MOST_PASSES


@pytest.mark.parametrize("from_disk", [False, True])
def test_penalties_that_are_too_large_for_shared_passes_follow_each_other(
    from_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each begins where the one before it ended, and the losses are the same."""
    X, y = some_rows(1500, 10)
    grid = (0.03, 0.1, 0.3, 1.0, 3.0)
    together = trained(ArraySource.of(X, RowColumns(y)), grid)
    begun: list[float] = []

    def spied(source: Source, problems: list[Problem], start: ClassStart, near: list[np.ndarray]) -> list[LogisticFit]:
        fits = class_optima(source, problems, start, near)
        begun.append(max(float(np.abs(W - fit.w).max()) for W, fit in zip(near, fits, strict=True)))
        return fits

    monkeypatch.setattr(softmax_path, "_MOST_BYTES", 1)
    monkeypatch.setattr(softmax_path, "class_optima", spied)
    apart = trained(streamed(X, y) if from_disk else ArraySource.of(X, RowColumns(y)), grid)
    assert together.path is not None
    assert apart.path is not None
    assert len(begun) == len(grid)
    first = trained(ArraySource.of(X, RowColumns(y)), (0.03,)).fit.w
    last = trained(ArraySource.of(X, RowColumns(y)), (3.0,)).fit.w
    # Each way is a part of that from the largest penalty to the smallest.
    assert max(begun[1:]) < 0.5 * np.abs(first - last).max()
    losses = [[point.log_loss for point in path.points] for path in (together.path, apart.path)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=0, atol=1e-5)
    assert apart.l2 == together.l2
