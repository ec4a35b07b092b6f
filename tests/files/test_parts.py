"""Parts of a table, read apart from each other."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.errors import DataError
from headeval.files import parts as parts_module
from headeval.files.tables import open_tables


@pytest.fixture
def folder(tmp_path):
    for name, start, stop, size in (("a", 0, 100, 7), ("b", 100, 101, 10), ("d", 101, 400, 50)):
        pq.write_table(pa.table({"id": np.arange(start, stop)}), tmp_path / f"{name}.parquet", row_group_size=size)
    (tmp_path / "c.csv").write_text("id\n-1\n-2\n")
    return tmp_path


def ids(blocks):
    return [int(value) for block in blocks for value in block.batch["id"].to_pylist()]


def placed(blocks):
    """Every row with its file and its position in it."""
    return [
        (block.path.name, block.first_row + row, str(value))
        for block in blocks
        for row, value in enumerate(block.batch["id"].to_pylist())
    ]


@pytest.mark.parametrize("rows_each", [1, 7, 15, 50, 1000])
def test_every_row_is_in_one_part_in_order_at_its_place(folder, rows_each):
    tables = open_tables([str(folder)])
    parts = tables.parts(rows_each)
    assert [row for part in parts for row in placed(part.blocks())] == placed(tables.blocks())
    assert all(part.n_rows == len(ids(part.blocks(["id"]))) for part in parts if part.n_rows is not None)


def test_row_groups_are_put_together_until_there_are_rows_enough(folder):
    parts = open_tables([str(folder / "a.parquet")]).parts(20)
    assert [part.n_rows for part in parts] == [21, 21, 21, 21, 16]
    assert [part.first_row for part in parts] == [0, 21, 42, 63, 84]


def test_a_part_does_not_grow_beyond_what_a_machine_holds(folder, monkeypatch):
    monkeypatch.setattr(parts_module, "_MOST_BYTES", 1)
    assert len(open_tables([str(folder / "a.parquet")]).parts(1000)) == 15


def test_a_csv_file_is_one_part_of_unknown_length(folder):
    (part,) = open_tables([str(folder / "c.csv")]).parts(1)
    assert (part.n_rows, part.n_bytes, ids(part.blocks())) == (None, len("id\n-1\n-2\n"), [-1, -2])


def test_empty_row_groups_make_no_part_of_their_own(tmp_path):
    schema = pa.schema({"id": pa.int64()})
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for values in ([], [1], [], [2], []):
            writer.write_table(pa.table({"id": pa.array(values, pa.int64())}))
    parts = open_tables([str(tmp_path / "a.parquet")]).parts(1)
    assert [ids(part.blocks()) for part in parts] == [[1], [2]]


def test_parts_are_pickled_and_read_the_same(folder):
    parts = open_tables([str(folder)]).parts(30)
    again = pickle.loads(pickle.dumps(parts))  # noqa: S301 - our own
    assert again == parts
    assert [placed(part.blocks()) for part in again] == [placed(part.blocks()) for part in parts]


def test_a_file_that_has_changed_since_is_an_error(folder):
    """A worker opens the file again; other row groups than were announced must not pass for the same rows."""
    parts = open_tables([str(folder / "a.parquet")]).parts(20)
    pq.write_table(pa.table({"id": np.arange(50)}), folder / "a.parquet", row_group_size=9)
    for part in parts:
        with pytest.raises(DataError, match=r"a\.parquet"):
            list(part.blocks())


def test_a_missing_column_is_told_at_once(folder):
    part = open_tables([str(folder / "a.parquet")]).parts(20)[0]
    with pytest.raises(DataError, match="has no column 'x'"):
        part.blocks(["x"])


@pytest.mark.parametrize("rows_each", [0, -1])
def test_parts_of_no_rows_are_refused(folder, rows_each):
    with pytest.raises(ValueError, match="rows_each"):
        open_tables([str(folder)]).parts(rows_each)
