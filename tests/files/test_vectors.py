"""Embeddings in every shape give one matrix; rows that are no vectors are named."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from headeval.errors import DataError
from headeval.files.examples import read_examples
from headeval.files.row_faults import Place, RowFaults
from headeval.files.tables import open_tables
from headeval.files.vector_blocks import embedding_blocks, embedding_columns
from headeval.files.vectors import EmbeddingColumns, VectorReader, find_embedding

FLOATS = {"float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64()}


def fixed(matrix: np.ndarray, kind: pa.DataType | None = None) -> pa.Array:
    values = pa.array(matrix.ravel())
    return pa.FixedSizeListArray.from_arrays(values if kind is None else values.cast(kind), matrix.shape[1])


def json_cells(matrix: np.ndarray) -> pa.Array:
    return pa.array([json.dumps(row) for row in matrix.astype(float).tolist()])


def wide(matrix: np.ndarray, prefix: str, first: int = 0) -> dict[str, pa.Array]:
    return {f"{prefix}{first + j}": pa.array(matrix[:, j]) for j in range(matrix.shape[1])}


def table_of(columns: dict[str, pa.Array] | pa.Array) -> pa.Table:
    columns = columns if isinstance(columns, dict) else {"embedding": columns}
    n = len(next(iter(columns.values())))
    return pa.table({**columns, "label": pa.array([i % 2 for i in range(n)])})


def read(tmp_path, columns, name: str = "embedding", **options) -> np.ndarray:
    pq.write_table(table_of(columns), tmp_path / "a.parquet")
    return read_examples(open_tables([str(tmp_path / "a.parquet")]), embedding=name, **options).embeddings


def read_csv(tmp_path, columns, name: str = "embedding", **options) -> np.ndarray:
    pyarrow.csv.write_csv(table_of(columns), tmp_path / "a.csv")
    return read_examples(open_tables([str(tmp_path / "a.csv")]), embedding=name, **options).embeddings


def direct(column: pa.Array, dtype=np.float64) -> np.ndarray:
    """Read one array as it is: writing it to a file would lose its offset."""
    faults = RowFaults()
    place = Place(__file__, np.arange(1, len(column) + 1), False, faults)
    batch = pa.RecordBatch.from_arrays([column], names=["v"])
    matrix = VectorReader(EmbeddingColumns(("v",), False, dtype)).read(batch, place)
    faults.raise_if_any()
    return matrix


@settings(max_examples=15)
@given(
    matrix=arrays.arrays(
        np.float16,
        st.tuples(st.integers(1, 6), st.integers(1, 5)),
        elements=st.floats(-100, 100, width=16),
    )
)
def test_every_shape_gives_the_same_numbers(tmp_path_factory, matrix):
    tmp_path = tmp_path_factory.mktemp("shapes")
    single, double = matrix.astype(np.float32), matrix.astype(np.float64)
    shapes: list[dict[str, pa.Array] | pa.Array] = [
        fixed(matrix), fixed(single), fixed(double),
        fixed(single).cast(pa.list_(pa.float32())), fixed(double).cast(pa.large_list(pa.float64())),
        json_cells(matrix), json_cells(matrix).cast(pa.large_string()), json_cells(matrix).dictionary_encode(),
        wide(matrix, "e"), wide(single, "emb_"), wide(double, "dim_", 1), wide(single, "embedding_"), wide(double, ""),
    ]  # fmt: skip
    for shape in shapes:
        assert np.array_equal(read(tmp_path, shape), double), shape
    for shape in (json_cells(matrix), wide(double, "e"), wide(double, "", 1)):
        assert np.array_equal(read_csv(tmp_path, shape), double)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integers_are_numbers(tmp_path, kind):
    matrix = np.array([[1, 2], [3, 100]], dtype=kind)
    for shape in (fixed(matrix), wide(matrix, "e")):
        result = read(tmp_path, shape)
        assert (result.tolist(), result.dtype) == ([[1, 2], [3, 100]], np.float64)


def test_integers_beyond_two_to_the_53_are_rounded_not_refused(tmp_path):
    matrix = np.array([[2**53 + 1, 2**62 + 1]])
    for shape in (fixed(matrix), wide(matrix, "e")):
        assert read(tmp_path, shape).tolist() == [[float(2**53 + 1), float(2**62 + 1)]]


@pytest.mark.parametrize(
    ("stored", "expected"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64")]
)
def test_half_and_single_precision_stay_single_and_double_stays_double(tmp_path, stored, expected):
    matrix = np.array([[0.5, 1.5]], dtype=stored)
    assert read(tmp_path, fixed(matrix)).dtype == expected
    assert read(tmp_path, wide(matrix, "e")).dtype == expected


def test_one_file_of_doubles_makes_all_double(tmp_path):
    pq.write_table(table_of(fixed(np.array([[0.5, 1.5]], dtype=np.float32))), tmp_path / "a.parquet")
    pq.write_table(table_of(fixed(np.array([[0.1, 1e300]]))), tmp_path / "b.parquet")
    result = read_examples(open_tables([str(tmp_path)]), embedding="embedding").embeddings
    assert (result.dtype, result.tolist()) == (np.float64, [[0.5, 1.5], [0.1, 1e300]])


def test_slices_of_arrays_with_offsets_are_read_from_their_own_rows():
    matrix = np.arange(24.0).reshape(8, 3)
    whole = fixed(matrix)
    for array in (
        whole,
        whole.cast(pa.list_(pa.float64())),
        whole.cast(pa.large_list(pa.float64())),
        pa.array(matrix.tolist(), pa.list_view(pa.float64())),
        pa.array(matrix.tolist(), pa.large_list_view(pa.float64())),
        json_cells(matrix),
    ):
        assert np.array_equal(direct(array.slice(2, 4)), matrix[2:6]), array.type
        assert np.array_equal(direct(array.slice(2, 5).slice(1, 2)), matrix[3:5]), array.type


def survives_parquet(table, path):
    """Write the table; False where this pyarrow (before 26) cannot write, or read back, its null rows."""
    try:
        pq.write_table(table, path)
        return pq.read_table(path).equals(table)
    except (pa.ArrowException, OSError, ValueError):
        return False


def test_null_rows_with_room_in_memory_do_not_shift_the_others(tmp_path):
    """A null row of a fixed-size list, and one of a list whose offsets span values, still has its numbers in memory."""
    values = pa.array([1.0, 2.0, 77.0, 77.0, 5.0, 6.0])
    mask = pa.array([False, True, False])
    hollow = pa.FixedSizeListArray.from_arrays(values, 2, mask=mask)
    spanning = pa.ListArray.from_arrays(pa.array([0, 2, 4, 6], pa.int32()), values, mask=mask)
    for array in (hollow, spanning):
        with pytest.raises(DataError, match="'v' is null in row 2"):
            direct(array)
        assert direct(array.filter(pa.array([True, False, True]))).tolist() == [[1, 2], [5, 6]]
        table = pa.table({"embedding": array, "label": pa.array([0, None, 1])})
        if not survives_parquet(table, tmp_path / "a.parquet"):
            continue
        examples = read_examples(open_tables([str(tmp_path)]), embedding="embedding", drop_unlabelled=True)
        assert examples.embeddings.tolist() == [[1, 2], [5, 6]]


def test_extension_and_run_end_encoded_storage_is_unwrapped():
    matrix = np.arange(6.0).reshape(2, 3)
    tensor = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float64(), [3]), fixed(matrix))
    assert np.array_equal(direct(tensor), matrix)
    texts = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["[1]", "[2]"]))
    assert direct(texts).tolist() == [[1], [1], [2]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0], None, [3.0, 4.0], None], "is null in rows 2 and 4"),
        ([[1.0, 2.0], [3.0, None], [None, 4.0]], "null inside the vector in rows 2 and 3"),
        ([[1.0, 2.0], [float("nan"), 1.0]], "NaN or an infinity in row 2"),
        ([[1.0, 2.0], [1.0, float("-inf")]], "NaN or an infinity in row 2"),
        (
            [[1.0, 2.0], [1.0], [3.0, 4.0], [1.0, 2.0, 3.0]],
            r"not the 2 numbers of the other rows in rows 2 and 4 \('1', '3'\)",
        ),
        ([[], []], r"width 0\) in rows 1 and 2"),
        ([[1.0], []], r"width 0\) in row 2"),
    ],
)
def test_rows_that_are_no_vectors_are_named(tmp_path, rows, message):
    with pytest.raises(DataError, match=f"a.parquet': column 'embedding' .*{message}"):
        read(tmp_path, pa.array(rows, pa.list_(pa.float64())))


def test_faults_are_counted_over_all_blocks_of_the_file(tmp_path):
    matrix = np.ones((70_000, 1), dtype=np.float32)
    matrix[100:, 0] = np.nan
    pq.write_table(table_of(fixed(matrix)), tmp_path / "a.parquet")
    tables = open_tables([str(tmp_path)])
    message = "69900 rows, the first 101, 102, 103, 104 and 105"
    with pytest.raises(DataError, match=message):
        read_examples(tables, embedding="embedding")
    with pytest.raises(DataError, match=message):
        list(embedding_blocks(tables, embedding="embedding"))


def test_only_the_first_kind_of_fault_is_counted(tmp_path):
    rows = [[1.0], [None], [float("nan")], None, [2.0]] * 2
    with pytest.raises(DataError, match="is null in rows 4 and 9;"):
        read(tmp_path, pa.array(rows, pa.list_(pa.float64())))
    columns = {"e0": pa.array([None, 1.0, 2.0]), "e1": pa.array([1.0, None, None])}
    with pytest.raises(DataError, match="'e0' is null in row 1;"):
        read(tmp_path, columns)


def test_the_width_must_be_the_one_of_the_head(tmp_path):
    matrix = np.ones((2, 3))
    for shape in (fixed(matrix), fixed(matrix).cast(pa.list_(pa.float64())), wide(matrix, "e"), json_cells(matrix)):
        assert read(tmp_path, shape, dim=3).shape == (2, 3)
        with pytest.raises(DataError, match=r"a\.parquet': embeddings have 3 numbers, the head expects 4"):
            read(tmp_path, shape, dim=4)


@pytest.mark.parametrize("shape", [fixed, json_cells, lambda matrix: wide(matrix, "e")])
def test_files_of_different_widths_are_both_named(tmp_path, shape):
    pq.write_table(table_of(shape(np.ones((2, 3)))), tmp_path / "a.parquet")
    pq.write_table(table_of(shape(np.ones((2, 4)))), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"(?s)3 .*a\.parquet.*4 .*b\.parquet|a\.parquet.* 3 .*b\.parquet.* 4 "):
        read_examples(open_tables([str(tmp_path)]), embedding="embedding")


def test_wide_columns_are_ordered_by_number_not_by_position_or_text(tmp_path):
    matrix = np.arange(24.0).reshape(2, 12)
    columns = wide(matrix, "e")
    shuffled = {name: columns[name] for name in sorted(columns, reverse=True)}
    assert np.array_equal(read(tmp_path, shuffled), matrix)
    assert np.array_equal(read_csv(tmp_path, shuffled), matrix)
    padded = {f"e{j:03d}": pa.array(matrix[:, j]) for j in range(12)}
    assert np.array_equal(read(tmp_path, padded), matrix)


def test_a_prefix_chooses_among_several_sets(tmp_path):
    columns = {**wide(np.ones((2, 2)), "emb_"), **wide(np.zeros((2, 3)), "dim_"), **wide(np.full((2, 2), 7.0), "v")}
    with pytest.raises(DataError, match="'emb_', 'dim_', 'v'; choose one with --embedding"):
        read(tmp_path, columns)
    assert read(tmp_path, columns, "emb_").tolist() == [[1, 1], [1, 1]]
    assert read(tmp_path, columns, "emb").tolist() == [[1, 1], [1, 1]]
    assert read(tmp_path, columns, "dim_").shape == (2, 3)
    with pytest.raises(DataError, match="no column 'other'"):
        read(tmp_path, columns, "other")


def test_only_the_default_name_takes_a_set_that_was_not_named(tmp_path):
    columns = wide(np.ones((2, 2)), "e")
    assert read(tmp_path, columns).shape == (2, 2)
    with pytest.raises(DataError, match="has no column 'other'"):
        read(tmp_path, columns, "other")


def test_text_columns_that_happen_to_be_numbered_do_not_compete(tmp_path):
    columns = {**wide(np.ones((2, 2)), "e"), "note1": pa.array(["a", "b"]), "note2": pa.array(["a", "b"])}
    assert read(tmp_path, columns).tolist() == [[1, 1], [1, 1]]
    single = {**wide(np.ones((2, 2)), "e"), "score1": pa.array([0.5, 0.5])}
    assert read(tmp_path, single).tolist() == [[1, 1], [1, 1]]


def test_columns_with_another_meaning_are_no_dimension(tmp_path):
    columns = {**wide(np.ones((2, 2)), "e"), **wide(np.full((2, 2), 0.25), "s")}
    assert read(tmp_path, columns, score="s0", weight="s1").tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["e0", "e1", "e3"], "'e2' is missing"),
        (["e2", "e3"], "'e1' is missing"),
        (["e1", "e01", "e2"], "'e01' and 'e1' are one dimension twice"),
        (["e0", "e1", "e2", "e4", "e5"], "'e3' is missing"),
    ],
)
def test_gaps_and_repetitions_in_the_numbers_are_named(tmp_path, names, message):
    columns = {name: pa.array([1.0, 2.0]) for name in names}
    for name in ("embedding", "e"):
        with pytest.raises(DataError, match=message):
            read(tmp_path, columns, name)


@pytest.mark.parametrize("odd", [pa.array([True, False]), pa.array(["a", "b"]), pa.array([1, 2], pa.timestamp("s"))])
def test_wide_columns_of_other_types_are_refused(tmp_path, odd):
    with pytest.raises(DataError, match="must hold numbers, but 'e1' is of type"):
        read(tmp_path, {"e0": pa.array([1.0, 2.0]), "e1": odd})


@pytest.mark.parametrize(
    ("value", "message"),
    [(None, "'e1' is null in row 2"), (float("nan"), r"'e1' is NaN or infinite in row 2 \('nan'\)")],
)
def test_wide_faults_name_the_column(tmp_path, value, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, {"e0": pa.array([1.0, 2.0]), "e1": pa.array([1.0, value])})


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, 2.0]),
        pa.array([[True], [False]]),
        pa.array([["a"], ["b"]]),
        pa.array([[[1.0]], [[2.0]]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([b"12", b"34"]),
    ],
)
def test_columns_that_hold_no_vectors_are_refused_with_their_type(tmp_path, column):
    with pytest.raises(
        DataError, match="column 'embedding' must hold lists of numbers or JSON arrays, but it is of type"
    ):
        read(tmp_path, column)


def test_a_table_without_embeddings_says_so(tmp_path):
    with pytest.raises(DataError, match="no column 'embedding'"):
        read(tmp_path, {"text": pa.array(["a", "b"])})


def test_embedding_columns_are_named_for_those_who_leave_them_out(tmp_path):
    pq.write_table(table_of(wide(np.ones((2, 11)), "e")), tmp_path / "a.parquet")
    assert embedding_columns(open_tables([str(tmp_path)]), "embedding") == tuple(f"e{j}" for j in range(11))


NUMBER = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["0", "-0", "1E5", "1e-400", "0.10", "-0.0e+07"]),
)


@given(
    rows=st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(NUMBER, min_size=d, max_size=d), min_size=1, max_size=5)
    ),
    separators=st.lists(st.sampled_from([",", ", ", " ,", ",\n ", " ,\t"]), min_size=1, max_size=3),
    ends=st.sampled_from(["[]", "[ ]", " [] ", "\n[\t]"]),
)
def test_json_cells_are_read_as_a_json_parser_reads_them(rows, separators, ends):
    start, end = ends.split("[")[0] + "[" + ends[ends.index("[") + 1 : ends.index("]")], ends[ends.index("]") :]
    cells = [start + separators[i % len(separators)].join(row) + end for i, row in enumerate(rows)]
    expected = [[float(number) for number in json.loads(cell)] for cell in cells]
    assert direct(pa.array(cells)).tolist() == expected


@given(cell=st.text(alphabet="[]0123456789.,eE+-naNfi \n\t_x", min_size=1, max_size=12))
def test_what_a_json_parser_refuses_is_refused_or_a_printed_array(cell):
    """The fast path is exactly as strict: a cell is read only as JSON reads it, or as NumPy prints it."""
    try:
        parsed = json.loads(cell, parse_constant=lambda _: None)
    except ValueError:
        parsed = None
    is_vector = isinstance(parsed, list) and parsed and all(type(x) in (int, float) for x in parsed)
    printed = re.fullmatch(r"\s*(\[[^\[\],]*\]|[^\[\],]*\s[^\[\],]*)\s*", cell)
    if is_vector and np.isfinite(np.array(parsed, dtype=float)).all():
        assert direct(pa.array([cell])).tolist() == [[float(x) for x in parsed]]
    elif not printed:
        with pytest.raises(DataError):
            direct(pa.array([cell]))


@pytest.mark.parametrize(
    "cells",
    [
        ["[ 0.5 -2.   3. ]", "[1e-3 +4. .5]"],
        ["[ 0.5 -2.\n  3. ]", "1e-3 4 0.5"],
        ["0.5 -2 3", "  [0.001, 4.0,0.5]"],
    ],
)
def test_printed_arrays_are_read(cells):
    assert direct(pa.array(cells)).tolist() == [[0.5, -2, 3], [0.001, 4, 0.5]]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("[0.1, 0.2, ..., 0.9, 1.0]", "shortened with an ellipsis"),
        ("[0.1 0.2 ... 0.9 1. ]", "shortened with an ellipsis"),
        ("[0.1, …, 0.2]", "shortened with an ellipsis"),
        ("[NaN, 1.0]", "NaN, an infinity or a null"),
        ("[1.0, -Infinity]", "NaN, an infinity or a null"),
        ("[nan 1.0]", "NaN, an infinity or a null"),
        ("[null, 1.0]", "NaN, an infinity or a null"),
        ("[1e400, 1.0]", "NaN or an infinity"),
        ("", "is empty"),
        ("[]", "width 0"),
        ("0.5", "a single number, not a vector"),
        ("[0.1, 0.2", "no vector of numbers"),
        ("0.1, 0.2", "no vector of numbers"),
        ("[0.1,, 0.2]", "no vector of numbers"),
        ("[0.1, 0.2,]", "no vector of numbers"),
        ("[01, 2]", "no vector of numbers"),
        ("[+1, 2]", "no vector of numbers"),
        ("[[0.1, 0.2]]", "no vector of numbers"),
        ("[0,1 0,2]", "no vector of numbers"),
        ('["0.1", "0.2"]', "no vector of numbers"),
        ("[1.0, 2.0, 3.0]", "not the 2 numbers of the other rows"),
        ("[1.0 2.0 3.0]", "not the 2 numbers of the other rows"),
    ],
)
def test_cells_that_are_no_vector_are_named(tmp_path, cell, message):
    cells = pa.array(["[0.1, 0.2]", "[0.3, 0.4]", cell, "[0.1,0.2]"])
    for reader in (read, read_csv):
        with pytest.raises(DataError, match=f"{message}.* in row 3"):
            reader(tmp_path, cells)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("0.5,-0.25", "looks like data"),  # of which 0.5 and 0.6 would even be numbers in a row
        ("0.5,0.6", "looks like data"),
        ("0.1,0.2", "looks like data"),
        ("3,7", "looks like data"),
        ("safe,0.5,0.25", "looks like data"),
    ],
)
def test_a_csv_file_without_a_header_is_told_so(tmp_path, first, message):
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\n{first}\n")
    tables = open_tables([str(path)])
    with pytest.raises(DataError, match=rf"{message}.*: is the header missing\?"):
        find_embedding(tables, "embedding")
    if first.count(",") == 2:
        with pytest.raises(DataError, match=r"has no column 'label': its first line looks like data .*header missing"):
            tables.files[0].field("label", option="--label")


def test_numbers_that_count_columns_are_a_header(tmp_path):
    """Also beside one that is the level of a quantile."""
    (tmp_path / "a.csv").write_text("label,0,1,2\nx,1,2,3\n")
    assert find_embedding(open_tables([str(tmp_path / "a.csv")]), "embedding").columns == ("0", "1", "2")
    (tmp_path / "c.csv").write_text("id,2023,2024\nx,1,2\n")
    with pytest.raises(DataError, match="is missing among the numbered columns '2023' to '2024'"):
        find_embedding(open_tables([str(tmp_path / "c.csv")]), "embedding")
    (tmp_path / "b.csv").write_text("e0,e1,0.9\n1,2,3\n")
    assert find_embedding(open_tables([str(tmp_path / "b.csv")]), "e").columns == ("e0", "e1")
