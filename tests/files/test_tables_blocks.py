"""Blocks of rows: columns, bounds, damaged files."""

import json
import random
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.errors import DataError
from headeval.files.arrow_errors import reading
from headeval.files.examples import read_examples
from headeval.files.tables import Block, open_tables
from headeval.files.vector_blocks import embedding_blocks

HOSTILE = Path(__file__).resolve().parents[1] / "data" / "hostile"


def is_one_line_about(path: Path, error: DataError) -> bool:
    return path.name in str(error) and "\n" not in str(error)


def read_all(path: Path, **options) -> pa.Table:
    return pa.Table.from_batches([block.batch for block in open_tables([str(path)]).blocks(**options)])


def test_blocks_give_every_row_once_in_order_with_its_position(tmp_path):
    ids = np.arange(150_000)
    pq.write_table(pa.table({"id": ids}), tmp_path / "a.parquet", row_group_size=40_000)
    blocks = list(open_tables([str(tmp_path / "a.parquet")]).blocks())
    assert all(block.batch.num_rows <= 65_536 for block in blocks)
    assert [block.first_row for block in blocks] == [block.batch["id"][0].as_py() for block in blocks]
    assert np.array_equal(np.concatenate([block.batch["id"].to_numpy() for block in blocks]), ids)


def test_positions_start_again_in_every_file(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x\n1\n2\n")
    blocks = list(open_tables([str(tmp_path)]).blocks())
    assert [(block.path.name, block.first_row) for block in blocks] == [("a.csv", 0), ("b.csv", 0)]


def test_short_rows_of_csv_still_come_in_blocks_of_bounded_size(tmp_path):
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 140_000)
    sizes = [block.batch.num_rows for block in open_tables([str(tmp_path / "a.csv")]).blocks()]
    assert sum(sizes) == 140_000
    assert max(sizes) <= 65_536


@pytest.mark.parametrize("kind", ["fixed", "list", "repeated list"])
def test_wide_rows_come_in_smaller_blocks(tmp_path, kind):
    """A column of repeated vectors takes nearly no room in the file; its blocks must be small all the same."""
    n, width = 4000, 1000
    values = np.zeros(n * width) if kind == "repeated list" else np.random.default_rng(0).random(n * width)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), width)
    pq.write_table(
        pa.table({"v": vectors if kind == "fixed" else vectors.cast(pa.list_(pa.float64()))}), tmp_path / "a.parquet"
    )
    sizes = [block.batch.nbytes for block in open_tables([str(tmp_path / "a.parquet")]).blocks()]
    assert max(sizes) < 2 * 2**23


def test_only_the_wanted_columns_are_read_in_the_wanted_order(tmp_path):
    table = pa.table({"a": [1, 2], "b": ["x", "y"], "c.d": [0.5, 1.5]})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("a,b,c.d\n1,x,0.5\n2,y,1.5\n")
    for name in ("a.parquet", "a.csv"):
        read = read_all(tmp_path / name, columns=["c.d", "a", "c.d"])
        assert read.column_names == ["c.d", "a"]
    assert read_all(tmp_path / "a.parquet").equals(table)


def test_a_name_with_a_dot_is_not_the_field_of_a_struct(tmp_path):
    pq.write_table(pa.table({"a": [{"b": 1}], "a.b": [2]}), tmp_path / "a.parquet")
    assert read_all(tmp_path / "a.parquet", columns=["a.b"]).to_pydict() == {"a.b": [2]}


