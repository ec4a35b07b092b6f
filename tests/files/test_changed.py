"""The rows that changed side: exactly those, with all that stood beside them, and nothing where none did."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headeval.cli.main import run
from headeval.errors import DataError, OutputError
from headeval.files.changed import NAMES, check_free, write_changed
from headeval.files.output import table_writer
from headeval.files.tables import Tables, open_tables


def written(
    tables: Tables,
    output: Path,
    new: list[float],
    old: list[float],
    *,
    threshold: tuple[float, float] = (0.5, 0.5),
    **options: Any,
) -> tuple[int, pa.Table]:
    """Write the changed rows of probabilities of the rows that are kept; return the count and what is in the file."""
    probs = np.array(new), np.array(old)
    kept = options.pop("kept", np.ones(len(new), dtype=bool))
    count = write_changed(
        output,
        tables,
        kept=kept,
        probs=probs,
        flagged=(probs[0] >= threshold[0], probs[1] >= threshold[1]),
        **({"without": (), "force": False} | options),
    )
    return count, pa.Table.from_batches([block.batch for block in open_tables([str(output)]).blocks()])


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_only_rows_that_one_of_the_two_flags_are_written_with_both_probabilities_and_decisions(tmp_path: Path) -> None:
    tables = open_tables([str(parquet(tmp_path / "a.parquet", id=["a", "b", "c", "d"]))])
    new, old = [0.9, 0.5, 0.4, 0.1], [0.8, 0.49, 0.6, 0.2]
    count, table = written(tables, tmp_path / "out.parquet", new, old)
    assert count == 2
    assert table.to_pydict() == {
        "id": ["b", "c"],
        "new_prob": [0.5, 0.4],
        "new_flagged": [True, False],
        "baseline_prob": [0.49, 0.6],
        "baseline_flagged": [False, True],
    }


def test_each_is_flagged_at_its_own_threshold(tmp_path: Path) -> None:
    tables = open_tables([str(parquet(tmp_path / "a.parquet", id=[1, 2]))])
    _, table = written(tables, tmp_path / "out.parquet", [0.4, 0.6], [0.4, 0.6], threshold=(0.5, 0.3))
    assert table.to_pydict() == {
        "id": [1],
        "new_prob": [0.4],
        "new_flagged": [False],
        "baseline_prob": [0.4],
        "baseline_flagged": [True],
    }


def test_every_other_column_keeps_its_values_and_type_and_the_embedding_is_left_out(tmp_path: Path) -> None:
    columns = {
        "text": pa.array(["=1+1", 'naïve\x00\n"q"', ""]),
        "when": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
        "small": pa.array([0.1, float("nan"), 3.0], pa.float32()),
        "list": pa.array([[1], None, []], pa.list_(pa.int8())),
        "embedding": pa.array([[1.0, 2.0]] * 3),
        "code": pa.array(["x", "y", "x"]).dictionary_encode(),
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns).replace_schema_metadata({"embedding_model": "m"}), path)
    _, table = written(
        open_tables([str(path)]), tmp_path / "out.parquet", [0.9, 0.9, 0.1], [0.1] * 3, without=("embedding",)
    )
    assert table.column_names == ["text", "when", "small", "list", "code", *NAMES]
    expected = pa.table(columns).slice(0, 2)
    for name in ("text", "when", "list", "code"):
        assert table[name].to_pylist() == expected[name].to_pylist(), name
        assert table.schema.field(name).type == expected.schema.field(name).type
    assert table["small"].combine_chunks().buffers()[1].to_pybytes()[:8] == np.float32([0.1, np.nan]).tobytes()
    assert pq.read_schema(tmp_path / "out.parquet").metadata == {b"embedding_model": b"m"}


def test_text_of_a_csv_file_is_kept_byte_for_byte(tmp_path: Path) -> None:
    """Numbers too: what looks like one is not rewritten as another."""
    (tmp_path / "a.csv").write_text('id,n,t\n007,1.50,"a ""b"", c"\n1e3,+2, NA \n9,3,\n', encoding="utf-8")
    count, table = written(open_tables([str(tmp_path / "a.csv")]), tmp_path / "out.csv", [0.9, 0.9, 0.1], [0.1] * 3)
    assert count == 2
    rows = table.to_pydict()
    assert (rows["id"], rows["n"], rows["t"]) == (["007", "1e3"], ["1.50", "+2"], ['a "b", c', " NA "])
    assert rows["new_flagged"] == ["true", "true"]
    assert rows["new_prob"] == ["0.9", "0.9"]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_where_no_row_changed_the_table_is_empty_and_has_its_columns(tmp_path: Path, suffix: str) -> None:
    tables = open_tables([str(parquet(tmp_path / "a.parquet", id=[1, 2]))])
    output = tmp_path / f"out.{suffix}"
    kept = np.ones(2, dtype=bool)
    none = np.zeros(2, dtype=bool)
    count = write_changed(
        output, tables, kept=kept, probs=(np.zeros(2),) * 2, flagged=(none, none), without=(), force=False
    )
    assert count == 0
    if suffix == "csv":
        assert output.read_text() == "".join(f'"{name}",' for name in ("id", *NAMES))[:-1] + "\n"
    else:
        table = pq.read_table(output)
        assert (table.num_rows, table.column_names) == (0, ["id", *NAMES])


def test_unlabelled_rows_and_several_files_are_kept_apart(tmp_path: Path) -> None:
    """Five rows in two files of different formats' types; the second and fourth were not judged."""
    first = parquet(tmp_path / "a.parquet", id=pa.array([1, 2, 3], pa.int32()))
    second = parquet(tmp_path / "b.parquet", id=pa.array([4, 5], pa.int32()))
    kept = np.array([True, False, True, False, True])
    count, table = written(
        open_tables([str(first), str(second)]), tmp_path / "out.parquet", [0.9, 0.1, 0.8], [0.1, 0.2, 0.3], kept=kept
    )
    assert count == 2
    assert table.to_pydict()["id"] == [1, 5]
    assert table.to_pydict()["new_prob"] == [0.9, 0.8]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_rows_written_are_those_of_a_filter_by_hand(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("rows")
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    n = sum(sizes)
    ids = iter(range(n))
    paths = []
    for index, size in enumerate(sizes):
        batches = pa.table({"id": [next(ids) for _ in range(size)]})
        pq.write_table(batches, folder / f"{index}.parquet", row_group_size=2)
        paths.append(str(folder / f"{index}.parquet"))
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    m = int(kept.sum())
    sides = [np.array(data.draw(st.lists(st.booleans(), min_size=m, max_size=m)), dtype=bool) for _ in range(2)]
    probs = np.arange(m) / 20, np.arange(m) / 20 + 0.5
    count = write_changed(
        folder / "out.parquet",
        open_tables(paths),
        kept=kept,
        probs=probs,
        flagged=(sides[0], sides[1]),
        without=(),
        force=True,
    )
    judged = np.flatnonzero(kept).tolist()
    expected = [(judged[i], probs[0][i], probs[1][i]) for i in range(m) if sides[0][i] != sides[1][i]]
    found = pq.read_table(folder / "out.parquet")
    assert count == len(expected)
    assert (
        list(zip(*(found[name].to_pylist() for name in ("id", "new_prob", "baseline_prob")), strict=True)) == expected
    )


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    tables = open_tables([str(parquet(tmp_path / "a.parquet", id=[1]))])
    output = parquet(tmp_path / "out.parquet", id=[9])
    before = output.read_bytes()
    with pytest.raises(OutputError, match="exists"):
        written(tables, output, [0.9], [0.1])
    assert output.read_bytes() == before
    assert written(tables, output, [0.9], [0.1], force=True)[0] == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_table_that_has_a_column_of_an_added_name_is_refused(tmp_path: Path, name: str) -> None:
    path = parquet(tmp_path / "a.parquet", id=[1], **{name: [0.5]})
    with pytest.raises(DataError, match=f"a.parquet.*'{name}'.*--changed adds"):
        check_free(open_tables([str(path)]))
    check_free(open_tables([str(parquet(tmp_path / "b.parquet", id=[1], probability=[0.5]))]))


def test_report_refuses_such_a_table_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 3 although the labels, which are read later, are broken too."""
    monkeypatch.chdir(tmp_path)
    parquet(Path("a.parquet"), label=[None, 1], z=[1.0, 2.0], old=[0.5, 0.5], new_prob=[0.2, 0.3])
    arguments = ["report", "a.parquet", "--logit", "z", "--baseline-prob", "old", "--changed", "out.csv"]
    assert run(arguments) == 3
    error = capsys.readouterr().err
    assert "'new_prob'" in error
    assert "label" not in error
    assert not Path("out.csv").exists()


def test_report_writes_the_rows_that_changed_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    label = pa.array([1, None, 0, 1, 0])
    parquet(
        Path("a.parquet"), id=list("abcde"), label=label, z=[1.0, 2.0, 2.0, 0.5, -1.0], old=[0.5, 0.1, 0.4, 0.9, 0.2]
    )
    arguments = ["report", "a.parquet", "--logit", "z", "--baseline-prob", "old", "--changed", "out.csv"]
    assert run([*arguments, "--drop-unlabelled", "--resamples", "0"]) == 0, capsys.readouterr().err
    assert "1 rows that changed side" in capsys.readouterr().err.replace("1 row that", "1 rows that")
    with table_writer(Path("expected.csv"), force=False, metadata={}) as writer:
        probability = 1 / (1 + np.exp(-2.0))
        row = {
            "id": ["c"],
            "label": pa.array([0]),
            "z": [2.0],
            "old": [0.4],
            "new_prob": [probability],
            "new_flagged": [True],
        }
        writer.write(pa.RecordBatch.from_pydict({**row, "baseline_prob": [0.4], "baseline_flagged": [False]}))
    assert Path("out.csv").read_text() == Path("expected.csv").read_text()
