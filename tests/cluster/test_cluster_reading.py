"""Rows that workers read: the same examples, and the same errors, as in one process."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.cluster.reading import ClusterRows
from headeval.cluster.work import Cluster
from headeval.errors import DataError
from headeval.files import parquet_rows
from headeval.files.examples import Examples, read_examples
from headeval.files.tables import open_tables

pytestmark = pytest.mark.usefixtures("small_parts")

GROUP = 60  # rows of a row group; two make a part


def read_there(cluster: Cluster, data: list[str], *, keep: bool = True, **columns: Any) -> Examples:
    rows = ClusterRows(cluster, keep=keep)
    return read_examples(open_tables(data), hold=False, collect=rows.collect, **columns)


def assert_same(there: Examples, here: Examples) -> None:
    for field in dataclasses.fields(here):
        if field.name in ("embeddings", "slices", "dim"):
            continue
        one, other = getattr(there, field.name), getattr(here, field.name)
        if isinstance(other, np.ndarray):
            assert one.dtype == other.dtype, field.name
            assert one.tolist() == other.tolist(), field.name
        else:
            assert one == other, field.name
    assert there.dim == here.dim
    assert {name: texts.tolist() for name, texts in there.slices.items()} == {
        name: texts.tolist() for name, texts in here.slices.items()
    }
    assert there.fingerprint == here.fingerprint


@pytest.mark.parametrize("keep", [True, False])
def test_the_examples_are_those_of_one_process(
    cluster: Cluster, make_tables: Callable[..., list[str]], keep: bool
) -> None:
    """Labels in other orders in other parts, rows without one, groups, names with nulls, two kinds of floats."""
    n = 260
    labels = [None if row % 7 == 0 else "unsafe" if row % 3 else "safe" for row in range(n)]
    names = [None if row % 11 == 0 else f"n{row % 90}" for row in range(n)]
    data = make_tables(n=n, label=labels, id=names)
    wanted = {"embedding": "embedding", "weight": "weight", "group": "group", "by": ["id"], "drop_unlabelled": True}
    there = read_there(cluster, data, keep=keep, **wanted, project=lambda embeddings: embeddings[:, :2] * 2.0)
    here = read_examples(open_tables(data), **wanted, project=lambda embeddings: embeddings[:, :2] * 2.0)
    assert there.embeddings is None
    assert there.unlabelled == 3 * 38
    assert_same(there, here)


def test_blocks_of_embeddings_come_by_in_order_where_they_are_asked_for(
    cluster: Cluster, make_tables: Callable[..., list[str]]
) -> None:
    data = make_tables()
    seen: list[tuple[int, Any]] = []
    read_there(cluster, data, keep=False, embedding="embedding", on_block=lambda *block: seen.append(block))
    here = read_examples(open_tables(data), embedding="embedding").embeddings
    assert here is not None
    assert np.concatenate([block for _, block in seen]).tolist() == here.tolist()
    assert [first for first, _ in seen] == np.cumsum([0, *(len(block) for _, block in seen)])[:-1].tolist()


def test_a_csv_file_is_one_part(cluster: Cluster, tmp_path: Path) -> None:
    text = "label,e0,e1\n" + "".join(f"{row % 2},{row / 7},{-row}\n" for row in range(1, 300))
    (tmp_path / "a.csv").write_text(text)
    data = [str(tmp_path / "a.csv")]
    assert_same(read_there(cluster, data, embedding="e"), read_examples(open_tables(data), embedding="e"))


def test_paths_may_be_relative(
    cluster: Cluster, make_tables: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers run in another folder; errors name the file as it was given."""
    make_tables(n_files=1)
    monkeypatch.chdir(tmp_path)
    assert len(read_there(cluster, ["part-0.parquet"], embedding="embedding").labels) == 260
    make_tables(n_files=1, label=["safe"] * 60 + [None] + ["unsafe"] * 199)
    with pytest.raises(DataError, match=r"^'part-0\.parquet': column 'label' has no label .* in row 61;"):
        read_there(cluster, ["part-0.parquet"], embedding="embedding")
    make_tables(n_files=1, label=[[0]] * 260)
    with pytest.raises(DataError, match=r"^'part-0\.parquet': column 'label' must hold one value a row"):
        read_there(cluster, ["part-0.parquet"], embedding="embedding")


