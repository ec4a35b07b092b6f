"""Threads: as many as wanted, results in order, few pieces waiting, and no error lost."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from headeval.core.threads import MANY, in_order, side_by_side, thread_count


def allowed() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.mark.parametrize(
    ("wanted", "count"),
    [("1", 1), ("1,2", 1), ("4,2", 4), (" 2 ", 2), ("10000", 10_000), ("", 0), ("0", 0), ("-1", 0), ("x", 0)],
)
def test_omp_num_threads_is_respected_within_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, wanted: str, count: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    assert thread_count() == min(allowed(), count or allowed())


def test_all_processors_are_used_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count() == allowed()


def test_a_process_bound_to_some_processors_counts_those(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 6}, raising=False)
    assert thread_count() == 3
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS and Windows
    assert thread_count() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert thread_count() == 1


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 4, 200])
def test_results_come_in_the_order_of_the_pieces(threads: int, n: int) -> None:
    first = threading.Event()

    def work(i: int) -> int:
        if threads > 1 and n > 1:  # the first piece ends last
            first.wait(5) if i == 0 else first.set()
        return i * i

    assert list(in_order(work, range(n), threads=threads)) == [i * i for i in range(n)]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("ahead", [None, 0, 3])
def test_few_pieces_are_taken_ahead(threads: int, ahead: int | None) -> None:
    taken = 0

    def pieces() -> Iterator[int]:
        nonlocal taken
        for i in range(1000):
            taken += 1
            yield i

    options = {} if ahead is None else {"ahead": ahead}
    results = in_order(lambda i: i, pieces(), threads=threads, **options)
    at_once = 1 if threads == 1 else threads + (1 if ahead is None else ahead)
    for done in range(20):
        next(results)
        assert taken - done == at_once


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_reaches_the_caller_and_leaves_the_threads_usable(threads: int) -> None:
    def work(i: int) -> int:
        if i == 7:
            raise ValueError("seven")
        return i

    with pytest.raises(ValueError, match="seven"):
        list(in_order(work, range(100), threads=threads))
    assert list(in_order(abs, [-1, -2], threads=threads)) == [1, 2]


def test_an_error_of_the_pieces_reaches_the_caller() -> None:
    def pieces() -> Iterator[int]:
        yield 1
        raise OSError("torn")

    with pytest.raises(OSError, match="torn"):
        list(in_order(abs, pieces(), threads=2))


def test_threads_are_kept_between_calls() -> None:
    names = [set(in_order(lambda _: threading.current_thread().name, range(40), threads=2)) for _ in range(3)]
    assert set.union(*names) <= {"headeval_0", "headeval_1"}


def test_another_process_has_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def idents() -> set[int | None]:
        return set(in_order(lambda _: threading.current_thread().ident, range(40), threads=2))

    mine = idents()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not idents() & mine


@pytest.mark.parametrize(
    ("rows", "threads", "apart"), [(MANY, "2", True), (MANY - 1, "2", False), (MANY, "1", False), (10, "1", False)]
)
def test_jobs_run_side_by_side_where_rows_are_many(
    monkeypatch: pytest.MonkeyPatch, rows: int, threads: str, apart: bool
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    one, other = side_by_side(threading.current_thread, threading.current_thread, rows=rows)
    assert one is threading.current_thread()
    assert (other is not one) == apart


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_work_that_is_itself_a_piece_of_work_does_not_wait_for_ever() -> None:
    def inner(number: int) -> int:
        return sum(in_order(lambda part: part * number, range(4), threads=2))

    result: list[list[int]] = []
    outer = threading.Thread(target=lambda: result.append(list(in_order(inner, range(6), threads=2))), daemon=True)
    outer.start()
    outer.join(timeout=20)
    assert result == [[0, 6, 12, 18, 24, 30]]


def test_a_forked_process_starts_threads_of_its_own() -> None:
    program = """
import os, sys
from headeval.core.threads import in_order
assert list(in_order(abs, range(9), threads=2)) == list(range(9))
child = os.fork()
if child == 0:
    os._exit(0 if list(in_order(abs, range(9), threads=2)) == list(range(9)) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", program], timeout=30, check=False).returncode == 0
