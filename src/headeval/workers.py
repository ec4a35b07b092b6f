"""Threads over pieces of work whose results come back in order, with few of them waiting at a time."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

WANTED_THREADS = "OMP_NUM_THREADS"
_WAITING = 2  # pieces ready for each thread: enough to keep all busy, few enough to hold no memory


def thread_count() -> int:
    """Return how many threads to use: OMP_NUM_THREADS where it is set, and never more than this process may."""
    affinity = getattr(os, "sched_getaffinity", None)
    allowed = len(affinity(0)) if affinity else os.cpu_count() or 1
    wanted = os.environ.get(WANTED_THREADS, "").split(",")[0].strip()
    return min(allowed, int(wanted)) if wanted.isdecimal() and int(wanted) > 0 else allowed


def in_order(work: Callable[[T], R], pieces: Iterable[T], *, threads: int) -> Iterator[R]:
    """Yield work(piece) of each piece in the order of the pieces.

    Parameters
    ----------
    work : called in several threads at once.
    pieces : taken from this thread, a few ahead of the results.
    threads : 1 works in this thread.
    """
    if threads < 2:
        yield from map(work, pieces)
        return
    waiting: deque[Future[R]] = deque()
    pool = _pool(threads, os.getpid())
    try:
        for piece in pieces:
            waiting.append(pool.submit(work, piece))
            if len(waiting) > _WAITING * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a forked process has none of the threads
    """Return threads that are kept, and with them the memory that each works in."""
    return ThreadPoolExecutor(threads, thread_name_prefix="headeval")
