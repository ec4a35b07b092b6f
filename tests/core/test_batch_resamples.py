"""Batches that hold every row once, draws that add up, and sums with the same bits in any order."""

import math

import numpy as np
import pytest

from headeval.core.batch_resamples import MOST_BATCHES, batches, drawn_batches, resampled_sums

RNG = np.random.default_rng(5)


def test_few_rows_are_drawn_one_by_one() -> None:
    assert batches(MOST_BATCHES, None, np.random.default_rng(0)).tolist() == list(range(MOST_BATCHES))


def test_many_rows_are_dealt_evenly_and_at_random() -> None:
    found = batches(10_500, None, np.random.default_rng(0))
    sizes = np.bincount(found)
    assert sizes.size == MOST_BATCHES
    assert set(sizes.tolist()) == {10, 11}
    assert abs(np.corrcoef(np.arange(10_500), found)[0, 1]) < 0.05


def test_as_many_groups_as_batches_are_a_batch_each() -> None:
    groups = np.random.default_rng(1).permutation(np.arange(2 * MOST_BATCHES) % MOST_BATCHES)
    assert batches(groups.size, groups, np.random.default_rng(0)).tolist() == groups.tolist()


@pytest.mark.parametrize("n_groups", [7, 3000])
def test_groups_stay_together(n_groups: int) -> None:
    groups = np.concatenate([np.arange(n_groups), RNG.integers(n_groups, size=4000)])
    found = batches(groups.size, groups, np.random.default_rng(0))
    assert all(np.unique(found[groups == g]).size == 1 for g in range(min(n_groups, 50)))
    assert np.unique(found).size == min(n_groups, MOST_BATCHES)


def test_every_resample_draws_as_many_as_there_are() -> None:
    draws = drawn_batches(30, 2000, np.random.default_rng(0))
    assert set(draws.sum(axis=1).tolist()) == {30.0}
    assert draws.mean(axis=0) == pytest.approx(np.ones(30), abs=0.1)
    assert draws.var() == pytest.approx(1 - 1 / 30, abs=0.03)
    few = [drawn_batches(3, 1, np.random.default_rng(seed)) for seed in range(20)]
    assert {draws.shape for draws in few} == {(1, 3)}
    assert 0.0 in {draws[0, 2] for draws in few}  # the last one is missing from some


def test_sums_are_right_and_the_same_in_any_order() -> None:
    """A product of the BLAS may add up in another order with other threads; here no order rounds."""
    draws = drawn_batches(400, 50, np.random.default_rng(0))
    sums = RNG.normal(size=(400, 3)) * 10.0 ** RNG.integers(-8, 3, size=(400, 3))
    found = resampled_sums(draws, sums)
    exact = [[math.fsum((w * column).tolist()) for column in sums.T] for w in draws]
    np.testing.assert_allclose(found, exact, rtol=0, atol=400 * 2.0**-52 * 400 * np.abs(sums).max())
    moved = RNG.permutation(400)
    assert resampled_sums(draws[:, moved], sums[moved]).tolist() == found.tolist()


@pytest.mark.parametrize("scale", [1e-300, 1 / 7, 1.0, 1e150])
def test_sums_of_any_size(scale: float) -> None:
    draws, sums = np.array([[2.0, 1.0, 0.0]]), scale * np.array([[1.0], [-0.5], [7.0]])
    assert resampled_sums(draws, sums)[0, 0] == pytest.approx(1.5 * scale, rel=1e-14, abs=0)
    ones = np.array([[1.0], [-1.0], [0.5]])
    assert resampled_sums(draws, ones).tolist() == [[1.0]]
    assert resampled_sums(draws, np.empty((3, 0))).shape == (1, 0)
    assert resampled_sums(draws, np.zeros((3, 2))).tolist() == [[0.0, 0.0]]


def test_batches_vary_as_rows_do() -> None:
    """The standard error of a mean of 20,000 rows, from 1,000 batches of them: σ/√n within three of its own."""
    values = RNG.exponential(size=20_000)
    batch = batches(20_000, None, np.random.default_rng(1))
    draws = drawn_batches(MOST_BATCHES, 4000, np.random.default_rng(2))
    sums, sizes = np.bincount(batch, values)[:, None], np.bincount(batch).astype(float)[:, None]
    means = resampled_sums(draws, sums) / resampled_sums(draws, sizes)
    assert means.std() == pytest.approx(values.std() / math.sqrt(20_000), rel=0.1)
