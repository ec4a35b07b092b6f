"""A local cluster of two processes, a cluster started by hand, and tables in several parts."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.cluster import reading
from headeval.cluster.session import cluster_session
from headeval.cluster.work import Cluster

D = 30
ROWS_A_PART = 100


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two worker processes of this machine, for all tests that do not end one."""
    pytest.importorskip("distributed", reason="these tests need Dask: pip install 'headeval[dask]'")
    with cluster_session(n_workers=2) as session:
        yield session


@pytest.fixture
def address(cluster: Cluster) -> str:
    """The address of its scheduler."""
    return str(cluster._client.scheduler.address)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut small tables into parts, too."""
    monkeypatch.setattr(reading, "rows_each", lambda tables: ROWS_A_PART)


@pytest.fixture
def make_tables(tmp_path: Path) -> Callable[..., list[str]]:
    """Write Parquet files of labelled rows, whose classes overlap; keyword arguments replace or add columns."""

    def make(n_files: int = 3, n: int = 260, *, row_group: int = 60, d: int = D, **columns: object) -> list[str]:
        rng = np.random.default_rng(n)
        w = rng.normal(size=d)
        paths = []
        for number in range(n_files):
            E = rng.normal(size=(n, d)).astype(np.float32)
            content = {
                "embedding": pa.FixedSizeListArray.from_arrays(pa.array(E.ravel()), d),
                "label": np.where(E @ w + 4 * rng.normal(size=n) > 0, "unsafe", "safe").tolist(),
                "weight": rng.random(n) + 0.5,
                "group": [f"user-{user}" for user in rng.integers(0, 40, n)],
                "id": [f"{number}-{row}" for row in range(n)],
            }
            path = tmp_path / f"part-{number}.parquet"
            pq.write_table(pa.table(content | columns), path, row_group_size=row_group)
            paths.append(str(path))
        return paths

    return make


@dataclass
class ByHand:
    """A scheduler and its workers, as an operator starts them."""

    address: str
    folder: Path
    scheduler: "subprocess.Popen[bytes]"
    workers: "list[subprocess.Popen[bytes]]"

    def start_worker(self, *options: str) -> None:
        """Start one more worker with one thread."""
        where = self.folder / f"worker-{len(self.workers)}"
        command = ("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *options)
        self.workers.append(dask(*command, "--local-directory", str(where), folder=self.folder))


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[Callable[[int], ByHand]]:
    """Start a scheduler and so many workers."""
    pytest.importorskip("distributed", reason="these tests need Dask: pip install 'headeval[dask]'")
    clusters: list[ByHand] = []

    def start(n_workers: int) -> ByHand:
        address = f"tcp://127.0.0.1:{free_port()}"
        host, port = address.removeprefix("tcp://").split(":")
        scheduler = dask("scheduler", "--host", host, "--port", port, "--no-dashboard", folder=tmp_path)
        clusters.append(ByHand(address, tmp_path, scheduler, []))
        for _ in range(n_workers):
            clusters[-1].start_worker()
        wait_for(int(port))
        if n_workers:
            wait_for_workers(address, n_workers)
        return clusters[-1]

    yield start
    for process in [process for made in clusters for process in (made.scheduler, *made.workers)]:
        process.kill()
        process.wait()


def dask(*arguments: str, folder: Path) -> "subprocess.Popen[bytes]":
    """Start Dask's own command; it ends by SIGKILL alone, so that nothing is tidied up."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with (folder / "dask.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments], stdout=log, stderr=log, cwd=folder, env=environment
        )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, seconds: float = 30) -> None:
    for _ in range(int(seconds * 20)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"nothing listens at {port} after {seconds} seconds")


def wait_for_workers(address: str, number: int, seconds: float = 30) -> None:
    with cluster_session(address) as session:
        for _ in range(int(seconds * 20)):
            if len(session.threads()) == number:
                return
            time.sleep(0.05)
    pytest.fail(f"there are not {number} workers after {seconds} seconds")
