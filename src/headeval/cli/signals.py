"""Ctrl-C and SIGTERM: the first leaves by an exception, so that unfinished outputs are removed, and nothing is said."""

import atexit
import os
import signal
import sys
import time
from types import FrameType

PATIENCE = 2.0  # seconds in which another signal does not disturb the removing of unfinished outputs

_received: list[tuple[int, float]] = []


def install() -> None:
    """Take the signals of this process; what was told to ignore Ctrl-C, as by nohup, goes on ignoring it."""
    signal.signal(signal.SIGTERM, _leave)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    # Registered first, so called last: the interpreter, as it goes away, would give the signals back to the system,
    # which ends a process by them without an exit code.
    atexit.register(_ignore)


def leave_at_once() -> None:
    """Let a signal from now on end the process on the spot: all outputs are written or removed."""
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) is _leave:
            signal.signal(number, lambda number, _: os._exit(128 + number))


def code_of_signal() -> int | None:
    """Return the exit code of the first signal that came, whatever a library has made of it; None without one."""
    return 128 + _received[0][0] if _received else None


def _ignore() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the form of a signal handler
    now = time.monotonic()
    if _received and now - _received[-1][1] < PATIENCE:
        return
    _received.append((number, now))
    if number == signal.SIGTERM:
        sys.exit(128 + number)
    raise KeyboardInterrupt
