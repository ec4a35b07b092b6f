"""Reading and working at the same time."""

import atexit
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Thread, current_thread
from typing import Any, TypeVar

Item = TypeVar("Item")

_NAME = "headeval-read"
_at_work: dict[Thread, "SimpleQueue[bool]"] = {}


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield `items` in order, the next one being made in a thread while the caller works on this one.

    Decoding leaves the interpreter to others, so both proceed. At most two items are in memory. What goes wrong in
    making an item is raised where that item would have come; when the caller stops early, the thread closes `items`.

    Examples
    --------
    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    wanted: SimpleQueue[bool] = SimpleQueue()
    made: SimpleQueue[tuple[str, Any]] = SimpleQueue()
    thread = Thread(target=_make, args=(items, wanted, made), name=_NAME, daemon=True)
    _at_work[thread] = wanted
    thread.start()
    try:
        wanted.put(True)
        while True:
            what, made_item = made.get()
            if what == "end":
                return
            if what == "error":
                raise made_item
            wanted.put(True)
            yield made_item
            del made_item  # else two blocks would be held while the third is awaited
    finally:
        # This may run in the midst of anything, whenever a forgotten generator is collected, in any thread: to wait
        # here, or to take a lock, could be for ever. A SimpleQueue is made for that.
        wanted.put(False)
        made_item = None  # an error must not hold its own frame


def _make(items: Iterator[Any], wanted: "SimpleQueue[bool]", made: "SimpleQueue[tuple[str, Any]]") -> None:
    """Make an item for every True in `wanted`, until there is none or a False."""
    end = object()
    try:
        while wanted.get():
            item = next(items, end)
            made.put(("end", None) if item is end else ("item", item))
            if item is end:
                break
            del item
        close = getattr(items, "close", None)
        if close is not None:
            close()
    except BaseException as error:  # raised where it is waited for
        made.put(("error", error))
    finally:
        _at_work.pop(current_thread(), None)


@atexit.register
def _stop() -> None:
    """Let no thread be inside pyarrow while the interpreter goes away."""
    for thread, wanted in list(_at_work.items()):
        wanted.put(False)
        thread.join()
