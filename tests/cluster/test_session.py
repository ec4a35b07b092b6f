"""Connecting to a cluster, or starting one: quickly, quietly, and with a clear word where it cannot be used."""

import io
import logging
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headeval.cluster import session
from headeval.cluster.session import cluster_session
from headeval.errors import UsageError

pytestmark = pytest.mark.usefixtures("needs_dask")


@pytest.fixture
def needs_dask() -> None:
    pytest.importorskip("distributed", reason="these tests need Dask: pip install 'headeval[dask]'")


def test_without_dask_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'headeval\[dask\]'"), cluster_session():
        pass


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://a", "tcp://[", "::::"])
def test_an_address_where_nothing_answers_is_an_error_and_soon(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "CONNECT_SECONDS", 1)
    begun = time.monotonic()
    with pytest.raises(UsageError, match="no Dask scheduler answers at '"), cluster_session(address):
        pass
    assert time.monotonic() - begun < 10


def test_a_scheduler_without_workers_is_an_error_and_soon(
    by_hand: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "WORKER_SECONDS", 1)
    address = by_hand(0).address
    told = "has no workers after 1 seconds\nstart some with: dask worker tcp://"
    with pytest.raises(UsageError, match=told), cluster_session(address):
        pass


def test_workers_with_other_versions_are_refused(
    by_hand: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is another there, the error names it, who has it, and both versions."""
    started = by_hand(1)
    with cluster_session(started.address):
        pass
    version = session._installed
    for name in ("headeval", "numpy", "pyarrow"):
        ours = {name: "0.0.1"}
        monkeypatch.setattr(session, "_installed", lambda asked, ours=ours: ours.get(asked) or version(asked))
        found = rf"has {name} {version(name)} \(and so do 1 more\), here it is 0\.0\.1"
        with pytest.raises(UsageError, match=found), cluster_session(started.address):
            pass
    monkeypatch.undo()
    here = platform.python_version
    monkeypatch.setattr(platform, "python_version", lambda: "3.99.0")
    monkeypatch.setattr(session, "_PYTHON", here)
    with pytest.raises(UsageError, match=r"has Python 3\.\d+ .*here it is 3\.99"), cluster_session(started.address):
        pass


class Opened:
    """Takes the place of a cluster that is started; notes whether its folder was there when it was closed."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.closed_in_its_folder: bool | None = None

    def close(self, timeout: float) -> None:
        self.closed_in_its_folder = self.folder.is_dir()


def test_an_interrupt_while_a_cluster_starts_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it has started, and before its folder is removed."""
    opened: list[Opened] = []

    def starting(*, local_directory: str, **_: Any) -> Opened:
        signal.raise_signal(signal.SIGINT)
        opened.append(Opened(local_directory))
        return opened[0]

    monkeypatch.setattr(session, "_distributed", lambda: SimpleNamespace(LocalCluster=starting))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), cluster_session():
        pass
    assert opened[0].closed_in_its_folder
    assert not opened[0].folder.exists()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_is_why_a_cluster_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal interrupts the processes that start as well; that they fail is no news."""

    def starting(**_: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        raise OSError("no more processes")

    monkeypatch.setattr(session, "_distributed", lambda: SimpleNamespace(LocalCluster=starting))
    with pytest.raises(KeyboardInterrupt), cluster_session():
        pytest.fail("it has started")


def test_logs_are_quiet_as_long_as_the_session_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that runs headeval as a library keeps its own logs."""
    monkeypatch.delenv("HEADEVAL_DEBUG", raising=False)
    text = io.StringIO()
    ours = logging.StreamHandler(text)
    ours.setLevel(logging.WARNING)
    monkeypatch.setattr(logging.getLogger("tornado"), "handlers", [ours])
    monkeypatch.setattr(logging.getLogger("asyncio"), "handlers", [])

    @contextmanager
    def connected(address: str) -> Iterator[None]:
        for name in ("tornado", "asyncio"):
            assert logging.getLogger(name).handlers  # else Python writes it on stderr
            logging.getLogger(name).critical("within")
        yield None

    monkeypatch.setattr(session, "_connected", connected)
    monkeypatch.setattr(session, "_wait_for_workers", lambda *_: None)
    monkeypatch.setattr(session, "_check_versions", lambda *_: None)
    with cluster_session("tcp://127.0.0.1:1"):
        pass
    assert text.getvalue() == ""
    logging.getLogger("tornado").critical("after")
    assert text.getvalue() == "after\n"
    assert (logging.getLogger("tornado").handlers, ours.level) == ([ours], logging.WARNING)
    assert logging.getLogger("asyncio").handlers == []