def vectors(widths: list[int | None]) -> pa.Array:
    """Lists of so many numbers; None is a null."""
    return pa.array([None if width is None else [1.0 + index] * width for index, width in enumerate(widths)])


def with_nan(n: int, *rows: int) -> pa.Array:
    flat = np.ones((n, 2), dtype=np.float32)
    flat[list(rows), 1] = np.nan
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), 2)


def fine(n: int) -> dict[str, Any]:
    return {"embedding": with_nan(n), "label": [row % 2 for row in range(n)], "weight": np.ones(n)}


N = 4 * GROUP
FAULTY: dict[str, list[dict[str, Any]]] = {
    "in the second part": [{"embedding": with_nan(N, 130, 131)}],
    "in both parts": [{"embedding": with_nan(N, *range(3, 230, 20))}],
    "of two kinds in two parts": [{"embedding": with_nan(N, 5), "weight": np.where(np.arange(N) == 200, -1.0, 1.0)}],
    "of the first kind behind one of another": [
        {
            "label": [None if row in (3, 235) else row % 2 for row in range(N)],
            "embedding": with_nan(N, 125),
        }
    ],
    "in the second file alone": [{}, {"weight": np.full(N, np.nan)}],
    "in both files": [{"embedding": with_nan(N, 239)}, {"embedding": with_nan(N, 0)}],
    "another width in the second part": [{"embedding": vectors([3] * 121 + [2] * 119)}],
    "another width in the second file": [{"embedding": vectors([3] * N)}, {"embedding": vectors([2] * N)}],
    "a fault, then another width in the next file": [
        {"embedding": vectors([3] * 9 + [None] + [3] * 230)},
        {"embedding": vectors([2] * N)},
    ],
    "no column of labels": [{"label": [str(row % 101) for row in range(N)]}],
    "labels without end": [{"label": [f"{number}-{row}" for row in range(N)]} for number in range(5)],
    "of the first kind behind those of another in the same part": [
        {"weight": np.where(np.isin(np.arange(N), (3, 130)), -1.0, 1.0), "embedding": with_nan(N, 125)}
    ],
    "one class in every part, three in all": [{"label": ["a"] * 80 + ["b"] * 80 + ["c"] * 80}],
    "no label at all": [{"label": pa.nulls(N, pa.string())}],
    "no weight at all": [{"weight": np.zeros(N)}],
}


@pytest.mark.parametrize("faulty", FAULTY.values(), ids=FAULTY.keys())
def test_rows_that_cannot_be_used_are_named_as_in_one_process(
    cluster: Cluster, tmp_path: Path, faulty: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several kinds of faults the one is told that is met first, block by block; so the blocks must be the same."""
    monkeypatch.setattr(parquet_rows, "_batch_rows", lambda file, columns: 2 * GROUP)
    for number, columns in enumerate(faulty):
        pq.write_table(pa.table(fine(N) | columns), tmp_path / f"{number}.parquet", row_group_size=GROUP)
    wanted = {"embedding": "embedding", "weight": "weight", "positive": None}
    with pytest.raises(DataError) as here:
        read_examples(open_tables([str(tmp_path)]), **wanted)
    with pytest.raises(DataError) as there:
        read_there(cluster, [str(tmp_path)], **wanted)
    assert str(there.value) == str(here.value)


def test_a_file_that_workers_do_not_find_is_named(
    cluster: Cluster, make_tables: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where it lies on a disk of the machine that the command runs on."""
    data = make_tables(n_files=1)
    tables = open_tables(data)
    Path(data[0]).rename(Path(data[0]).with_suffix(".gone"))
    rows = ClusterRows(cluster, keep=True)
    with pytest.raises(
        DataError, match=r"part-0\.parquet' does not exist on the worker on '.*'; all workers must find"
    ):
        read_examples(tables, embedding="embedding", hold=False, collect=rows.collect)
