"""A session on a Dask cluster: one that runs already, or one started on this machine for as long as it is needed."""

import logging
import os
import platform
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from tempfile import TemporaryDirectory
from typing import Any

from headeval.cluster.work import Cluster
from headeval.core.threads import thread_count
from headeval.errors import UsageError
from headeval.printable import listed, printable, quoted

CONNECT_SECONDS = 10  # for the scheduler to answer
WORKER_SECONDS = 20  # for the first worker to appear
_CLOSE_SECONDS = 5
_STDERR = 2
_LOGGERS = ("distributed", "tornado", "asyncio")
_LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"
# On a terminal an interrupt reaches the workers, too; they are ended by the process that has started them.
_LEAVE_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
_PYTHON = platform.python_version
# Values travel between these as pickles, and numbers must come out the same wherever they are computed.
_SAME_EVERYWHERE = ("headeval", "numpy", "pyarrow", "distributed")


@contextmanager
def cluster_session(scheduler: str | None = None, *, n_workers: int | None = None) -> Iterator[Cluster]:
    """Connect to a scheduler, or start a cluster of processes on this machine; at the end all of it is let go.

    Parameters
    ----------
    scheduler : the address of a scheduler, `tcp://host:8786`; None starts a cluster.
    n_workers : processes of that cluster, with one thread each; None takes as many as this process may use processors.

    Raises
    ------
    UsageError : where Dask is not installed, nothing answers at the address, there are no workers, or these have other
        versions of what must be the same everywhere.
    """
    _require_dask()
    with ExitStack() as stack:
        if not os.environ.get("HEADEVAL_DEBUG"):
            stack.enter_context(_quiet_logs())
        # Columns of many short rows are large beside other programs' tasks, which Dask would say on stderr.
        stack.enter_context(import_module("dask").config.set({_LARGE_GRAPH: "1TB"}))
        address = scheduler or stack.enter_context(_local_cluster(n_workers or thread_count()))
        client = stack.enter_context(_connected(address))
        _wait_for_workers(client, address)
        if scheduler is not None:
            _check_versions(client, address)
        yield Cluster(client, "of this machine" if scheduler is None else f"at {quoted(scheduler)}")


def _require_dask() -> None:
    try:
        _distributed()
    except ImportError as error:
        raise UsageError("--engine dask needs Dask: pip install 'headeval[dask]'") from error


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Let nothing be logged on stderr meanwhile: headeval's own errors tell it, as far as it matters."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    nowhere = logging.NullHandler()  # without any handler, Python itself would write on stderr
    levels = {handler: handler.level for logger in loggers for handler in logger.handlers}
    for logger in loggers:
        logger.addHandler(nowhere)
    for handler in levels:
        handler.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(nowhere)
        for handler, level in levels.items():
            handler.setLevel(level)


@contextmanager
def _local_cluster(n_workers: int) -> Iterator[Any]:
    quiet = not os.environ.get("HEADEVAL_DEBUG")
    with TemporaryDirectory(prefix="headeval-", ignore_cleanup_errors=True) as folder, ExitStack() as owned:
        try:
            with _interrupts_afterwards(), _muted() if quiet else nullcontext():
                cluster = _distributed().LocalCluster(
                    n_workers=n_workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # else it takes a fixed port, or complains
                    local_directory=folder,
                    preload=[_LEAVE_INTERRUPTS],
                    silence_logs=logging.CRITICAL + 1 if quiet else logging.WARNING,
                )
                owned.callback(_close, cluster)  # before an interrupt that has come meanwhile is raised
        except (OSError, RuntimeError, TimeoutError) as error:
            raise UsageError(f"no cluster could be started on this machine: {_reason(error)}") from error
        yield cluster


def _close(opened: Any) -> None:
    """Close a cluster or a client; what goes wrong there is not what the user should be told."""
    with suppress(Exception):
        opened.close(timeout=_CLOSE_SECONDS)


