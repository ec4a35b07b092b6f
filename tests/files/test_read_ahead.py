"""Blocks made in a thread while the caller works."""

import subprocess
import sys
import threading

import pytest

from headeval.files.read_ahead import read_ahead


def test_items_come_in_order_and_none_is_lost():
    assert list(read_ahead(iter(range(1000)))) == list(range(1000))
    assert list(read_ahead(iter(()))) == []
    assert list(read_ahead(iter([None, 0]))) == [None, 0]


def test_the_next_item_is_made_while_the_caller_works():
    second_made = threading.Event()

    def items():
        yield 1
        second_made.set()
        yield 2

    ahead = read_ahead(items())
    assert next(ahead) == 1
    assert second_made.wait(10)
    assert list(ahead) == [2]


def test_an_error_is_raised_where_its_item_would_have_come():
    def items():
        yield 1
        raise KeyError("second")

    ahead = read_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(KeyError, match="second"):
        next(ahead)


def test_stopping_early_closes_what_is_read_and_leaves_no_thread():
    closed = threading.Event()

    def items():
        try:
            yield from range(10)
        finally:
            closed.set()

    before = set(threading.enumerate())
    ahead = read_ahead(items())
    assert next(ahead) == 0
    (thread,) = set(threading.enumerate()) - before
    ahead.close()
    assert closed.wait(10)
    thread.join(10)
    assert not thread.is_alive()


def test_letting_go_never_waits_for_the_thread():
    """A forgotten reader is closed by the collector, in any thread and at any moment: to wait there can be for ever."""
    released, working = threading.Event(), threading.Event()

    def items():
        yield 1
        working.set()
        released.wait(30)
        yield 2

    ahead = read_ahead(items())
    assert next(ahead) == 1
    assert working.wait(10)
    closing = threading.Thread(target=ahead.close, daemon=True)
    closing.start()
    closing.join(5)
    waits = closing.is_alive()
    released.set()
    assert not waits


def test_a_program_ends_though_a_reader_was_not_used_up():
    script = "from headeval.files.read_ahead import read_ahead\nahead = read_ahead(iter(range(9)))\nprint(next(ahead))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
