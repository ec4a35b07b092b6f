"""What rows would take in memory is told before they are read, and what the machine has, within its limits."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.errors import DataError
from headeval.files import sizes
from headeval.files.sizes import available_memory, embedding_bytes
from headeval.files.tables import open_tables


def vectors(n: int, d: int, kind: pa.DataType) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.arange(n * d), type=kind), d)


@pytest.mark.parametrize(("kind", "each"), [(pa.float32(), 4), (pa.float64(), 8), (pa.int64(), 8)])
def test_embeddings_of_parquet_files_take_rows_times_numbers_times_their_size(
    tmp_path: Path, kind: pa.DataType, each: int
) -> None:
    for name, n in (("a.parquet", 30), ("b.parquet", 12)):
        pq.write_table(pa.table({"embedding": vectors(n, 7, kind)}), tmp_path / name)
    assert embedding_bytes(open_tables([str(tmp_path)]), "embedding") == 42 * 7 * each


def test_one_column_a_dimension_counts_as_well(tmp_path: Path) -> None:
    columns = {f"e_{i}": pa.array(np.ones(10), type=pa.float32()) for i in range(5)} | {"n_0": pa.array([1] * 10)}
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet")
    assert embedding_bytes(open_tables([str(tmp_path / "wide.parquet")]), "e") == 10 * 5 * 4


def test_csv_files_are_judged_by_their_size(tmp_path: Path) -> None:
    text = "embedding,label\n" + '"[0.5, 1.5]",1\n' * 100
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    # at least what two numbers of eight bytes a row take, and not many times the file
    found = embedding_bytes(open_tables([str(tmp_path / "a.csv")]), "embedding")
    assert 100 * 2 * 8 <= found <= 4 * len(text)


@pytest.mark.parametrize("missing", [1, 1000])
def test_rows_that_cannot_be_used_stand_first_and_no_less_is_told(tmp_path: Path, missing: int) -> None:
    rows = [None] * missing + [[1.0, 2.0]] * 500
    table = pa.table({"embedding": pa.array(rows, type=pa.list_(pa.float32()))})
    pq.write_table(table, tmp_path / "a.parquet", compression="NONE", use_dictionary=False)
    tables = open_tables([str(tmp_path / "a.parquet")])
    assert embedding_bytes(tables, "embedding") >= 500 * 2 * 4
    with pytest.raises(DataError, match="no column"):
        embedding_bytes(tables, "vectors")


def test_available_memory_is_some_of_the_machines() -> None:
    assert 10**6 < available_memory() < 10**15


def test_a_limit_of_the_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "_CGROUP", tmp_path)
    unlimited = available_memory()
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("3000\n", encoding="ascii")
    assert available_memory() > 10**6
    (tmp_path / "memory.max").write_text("5000000\n", encoding="ascii")
    assert available_memory() == 5_000_000 - 3000 < unlimited
    (tmp_path / "memory.current").write_text("6000000\n", encoding="ascii")
    assert available_memory() == 0