@contextmanager
def _interrupts_afterwards() -> Iterator[None]:
    """Let an interrupt wait for the seconds that starting takes: a cluster half started cannot be closed in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    except Exception as error:  # goes on, unless it is what the interrupt has done
        if came:  # a terminal interrupts the processes that start, too: that they fail is what was asked for
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def _muted() -> Iterator[None]:
    """Give the processes started meanwhile no stderr: an interrupt while they start would make each complain."""
    try:
        saved = os.dup(_STDERR)
    except OSError:  # there is none
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, _STDERR)
        yield
    finally:
        os.dup2(saved, _STDERR)
        os.close(saved)
        os.close(nowhere)


@contextmanager
def _connected(address: Any) -> Iterator[Any]:
    # Made in two steps, to have hold of it should it not become one.
    client = _distributed().Client.__new__(_distributed().Client)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions are compared below
        try:
            if isinstance(address, str):
                import_module("distributed.comm").get_address_host_port(address)
            client.__init__(address, timeout=CONNECT_SECONDS, set_as_default=False, name="headeval")
        except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
            client.close = lambda: None  # else it would wait for itself when it is forgotten, and complain on stderr
            example = "" if "://" in str(address) else ", or is no address such as tcp://host:8786"
            raise UsageError(
                f"no Dask scheduler answers at {quoted(address)}{example}: {_reason(error)}\n"
                "start one with: dask scheduler"
            ) from error
        except BaseException:  # an interrupt too: the half-made client must not wait for itself; the error goes on
            client.close = lambda: None
            raise
    try:
        yield client
    finally:
        _close(client)


def _wait_for_workers(client: Any, address: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except (OSError, TimeoutError) as error:
        where = quoted(address) if isinstance(address, str) else "of this machine"
        raise UsageError(
            f"the Dask scheduler {where} has no workers after {WORKER_SECONDS} seconds\n"
            f"start some with: dask worker {printable(str(address)) if isinstance(address, str) else 'ADDRESS'}"
        ) from error


def _check_versions(client: Any, address: str) -> None:
    """Refuse a scheduler or workers that cannot read what is sent to them, or would compute other numbers."""
    ours = {name: _installed(name) for name in _SAME_EVERYWHERE}
    theirs: dict[str, dict[str, str]] = {}
    for name in ours:
        # A function of the standard library, which also a worker without headeval can find.
        found = client.run(version, name, on_error="return", nanny=False)
        theirs[name] = {where: _told(told) for where, told in found.items()}
        try:
            theirs[name]["the scheduler"] = _told(client.run_on_scheduler(version, name))
        except PackageNotFoundError:
            theirs[name]["the scheduler"] = "none"
    # Of Python the last number does not matter.
    ours["Python"] = _minor(platform.python_version())
    pythons = client.run(_PYTHON, on_error="return", nanny=False)
    theirs["Python"] = {where: _minor(_told(told)) for where, told in pythons.items()}
    theirs["Python"]["the scheduler"] = _minor(client.run_on_scheduler(_PYTHON))
    for name, version_here in ours.items():
        others = {where: told for where, told in theirs[name].items() if told != version_here}
        if others:
            where, told = min(others.items())
            has = f"has no {name}" if told == "none" else f"has {name} {printable(told, longest=40)}"
            more = f" (and so do {len(others) - 1} more)" if len(others) > 1 else ""
            raise UsageError(
                f"the cluster at {quoted(address)} cannot be used: {printable(where)} {has}{more}, here it is "
                f"{version_here}\ninstall the same versions of {listed(ours)} on the scheduler and on all workers"
            )


def _distributed() -> Any:
    """Return Dask's package, which is hardly typed, and is loaded only where a cluster is wanted."""
    return import_module("distributed")


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from its source
        return str(sys.modules[name].__version__)


def _told(answer: object) -> str:
    return "none" if isinstance(answer, PackageNotFoundError) else str(answer)


def _minor(python: str) -> str:
    return ".".join(python.split(".")[:2])


def _reason(error: BaseException) -> str:
    return printable((str(error).splitlines() or [type(error).__name__])[0], longest=160)
