"""Values that would be mistaken for others, or that no computation survives, while columns are gathered."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.errors import DataError
from headeval.files.examples import read_examples
from headeval.files.tables import open_tables


def read(tmp_path, column: pa.Array, **options):
    pq.write_table(pa.table({"label": [i % 2 for i in range(len(column))], "c": column}), tmp_path / "a.parquet")
    return read_examples(open_tables([str(tmp_path / "a.parquet")]), **options)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["a", None], ["a", "(null)"]),
        (["(null)", None, "a", None], ["(null)", "(null, 2)", "a", "(null, 2)"]),
        ([None, "(null, 2)", "(null)"], ["(null, 3)", "(null, 2)", "(null)"]),
        ([None, "(null, 2)"], ["(null)", "(null, 2)"]),
        (["(null)", "a"], ["(null)", "a"]),
    ],
)
def test_nulls_are_a_slice_of_their_own_whatever_the_texts(tmp_path, values, texts):
    assert read(tmp_path, pa.array(values), by=["c"]).slices["c"].tolist() == texts


def test_a_text_that_looks_like_a_null_may_come_in_another_file(tmp_path):
    for name, value in (("a", None), ("b", "(null)")):
        pq.write_table(pa.table({"label": [1], "c": pa.array([value], pa.string())}), tmp_path / f"{name}.parquet")
    examples = read_examples(open_tables([str(tmp_path)]), by=["c"])
    assert examples.slices["c"].tolist() == ["(null, 2)", "(null)"]


@pytest.mark.parametrize("weight", [1.1e100, 1e300, 1.7e308])
def test_weights_that_leave_no_room_for_sums_are_named(tmp_path, weight):
    with pytest.raises(DataError, match=r"column 'c' is a weight above 1e\+100 in rows 2 and 3 .*divide"):
        read(tmp_path, pa.array([1.0, weight, weight]), weight="c")


def test_weights_up_to_the_limit_are_taken(tmp_path):
    assert read(tmp_path, pa.array([1e100, 0.0]), weight="c").weights.tolist() == [1e100, 0]


def test_an_empty_group_is_no_group_in_any_format(tmp_path):
    with pytest.raises(DataError, match=r"column 'c' has no group \(null, NaN or empty\) in row 2"):
        read(tmp_path, pa.array(["a", ""]), group="c")
