"""Ctrl-C and SIGTERM: they end the process without a word, once unfinished outputs are removed."""

import atexit
import os
import signal
import time
from types import FrameType

PATIENCE = 2.0  # seconds in which another signal does not disturb the removing of unfinished outputs

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_received: list[tuple[int, float]] = []
_at_once = True  # nothing has begun, or all is done


def install() -> None:
    """Take the signals of this process; what it was told to ignore, as by nohup or `trap ''`, it goes on ignoring."""
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    # Registered first, so called last: the interpreter, as it goes away, would give the signals back to the system,
    # which ends a process by them without an exit code.
    atexit.register(_ignore)


def leave_at_once(at_once: bool) -> None:
    """Let a signal end the process on the spot; or else, where outputs may be unfinished, by KeyboardInterrupt."""
    global _at_once  # one process has one answer, and no more than this assignment may give it
    _at_once = at_once


def code_of_signal() -> int | None:
    """Return the exit code of the first signal that came, whatever a library has made of it; None without one."""
    return 128 + _received[0][0] if _received else None


def _ignore() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the form of a signal handler
    if _at_once:
        os._exit(code_of_signal() or 128 + number)
    now = time.monotonic()
    if _received and now - _received[-1][1] < PATIENCE:
        return
    _received.append((number, now))
    raise KeyboardInterrupt
