"""Near duplicates against brute force in float64, and the shift of means against every permutation."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import headeval.core.near_duplicates as module
from headeval.core.near_duplicates import RowStream, mean_shift, near_duplicates

Table = NDArray[np.float64]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def planted(n: int = 300, m: int = 400, d: int = 24) -> tuple[Table, Table]:
    """Random rows; every tenth of X is a row of Y, turned by an angle that grows from nothing."""
    random = np.random.default_rng(1)
    X, Y = random.normal(size=(n, d)), random.normal(size=(m, d))
    for i in range(0, n, 10):
        X[i] = (Y[i] + i / n * 0.3 * random.normal(size=d)) * random.uniform(0.1, 10)
    return X, Y


def brute_force(X: Table, Y: Table, min_cosine: float) -> list[tuple[int, int, float]]:
    found = []
    for i, x in enumerate(X):
        cosines = [math.fsum(x * y) / math.sqrt(math.fsum(x * x) * math.fsum(y * y)) for y in Y]
        j = max(range(len(Y)), key=cosines.__getitem__)
        if cosines[j] >= min_cosine:
            found.append((i, j, cosines[j]))
    return found


def test_it_finds_what_brute_force_finds() -> None:
    X, Y = planted(100, 120)
    expected = brute_force(X, Y, 0.98)
    found = near_duplicates(X, Y, rng=rng(), min_cosine=0.98)
    assert 3 <= len(expected) < 10
    assert list(zip(found.rows.tolist(), found.matches.tolist(), strict=True)) == [(i, j) for i, j, _ in expected]
    assert found.cosines == pytest.approx([cosine for _, _, cosine in expected], abs=1e-14)
    assert found.compared == 100
    assert found.rows.dtype == found.matches.dtype == np.int64


def test_a_copy_is_found_at_a_limit_of_one() -> None:
    for rows in ([[1.0, 0.0]], [[0.0, 2.0], [1.0, 0.0], [3.0, 0.0]]):
        found = near_duplicates([[2.0, 0.0]], rows, rng=rng(), min_cosine=1.0)
        assert (found.rows.tolist(), found.matches.tolist(), found.cosines.tolist()) == ([0], [len(rows) // 2], [1.0])


@pytest.mark.parametrize("block_rows", [1, 7, 64, 1000])
def test_block_sizes_change_nothing(block_rows: int) -> None:
    X, Y = planted(120, 150)
    whole = near_duplicates(X, Y, rng=rng(), min_cosine=0.9)
    parts = near_duplicates(X, Y, rng=rng(), min_cosine=0.9, block_rows=block_rows)
    assert len(whole.rows) > 5
    for name in ("rows", "matches", "cosines"):
        assert getattr(parts, name).tobytes() == getattr(whole, name).tobytes()


@pytest.mark.parametrize("block_rows", [3, 50, 4096])
def test_float32_rounding_decides_nothing(block_rows: int) -> None:
    """Cosines that differ by 1e-9, which float32 cannot tell apart, around the limit and among the rivals."""
    steps = np.arange(40)
    random = np.random.default_rng(2)
    u, v = np.linalg.qr(random.normal(size=(50, 2)))[0].T
    cosines = 0.99 + (steps - 20) * 1e-9
    Y = cosines[:, None] * u + np.sqrt(1 - cosines**2)[:, None] * v
    Y = Y[random.permutation(40)]
    best = int(np.argmax(Y @ u))
    found = near_duplicates(u[None], Y, rng=rng(), block_rows=block_rows)
    assert found.matches.tolist() == [best]
    assert found.cosines == pytest.approx([0.99 + 19e-9], abs=1e-14)
    for limit, reached in ((0.99 + 18.5e-9, True), (0.99 + 19.5e-9, False)):
        assert near_duplicates(u[None], Y, rng=rng(), min_cosine=limit, block_rows=block_rows).rows.size == reached
    rows = near_duplicates(Y, u[None], rng=rng(), min_cosine=0.99 + 0.5e-9, block_rows=block_rows).rows
    assert rows.size == 19


def test_many_rivals_are_told_apart_row_by_row() -> None:
    """Of two rows, one has twenty rivals at 0.9999, the other twenty at 0.995; steps of 1e-9 again."""
    random = np.random.default_rng(5)
    basis = np.linalg.qr(random.normal(size=(50, 4)))[0].T
    cosines = np.append(0.9999 - np.arange(20) * 1e-9, 0.995 - np.arange(20) * 1e-9)[:, None]
    Y = cosines * np.repeat(basis[:2], 20, axis=0) + np.sqrt(1 - cosines**2) * np.repeat(basis[2:], 20, axis=0)
    order = random.permutation(40)
    found = near_duplicates(basis[:2], Y[order], rng=rng())
    assert order[found.matches].tolist() == [0, 20]
    assert found.cosines == pytest.approx([0.9999, 0.995], abs=1e-14)


@pytest.mark.parametrize("rivals", [1, 40])
def test_a_match_is_found_again_where_its_cosine_is_the_limit(rivals: int) -> None:
    """However the product that finds it is summed and rounded."""
    random = np.random.default_rng(6)
    for _ in range(30):
        x = random.normal(size=50)
        Y = x + 0.01 * random.normal(size=50) + 1e-10 * random.normal(size=(rivals, 50))
        found = near_duplicates(x[None], Y, rng=rng())
        again = near_duplicates(x[None], Y, rng=rng(), min_cosine=found.cosines[0])
        assert again.matches.tolist() == found.matches.tolist()


def test_rivals_within_rounding_are_told_apart_alike_in_blocks_of_any_size() -> None:
    random = np.random.default_rng(7)
    for _ in range(30):
        x = random.normal(size=50)
        Y = x + 1e-9 * random.normal(size=(40, 50))
        one, whole = (near_duplicates(x[None], Y, rng=rng(), block_rows=block_rows) for block_rows in (1, 4096))
        assert (one.matches.tolist(), one.cosines.tolist()) == (whole.matches.tolist(), whole.cosines.tolist())


def test_of_equal_rows_the_first_is_named() -> None:
    Y = np.tile([[1.0, 2.0], [2.0, 1.0]], (60, 1))
    found = near_duplicates([[2.0, 4.0], [4.0, 2.0]], Y, rng=rng(), block_rows=16)
    assert found.matches.tolist() == [0, 1]
    assert found.cosines.max() <= 1.0
    assert found.cosines == pytest.approx([1.0, 1.0], abs=1e-15)


def test_no_cosine_is_above_one() -> None:
    """The products of unit vectors with themselves are, by rounding, here and there."""
    table = np.random.default_rng(9).normal(size=(200, 24))
    units = table / np.linalg.norm(table, axis=1, keepdims=True)
    assert (units * units).sum(axis=1).max() > 1
    assert near_duplicates(table, table, rng=rng()).cosines.max() == 1.0


def test_zero_rows_resemble_nothing() -> None:
    zeros = np.zeros((2, 3))
    assert near_duplicates(zeros, zeros, rng=rng(), min_cosine=1e-6).rows.size == 0


def test_no_more_products_than_allowed() -> None:
    X, Y = planted()
    found = near_duplicates(X, Y, rng=rng(), max_products=45 * Y.size + 17)
    everything = near_duplicates(X, Y, rng=rng())
    assert found.compared == 45
    assert set(found.rows.tolist()) < set(everything.rows.tolist())
    assert near_duplicates(X, Y, rng=rng(), max_products=1).compared == 1
    assert near_duplicates(np.ones((5, 1)), np.ones((1, 1)), rng=rng(), max_products=3).compared == 3


def test_the_sample_is_fair() -> None:
    Y = planted(40, 40)[1]
    random = np.random.default_rng(3)
    counts = np.zeros(40)
    for _ in range(300):
        found = near_duplicates(Y, Y, rng=random, min_cosine=0.999, max_products=10 * Y.size)
        counts[found.rows] += 1
    assert counts.sum() == 3000
    assert counts.min() > 75 - 5 * 7.5
    assert counts.max() < 75 + 5 * 7.5


def test_mean_shift_is_the_distance_of_mean_directions() -> None:
    X, Y = planted(50, 70)
    units = [table / np.linalg.norm(table, axis=1, keepdims=True) for table in (X, Y)]
    one, other = (table.mean(axis=0) for table in units)
    for few, many in ((X, Y), (Y, X)):
        shift = mean_shift(few, many, rng=rng(), n_permutations=99)
        assert shift.distance == pytest.approx(float(np.linalg.norm(one - other)), rel=1e-12)
        expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        assert shift.cosine == pytest.approx(float(expected), rel=1e-12)


def test_its_p_value_tends_to_that_of_all_permutations() -> None:
    """Every division of 9 rows into 4 and 5, ties included, against 4,000 random ones."""
    random = np.random.default_rng(4)
    rows = random.normal(size=(9, 3))
    rows[:4] += 0.7
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def distance(chosen: tuple[int, ...]) -> float:
        rest = [i for i in range(9) if i not in chosen]
        return float(np.linalg.norm(units[list(chosen)].mean(axis=0) - units[rest].mean(axis=0)))

    every = [distance(chosen) for chosen in itertools.combinations(range(9), 4)]
    reached = np.mean([d >= distance((0, 1, 2, 3)) - 1e-12 for d in every])
    shift = mean_shift(rows[:4], rows[4:], rng=rng(), n_permutations=4000)
    assert shift.p_value == pytest.approx(reached, abs=4 * math.sqrt(reached * (1 - reached) / 4000) + 1 / 4000)
    assert shift.distance_if_same == pytest.approx(np.mean(every), rel=0.02)


def test_its_p_value_is_never_zero() -> None:
    shift = mean_shift(np.eye(2)[[0] * 30], np.eye(2)[[1] * 30], rng=rng(), n_permutations=199)
    assert shift.p_value == 1 / 200
    assert shift.n_permutations == 199


def test_permutations_that_tie_count_as_reached() -> None:
    """Twenty rows of two kinds: the distance depends on how many of one kind are drawn, whatever the rounding."""
    kinds = np.random.default_rng(10).normal(size=(2, 7))
    shift = mean_shift(
        kinds[[0, 1, 0, 0, 1, 0, 0, 1, 0, 0]], kinds[[1, 0] * 3 + [1] * 4], rng=rng(), n_permutations=2000
    )
    drawn = stats.hypergeom(20, 10, 10)  # of ten of either kind, ten are drawn, and seven are of one
    expected = drawn.cdf(3) + drawn.sf(6)
    assert shift.p_value == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 2000))


def test_equal_rows_everywhere_are_no_shift() -> None:
    """All permutations tie with what is seen, rounding or not."""
    rows = np.full((1000, 7), 0.1)
    shift = mean_shift(rows[:333], rows[333:], rng=rng())
    assert shift.p_value == 1.0
    assert shift.distance == pytest.approx(0.0, abs=1e-12)
    assert shift.cosine == pytest.approx(1.0, abs=1e-12)


def test_the_cosine_of_one_direction_is_one_whatever_the_rounding() -> None:
    random = np.random.default_rng(11)
    tables = random.normal(size=(60, 1, 9))
    for sign in (1, -1):
        cosines = [mean_shift(table, sign * 3 * table, rng=random, n_permutations=1).cosine for table in tables]
        assert set(np.abs(np.array(cosines, dtype=float)).tolist()) <= {1.0, 1 - 2.0**-53, 1 - 2.0**-52}
    # What these divide by is rounded too, so that some quotients are above 1.
    units = [table[0] / np.linalg.norm(table) for table in tables]
    assert max(float(unit @ unit) / float(np.linalg.norm(unit) ** 2) for unit in units) > 1


def test_one_permutation_of_two_rows_is_as_far_apart_as_they_are() -> None:
    shift = mean_shift([[2.0, 0.0]], [[0.0, 3.0]], rng=rng(), n_permutations=1)
    assert shift.distance_if_same == shift.distance == pytest.approx(math.sqrt(2))


def test_opposite_rows_have_no_mean_direction() -> None:
    shift = mean_shift([[1.0, 0.0], [-1.0, 0.0]], [[0.0, 1.0]], rng=rng())
    assert shift.cosine is None


def test_large_samples_get_fewer_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = planted(40, 60, 10)
    assert mean_shift(X, Y, rng=rng()).n_permutations == 999
    monkeypatch.setattr(module, "_PERMUTED_NUMBERS", 150 * 100 * 10)
    assert mean_shift(X, Y, rng=rng()).n_permutations == 150
    monkeypatch.setattr(module, "_PERMUTED_NUMBERS", 150 * 100)
    assert mean_shift(X[:, :1], Y[:, :1], rng=rng()).n_permutations == 150
    monkeypatch.setattr(module, "_PERMUTED_NUMBERS", 1)
    assert mean_shift(X, Y, rng=rng()).n_permutations == 99
    assert mean_shift(X, Y, rng=rng(), n_permutations=9).n_permutations == 9


@pytest.mark.parametrize(
    "bad", [np.zeros((0, 2)), np.zeros(2), np.array([[np.nan, 1]]), np.array([["a", "b"]]), np.eye(3)]
)
def test_bad_tables_are_refused(bad: Table) -> None:
    with pytest.raises(ValueError, match=r"Y must|same width"):
        near_duplicates(np.eye(2), bad, rng=rng())
    with pytest.raises(ValueError, match=r"X must|same width"):
        mean_shift(bad, np.eye(2), rng=rng())


@pytest.mark.parametrize("limit", [0.0, 1.1, math.nan])
def test_bad_limits_are_refused(limit: float) -> None:
    with pytest.raises(ValueError, match="min_cosine"):
        near_duplicates(np.eye(2), np.eye(2), rng=rng(), min_cosine=limit)


def streamed(Y: Table, step: int) -> RowStream:
    return RowStream(len(Y), Y.shape[1], lambda: (Y[start : start + step] for start in range(0, len(Y), step)))


@pytest.mark.parametrize("step", [1, 7, 150])
@pytest.mark.parametrize("max_products", [10**9, 30 * 150 * 24])
def test_rows_that_are_read_while_they_are_compared_are_those_in_memory(step: int, max_products: int) -> None:
    X, Y = planted(120, 150)
    whole = near_duplicates(X, Y, rng=rng(), min_cosine=0.9, max_products=max_products)
    parts = near_duplicates(X, streamed(Y, step), rng=rng(), min_cosine=0.9, max_products=max_products)
    assert len(whole.rows) > 1
    assert whole.compared == parts.compared == min(120, max_products // (150 * 24))
    for name in ("rows", "matches", "cosines"):
        assert getattr(parts, name).tobytes() == getattr(whole, name).tobytes()


@pytest.mark.parametrize("step", [1, 4, 20])
def test_some_rows_of_a_stream(step: int) -> None:
    Y = np.arange(40.0).reshape(20, 2)
    rows = np.array([0, 3, 4, 5, 13, 19])
    some = streamed(Y, step).only(rows)
    assert (some.n, some.dim) == (6, 2)
    assert np.concatenate(list(some.matrices())).tolist() == Y[rows].tolist()


def test_a_stream_of_one_row() -> None:
    assert near_duplicates(np.eye(2), streamed(np.array([[0.0, 3.0]]), 1), rng=rng()).rows.tolist() == [1]


def test_a_stream_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^X must be finite"):
        near_duplicates([[0.0, math.nan]], streamed(np.eye(2), 1), rng=rng())
    with pytest.raises(ValueError, match="width 3"):
        near_duplicates(np.eye(3), streamed(np.eye(2), 1), rng=rng())


def test_rows_are_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = planted(50, 70)
    whole = mean_shift(X, Y, rng=rng(), n_permutations=99)
    monkeypatch.setattr(module, "_BLOCK_ROWS", 16)
    parts = mean_shift(X, Y, rng=rng(), n_permutations=99)
    for name in ("distance", "distance_if_same", "cosine", "p_value"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    Y[-1, 3] = math.nan
    with pytest.raises(ValueError, match=r"^Y must be finite"):
        mean_shift(X, Y, rng=rng())


@pytest.mark.parametrize("divisions", [1, 3, 100])
def test_permutations_in_several_goes_are_the_same(divisions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = planted(50, 70)
    whole = mean_shift(X, Y, rng=rng(), n_permutations=99)
    monkeypatch.setattr(module, "_DRAWN_BYTES", divisions * 120)
    parts = mean_shift(X, Y, rng=rng(), n_permutations=99)
    assert parts.distance == pytest.approx(whole.distance, rel=1e-12)
    assert parts.distance_if_same == pytest.approx(whole.distance_if_same, rel=1e-12)
    assert (parts.p_value, parts.n_permutations) == (whole.p_value, 99)