def test_text_that_is_not_utf8_is_damage(tmp_path):
    """Without a full check of what is read, such text would go on into labels and outputs."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": ["wxyz"]}), path, compression="none", write_statistics=False, use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"wxyz", b"w\xff\xfez"))
    with pytest.raises(DataError, match=r"a\.parquet' cannot be read"):
        read_all(path)


@pytest.mark.parametrize(
    "error",
    [pa.ArrowNotImplementedError("x"), pa.ArrowInvalid("x"), pa.ArrowKeyError("x"), OSError("x"), MemoryError()],
)
def test_whatever_pyarrow_raises_becomes_our_error(error):
    message = r"a\.parquet' (cannot be read|does not fit into memory)"
    with pytest.raises(DataError, match=message), reading(Path("a.parquet")):
        raise error


def test_a_missing_column_is_named_with_the_file_its_columns_and_a_close_match(tmp_path):
    pq.write_table(pa.table({"Label": [1], "other": [2]}), tmp_path / "a.parquet")
    with pytest.raises(
        DataError, match=r"a\.parquet' has no column 'label' \(did you mean 'Label'\?\).*'Label', 'other'"
    ):
        open_tables([str(tmp_path / "a.parquet")]).blocks(["label"])


def test_a_column_must_be_in_every_file(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,z\n1,2\n")
    with pytest.raises(DataError, match=r"b\.csv' has no column 'y'"):
        open_tables([str(tmp_path)]).blocks(["x", "y"])


def test_repeated_names_are_an_error_only_where_they_are_needed(tmp_path):
    repeated = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([0.5])], names=["x", "x", "y"])
    pq.write_table(repeated, tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("x,x,y\n1,2,0.5\n")
    for name in ("a.parquet", "b.csv"):
        tables = open_tables([str(tmp_path / name)])
        assert [block.batch.num_rows for block in tables.blocks(["y"])] == [1]
        assert [block.batch.num_columns for block in tables.blocks()] == [3]
        with pytest.raises(DataError, match="2 columns 'x'"):
            tables.blocks(["x"])


@pytest.mark.parametrize("path", sorted(HOSTILE.glob("*.parquet")), ids=lambda path: path.name)
def test_hostile_files_end_in_an_error_of_ours_or_are_read(path):
    try:
        rows = sum(block.batch.num_rows for block in open_tables([str(path)]).blocks())
    except DataError as error:
        assert is_one_line_about(path, error)  # noqa: PT017 - some of them can be read
    else:
        assert rows > 0


def test_the_hostile_files_are_all_there():
    """An empty folder would make the test above pass without a file."""
    assert len(list(HOSTILE.glob("*.parquet"))) == 4


def test_columns_of_unequal_length_do_not_get_through():
    with pytest.raises(DataError, match="ARROW-GH-41317"):
        list(open_tables([str(HOSTILE / "ARROW-GH-41317.parquet")]).blocks())


@pytest.mark.parametrize("function", ["flatnonzero", "repeat"])
def test_a_mistake_of_ours_is_not_called_a_damaged_file(tmp_path, monkeypatch, function):
    """Only what pyarrow raises speaks of the file; a bug must show itself as one."""
    pq.write_table(pa.table({"label": [0, 1], "v": [[1.0, 2.0], [3.0, None]]}), tmp_path / "a.parquet")
    tables = open_tables([str(tmp_path / "a.parquet")])

    def mistaken(*_args, **_options):
        raise ValueError("ours")

    monkeypatch.setattr(np, function, mistaken)
    with pytest.raises(ValueError, match="ours"):
        read_examples(tables, embedding="v")


def damaged_bytes(original: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    damaged = bytearray(original)
    if chance.random() < 0.3:
        return bytes(damaged[: chance.randrange(1, len(damaged))])
    for _ in range(chance.choice([1, 2, 10])):
        damaged[chance.randrange(4, len(damaged))] = chance.randrange(256)
    return bytes(damaged)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_truncated_and_overwritten_files_raise_nothing_but_our_error(tmp_path, suffix):
    """Damaged metadata of column chunks was seen to end the process; a test run that is cut off shows it again."""
    rng = np.random.default_rng(1)
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(400).astype(np.float32)), 4)
        table = pa.table({"embedding": vectors, "label": pa.array(["safe", "unsafe"] * 50), "t": ["é" * 9] * 100})
        pq.write_table(table, path, row_group_size=40, compression="none")
    else:
        path.write_text("embedding,label,t\n" + '"[0.1, 0.2]",safe,é\n"[0.3, 0.4]",unsafe,ü\n' * 50, encoding="utf-8")
    original = path.read_bytes()
    for seed in range(150):
        path.write_bytes(damaged_bytes(original, seed))
        try:
            tables = open_tables([str(path)])
            read_examples(tables, embedding="embedding", by=["t"])
            for block, _ in embedding_blocks(tables):
                assert isinstance(block, Block)
        except DataError as error:
            assert is_one_line_about(path, error)  # noqa: PT017 - some damage cannot be noticed


def test_a_file_cut_short_while_it_is_read_ends_in_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    values = np.random.default_rng(0).random(400_000)
    pq.write_table(pa.table({"x": values}), path, row_group_size=20_000, compression="none")
    blocks = open_tables([str(path)]).blocks()
    next(blocks)
    with path.open("r+b") as file:
        file.truncate(800_000)
    with pytest.raises(DataError, match=r"a\.parquet"):
        list(blocks)


def test_an_error_of_the_caller_passes_through_unchanged(tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")

    def consume():
        for _ in open_tables([str(tmp_path / "a.parquet")]).blocks():
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        consume()


def test_naughty_strings_are_column_names(tmp_path):
    strings = sorted(set(json.loads((HOSTILE / "naughty_strings.json").read_text(encoding="utf-8"))))
    pq.write_table(pa.table({name: [number] for number, name in enumerate(strings)}), tmp_path / "a.parquet")
    tables = open_tables([str(tmp_path / "a.parquet")])
    assert list(tables.column_names) == strings
    for number, name in list(enumerate(strings))[::10]:
        (block,) = tables.blocks([name])
        assert block.batch.column(0).to_pylist() == [number]
        with pytest.raises(DataError) as caught:
            tables.blocks([name + "?!"])
        assert not {unicodedata.category(char) for char in str(caught.value)} & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


@pytest.mark.parametrize("kind", ["list", "struct", "map"])
def test_coded_values_within_others_are_read_across_row_groups(tmp_path, kind):
    """pyarrow does not put them together across row groups, and the file was called damaged."""
    n = 50
    codes = pa.array([f"k{i % 7}" for i in range(n)]).dictionary_encode()
    offsets = pa.array(range(n + 1), pa.int32())
    column = {
        "list": lambda: pa.ListArray.from_arrays(offsets, codes),
        "struct": lambda: pa.StructArray.from_arrays([codes], ["x"]),
        "map": lambda: pa.MapArray.from_arrays(offsets, pa.array(map(str, range(n))), codes),
    }[kind]()
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"column": column, "n": range(n)}), path, row_group_size=3)
    blocks = list(open_tables([str(path)]).blocks())
    assert [value for block in blocks for value in block.batch["column"].to_pylist()] == column.to_pylist()
    assert [value for block in blocks for value in block.batch["n"].to_pylist()] == list(range(n))
