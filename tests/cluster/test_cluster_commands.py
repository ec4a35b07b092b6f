"""Commands with `--engine dask`: what they write and show is what they write and show on one machine."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from headeval.cli.main import run
from headeval.files import parquet_rows

# Each starts a cluster, and whole commands.
pytestmark = [pytest.mark.usefixtures("small_parts"), pytest.mark.slow]

SAME_OPTIMUM = 1e-9


def ran(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    done = run([*arguments])
    captured = capsys.readouterr()
    assert done == code, captured.err
    return captured.out if code == 0 else captured.err


def head_of(path: Path) -> np.ndarray[Any, Any]:
    head = json.loads(path.read_text())
    return np.append(np.ravel(head["W"]), head["b"])


@pytest.mark.slow
def test_fit_score_and_report_on_a_cluster_started_by_hand(
    by_hand: Callable[[int], Any],
    make_tables: Callable[..., list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    make_tables(n=260)
    data = [f"part-{number}.parquet" for number in range(3)]
    there = ("--engine", "dask", "--scheduler", by_hand(2).address)
    fitting = ("fit", *data, "--group", "group", "--weight", "weight", "--embedding-model", "m", "--quiet")
    ran(capsys, *fitting, "-o", "here.json")
    ran(capsys, *fitting, "-o", "there.json", *there)
    np.testing.assert_allclose(head_of(Path("there.json")), head_of(Path("here.json")), rtol=0, atol=SAME_OPTIMUM)

    reporting = ("report", *data, "--head", "here.json", "--by", "group", "--format", "json")
    assert ran(capsys, *reporting, *there) == ran(capsys, *reporting)

    scoring = ("score", *data, "--head", "here.json", "--quiet")
    for suffix in ("csv", "parquet"):
        ran(capsys, *scoring, "-o", f"here.{suffix}")
        ran(capsys, *scoring, "-o", f"there.{suffix}", *there)
    assert Path("there.csv").read_bytes() == Path("here.csv").read_bytes()
    scored, expected = pq.read_table("there.parquet"), pq.read_table("here.parquet")
    assert scored.equals(expected, check_metadata=True)
    assert pq.read_metadata("there.parquet").metadata == pq.read_metadata("here.parquet").metadata


def test_rows_that_cannot_be_scored_are_named_as_on_one_machine(
    address: str,
    make_tables: Callable[..., list[str]],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And nothing is written. The blocks that are read here are as large as the parts there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parquet_rows, "_batch_rows", lambda file, columns: 120)
    data = make_tables(n_files=2)
    ran(capsys, "fit", *data, "--embedding-model", "m", "--quiet", "-o", "head.json")
    there = ("--engine", "dask", "--scheduler", address)
    short = [[1.0] * (7 if row in (130, 250) else 30) for row in range(260)]
    later = [[1.0] * (30 if row < 120 else 7) for row in range(260)]
    for columns in (
        {"embedding": later},
        {"embedding": short},
        {"embedding": [None] * 260},
        {"embedding": [[1.0] * 7] * 260},
        {"flagged": [1] * 260},
    ):
        faulty = make_tables(n_files=2, **columns)
        scoring = ("score", *faulty, "--head", "head.json", "-o", "scored.csv")
        assert ran(capsys, *scoring, *there, code=3) == ran(capsys, *scoring, code=3)
        assert not Path("scored.csv").exists()


def test_a_scheduler_needs_the_engine(
    make_tables: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    data = make_tables(n_files=1)
    for command in (("fit", *data), ("score", *data, "-o", "s.csv"), ("report", *data, "--logit", "weight")):
        error = ran(capsys, *command, "--scheduler", "tcp://127.0.0.1:1", code=2)
        assert "--scheduler ADDRESS is for --engine dask" in error


def headeval(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    script = (
        "import sys; from headeval.cli.main import run; code = run(sys.argv[1:]); "
        "print(code, sorted({name.partition('.')[0] for name in sys.modules} & {'dask', 'distributed', 'tornado'}))"
    )
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, cwd=folder, check=False
    )


def test_without_the_engine_dask_is_not_loaded(make_tables: Callable[..., list[str]], tmp_path: Path) -> None:
    done = headeval("fit", *make_tables(n_files=1), "--quiet", folder=tmp_path)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


def test_without_a_scheduler_a_local_cluster_is_started_that_says_nothing_and_leaves_nothing(
    make_tables: Callable[..., list[str]], tmp_path: Path
) -> None:
    data = make_tables()
    fitting = [sys.executable, "-m", "headeval", "fit", *data, "--embedding-model", "m", "-o"]
    process = subprocess.Popen(
        [*fitting, "there.json", "--engine", "dask"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    out, err = process.communicate(timeout=100)
    assert (process.returncode, err) == (0, "")
    assert "out-of-fold: 5 stratified folds" in out
    assert not list(tmp_path.glob("headeval-*"))
    assert not processes_of(process.pid)
    assert subprocess.run([*fitting, "here.json"], cwd=tmp_path, stdout=subprocess.DEVNULL, check=False).returncode == 0
    there, here = (head_of(tmp_path / f"{name}.json") for name in ("there", "here"))
    np.testing.assert_allclose(there, here, rtol=0, atol=SAME_OPTIMUM)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.0, 1.8, 2.6])
def test_an_interrupt_ends_a_local_cluster_whenever_it_comes(
    make_tables: Callable[..., list[str]], tmp_path: Path, seconds: float
) -> None:
    """While it starts, while it works; a terminal sends the interrupt to the workers, too."""
    data = make_tables(d=300, n=3000)
    fitting = [sys.executable, "-m", "headeval", "fit", *data, "--engine", "dask", "--l2", "auto"]
    process = subprocess.Popen(
        fitting,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 130
    assert not list(tmp_path.glob("headeval-*"))
    assert not list(tmp_path.glob("*.json"))
    assert not processes_of(process.pid)


def processes_of(session_id: int) -> list[str]:
    """Return the command lines of the processes of a session that still run, once they have had time to end."""
    for _ in range(40):
        found = subprocess.run(
            ["ps", "-o", "stat=,args=", "-s", str(session_id)], capture_output=True, text=True, check=False
        )
        running = [line for line in found.stdout.splitlines() if not line.startswith("Z")]
        if not running:
            break
        time.sleep(0.05)
    return running


@pytest.fixture
def bucket(make_tables: Callable[..., list[str]]) -> Iterator[str]:
    """The URI of tables behind a real S3 API."""
    pytest.importorskip("moto", reason="moto[server] gives this test an S3 API; it is in the extra `test`")
    import boto3

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of what moto imports
        from moto.server import ThreadedMotoServer
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"region_name": "us-east-1", "aws_access_key_id": "k", "aws_secret_access_key": "s"}
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", **options)
    client.create_bucket(Bucket="rows")
    for path in make_tables():
        client.upload_file(path, "rows", f"train/{Path(path).name}")
    client.close()
    yield f"s3://k:s@rows/train/*.parquet?endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    server.stop()


def test_workers_read_from_a_store(
    bucket: str,
    address: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each its own row groups, with the credentials of the URI."""
    monkeypatch.chdir(tmp_path)
    there = ("--engine", "dask", "--scheduler", address)
    ran(capsys, "fit", bucket, "-o", "there.json", "--quiet", *there)
    ran(capsys, "fit", str(tmp_path / "*.parquet"), "-o", "here.json", "--quiet")
    np.testing.assert_allclose(head_of(Path("there.json")), head_of(Path("here.json")), rtol=0, atol=SAME_OPTIMUM)
