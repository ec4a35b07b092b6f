"""Rows drawn by cell: each cell as often as all of its rows together would be drawn one by one."""

import numpy as np

from headeval.core.draws import draw_from_cells


def test_cells_are_drawn_as_their_rows_would_be_and_every_stratum_in_full() -> None:
    """Of m rows a cell of k is drawn Binomial(m, k/m) times: with mean k and variance k(1 − k/m)."""
    sizes = np.array([3.0, 1.0, 6.0, 5.0, 7.0])
    strata, rows = [np.array([1, 3]), np.array([0, 2, 4])], np.array([16.0, 6.0, 16.0, 6.0, 16.0])
    counts = draw_from_cells(sizes, strata, [np.random.default_rng(1), np.random.default_rng(2)], 4000)
    assert counts.shape == (4000, 5)
    assert [set(counts[:, units].sum(axis=1).tolist()) for units in strata] == [{6.0}, {16.0}]
    expected = sizes * (1 - sizes / rows)
    assert (np.abs(counts.mean(axis=0) - sizes) < 4 * np.sqrt(expected / 4000)).all()
    assert (np.abs(counts.var(axis=0) / expected - 1) < 0.1).all()
