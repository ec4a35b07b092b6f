"""Rows whose embeddings are not held: everything else is the same, and the embeddings can be read once more."""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from headeval.errors import DataError
from headeval.files import fingerprint as digesting
from headeval.files.benign import read_benign
from headeval.files.examples import Examples, read_examples
from headeval.files.tables import open_tables
from headeval.files.vector_blocks import embedding_matrices
from headeval.head import LinearHead

N, DIM = 41, 5
HEAD = LinearHead.binary(np.linspace(-2, 3, DIM), 0.25, classes=("0", "1"), embedding_model="m")


def matrix(n: int = N) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((n, DIM)).astype(np.float32)


def table(vectors: np.ndarray) -> pa.Table:
    labels = [None if i % 7 == 3 else i % 2 for i in range(len(vectors))]
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.table({"label": pa.array(labels), "embedding": flat})


def write(folder: Path, layout: str) -> list[str]:
    content = table(matrix())
    if layout == "two files":
        pq.write_table(content.slice(0, 10), folder / "a.parquet", row_group_size=4)
        pq.write_table(content.slice(10), folder / "b.parquet")
    elif layout == "a column a dimension":
        names = [f"e{j}" for j in range(DIM)]
        pq.write_table(pa.table([content["label"], *matrix().T], names=["label", *names]), folder / "a.parquet")
    elif layout == "text":
        texts = pa.array([str([float(x) for x in row]) for row in matrix()])
        pyarrow.csv.write_csv(content.set_column(1, "embedding", texts), folder / "a.csv")
    else:
        pq.write_table(content, folder / "a.parquet")
    return [str(folder)]


def read(data: list[str], **options: Any) -> Examples:
    return read_examples(open_tables(data), embedding="embedding", drop_unlabelled=True, **options)


@pytest.mark.parametrize("layout", ["one file", "two files", "a column a dimension", "text"])
@pytest.mark.parametrize("rows", [1, 3, 65_536])
def test_rows_that_are_not_held_are_those_that_are(
    layout: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path, layout)
    held = read(data)
    assert held.embeddings is not None
    monkeypatch.setattr("headeval.files.parquet_rows.MOST_ROWS", rows)
    seen: list[tuple[int, np.ndarray]] = []
    streamed = read(
        data,
        hold=False,
        project=lambda part: np.stack([HEAD.logits(part), HEAD.probs(part)], axis=1),
        on_block=lambda first, part: seen.append((first, part.copy())),
    )
    assert streamed.embeddings is None
    assert (streamed.dim, streamed.embedding_columns) == (DIM, held.embedding_columns)
    assert streamed.digests.tobytes() == held.digests.tobytes()
    assert (streamed.fingerprint, streamed.unlabelled) == (held.fingerprint, 6)
    assert streamed.labels.tolist() == held.labels.tolist()
    assert streamed.projected is not None
    expected = np.stack([HEAD.logits(held.embeddings), HEAD.probs(held.embeddings)], axis=1)
    assert streamed.projected.tobytes() == expected.tobytes()
    assert np.concatenate([part for _, part in seen]).tobytes() == held.embeddings.tobytes()
    assert [first for first, _ in seen] == np.cumsum([0, *(len(part) for _, part in seen)])[:-1].tolist()
    again = list(embedding_matrices(open_tables(data), streamed))
    assert np.concatenate(again).tobytes() == held.embeddings.tobytes()
    assert {part.dtype for part in again} == {held.embeddings.dtype}


@pytest.mark.parametrize("n", [3, N - 1, N + 1, 2 * N])
def test_files_that_change_between_two_readings_are_refused(n: int, tmp_path: Path) -> None:
    data = write(tmp_path, "one file")
    examples = read(data, hold=False)
    pq.write_table(table(matrix(n)), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="changed"):
        list(embedding_matrices(open_tables(data), examples))


def test_without_embeddings_there_are_none_to_read_again(tmp_path: Path) -> None:
    data = write(tmp_path, "one file")
    tables = open_tables(data)
    with pytest.raises(ValueError, match="without embeddings"):
        embedding_matrices(tables, read_examples(tables, drop_unlabelled=True))


def test_what_fails_in_another_thread_is_raised_here(tmp_path: Path) -> None:
    def fail(part: np.ndarray) -> np.ndarray:
        raise MemoryError

    with pytest.raises(DataError, match="do not fit into memory"):
        read(write(tmp_path, "two files"), project=fail)


