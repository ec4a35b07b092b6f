"""Work on very many rows shared between two threads; what comes out has the same bits as from one."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

MANY = 2**18
"""With fewer rows a second thread gains less than it costs to read about."""

_One = TypeVar("_One")
_Other = TypeVar("_Other")


def side_by_side(one: Callable[[], _One], other: Callable[[], _Other], *, rows: int) -> tuple[_One, _Other]:
    """Return what two functions give that do not depend on each other; at the same time where rows are many.

    numpy lets other threads run while it works on an array, so that two cores have something to do.
    """
    if rows < MANY:
        return one(), other()
    from concurrent.futures import ThreadPoolExecutor  # not needed, and so not loaded, by the common sizes

    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(other)
        return one(), later.result()


def sort_runs(runs: Iterable[NDArray[np.float64]]) -> None:
    """Sort each run in place, two at a time where there are many rows."""
    runs = list(runs)
    if sum(run.shape[0] for run in runs) < MANY:
        for run in runs:
            run.sort()
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(np.ndarray.sort, runs))
