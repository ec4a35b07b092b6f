"""Connecting to a cluster, or starting one: quickly, quietly, and with a clear word where it cannot be used."""

import platform
import sys
import time
from collections.abc import Callable
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
