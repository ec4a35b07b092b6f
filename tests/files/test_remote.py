"""Tables in a store, read through a real S3 API on localhost (moto) and through stores that misbehave."""

import os
import pickle
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.cli.main import run
from headeval.errors import DataError, HeadError, OutputError
from headeval.files import csv_text as csv_reading
from headeval.files import parquet_rows
from headeval.files.atomic import check_output, make_folder
from headeval.files.examples import read_examples
from headeval.files.heads import read_head
from headeval.files.locations import RemoteFile, parse_uri
from headeval.files.output import check_table_output
from headeval.files.store_errors import explained
from headeval.files.tables import Tables, open_tables

N = 90


def table(seed: int = 0, n: int = N) -> pa.Table:
    rng = np.random.default_rng(seed)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=4 * n).astype(np.float32)), 4)
    return pa.table({"id": np.arange(n), "embedding": vectors, "label": rng.integers(0, 2, n)})


def csv_text(rows: int = 3, start: int = 0) -> str:
    return "label,z\n" + "".join(f"{row % 2},{row}\n" for row in range(start, start + rows))


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The address of a server that speaks the S3 API."""
    pytest.importorskip("moto", reason="moto[server] gives these tests an S3 API; it is in the extra `test`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of what moto imports
        from moto.server import ThreadedMotoServer
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of the machine, no credentials of its owner."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY-OF-ENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET-OF-ENV")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture(scope="module")
def client(moto: str) -> Iterator[Any]:
    """What writes into the store: another library than the one that reads."""
    import boto3

    options = {"region_name": "us-east-1", "aws_access_key_id": "k", "aws_secret_access_key": "s"}
    client = boto3.client("s3", endpoint_url=f"http://{moto}", **options)
    yield client
    client.close()


@pytest.fixture
def bucket(
    client: Any, moto: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[..., str]:
    """Put contents under a key of a fresh bucket and return the URI."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{moto}")
    name = f"bucket-{abs(hash(request.node.nodeid)):x}"
    client.create_bucket(Bucket=name)

    def put(key: str, contents: pa.Table | str | bytes, **options: object) -> str:
        if isinstance(contents, pa.Table):
            sink = pa.BufferOutputStream()
            pq.write_table(contents, sink, **options)
            contents = sink.getvalue().to_pybytes()
        client.put_object(Bucket=name, Key=key, Body=contents)
        return f"s3://{name}/{key}"

    put.client, put.name, put.uri = client, name, f"s3://{name}"  # type: ignore[attr-defined]
    return put


def read(tables: Tables, columns: list[str] | None = None) -> pa.Table:
    return pa.Table.from_batches([block.batch for block in tables.blocks(columns)])


def names(data: str) -> list[str]:
    return [path.name for path in open_tables([data]).paths]


def test_parquet_and_csv_give_the_rows_and_digests_of_the_same_files_on_disk(bucket, tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet", row_group_size=40)
    (tmp_path / "b.csv").write_text(csv_text(5000))
    for name, options in (("a.parquet", {}), ("b.csv", {"score": "z"})):
        remote = open_tables([bucket(name, (tmp_path / name).read_bytes())])
        local = open_tables([str(tmp_path / name)])
        assert read(remote) == read(local)
        assert remote.n_rows == local.n_rows
        assert read_examples(remote, **options).fingerprint == read_examples(local, **options).fingerprint


def test_wide_tables_are_read_too(bucket):
    """They are fetched in another way than tables with few columns."""
    wide = pa.table({f"e{index}": np.arange(index, index + 50, dtype=np.float32) for index in range(80)})
    assert read(open_tables([bucket("w.parquet", wide, row_group_size=20)])) == wide


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", ["a.parquet", "b.csv", "c [1].csv"]),
        ("/", ["a.parquet", "b.csv", "c [1].csv"]),
        ("/*.parquet", ["a.parquet"]),
        ("/?.csv", ["b.csv"]),
        ("/[bc]*.csv", ["b.csv", "c [1].csv"]),
        ("/.h*.csv", [".hidden.csv"]),
        ("/**/*.csv", ["b.csv", "c [1].csv", "d.csv"]),
        ("/*/d.csv", ["d.csv"]),
        ("/c [1].csv", ["c [1].csv"]),
        ("/c%20%5B1%5D.csv", ["c [1].csv"]),
    ],
)
def test_folders_and_patterns_follow_the_rules_for_local_ones(bucket, tmp_path, pattern, expected):
    (tmp_path / "f" / "sub").mkdir(parents=True)
    for key in ("a.parquet", "b.csv", "c [1].csv", ".hidden.csv", "notes.txt", "sub/d.csv", "sub/.e.csv"):
        contents = table() if key.endswith("parquet") else csv_text()
        uri = bucket(f"f/{key}", contents)
        (tmp_path / "f" / key).write_bytes(b"PAR1" if key.endswith("parquet") else b"x\n1\n")
    assert names(uri.partition("/f/")[0] + "/f" + pattern) == expected
    if "%" not in pattern and "parquet" not in pattern and pattern.strip("/"):
        assert names(str(tmp_path / "f") + pattern) == expected


