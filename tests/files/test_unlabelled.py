"""Rows read without labels are the same rows as with labels: same embeddings, scores, names and digests."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.errors import DataError
from headeval.files.examples import read_examples
from headeval.files.tables import Tables, open_tables
from headeval.files.unlabelled import read_unlabelled


def tables_of(folder: Path, *parts: dict[str, Any], csv: bool = False) -> Tables:
    paths = []
    for index, columns in enumerate(parts):
        path = folder / f"{index}.{'csv' if csv else 'parquet'}"
        if csv:
            rows = zip(*columns.values(), strict=True)
            path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
        else:
            pq.write_table(pa.table(columns), path)
        paths.append(str(path))
    return open_tables(paths)


def check_equal(tables: Tables, **how: Any) -> None:
    """What is read without labels is what `read_examples` reads from the same files, which have them."""
    by = how.get("identifier")
    asked = {key: value for key, value in how.items() if key != "identifier"}
    expected = read_examples(tables, by=[] if by is None else [by], **asked)
    found = read_unlabelled(tables, **how)
    for name in ("embeddings", "scores", "digests"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert one.dtype == other.dtype
            assert one.tobytes() == other.tobytes(), name
    assert (found.ids is None) == (by is None)
    if by is not None:
        assert found.ids is not None
        assert found.ids.tolist() == expected.slices[by].tolist()


NUMPY_TYPES = {pa.float16(): np.float16, pa.float32(): np.float32, pa.float64(): np.float64, pa.int16(): np.int16}


@pytest.mark.parametrize("kind", NUMPY_TYPES, ids=str)
@pytest.mark.parametrize("shape", ["list", "large_list", "fixed", "columns"])
def test_embeddings_of_every_layout_are_those_of_labelled_rows(tmp_path: Path, kind: pa.DataType, shape: str) -> None:
    values = np.random.default_rng(0).integers(-9, 9, (7, 3)).astype(NUMPY_TYPES[kind])
    if shape == "columns":
        columns: dict[str, Any] = {f"embedding_{i}": pa.array(values[:, i], kind) for i in range(3)}
    else:
        layout = {"list": pa.list_(kind), "large_list": pa.large_list(kind), "fixed": pa.list_(kind, 3)}[shape]
        columns = {"embedding": pa.array(list(values), layout)}
    parts = [
        {"label": [0, 1] * 2, **{k: v[:4] for k, v in columns.items()}},
        {"label": [1] * 3, **{k: v[4:] for k, v in columns.items()}},
    ]
    check_equal(tables_of(tmp_path, *parts), embedding="embedding", dim=3)


@pytest.mark.parametrize("csv", [False, True])
def test_scores_and_names_are_those_of_labelled_rows(tmp_path: Path, csv: bool) -> None:
    parts = [
        {"label": [0, 1], "z": [1.5, -2e-3], "id": ["a", "b"]},
        {"label": [1, 1], "z": [0.0, 3.25], "id": ["b", "c"]},
    ]
    check_equal(tables_of(tmp_path, *parts, csv=csv), score="z", score_kind="logit", identifier="id")


def test_probabilities_too(tmp_path: Path) -> None:
    check_equal(tables_of(tmp_path, {"label": [0, 1], "p": [0.0, 1.0]}), score="p", score_kind="prob")


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([3, 1, 3, None]),
        pa.array([1.5, None, 2.0, 2.0]),
        pa.array(["x", None, "(null)", ""]),
        pa.array(["x", "y", "x", None]).dictionary_encode(),
        pa.array([True, False, None, True]),
    ],
    ids=["int", "float", "text", "dictionary", "bool"],
)
def test_names_of_any_type_and_nulls_are_those_of_labelled_rows(tmp_path: Path, ids: pa.Array) -> None:
    check_equal(tables_of(tmp_path, {"label": [0, 1, 0, 1], "z": [1.0] * 4, "id": ids}), score="z", identifier="id")


def test_no_label_is_looked_at(tmp_path: Path) -> None:
    """Missing, null, or of no class: the rows are read all the same, every one of them."""
    whole = read_unlabelled(tables_of(tmp_path, {"z": [1.0, 2.0, 3.0]}), score="z")
    for index, label in enumerate(([None] * 3, ["?", None, ""], [[1], [2], []])):
        folder = tmp_path / str(index)
        folder.mkdir()
        found = read_unlabelled(tables_of(folder, {"label": label, "z": [1.0, 2.0, 3.0]}), score="z")
        assert found.scores is not None
        assert found.scores.tolist() == [1.0, 2.0, 3.0]
        assert np.array_equal(found.digests, whole.digests)


def test_blocks_of_any_size_give_the_same(tmp_path: Path) -> None:
    z = np.random.default_rng(1).normal(size=1000)
    pq.write_table(
        pa.table({"z": z, "id": [f"r{i % 37}" for i in range(1000)]}), tmp_path / "a.parquet", row_group_size=7
    )
    found = read_unlabelled(open_tables([str(tmp_path / "a.parquet")]), score="z", identifier="id")
    assert found.scores is not None
    assert found.ids is not None
    assert np.array_equal(found.scores, z)
    assert found.ids.tolist() == [f"r{i % 37}" for i in range(1000)]


@pytest.mark.parametrize(
    ("columns", "how", "message"),
    [
        ({"z": [1.0, None]}, {"score": "z"}, r"0\.parquet.*column 'z'.*row 2"),
        ({"z": [1.0, float("nan")]}, {"score": "z"}, r"0\.parquet.*column 'z'.*row 2"),
        ({"p": [0.5, 1.5]}, {"score": "p", "score_kind": "prob"}, r"column 'p' is no probability in \[0, 1\].*row 2"),
        ({"z": ["a", "b"]}, {"score": "z"}, r"0\.parquet.*column 'z'"),
        ({"x": [1.0]}, {"score": "z"}, r"0\.parquet.*no column 'z'"),
        ({"z": [1.0]}, {"score": "z", "identifier": "id"}, r"0\.parquet.*no column 'id'"),
        ({"e": [[1.0, 2.0], [1.0]]}, {"embedding": "e"}, r"0\.parquet.*column 'e'"),
        ({"e": [[1.0, 2.0], None]}, {"embedding": "e"}, r"0\.parquet.*column 'e'.*row 2"),
        ({"e": [[1.0, 2.0]]}, {"embedding": "e", "dim": 3}, r"0\.parquet.*3"),
        ({"z": pa.array([], pa.float64())}, {"score": "z"}, r"0\.parquet.*no rows"),
    ],
)
def test_faults_name_file_column_and_row(
    tmp_path: Path, columns: dict[str, Any], how: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_unlabelled(tables_of(tmp_path, columns), **how)


def test_a_fault_in_a_later_file_is_found_there(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, {"z": [1.0, 2.0]}, {"z": [3.0, None, 1.0]})
    with pytest.raises(DataError, match=r"1\.parquet.*row 2"):
        read_unlabelled(tables, score="z")
