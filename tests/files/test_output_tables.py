"""Tables are written whole or not at all, and read back as they were."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headeval.errors import OutputError
from headeval.files.output import check_table_output, table_writer
from headeval.files.tables import open_tables

NAUGHTY = Path(__file__).resolve().parents[1] / "data" / "hostile" / "naughty_strings.json"


def write(path: Path, *batches, force: bool = False, metadata=None) -> Path:
    with table_writer(path, force=force, metadata=metadata or {}) as writer:
        for batch in batches:
            writer.write(batch if isinstance(batch, pa.RecordBatch) else batch())
    return path


def read_back(path: Path) -> pa.Table:
    return pa.Table.from_batches([block.batch for block in open_tables([str(path)]).blocks()])


BATCH = pa.RecordBatch.from_pydict({"id": ["007", "x,y"], "z": pa.array([0.1, None])})


def test_parquet_keeps_types_and_adds_the_metadata(tmp_path):
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([1, 2], pa.int16()),
            pa.array(["a", None]).dictionary_encode(),
            pa.array([1, 2], pa.timestamp("us", "UTC")),
            pa.array([[1.0], None]),
            pa.array([0.5, None], pa.float32()),
        ],
        schema=pa.schema(
            [
                ("i", pa.int16()),
                ("d", pa.dictionary(pa.int32(), pa.string())),
                ("t", pa.timestamp("us", "UTC")),
                ("l", pa.list_(pa.float64())),
                ("f", pa.float32()),
            ],
            metadata={"pandas": "{}", "old": "x"},
        ),
    )
    path = write(
        tmp_path / "out.parquet", batch, batch, metadata={"embedding_model": "m", "pandas": "{}", "huggingface": "{}"}
    )
    table = pq.read_table(path)
    assert table.to_pylist() == pa.Table.from_batches([batch, batch]).to_pylist()
    assert table.schema.remove_metadata() == batch.schema.remove_metadata()
    assert table.schema.metadata == {b"embedding_model": b"m"}


def test_batches_with_different_dictionaries_make_one_column(tmp_path):
    batches = [
        pa.RecordBatch.from_pydict({"d": pa.array(texts).dictionary_encode()}) for texts in (["a", "b"], ["c", "a"])
    ]
    for name in ("a.parquet", "a.csv"):
        assert read_back(write(tmp_path / name, *batches))["d"].to_pylist() == ["a", "b", "c", "a"]


def test_batches_of_like_types_are_fitted_to_the_first(tmp_path):
    first = pa.RecordBatch.from_pydict({"t": pa.array(["a"])})
    second = pa.RecordBatch.from_pydict({"t": pa.array(["b"], pa.large_string())})
    assert pq.read_table(write(tmp_path / "a.parquet", first, second))["t"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_batches_of_other_columns_are_refused_and_nothing_is_left(tmp_path, name):
    with pytest.raises(OutputError, match="cannot be written"):
        write(tmp_path / name, BATCH, pa.RecordBatch.from_pydict({"other": [1]}))
    assert list(tmp_path.iterdir()) == []


TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8), names=st.tuples(TEXT, TEXT))
def test_csv_gives_text_back_byte_for_byte(tmp_path_factory, rows, names):
    tmp_path = tmp_path_factory.mktemp("csv")
    names = (names[0], names[1] + "2" if names[0] == names[1] else names[1])
    batch = pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], names=names)
    path = write(tmp_path / "a.csv", batch)
    assert list(csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))) == [list(names), *map(list, rows)]
    assert read_back(path).equals(pa.Table.from_batches([batch]))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_naughty_strings_pass_through(tmp_path, name):
    strings = sorted(set(json.loads(NAUGHTY.read_text(encoding="utf-8"))))
    batch = pa.RecordBatch.from_arrays([pa.array(strings)] * len(strings), names=strings)
    table = read_back(write(tmp_path / name, batch))
    assert table.column_names == strings
    assert all(column.to_pylist() == strings for column in table.columns[::50])


def test_csv_numbers_read_back_exactly_and_nulls_are_empty_cells(tmp_path):
    values = [0.1, 1e-300, 123456789.123456789, -0.0, None]
    singles = np.array([0.1, 3e38, 1e-40, 1 / 3, 0], dtype=np.float32)
    batch = pa.RecordBatch.from_pydict(
        {"d": values, "f": singles, "i": [2**63 - 1] * 5, "b": [True] * 5, "s": ["", None, "NA", "a", "b"]}
    )
    table = read_back(write(tmp_path / "a.csv", batch))
    assert [float(text) if text else None for text in table["d"].to_pylist()] == values
    assert [np.float32(text) for text in table["f"].to_pylist()] == singles.tolist()
    assert table["i"].to_pylist() == ["9223372036854775807"] * 5
    assert table["b"].to_pylist() == ["true"] * 5
    assert table["s"].to_pylist() == ["", "", "NA", "a", "b"]
    assert b'"",' not in (tmp_path / "a.csv").read_bytes().splitlines()[2]


@pytest.mark.parametrize("column", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"\xff"])])
def test_csv_refuses_columns_that_are_no_text(tmp_path, column):
    with pytest.raises(OutputError, match=r"column 'c' of type .* cannot be written as CSV; write a \.parquet file"):
        write(tmp_path / "a.csv", pa.RecordBatch.from_arrays([column], names=["c"]))
    assert list(tmp_path.iterdir()) == []


def test_string_views_are_written(tmp_path):
    batch = pa.RecordBatch.from_pydict({"v": pa.array(["a", "b"], pa.string_view())})
    for name in ("a.csv", "a.parquet"):
        assert read_back(write(tmp_path / name, batch))["v"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("name", ["a.json", "a", "a.parquet.gz", "csv"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(OutputError, match=r"must end in \.parquet or \.csv"):
        write(tmp_path / name, BATCH)
    with pytest.raises(OutputError, match=r"must end in \.parquet or \.csv"):
        check_table_output(tmp_path / name, force=True)
    assert list(tmp_path.iterdir()) == []


def test_an_output_is_refused_before_any_work_as_it_would_be_after(tmp_path):
    check_table_output(tmp_path / "a.csv", force=False)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.csv").write_text("before")
    check_table_output(tmp_path / "a.csv", force=True)
    with pytest.raises(OutputError, match="already exists"):
        check_table_output(tmp_path / "a.csv", force=False)
    with pytest.raises(OutputError, match="does not exist"):
        check_table_output(tmp_path / "none" / "a.parquet", force=False)


@pytest.mark.parametrize("name", ["A.CSV", "A.Parquet", "a.pq"])
def test_the_case_of_the_suffix_does_not_matter(tmp_path, name):
    assert read_back(write(tmp_path / name, BATCH))["id"].to_pylist() == ["007", "x,y"]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_repeated_names_are_refused(tmp_path, name):
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(OutputError, match="several columns of the same name: 'x'"):
        write(tmp_path / name, batch)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_an_existing_file_is_replaced_only_by_force_and_only_by_a_whole_one(tmp_path, name):
    def stop():
        raise RuntimeError("stop")

    path = tmp_path / name
    path.write_text("before")
    with pytest.raises(OutputError):
        write(path, BATCH)
    with pytest.raises(RuntimeError, match="stop"):
        write(path, BATCH, stop, force=True)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert read_back(write(path, BATCH, force=True)).num_rows == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_full_disk_is_an_output_error_and_leaves_nothing(tmp_path, name):
    """Played by a limit on the size of a file, in a process of its own."""
    code = (
        "import resource, signal, sys, pathlib, numpy, pyarrow\n"
        "from headeval.errors import OutputError\n"
        "from headeval.files.output import table_writer\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "batch = pyarrow.RecordBatch.from_pydict({'x': numpy.random.default_rng(0).random(65_536)})\n"
        "try:\n"
        "    with table_writer(pathlib.Path(sys.argv[1]), force=False, metadata={}) as writer:\n"
        "        for _ in range(10): writer.write(batch)\n"
        "except OutputError as error:\n"
        "    print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert name in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_nothing_written_is_an_error_and_leaves_nothing(tmp_path):
    with pytest.raises(OutputError, match="no rows"):
        write(tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_the_same_rows_give_the_same_bytes(tmp_path, name):
    (tmp_path / "1").mkdir()
    first = write(tmp_path / "1" / name, BATCH, metadata={"k": "v"}).read_bytes()
    assert write(tmp_path / name, BATCH, metadata={"k": "v"}).read_bytes() == first