def test_options_of_the_uri_hold_for_every_file_that_is_found_through_it(bucket, moto, monkeypatch):
    for key in "ab":
        bucket(f"f/{key}.csv", csv_text())
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.delenv("AWS_REGION")
    options = f"?region=us-east-1&scheme=http&endpoint_override={moto}"
    for pattern in ("/f", "/f/?.csv"):
        tables = open_tables([bucket.uri + pattern + options])
        assert [str(path) for path in tables.paths] == [f"{bucket.uri}/f/{key}.csv{options}" for key in "ab"]
        assert len(read(tables)) == 6


def test_credentials_may_stand_in_the_uri_and_are_never_shown(bucket, moto, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    key = bucket("a.csv", csv_text()).partition("//")[2]
    tables = open_tables([f"s3://ACCESS:SEC%2FRET@{key}"])
    assert len(read(tables)) == 3
    assert str(tables.paths[0]) == f"s3://***@{key}"
    assert "SEC" not in repr(tables)


def test_local_files_may_be_named_by_uri_alongside(bucket, tmp_path):
    (tmp_path / "a b.csv").write_text(csv_text())
    tables = open_tables([bucket("a.csv", csv_text()), f"file://{tmp_path}/a%20b.csv"])
    assert isinstance(tables.paths[0], RemoteFile)
    assert tables.paths[1] == tmp_path / "a b.csv"


@pytest.mark.parametrize(
    ("key", "contents", "argument", "message"),
    [
        ("a.csv", "", "/a.csv", "is empty (0 bytes)"),
        ("a.csv", b"\x80\x04pickled", "/a.csv", "pickle"),
        ("a.csv", b"PAR1", "/a.csv", "rename it to .parquet"),
        ("a.parquet", b"PAR1" * 9, "/a.parquet", "cannot be read"),
        ("a.csv", "x\n", "/a.csv", "a header but no rows"),
        ("a.txt", "x\n1\n", "/", "holds no table"),
        ("a.csv", "x\n1\n", "/b.csv", "b.csv' does not exist"),
        ("a.csv", "x\n1\n", "/*.parquet", "no file matches the pattern"),
        ("a.csv", "x\n1\n", "/a.csv/b.csv", "does not exist"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_as_for_local_ones(bucket, key, contents, argument, message):
    bucket(key, contents)
    with pytest.raises(DataError) as caught:
        open_tables([bucket.uri + argument])
    assert message in str(caught.value)
    assert bucket.uri in str(caught.value)


def test_a_file_given_twice_is_an_error_however_it_is_written(bucket):
    uri = bucket("f/a b.csv", csv_text())
    for other in (f"{bucket.uri}/f", uri.replace(" ", "%20"), uri.replace("s3://", "s3://K:S@")):
        with pytest.raises(DataError, match="given twice"):
            open_tables([uri, other])


@pytest.mark.parametrize("argument", ["s3://no-such-bucket", "s3://no-such-bucket/a.csv", "s3://no-such-bucket/*.csv"])
def test_a_missing_bucket_is_told_from_a_missing_file(bucket, argument):
    with pytest.raises(DataError, match=r"there is no bucket 'no-such-bucket'; check its name"):
        open_tables([argument])


def test_without_credentials_the_message_says_which_variables_to_set(bucket, monkeypatch):
    uri = bucket("a.csv", csv_text())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for argument in (uri, bucket.uri, f"{bucket.uri}/*.csv"):
        with pytest.raises(DataError, match=r"ACCESS_DENIED.*set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
            open_tables([argument])


def test_wrong_credentials_are_refused_in_the_words_of_the_store(bucket, monkeypatch):
    uri = bucket("a.csv", csv_text())
    monkeypatch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0.0)
    with pytest.raises(DataError, match=r"INVALID_ACCESS_KEY_ID: .*does not exist in our records; set AWS_"):
        open_tables([uri.replace("s3://", "s3://WRONG:SECRET@")])


@pytest.mark.parametrize("name", ["a.parquet", "b.csv"])
def test_a_file_that_goes_while_it_is_used_is_an_error_of_ours(bucket, name):
    tables = open_tables([bucket(name, table() if name == "a.parquet" else csv_text())])
    bucket.client.delete_object(Bucket=bucket.name, Key=name)
    with pytest.raises(DataError, match="does not exist"):
        read(tables)


class Store(ThreadingHTTPServer):
    """A store that answers every request with one refusal, or serves the bytes `contents`, and keeps a record."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.refusal: tuple[int, str] | None = None
        self.contents = b""
        self.asked: list[int] = []

    def uri(self, key: str = "a.parquet") -> str:
        return f"s3://bucket/{key}?scheme=http&region=us-east-1&endpoint_override=127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def do_GET(self) -> None:
        status, code = self.server.refusal or (206, "")
        body = f"<Error><Code>{code}</Code><Message>said so</Message></Error>".encode()
        size = len(self.server.contents)
        first, last = 0, size - 1
        if not code:
            if asked := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
                first, last = int(asked[1]), min(int(asked[2]), size - 1)
            body = self.server.contents[first : last + 1]
            if self.command == "GET":
                self.server.asked.append(len(body))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if self.command == "GET" or not code else 0))
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name is the interface

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (403, "AccessDenied", r"may not be read, or does not exist: ACCESS_DENIED: said so; set AWS_ACCESS_KEY_ID"),
        (403, "SignatureDoesNotMatch", r"SIGNATURE_DOES_NOT_MATCH: said so; set AWS_ACCESS_KEY_ID"),
        (400, "ExpiredToken", r"ExpiredToken.*set AWS_ACCESS_KEY_ID and .*AWS_SESSION_TOKEN"),
        (301, "PermanentRedirect", r"another region.*set AWS_REGION, or region="),
        (400, "AuthorizationHeaderMalformed", r"another region.*set AWS_REGION"),
        (503, "SlowDown", r"busy or out of order \(SLOW_DOWN: said so\); try again later"),
    ],
)
def test_a_refusal_is_told_with_what_to_do(store, status, code, message, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    store.refusal = status, code
    start = time.monotonic()
    with pytest.raises(DataError, match=message) as caught:
        open_tables([store.uri().replace("s3://", "s3://ID-K:PW-S@")])
    assert "\n" not in str(caught.value)
    assert "ID-K" not in str(caught.value)
    assert "PW-S" not in str(caught.value)
    assert time.monotonic() - start < 15


def test_an_unreachable_store_is_an_error_within_seconds(store):
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        port = closed.server_port
    start = time.monotonic()
    with pytest.raises(DataError, match=r"cannot be reached: .*onnect.*AWS_ENDPOINT_URL"):
        open_tables([f"s3://bucket/a.csv?scheme=http&region=us-east-1&endpoint_override=127.0.0.1:{port}"])
    assert time.monotonic() - start < 15


def test_arrow_is_told_to_give_up(store):
    """By itself it tries ten times, and its timeouts are those of the machine."""
    _, (options,) = parse_uri(store.uri()).filesystem.__reduce__()
    assert 0 < options["connect_timeout"] <= 10
    assert 0 < options["request_timeout"] <= 30


def test_neither_opening_nor_reading_a_file_fetches_it_as_a_whole(store, monkeypatch):
    rows, width = 5_000, 32
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(0).random(rows * width)), width)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"v": vectors, "label": np.arange(rows)}), sink, row_group_size=rows // 10)
    store.contents = sink.getvalue().to_pybytes()
    size = len(store.contents)
    tables = open_tables([store.uri()])
    assert sum(store.asked) < size / 4
    for held in (size // 4, 2**15):  # row groups that fit, and those that do not
        store.asked.clear()
        monkeypatch.setattr(parquet_rows, "_FETCHED_BYTES", held)
        assert len(read(tables)) == rows
        assert max(store.asked) <= max(held, parquet_rows._BUFFER_BYTES)
        assert sum(store.asked) < 1.5 * size
    store.asked.clear()
    read(tables, ["label"])
    assert sum(store.asked) < size / 4


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_store_that_fails_midway_is_an_error_of_ours(store, monkeypatch, kind):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(csv_reading, "BLOCK_BYTES", 2**12)
    monkeypatch.setattr(parquet_rows, "_FETCHED_BYTES", 2**12)
    sink = pa.BufferOutputStream()
    pq.write_table(table(n=20_000), sink, row_group_size=1000)
    store.contents = csv_text(20_000).encode() if kind == "csv" else sink.getvalue().to_pybytes()
    blocks = open_tables([store.uri(f"a.{kind}")]).blocks()
    next(blocks)
    store.refusal = 403, "AccessDenied"
    with pytest.raises(DataError, match=r"may not be read.*ACCESS_DENIED"):
        list(blocks)


def test_connections_follow_the_environment(bucket, store, monkeypatch):
    """A process that lives long may be given other credentials, or another store."""
    uri = bucket("a.csv", csv_text())
    assert len(read(open_tables([uri]))) == 3
    store.refusal = 403, "AccessDenied"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{store.server_port}")
    with pytest.raises(DataError, match="ACCESS_DENIED"):
        open_tables([uri])


def test_what_the_store_says_may_repeat_a_secret_and_is_masked_too():
    file = parse_uri("s3://ID-K:PW%2FS@b/a.csv?session_token=TOK")
    told = explained(file, OSError("the store says ID-K, PW/S, PW%2FS and TOK"))
    assert told.endswith("the store says ***, ***, *** and ***")


def test_few_requests_read_a_file_of_many_row_groups(store):
    """Every request to a store takes its time, so small row groups are fetched together."""
    sink = pa.BufferOutputStream()
    pq.write_table(table(n=5000), sink, row_group_size=50)
    store.contents = sink.getvalue().to_pybytes()
    tables = open_tables([store.uri()])
    store.asked.clear()
    assert len(read(tables)) == 5000
    assert len(store.asked) < 8


READ_PICKLED = """
import pickle, sys
tables, parts = pickle.load(open(sys.argv[1], "rb"))
print(tables.n_rows, *(block.batch["id"].to_pylist()[0] for part in parts for block in part.blocks(["id"])))
"""


def test_tables_and_parts_are_sent_to_other_processes(bucket, tmp_path):
    tables = open_tables([bucket("a.parquet", table(), row_group_size=30)])
    assert pickle.loads(pickle.dumps(tables)) == tables  # noqa: S301 - our own
    (tmp_path / "tables.pickle").write_bytes(pickle.dumps((tables, tables.parts(30))))
    command = [sys.executable, "-c", READ_PICKLED, str(tmp_path / "tables.pickle")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(N), "0", "30", "60"]


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://AKIA:se%2Fcret@b/f/a.csv", "s3://***@b/f/a.csv"),
        ("s3://AKIA:se/cret@b/a.csv", "s3://***@b/a.csv"),
        ("s3://b/who@home.csv", "s3://b/who@home.csv"),
        ("s3://b/a.csv?region=r&session_token=tok", "s3://b/a.csv?region=r&session_token=***"),
        ("s3://b/a?.csv", "s3://b/a?.csv"),
        ("s3://b/a.csv?endpoint_override=http://u:pw@h:1", "s3://b/a.csv?endpoint_override=***"),
        ("abfs://box:key@acct.dfs.core.windows.net/a.csv", "abfs://box:***@acct.dfs.core.windows.net/a.csv"),
        ("abfs://box@acct.dfs.core.windows.net/a.csv", "abfs://box@acct.dfs.core.windows.net/a.csv"),
        ("hdfs://ann:pw@host:8020/a@b.csv", "hdfs://ann:***@host:8020/a@b.csv"),
        ("hdfs://host:8020/a@b.csv", "hdfs://host:8020/a@b.csv"),
        ("gs://anonymous@b/a.csv", "gs://anonymous@b/a.csv"),
    ],
)
def test_secrets_are_masked_and_nothing_else(uri, shown):
    try:
        file = parse_uri(uri)
    except ValueError as error:
        assert "%2F" in str(error)  # noqa: PT017 - one of them is no usable URI
        with pytest.raises(DataError, match=re.escape(f"'{shown}' is no usable URI")):
            open_tables([uri])
    else:
        assert str(file) == shown
        assert repr(file) == f"RemoteFile('{shown}')"


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("s3://ID-K:PW-S@b/a.csv?session_token=PW-S", "no usable URI: Unexpected query parameter"),
        ("s3://ID-K:PW-S@b<>/a.csv", "no usable URI|no bucket|cannot be r"),
        ("https://ID-K:PW-S@host/a.csv", "of no known store.*download it first"),
        ("s3://", "names no bucket"),
        ("s3:///a.csv", "names no bucket"),
        ("file://host/a.csv", "three slashes"),
    ],
)
def test_unusable_uris_are_refused_without_showing_their_secrets(uri, message, store, monkeypatch):
    store.refusal = 404, "NoSuchBucket"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{store.server_port}")
    with pytest.raises(DataError, match=message) as caught:
        open_tables([uri])
    told = str(caught.value) + str(caught.value.__cause__)
    assert "ID-K" not in told
    assert "PW-S" not in told


def test_a_remote_file_has_the_names_that_a_path_has():
    file = RemoteFile("s3://b", "f/scores.v2.parquet")
    path = Path("f/scores.v2.parquet")
    assert (file.name, file.stem, file.suffix) == (path.name, path.stem, path.suffix)
    assert len({file, RemoteFile("s3://b", "f/scores.v2.parquet", size=3)}) == 1


def test_outputs_and_heads_are_local_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    remote = Path("s3://ID-K:PW-S@bucket/a.csv")
    for refuse in (
        lambda: check_output(remote, force=True),
        lambda: check_table_output(remote, force=True),
        lambda: make_folder(remote),
    ):
        with pytest.raises(OutputError, match=r"^s3://\*\*\*@bucket/a\.csv: .*outputs are local files"):
            refuse()
    with pytest.raises(HeadError, match=r"^s3://\*\*\*@bucket/a\.csv: a head is read from a local file"):
        read_head(remote)
    assert not list(tmp_path.iterdir())


def test_a_remote_input_is_no_local_output(tmp_path):
    (tmp_path / "a.csv").write_text("x\n")
    check_output(tmp_path / "a.csv", force=True, inputs=[RemoteFile("s3://b", "a.csv")])


def test_fit_score_and_report_read_from_a_store(bucket, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    uri = bucket("f/train.parquet", table())
    assert run(["fit", f"{bucket.uri}/f/*.parquet", "--embedding-model", "m", "--folds", "2", "--quiet"]) == 0
    assert run(["score", uri, "-o", "scores.csv", "--quiet"]) == 0
    assert run(["report", uri, "--head", "linear-head.json", "--quiet"]) == 0
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == N + 1
    capfd.readouterr()
    assert run(["report", uri.replace(".parquet", ".csv"), "--head", "linear-head.json"]) == 3
    assert run(["score", uri, "-o", f"{bucket.uri}/scores.csv"]) == 6
    assert "outputs are local files" in capfd.readouterr().err
