"""Settings of all tests."""

import errno
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import Phase, settings

# No deadline: on a loaded machine the first example of a property takes longer than any that would be sensible.
# Half of the usual 100 examples: all that is run before a change lands runs them twice, with other seeds each time.
settings.register_profile("headeval", deadline=None, max_examples=50)
# For the lowest versions, where the question is what another version of a library answers.
settings.register_profile("few", deadline=None, max_examples=15)
# For `tests/mutants.py`, which runs tests some ten thousand times: the same few examples every time, and no search for
# smaller ones.
settings.register_profile(
    "mutants", deadline=None, derandomize=True, database=None, max_examples=40, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "headeval"))


# --- the network

# Stores, clusters and browsers of this machine are spoken to through sockets; no other test needs one.
_SPEAK_TO_THIS_MACHINE = re.compile(r"/tests/(cluster/|files/test_remote\.py|render/\w+_in_browser\.py)")
_ADDRESSED = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}  # the position of the address
_LOOKED_UP = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostbyaddr": 0}  # and of a host's name
_refused: list[str] = []
_speaking = [False]


def _refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    """Stop every way to another machine, and in most tests every socket; what is stopped is remembered."""
    if not event.startswith("socket."):
        return
    host: object = None
    if event in _ADDRESSED:
        address = arguments[_ADDRESSED[event]]
        host = address[0] if isinstance(address, tuple) else None  # the address of a local socket is a path
    elif event in _LOOKED_UP:
        host = arguments[_LOOKED_UP[event]]
    elif event == "socket.__new__" and not _speaking[0] and arguments[1] != socket.AF_UNIX:
        # Threads of a cluster outlive the tests that it was for.
        host = "a socket" if threading.current_thread() is threading.main_thread() else None
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if name not in {None, "", "localhost", "::1"} and not str(name).startswith("127."):
        _refused.append(f"{event}: {name}")
        raise PermissionError(errno.EPERM, f"tests do not use the network ({event}: {name})")


sys.addaudithook(_refuse_network)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Set what the test, and the fixtures made for it, may speak to."""
    _speaking[0] = _SPEAK_TO_THIS_MACHINE.search(item.path.as_posix()) is not None
    return (yield)


@pytest.fixture(autouse=True)
def no_network() -> Iterator[None]:
    """Fail a test that tried to reach another machine, also where the attempt was caught."""
    _refused.clear()
    yield
    assert not _refused, f"the network was used: {_refused}"
