"""Random draws with replacement, within strata: of rows or groups, or of rows counted by cell."""

import numpy as np

from headeval.core.checks import FloatArray, IntArray


def draw_rows(strata: list[IntArray], streams: list[np.random.Generator], n_resamples: int) -> FloatArray:
    """Return how often each unit was drawn, (n_resamples, units); every stratum as often as it has units."""
    drawn = np.hstack(
        [
            stratum[stream.integers(stratum.size, size=(n_resamples, stratum.size))]
            for stratum, stream in zip(strata, streams, strict=True)
        ]
    )
    units = drawn.shape[1]
    drawn += np.arange(0, n_resamples * units, units)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=n_resamples * units)
    return counts.reshape(n_resamples, units).astype(np.float64)


def draw_from_cells(
    sizes: FloatArray, strata: list[IntArray], streams: list[np.random.Generator], n_resamples: int
) -> FloatArray:
    """Return how many rows of each cell were drawn, (n_resamples, cells); of every stratum as many as it has."""
    counts = np.empty((n_resamples, sizes.shape[0]))
    for stratum, stream in zip(strata, streams, strict=True):
        total = sizes[stratum].sum()
        counts[:, stratum] = stream.multinomial(int(total), sizes[stratum] / total, size=n_resamples)
    return counts


def strata_of(y: IntArray, codes: IntArray | None, *, stratified: bool) -> list[IntArray]:
    """Return the units that are drawn, rows or groups, apart by class where each has one class."""
    share = y.astype(np.float64) if codes is None else np.bincount(codes, weights=y) / np.bincount(codes)
    if not stratified or ((share > 0) & (share < 1)).any():
        return [np.arange(share.size)]
    return [units for units in (np.flatnonzero(share == 1), np.flatnonzero(share == 0)) if units.size]
