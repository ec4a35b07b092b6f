"""Which columns `--label a,b` and `--label 'cat_*'` name, whatever the columns are called."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.errors import DataError
from headeval.files.label_columns import label_columns, label_names
from headeval.files.tables import Tables, open_tables


def parquet(folder: Path, *names: str, file: str = "a.parquet") -> Tables:
    """A file whose column `embedding` holds vectors, and every other one a number."""
    arrays = [pa.array([[0.5, 1.0]] if name == "embedding" else [1.0]) for name in names]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(names)), folder / file)
    return open_tables([str(folder / file)])


def csv_file(folder: Path, *names: str) -> Tables:
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, ["1"] * len(names)])
    return open_tables([str(folder / "a.csv")])


def test_a_name_is_one_column_and_a_list_keeps_its_order(tmp_path):
    tables = parquet(tmp_path, "b", "a", "c")
    assert label_columns(tables, "a") == ("a",)
    assert label_columns(tables, "c,a,b") == ("c", "a", "b")
    assert label_columns(tables, "c, a ,b") == ("c", "a", "b")


@pytest.mark.parametrize("write", [parquet, csv_file])
@pytest.mark.parametrize(
    ("pattern", "columns"),
    [
        ("cat_*", ("cat_z", "cat_a", "cat_10")),
        ("cat_?", ("cat_z", "cat_a")),
        ("cat_[a-m]", ("cat_a",)),
        ("*_z,cat_1*", ("cat_z", "cat_10")),
        ("id,*_z", ("id", "cat_z")),
    ],
)
def test_a_pattern_matches_in_the_order_of_the_columns(tmp_path, write, pattern, columns):
    assert label_columns(write(tmp_path, "id", "cat_z", "Cat_b", "cat_a", "cat_10"), pattern) == columns


AWKWARD = ("a,b", "a*", "a[1]", "a?", "a\nb", " a", "[", ",", "é", "--label")


@pytest.mark.parametrize("write", [parquet, csv_file])
@pytest.mark.parametrize("name", AWKWARD)
def test_the_whole_name_of_a_column_is_that_column(tmp_path, write, name):
    tables = write(tmp_path, "a", "b", "a1", "ab", *AWKWARD)
    assert label_columns(tables, name) == (name,)
    assert label_columns(tables, f"b,{name},ab") == ("b", name, "ab")
    assert label_names((name,), name) == (name,)


def test_names_with_commas_may_stand_in_a_list(tmp_path):
    tables = parquet(tmp_path, "a", "hate, severe", "hate", "a,b")
    assert label_columns(tables, "a,hate, severe") == ("a", "hate, severe")
    assert label_columns(tables, "hate, a,b") == ("hate", "a,b")


def test_no_pattern_matches_embeddings(tmp_path):
    tables = parquet(tmp_path, "id", "embedding", "e_cat")
    assert label_columns(tables, "*") == ("id", "e_cat")
    assert label_columns(tables, "e*") == ("e_cat",)
    with pytest.raises(DataError, match=r"--label 'emb\*' matches only columns of another meaning: 'embedding'"):
        label_columns(tables, "emb*")
    wide = parquet(tmp_path, "y", *(f"e{i}" for i in range(5)), "z", file="wide.parquet")
    assert label_columns(wide, "*") == ("y", "z")
    assert label_columns(wide, "[ez]*") == ("z",)


def test_in_a_csv_file_the_column_embedding_is_no_label(tmp_path):
    assert label_columns(csv_file(tmp_path, "id", "embedding", "e_cat"), "e*") == ("e_cat",)


def test_numbered_categories_are_no_embeddings(tmp_path):
    assert label_columns(parquet(tmp_path, "cat_1", "cat_2", "cat_3"), "cat_*") == ("cat_1", "cat_2", "cat_3")
    with_embeddings = parquet(tmp_path, "embedding", "c0", "c1", file="b.parquet")
    assert label_columns(with_embeddings, "*") == ("c0", "c1")


def test_columns_with_another_meaning_are_no_labels(tmp_path):
    tables = parquet(tmp_path, "id", "w", "x")
    assert label_columns(tables, "*", taken={"id", "w"}) == ("x",)
    with pytest.raises(DataError, match="another meaning: 'id', 'w', 'x'"):
        label_columns(tables, "*", taken={"id", "w", "x"})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("cat*", r"a\.parquet': no column matches --prob 'cat\*'; its columns are 'hate', 'spam', 'x'$"),
        ("hate,cat*", r"no column matches --prob 'cat\*'"),
        ("hat", r"has no column 'hat' \(did you mean 'hate'\?\).*; name another with --prob COL"),
        ("hate,spma", r"has no column 'spma' \(did you mean 'spam'\?\)"),
        ("hate,hate", r"--prob 'hate,hate' names 'hate' more than once"),
        ("h*,hate", r"--prob 'h\*,hate' names 'hate' more than once"),
        ("hate,", r"--prob 'hate,': a name is missing beside a comma"),
        (",hate", "a name is missing"),
        ("hate, ,spam", "a name is missing"),
        ("", "has no column ''"),
        ("\x1b[31m*", r"matches --prob '\\x1b\[31m\*'"),
    ],
)
def test_what_names_no_columns_is_explained(tmp_path, spec, message):
    with pytest.raises(DataError, match=message):
        label_columns(parquet(tmp_path, "hate", "spam", "x"), spec, option="--prob")


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    tables = parquet(tmp_path, "cat_a", "cat_b", "cat_a")
    for spec in ("cat_*", "cat_b,cat_a", "cat_a"):
        with pytest.raises(DataError, match="has 2 columns 'cat_a': rename all but one"):
            label_columns(tables, spec)


def test_every_file_must_have_every_column_that_any_file_has(tmp_path):
    parquet(tmp_path, "cat_a", "cat_b")
    parquet(tmp_path, "cat_b", file="b.parquet")
    parquet(tmp_path, "cat_a", "cat_b", "cat_c", file="c.parquet")
    first, second, third = (str(tmp_path / f"{name}.parquet") for name in "abc")
    with pytest.raises(DataError, match=r"b\.parquet' has no column 'cat_a'"):
        label_columns(open_tables([first, second]), "cat_*")
    with pytest.raises(DataError, match=r"a\.parquet' has no column 'cat_c'"):
        label_columns(open_tables([first, third]), "cat_*")
    assert label_columns(open_tables([first, second, third]), "cat_b") == ("cat_b",)


@pytest.mark.parametrize(
    ("columns", "spec", "names"),
    [
        (["p_hate", "p_a,b"], "p_*", ("hate", "a,b")),
        (["hate_p", "x_p"], "*_p", ("hate", "x")),
        (["p_hate_1", "p_x_1"], "p_*_1", ("hate", "x")),
        (["hate", "x"], "*", ("hate", "x")),
        (["p_", "p_x"], "p_*", ("p_", "p_x")),  # a star that stands for nothing is no name
        (["p_a1"], "p_*?", ("p_a1",)),
        (["p_a_b"], "p_*_*", ("p_a_b",)),
        (["p_a", "q"], "p_*,q", ("p_a", "q")),
        (["p_a", "p_b"], "p_a,p_b", ("p_a", "p_b")),
        (["p_*"], "p_*", ("p_*",)),
        (["p_a"], "p_[a]", ("p_a",)),
    ],
)
def test_one_star_names_the_classes(columns, spec, names):
    assert label_names(columns, spec) == names


@pytest.mark.parametrize("write", [parquet, csv_file])
def test_scores_of_numbered_classes_are_no_embeddings(tmp_path, write):
    tables = write(tmp_path, "label", "p_k0", "p_k1", "p_k2")
    assert label_columns(tables, "p_*", option="--prob") == ("p_k0", "p_k1", "p_k2")
