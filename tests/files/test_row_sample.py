"""A bounded sample of embeddings: all of them while they fit, then a fair one that no division into blocks changes."""

import numpy as np
import pytest

from headeval.files.row_sample import RowSample

N, DIM = 500, 6
ROWS = np.random.default_rng(1).standard_normal((N, DIM)).astype(np.float32)


def sampled(capacity: int, step: int, seed: int = 0, rows: np.ndarray = ROWS) -> RowSample:
    sample = RowSample(most_bytes=capacity * rows[0].nbytes + 3, seed=[seed, 2])
    for start in range(0, len(rows), step):
        sample.add(start, rows[start : start + step])
    return sample.finished()


@pytest.mark.parametrize("capacity", [N, N + 1, 10 * N])
@pytest.mark.parametrize("step", [1, 77, N])
def test_rows_that_fit_are_all_kept_as_they_are(capacity: int, step: int) -> None:
    sample = sampled(capacity, step)
    assert sample.complete
    assert sample.embeddings.tobytes() == ROWS.tobytes()
    assert sample.rows.tolist() == list(range(N))


@pytest.mark.parametrize("capacity", [1, 2, 100, N - 1])
@pytest.mark.parametrize("step", [1, 7, 99, 101, N])
def test_the_sample_does_not_depend_on_blocks(capacity: int, step: int) -> None:
    sample, other = sampled(capacity, step), sampled(capacity, 13)
    assert not sample.complete
    assert sample.rows.shape == (capacity,)
    assert (np.diff(sample.rows) > 0).all()
    assert sample.rows.tolist() == other.rows.tolist()
    assert sample.embeddings.tobytes() == ROWS[sample.rows].tobytes()


def test_every_row_is_kept_as_often_as_any_other() -> None:
    rows = np.arange(40.0)[:, None]
    counts = np.zeros(40)
    for seed in range(2000):
        counts[sampled(10, 7, seed, rows).rows] += 1
    # Each count is binomial with mean 500 and standard deviation 19.4.
    assert np.abs(counts - 500).max() < 5 * 19.4


def test_another_seed_is_another_sample() -> None:
    assert sampled(50, 9).rows.tolist() != sampled(50, 9, seed=1).rows.tolist()


def test_without_rows_there_is_an_empty_sample() -> None:
    sample = RowSample().finished()
    assert sample.complete
    assert (len(sample.rows), sample.embeddings.shape) == (0, (0, 0))


def test_blocks_are_copied_since_their_memory_is_not_ours() -> None:
    block = ROWS[:5].copy()
    sample = RowSample()
    sample.add(0, block)
    block[:] = 0
    assert sample.finished().embeddings.tobytes() == ROWS[:5].tobytes()
