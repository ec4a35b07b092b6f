"""Threads: pieces of work whose results come back in order, and few jobs side by side.

numpy lets other threads run while it works on an array. However many threads there are, results have the same bits.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

MANY = 2**18
"""With fewer rows a second thread gains less than it costs to read about."""

WANTED_THREADS = "OMP_NUM_THREADS"
_NAME = "headeval"


def thread_count() -> int:
    """Return how many threads to use: OMP_NUM_THREADS where it is set, and never more than this process may."""
    affinity = getattr(os, "sched_getaffinity", None)
    allowed = len(affinity(0)) if affinity else os.cpu_count() or 1
    wanted = os.environ.get(WANTED_THREADS, "").split(",")[0].strip()
    return min(allowed, int(wanted)) if wanted.isdecimal() and int(wanted) > 0 else allowed


def in_order(work: Callable[[T], R], pieces: Iterable[T], *, threads: int, ahead: int = 1) -> Iterator[R]:
    """Yield work(piece) of each piece in the order of the pieces.

    Parameters
    ----------
    work : called in several threads at once.
    pieces : taken from this thread, a few ahead of the results.
    threads : 1 works in this thread, and so does work that is itself a piece of such work: waiting there for threads
        that all wait would never end.
    ahead : pieces ready beside those at work: 1 keeps all threads busy, 0 holds as few results as can be.
    """
    if threads < 2 or threading.current_thread().name.startswith(_NAME):
        yield from map(work, pieces)
        return
    waiting: deque[Future[R]] = deque()
    pool = _pool(threads, os.getpid())
    try:
        for piece in pieces:
            waiting.append(pool.submit(work, piece))
            if len(waiting) >= threads + ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        if isinstance(pieces, Generator):
            pieces.close()  # what it reads from is let go now, and not when memory is tidied up


@cache
def _pool(threads: int, process: int) -> "ThreadPoolExecutor":  # noqa: ARG001 - a forked process has no such threads
    """Return threads that are kept, and with them the memory that each works in."""
    from concurrent.futures import ThreadPoolExecutor  # loaded only where there is work for it

    return ThreadPoolExecutor(threads, thread_name_prefix=_NAME)


def side_by_side(one: Callable[[], R], other: Callable[[], S], *, rows: int) -> tuple[R, S]:
    """Return what two functions give that do not depend on each other; at the same time where rows are many.

    numpy lets other threads run while it works on an array, so that two cores have something to do.
    """
    if rows < MANY or thread_count() < 2:
        return one(), other()
    from concurrent.futures import ThreadPoolExecutor  # not needed, and so not loaded, by the common sizes

    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(other)
        return one(), later.result()


def sort_runs(runs: Iterable[NDArray[np.float64]]) -> None:
    """Sort each run in place, two at a time where there are many rows."""
    runs = list(runs)
    threads = 1 if sum(run.shape[0] for run in runs) < MANY else min(2, thread_count())
    for _ in in_order(np.ndarray.sort, runs, threads=threads):
        pass