def test_nothing_is_made_of_rows_after_one_that_cannot_be_used(tmp_path: Path) -> None:
    vectors = matrix()
    vectors[5, 1] = np.nan
    pq.write_table(table(vectors), tmp_path / "a.parquet", row_group_size=4)
    firsts: list[int] = []
    with pytest.raises(DataError, match="row 6"):
        read([str(tmp_path)], hold=False, on_block=lambda first, _: firsts.append(first))
    assert firsts in ([], [0])


@pytest.mark.parametrize("bad", [[np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [np.nan, np.inf]])
def test_numbers_that_are_not_finite_never_pass_for_a_finite_sum(bad: list[float], tmp_path: Path) -> None:
    vectors = matrix()
    vectors[20, : len(bad)] = bad
    pq.write_table(table(vectors), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"NaN or an infinity in row 21$"):
        read([str(tmp_path)])


def test_numbers_whose_sum_overflows_are_still_finite(tmp_path: Path) -> None:
    vectors = np.full((N, DIM), np.finfo(np.float32).max)
    pq.write_table(table(vectors), tmp_path / "a.parquet")
    examples = read([str(tmp_path)])
    assert examples.embeddings is not None
    assert np.isfinite(examples.embeddings).all()


@pytest.mark.parametrize("rows", [1, 3, 65_536])
def test_benign_traffic_is_the_same_in_blocks_of_any_size(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(table(matrix()), tmp_path / "a.parquet")
    monkeypatch.setattr("headeval.files.parquet_rows.MOST_ROWS", rows)
    benign = read_benign(open_tables([str(tmp_path)]), HEAD, embedding="embedding")
    digests = digesting.row_digests(matrix())
    assert benign.probs.tobytes() == HEAD.probs(matrix()).tobytes()
    assert benign.digests.tolist() == digests[:, 0].tolist()
    assert benign.fingerprint == digesting.fingerprint(digests, np.zeros(N, dtype=np.uint8))


def slow_digests(rows: np.ndarray) -> list[list[int]]:
    """The definition, row by row: frexp and ldexp in float64, rounded to float32, hashed."""
    digests = []
    for row in rows.astype(np.float64):
        exponent = np.frexp(np.abs(row).max())[1]
        with np.errstate(under="ignore"):
            levelled = np.ldexp(row, -exponent).astype("<f4") + np.float32(0)
        digest = blake2b(levelled.tobytes(), digest_size=16).digest()
        digests.append([int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")])
    return digests


SINGLE = arrays.arrays(
    np.float32, (4, 3), elements=st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=True)
)
DOUBLE = arrays.arrays(np.float64, (4, 3), elements=st.floats(allow_nan=False, allow_infinity=False))


@given(st.one_of(SINGLE, DOUBLE))
def test_digests_are_those_of_their_definition(rows: np.ndarray) -> None:
    assert digesting.row_digests(rows).tolist() == slow_digests(rows)


@pytest.mark.parametrize("exponent", [-149, -130, -128, -127, -126, -125, 0, 1, 125, 126, 127])
def test_digests_are_those_of_their_definition_at_the_ends_of_the_range(exponent: int) -> None:
    random = np.random.default_rng(5)
    with np.errstate(under="ignore", over="ignore"):
        rows = np.ldexp(random.uniform(-1, 1, (9, 7)), exponent + random.integers(-30, 1, (9, 7))).astype(np.float32)
    rows[3] = 0
    rows[4] = -0.0
    assert digesting.row_digests(rows).tolist() == slow_digests(rows)
    assert digesting.row_digests(rows.astype(np.float64)).tolist() == slow_digests(rows)


@pytest.mark.parametrize("chunk", [1, 7, 2**16])
def test_fingerprints_are_exact_sums_of_whole_numbers(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digesting, "_CHUNK_DIGESTS", chunk)
    random = np.random.default_rng(2)
    digests = random.integers(0, 2**64, (50, 2), dtype=np.uint64)
    digests[:20] = 2**64 - 1  # every sum of parts overflows 64 bits
    labels = random.integers(0, 2, 50).astype(np.uint8)
    pairs = zip(digests.tolist(), labels.tolist(), strict=True)
    total = sum(((high << 64) + low) * (1 + 2 * label) for (high, low), label in pairs)
    assert digesting.fingerprint(digests, labels) == f"50:{total % 2**128:032x}"
