"""Work given to the workers of a cluster, and its results, waited for with an end in sight."""

import asyncio
import concurrent.futures
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar
from uuid import uuid4

from headeval.errors import DataError, HeadevalError

WORKERLESS_SECONDS = 60  # for which work waits while there are no workers at all
_LOOK_SECONDS = 2
_IN_TOUCH = ("running", "connecting")

T = TypeVar("T")
Future = Any  # Dask's own classes are hardly typed, and are loaded only where they are used
Key = tuple[str, int]
Graph = dict[Key, Any]


class Cluster:
    """Runs functions on workers.

    Whatever a function is given is known to the scheduler, not to one worker alone; so all of it can be computed once
    more elsewhere when a worker is lost.

    Parameters
    ----------
    client : connected to the scheduler.
    where : which cluster this is, in words, for messages.
    """

    def __init__(self, client: Any, where: str) -> None:
        self._client = client
        self.where = where

    def submit(self, function: Callable[..., Any], *arguments: Any, near: Sequence[str] = ()) -> Future:
        """Start function(*arguments), where futures stand for their results; on the workers `near` while they live."""
        with self._in_touch():
            return self._client.submit(
                function, *arguments, pure=False, workers=list(near) or None, allow_other_workers=bool(near)
            )

    def threads(self) -> list[str]:
        """Return the address of its worker for each thread that runs functions."""
        with self._in_touch():
            workers = sorted(self._client.nthreads().items())
        return [address for address, number in workers for _ in range(number)]

    def in_order(
        self, start: Callable[[T], Future], pieces: Iterable[T], *, ahead: int | None = None
    ) -> Iterator[tuple[T, Any]]:
        """Yield each piece with its result, in the order of the pieces.

        Parameters
        ----------
        start : what starts a piece, and returns the future of its result.
        ahead : how many results may wait to be taken, for each thread of the workers, which hold them so long; None
            starts all pieces at once.
        """
        waiting: deque[tuple[T, Future]] = deque()
        for piece in pieces:
            waiting.append((piece, start(piece)))
            if ahead is not None and len(waiting) > ahead * len(self.threads()):
                yield self._taken(waiting)
        while waiting:
            yield self._taken(waiting)

    def homes(self, futures: Sequence[Future]) -> list[Sequence[str]]:
        """Return for each future the workers that hold its result now."""
        with self._in_touch():
            held = self._client.who_has(list(futures))
        return [list(held.get(future.key, ())) for future in futures]

    def run(self, graph: Graph, keys: Sequence[Key], homes: Mapping[Key, Sequence[str]]) -> Iterator[Any]:
        """Yield the results of some keys of a graph of functions, in order.

        Parameters
        ----------
        graph : by key a function and its arguments: values, futures or keys.
        keys : whose results are wanted.
        homes : on which workers to compute a key while they live.
        """
        dask: Any = import_module("dask")
        # Without this, a task would go wherever the queue is shorter, and take the rows with it.
        near = defaultdict(list, {key: list(workers) for key, workers in homes.items()})
        with self._in_touch(), dask.annotate(workers=near.__getitem__, allow_other_workers=True):
            futures = self._client.get(graph, list(keys), sync=False)
        for number in range(len(futures)):
            result = self.result(futures[number])
            futures[number] = None  # else workers would keep what has been taken
            yield result

    def result(self, future: Future) -> Any:
        """Return a result.

        Raises
        ------
        HeadevalError : what the function has raised.
        DataError : where it cannot be computed, since workers are lost, or the scheduler.
        """
        killed: Any = import_module("distributed").KilledWorker
        try:
            with self._in_touch():
                return self._awaited(future)
        except HeadevalError:
            raise
        except killed as error:
            raise DataError(
                f"the rows cannot be read on the cluster {self.where}: one part of them has ended "
                f"{error.allowed_failures + 1} workers, which may have too little memory; use more or larger workers"
            ) from error
        except MemoryError as error:
            raise DataError(
                f"the rows do not fit into the memory of the workers of the cluster {self.where}"
            ) from error

    @contextmanager
    def _in_touch(self) -> Iterator[None]:
        """Tell what goes wrong where the scheduler no longer answers."""
        cancelled: Any = import_module("distributed").CancelledError
        closed: Any = import_module("distributed.comm").CommClosedError
        try:
            yield
        except Exception as error:  # goes on, unless the scheduler is what failed
            if isinstance(error, (cancelled, closed)) or self._client.status not in _IN_TOUCH:
                raise DataError(f"the scheduler of the cluster {self.where} is lost; run it again") from error
            raise

    def _taken(self, waiting: "deque[tuple[T, Future]]") -> tuple[T, Any]:
        piece, future = waiting.popleft()  # and with this ends the last name of the future: workers let go of it
        return piece, self.result(future)

    def _awaited(self, future: Future) -> Any:
        """Return a result, but do not wait for workers that do not come."""
        # Neither computing nor sending starts anew after each look, and a TimeoutError can only be the function's own.
        coming = asyncio.run_coroutine_threadsafe(_come(future), self._client.loop.asyncio_loop)
        try:
            self._look_after(coming)
            return coming.result()
        finally:
            coming.cancel()

    def _look_after(self, coming: "concurrent.futures.Future[Any]") -> None:
        """Wait until a result has come, or there are no workers."""
        alone_since = None
        while concurrent.futures.wait([coming], timeout=_LOOK_SECONDS).not_done:
            now = time.monotonic()
            alone_since = None if self._has_workers() else alone_since or now
            if alone_since is not None and now - alone_since >= WORKERLESS_SECONDS:
                raise DataError(
                    f"all workers of the cluster {self.where} are lost, and no other has come for "
                    f"{WORKERLESS_SECONDS} seconds; start workers and run it again"
                )

    def _has_workers(self) -> bool:
        try:
            return bool(self._client.nthreads())
        except Exception:  # a scheduler that does not answer has none; the client itself gives up in time
            return False


async def _come(future: Future) -> Any:
    return await future


def keys_of(name: str, number: int) -> list[Key]:
    """Return so many keys that no graph before has had."""
    token = f"headeval-{name}-{uuid4().hex}"
    return [(token, index) for index in range(number)]


def as_it_is(value: T) -> T:
    """Return the value: as a result, it travels to each worker once, and not with every task."""
    return value
