"""Merging neighbours changes what is drawn from as little as it says."""

import math

import numpy as np
import pytest

from headeval.core.bins import Convention, bins_of_rows, rows_of_table
from headeval.core.bootstrap import replicates
from headeval.core.cells import Cells, merged
from headeval.core.ranked import RankedCounts, rank_counts, sorted_by_class
from headeval.core.weighted import FPR_LIMITS, SortedRows

CONVENTIONS: tuple[Convention, ...] = ("top-label", "positive-class")


def rows(n: int, *, decimals: int | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, from the lowest up, and labels."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.15).astype(np.int64)
    p = 1 / (1 + np.exp(-(rng.normal(size=n) * 1.5 - 2 + 2 * y)))
    return sorted_by_class(p if decimals is None else np.clip(np.round(p, decimals), 0.01, 0.99), y)


def losses_of(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -np.where(y == 1, np.log(p), np.log1p(-p))


def cells_of(p: np.ndarray, y: np.ndarray) -> tuple[Cells, RankedCounts]:
    ranked = rank_counts(p, y)
    bins = [bins_of_rows(p, y, None, convention=each) for each in CONVENTIONS]
    return merged(y, p, losses_of(p, y), ranked=ranked, bins=bins, limits=FPR_LIMITS.values()), ranked


def test_cells_hold_every_row_once_and_their_means_are_those_of_the_rows() -> None:
    p, y = rows(20_000)
    cells, _ = cells_of(p, y)
    for label in (0, 1):
        mine = cells.labels == label
        assert cells.sizes[mine].sum() == np.count_nonzero(y == label)
        for values, of_rows in ((cells.probs, p), (cells.losses, losses_of(p, y))):
            assert cells.sizes[mine] @ values[mine] == pytest.approx(of_rows[y == label].sum(), rel=1e-12)
        # Rows come in order, so that those of a cell stand together in its class.
        ends = np.cumsum(cells.sizes[mine]).astype(int)
        own = p[y == label]
        for first, last, mean in zip(np.append(0, ends[:-1]), ends, cells.probs[mine], strict=True):
            assert own[first] <= mean <= own[last - 1]
            assert mean == pytest.approx(own[first:last].mean(), rel=1e-9)
    assert (np.diff(cells.scores) >= 0).all()
    assert cells.scores.size < 4 * math.pi * (math.sqrt(17_000) + math.sqrt(3_000)) + 3000  # and some in windows


def test_no_cell_has_more_rows_than_half_the_deviation_of_a_count_there() -> None:
    p, y = rows(50_000)
    cells, _ = cells_of(p, y)
    for label in (0, 1):
        sizes = cells.sizes[cells.labels == label]
        n = sizes.sum()
        above = n - np.cumsum(sizes)  # rows of the class above the cell
        middle = above + sizes / 2
        assert (sizes <= 0.5 * np.sqrt(middle * (1 - middle / n)) * 1.2 + 1.5).all()


def test_equal_scores_stay_together_and_no_cell_reaches_over_the_edge_of_a_bin() -> None:
    p, y = rows(30_000, decimals=2)
    cells, _ = cells_of(p, y)
    assert cells.sizes.size <= 2 * 101
    assert set(cells.probs.tolist()) == set(p.tolist())  # a mean of equal numbers is that number
    for p, y in (rows(30_000), rows(30_000, decimals=2)):
        cells, _ = cells_of(p, y)
        for convention in CONVENTIONS:
            table = bins_of_rows(p, y, None, convention=convention).table()
            placed = rows_of_table(cells.probs, cells.labels, None, table)
            held = np.bincount(placed.index, weights=cells.sizes, minlength=table.n_bins)
            assert held.tolist() == table.counts.tolist()
    # Nor over ½, where another class is predicted and the error changes its sign: of 15 bins no edge.
    p, y = rows(30_000)
    bins = [bins_of_rows(p, y, None, convention="top-label")]
    cells = merged(y, p, losses_of(p, y), ranked=rank_counts(p, y), bins=bins)
    for label in (0, 1):
        ends = np.cumsum(cells.sizes[cells.labels == label]).astype(int)
        assert np.count_nonzero(p[y == label] < 0.5) in ends


def test_negatives_around_the_rates_that_are_asked_for_stand_alone() -> None:
    p, y = rows(40_000)
    cells, ranked = cells_of(p, y)
    negatives = int(ranked.false_positives[-1])
    for limit in FPR_LIMITS.values():
        near = abs(ranked.false_positives - limit * negatives) <= 4 * math.sqrt(limit * negatives)
        for t in ranked.thresholds[near]:
            above = int(np.count_nonzero(p >= t))
            slabs = cells.scores.max() - cells.scores[::-1]
            counted = np.cumsum(cells.sizes[::-1])[np.append(slabs[1:] != slabs[:-1], True)]
            at = ranked.false_positives[ranked.thresholds >= t]
            if at[-1] > (at[-2] if at.size > 1 else 0):  # a negative: there is a place right after it
                assert above in counted
                assert above - 1 in counted


def test_no_more_rows_stand_alone_than_asked_for() -> None:
    """5,000 of 10,000 negatives at the lowest score; around the 2,500th from the top 5·√2,500 to either side."""
    p = np.append(np.full(5000, 0.01), np.linspace(0.02, 0.3, 5000))
    y = np.zeros(10_000, dtype=np.int64)
    ranked = rank_counts(p, y)
    apart = merged(y, p, losses_of(p, y), ranked=ranked)
    # Half of a circle of the circumference 2π√n in steps of ½, of which the lower half is one cell.
    assert 310 <= apart.sizes.size <= 316
    around = merged(y, p, losses_of(p, y), ranked=ranked, limits=[0.25])
    rank = np.cumsum(around.sizes[::-1])[::-1]
    alone = rank[around.sizes == 1]
    assert set(range(2252, 2749)) <= set(alone.tolist())
    assert np.count_nonzero((alone > 100) & (alone < 4900)) <= 503


@pytest.mark.parametrize("exponent", [-1060, 0, 1018])
def test_losses_of_any_size_have_a_mean_without_rounding_or_overflow(exponent: int) -> None:
    """Sixteen losses a cell, whole numbers times a power of two; the sum of the largest ones is beyond float64."""
    p, y = np.repeat(np.arange(1, 5) / 8, 32), np.tile([0, 1], 64)
    whole = np.random.default_rng(3).integers(1, 64, size=128)
    cells = merged(y, p, np.ldexp(whole.astype(float), exponent), ranked=rank_counts(p, y))
    assert cells.sizes.tolist() == [16] * 8
    assert cells.probs.tolist() == np.repeat(np.arange(1, 5) / 8, 2).tolist()
    sums = [whole[(p == value) & (y == label)].sum() for value in np.unique(p) for label in (0, 1)]
    assert cells.losses.tolist() == [math.ldexp(total / 16, exponent) for total in sums]


def test_measures_of_undrawn_cells_are_nearly_those_of_the_rows() -> None:
    p, y = rows(50_000)
    cells, _ = cells_of(p, y)
    tables = {each: bins_of_rows(p, y, None, convention=each).table() for each in CONVENTIONS}
    exact = SortedRows.prepare(p, y, p, losses_of(p, y), tables).measures(np.ones(y.size))
    its = {name: table.holding(rows_of_table(cells.probs, cells.labels, None, table)) for name, table in tables.items()}
    found = SortedRows.prepare(cells.scores, cells.labels, cells.probs, cells.losses, its).measures(cells.sizes)
    assert np.abs(found - exact).max() < 1e-3
    assert found[[3, 4]].tolist() == exact[[3, 4]].tolist()  # recall where every negative stands alone
    assert found[6:] == pytest.approx(exact[6:], rel=1e-6)  # Brier score, log loss and calibration errors


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_alone_is_merged_too(label: int) -> None:
    p, y = np.sort(np.random.default_rng(0).random(5000)), np.full(5000, label)
    cells, _ = cells_of(p, y)
    assert cells.sizes.sum() == 5000
    assert set(cells.labels.tolist()) == {label}


def test_rows_drawn_by_cell_vary_as_rows_do() -> None:
    """Counts of cells are multinomial: their means, variances and covariances are known."""
    sizes, labels = np.array([1.0, 30.0, 9.0, 60.0]), [0, 1, 0, 1]
    for stratified, totals in ((True, np.array([10.0, 90.0, 10.0, 90.0])), (False, np.full(4, 100.0))):
        drawn = replicates(
            lambda w: w,
            labels,
            n_resamples=20_000,
            rng=np.random.default_rng(0),
            sizes=sizes,
            stratified=stratified,
        )
        share = sizes / totals
        assert drawn.mean(axis=0) == pytest.approx(sizes, rel=0.03)
        assert drawn.var(axis=0) == pytest.approx(totals * share * (1 - share), rel=0.05)
        assert (drawn.sum(axis=1) == 100).all()
        if stratified:
            assert (drawn[:, [0, 2]].sum(axis=1) == 10).all()
        else:
            assert np.cov(drawn[:, 1], drawn[:, 3])[0, 1] == pytest.approx(-100 * 0.3 * 0.6, rel=0.05)


def test_cells_need_rows_without_groups_and_weights() -> None:
    for also in ({"groups": [1, 2]}, {"weights": [1.0, 2.0]}):
        with pytest.raises(ValueError, match="sizes need rows without groups and weights"):
            replicates(lambda w: w, [0, 1], n_resamples=3, rng=np.random.default_rng(0), sizes=[2, 3], **also)
