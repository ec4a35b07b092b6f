"""Rows that are read anew in every pass are read few times, and a reading that goes wrong is no head."""

from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from headeval.core.logistic import fit_logistic
from headeval.core.vectors import unit_vectors
from headeval.solver.penalty_path import AUTO
from headeval.solver.rows import RowColumns
from headeval.solver.stream import StreamSource
from headeval.solver.training import Training, train

MOST_PASSES = 15  # over the files; the command adds the one that reads labels before
MOST_PASSES_OF_A_PATH = 20
AGREE = 1e-6  # 2·√(d+1)·1e-9 / l2 for the smallest l2 here, 0.01


class Counted:
    """Embeddings handed out block by block, and the names of the passes."""

    def __init__(self, X: np.ndarray, height: int = 4000) -> None:
        self.X, self.height = X, height
        self.names: list[str] = []

    def __call__(self, name: str) -> Iterable[np.ndarray]:
        self.names.append(name)
        return (self.X[first : first + self.height] for first in range(0, len(self.X), self.height))


def some_rows(n: int, d: int, *, share: float = 0.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * np.exp(-np.arange(d) / d)).astype(np.float32)
    z = unit_vectors(X) @ rng.normal(size=d) * 8 + rng.logistic(size=n)
    return X, (z > np.quantile(z, 1 - share)).astype(np.uint8)


def trained(
    matrices: Counted,
    y: np.ndarray,
    penalties: tuple[float, ...],
    *,
    sampled: float = 0.3,
    weights: np.ndarray | None = None,
) -> tuple[Training, StreamSource]:
    X = matrices.X
    source = StreamSource(
        matrices, RowColumns(y, weights), X.shape[1], X.dtype, sample_bytes=int(sampled * X.nbytes), threads=1
    )
    training = train(source, penalties=penalties, n_folds=5, identity=np.arange(len(y)), auto=penalties == AUTO)
    return training, source


@pytest.mark.parametrize("d", [3, 24, 40])
@pytest.mark.parametrize(("share", "l2"), [(0.5, 0.01), (0.5, 1.0), (0.03, 1.0), (0.03, 100.0)])
def test_a_fit_with_five_folds_reads_the_rows_at_most_fifteen_times(d: int, share: float, l2: float) -> None:
    X, y = some_rows(6000, d, share=share)
    matrices = Counted(X)
    training, source = trained(matrices, y, (l2,))
    assert len(matrices.names) == source.passes == training.passes
    assert training.passes + 1 <= MOST_PASSES
    expected = fit_logistic(unit_vectors(X), y, l2=l2)
    np.testing.assert_allclose(training.fit.w, expected.w, atol=AGREE)
    assert training.fit.method == "preconditioned L-BFGS"


def test_without_a_penalty_a_minimum_is_found_in_as_few_passes() -> None:
    for d in (5, 30):
        X, y = some_rows(6000, d)
        training, _ = trained(Counted(X), y, (0.0,))
        assert training.passes + 1 <= MOST_PASSES
        # the curvature of this many rows replaces that of a penalty
        np.testing.assert_allclose(training.fit.w, fit_logistic(unit_vectors(X), y, l2=0.0).w, atol=1e-6)


@pytest.mark.parametrize("d", [5, 30])
def test_a_whole_path_is_tried_in_a_few_passes_more(d: int) -> None:
    X, y = some_rows(6000, d)
    training, source = trained(Counted(X), y, AUTO)
    assert training.path is not None
    assert len(training.path.points) == len(AUTO)
    assert source.passes + 1 <= MOST_PASSES_OF_A_PATH


def test_passes_are_numbered_and_say_what_they_are_for() -> None:
    X, y = some_rows(6000, 12)
    matrices = Counted(X)
    trained(matrices, y, (1.0,))
    assert [name.split(":")[0] for name in matrices.names] == [f"pass {i}" for i in range(1, len(matrices.names) + 1)]
    assert matrices.names[0] == "pass 1: sampling rows"
    assert matrices.names[1] == "pass 2: 6 gradients and Hessian"
    assert matrices.names[-1].endswith(": scoring")
    assert all("gradient" in name for name in matrices.names[1:-1])


def test_a_small_sample_still_finds_rare_positives() -> None:
    X, y = some_rows(20_000, 30, share=0.002)  # 40 positives; a hundredth of the rows would hold none or one
    training, source = trained(Counted(X), y, (1.0,), sampled=0.01)
    assert source.most_sampled == 200
    assert training.passes + 1 <= 2 * MOST_PASSES
    np.testing.assert_allclose(training.fit.w, fit_logistic(unit_vectors(X), y, l2=1.0).w, atol=AGREE)


def test_one_heavy_row_that_the_sample_misses_is_counted_all_the_same() -> None:
    X, y = some_rows(4000, 30)
    weights = np.ones(4000)
    weights[1234] = 1e4
    training, _ = trained(Counted(X), y, (1.0,), sampled=0.02, weights=weights)
    expected = fit_logistic(unit_vectors(X), y, l2=1.0, sample_weight=weights)
    np.testing.assert_allclose(training.fit.w, expected.w, atol=AGREE)


def test_folds_of_a_stream_are_fitted_on_the_other_rows() -> None:
    X, y = some_rows(3000, 30)
    training, source = trained(Counted(X, 700), y, (0.5,))
    folds = source.columns.folds
    assert folds is not None
    assert training.out_of_fold is not None
    units = unit_vectors(X)
    for fold in range(5):
        kept = folds != fold
        w = fit_logistic(units[kept], y[kept], l2=0.5).w
        np.testing.assert_allclose(training.out_of_fold[~kept], units[~kept] @ w[:-1] + w[-1], atol=1e-5)


def test_a_reading_that_fails_ends_the_fit() -> None:
    X, y = some_rows(3000, 12)

    class Breaking(Counted):
        def __call__(self, name: str) -> Iterator[np.ndarray]:
            for number, matrix in enumerate(super().__call__(name)):
                if len(self.names) == 4 and number == 2:
                    raise OSError("gone")
                yield matrix

    for threads in (1, 3):
        source = StreamSource(Breaking(X, 500), RowColumns(y), 12, X.dtype, sample_bytes=X.nbytes // 3, threads=threads)
        with pytest.raises(OSError, match="gone"):
            train(source, penalties=(1.0,), n_folds=3, identity=np.arange(3000))
