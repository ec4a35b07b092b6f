"""Several label columns read once: each category is what reading its label alone gives."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.core.checks import UNKNOWN
from headeval.errors import DataError
from headeval.files.category_labels import resolve_categories
from headeval.files.category_rows import CategoryExamples, read_category_examples
from headeval.files.examples import Examples, read_examples
from headeval.files.tables import Tables, open_tables
from headeval.files.vector_blocks import embedding_matrices

N = 60
LABELS = ("hate", "spam", "nsfw", "rare", "all")


def make_columns(seed: int = 0, n: int = N) -> dict[str, pa.Array]:
    """Columns of every kind, with labels that are known in different rows; some rows have none."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, 3)).astype(np.float32)
    holes = rng.random((4, n)) < 0.4
    holes[:, ::9] = True
    bits = rng.integers(0, 2, (5, n))
    words = np.array(["Safe", "Unsafe"])
    every = [None if row % 9 == 0 else int(bit) for row, bit in enumerate(bits[4])]
    return {
        "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 3),
        "hate": pa.array(bits[0].astype(bool), mask=holes[0]),
        "spam": pa.array(np.where(holes[1], np.nan, bits[1])),
        "nsfw": pa.array(words[bits[2]].tolist(), mask=holes[2]).dictionary_encode(),
        "rare": pa.array(["no"] * (n - 3) + ["yes"] * 3, mask=holes[3] & (np.arange(n) < n - 3)),
        "all": pa.array(every, pa.int8()),
        **{f"z_{name}": pa.array(rng.standard_normal(n)) for name in LABELS},
        "w": pa.array(rng.integers(0, 3, n)),
        "site": pa.array([f"s{user}" for user in rng.integers(0, 30, n)]),
        # In some of the categories no row says "(null)", so that nulls are called so.
        "lang": pa.array([None if row % 4 == 1 else "(null)" if row in (3, 7) else f"l{row % 3}" for row in range(n)]),
    }


def write(folder: Path, columns: dict[str, pa.Array], name: str = "a.parquet", rows: slice = slice(None)) -> Tables:
    table = pa.table(columns)
    start, stop, _ = rows.indices(len(table))
    pq.write_table(table.slice(start, stop - start), folder / name, row_group_size=17)
    return open_tables([str(folder)])


OPTIONS = {"embedding": "embedding", "weight": "w", "group": "site", "by": ["lang", "hate"], "dim": 3}


def together(tables: Tables, **options) -> CategoryExamples:
    options = OPTIONS | {"positive": "yes", "scores": [f"z_{name}" for name in LABELS]} | options
    return read_category_examples(tables, labels=LABELS, **options)


def apart(tables: Tables, name: str, **options) -> Examples:
    options = OPTIONS | {"score": f"z_{name}", "positive": "yes" if name == "rare" else None} | options
    return read_examples(tables, label=name, drop_unlabelled=True, **options)


def assert_same(one: Examples, other: Examples) -> None:
    """Every field, its type and its digits; and what is made of them."""
    for field in dataclasses.fields(Examples):
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert type(a) is type(b), field.name
        if field.name == "slices":
            assert {key: value.tolist() for key, value in a.items()} == {key: list(value) for key, value in b.items()}
        elif isinstance(a, np.ndarray):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), field.name
            assert np.array_equal(a, b), field.name
        else:
            assert a == b, field.name
    assert np.array_equal(one.digests, other.digests)
    assert (one.fingerprint, one.embedding_columns) == (other.fingerprint, other.embedding_columns)


def projected(embeddings):
    return embeddings[:, :2].astype(np.float64) * 2


@pytest.mark.parametrize(
    "options",
    [{}, {"hold": False}, {"project": projected, "hold": False}, {"score_kind": "logit"}],
    ids=["held", "not held", "projected", "logits"],
)
def test_a_category_is_what_reading_its_label_alone_gives(tmp_path, options):
    tables = write(tmp_path, make_columns())
    rows = together(tables, **options)
    for i, name in enumerate(LABELS):
        assert_same(rows.examples(i), apart(tables, name, **options))
    texts = {text for i in range(5) for text in rows.examples(i).slices["lang"]}
    assert {"(null)", "(null, 2)"} <= texts  # else the columns do not test how nulls are called


def test_so_it_is_without_embeddings_scores_weights_or_groups(tmp_path):
    tables = write(tmp_path, make_columns())
    rows = read_category_examples(tables, labels=["spam", "hate"])
    for i, name in enumerate(("spam", "hate")):
        assert_same(rows.examples(i), read_examples(tables, label=name, drop_unlabelled=True))


def test_so_it_is_with_the_classes_of_heads(tmp_path):
    tables, pairs = write(tmp_path, make_columns()), [("0", "1"), None, ("UNSAFE", "SAFE"), ("yes", "no"), None]
    rows = together(tables, classes=pairs, positive=None)
    for i, (name, classes) in enumerate(zip(LABELS, pairs, strict=True)):
        assert_same(rows.examples(i), apart(tables, name, classes=classes, positive=None))


def test_splitting_into_files_changes_nothing(tmp_path):
    columns = make_columns()
    (tmp_path / "whole").mkdir()
    whole = together(write(tmp_path / "whole", columns))
    (tmp_path / "parts").mkdir()
    for number, rows in enumerate((slice(0, 5), slice(5, 41), slice(41, None))):
        tables = write(tmp_path / "parts", columns, f"{number}.parquet", rows)
    parts = together(tables)
    for i in range(5):
        assert_same(parts.examples(i), whole.examples(i))


def test_the_labels_are_those_of_the_file_and_holes_stay_unknown(tmp_path):
    columns = make_columns()
    rows = together(write(tmp_path, columns))
    table = pa.table(columns).to_pylist()
    labelled = [row for number, row in enumerate(table) if number % 9]
    assert (rows.n, rows.unlabelled, rows.kept.tolist()) == (
        len(labelled),
        N - len(labelled),
        [bool(number % 9) for number in range(N)],
    )
    positives = {"hate": True, "spam": 1, "nsfw": "Unsafe", "rare": "yes", "all": 1}
    for category, name, labels in zip(rows.categories, LABELS, rows.labels, strict=True):
        cells = [row[name] for row in labelled]
        unknown = [cell is None or cell != cell for cell in cells]
        value = positives[name]
        expected = [UNKNOWN if hole else int(cell == value) for cell, hole in zip(cells, unknown, strict=True)]
        assert category.labels.tolist() == labels.tolist() == expected
        assert (category.name, category.known) == (name, unknown.count(False))
        assert category.unknown == N - category.known
        assert category.positives == expected.count(1)
    assert [category.classes for category in rows.categories] == [
        ("false", "true"),
        ("0", "1"),
        ("Safe", "Unsafe"),
        ("no", "yes"),
        ("0", "1"),
    ]
    assert rows.names == LABELS
    assert rows.embeddings.tolist() == [row["embedding"] for row in labelled]
    assert rows.slices["lang"].tolist() == [row["lang"] or "(null, 2)" for row in labelled]
    assert rows.weights.tolist() == [row["w"] for row in labelled]
    sites = sorted({row["site"] for row in labelled})
    assert [sites[code] for code in rows.groups] == [row["site"] for row in labelled]


def test_csv_gives_what_parquet_gives(tmp_path):
    columns = make_columns() | {"lang": pa.array(["x"] * N)}
    table = pa.table(columns).to_pylist()
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, table[0].keys())
        writer.writeheader()
        for row in table:
            cells = {key: "" if value is None or value != value else value for key, value in row.items()}
            writer.writerow(cells)
    texts = open_tables([str(tmp_path / "a.csv")])
    (tmp_path / "p").mkdir()
    numbers = write(tmp_path / "p", columns)
    options = {"by": ["lang"]}
    for i, name in enumerate(LABELS):
        one, other = together(texts, **options).examples(i), together(numbers, **options).examples(i)
        if name == "hate":  # the csv module writes True where Parquet has true
            assert (one.classes, other.classes) == (("False", "True"), ("false", "true"))
            one = dataclasses.replace(one, classes=other.classes, class_names=other.classes)
        if one.embedding_digests is not None and other.embedding_digests is not None:
            assert np.array_equal(one.embedding_digests, other.embedding_digests)
        both = [dataclasses.replace(rows, embeddings=None, embedding_at=None) for rows in (one, other)]
        assert_same(*both)


def test_rows_that_are_unknown_in_a_category_change_nothing_of_it_but_their_count(tmp_path):
    columns = make_columns()
    (tmp_path / "few").mkdir()
    few = together(write(tmp_path / "few", columns))
    more = make_columns(seed=1) | {name: pa.nulls(N, columns[name].type) for name in ("hate", "spam", "nsfw")}
    more["spam"] = pa.array([float("nan")] * N)
    # What no category that is known asks for may be anything.
    more["z_hate"] = pa.array([None, float("nan"), float("inf")] * (N // 3), pa.float64())
    (tmp_path / "many").mkdir()
    write(tmp_path / "many", columns)
    many = together(write(tmp_path / "many", more, "b.parquet"))
    for i in range(3):
        one, other = few.examples(i), many.examples(i)
        assert other.unlabelled == one.unlabelled + N
        assert (other.kept[:N].tolist(), other.kept[N:].any()) == (one.kept.tolist(), False)
        assert_same(one, dataclasses.replace(other, unlabelled=one.unlabelled, kept=one.kept))
        assert many.categories[i].unknown == few.categories[i].unknown + N
    assert many.categories[4].known > few.categories[4].known


def test_of_a_row_without_any_label_nothing_is_asked(tmp_path):
    columns = {
        "embedding": pa.array([[1.0, 2.0], None, [1.0, 4.0]]),
        "a": pa.array([True, None, None]),
        "b": pa.array([None, None, 0.0]),
        "w": pa.array([1.0, -5.0, 1.0]),
    }
    rows = read_category_examples(write(tmp_path, columns), labels=["a", "b"], embedding="embedding", weight="w")
    assert (rows.n, rows.unlabelled, rows.labels.tolist()) == (2, 1, [[1, UNKNOWN], [UNKNOWN, 0]])
    assert [category.unknown for category in rows.categories] == [2, 2]


def test_scores_are_asked_for_where_the_label_is_known(tmp_path):
    columns = {"a": [1, 0, None], "b": [None, 1, 1], "p": [0.5, 1.0, 9.0], "q": [None, 0.25, 0.0]}
    options = {"labels": ["a", "b"], "scores": ["p", "q"], "score_kind": "prob"}
    rows = read_category_examples(write(tmp_path, columns), **options)
    assert np.array_equal(rows.scores, [[0.5, np.nan], [1.0, 0.25], [np.nan, 0.0]], equal_nan=True)
    assert rows.examples(1).scores.tolist() == [0.25, 0.0]
    with pytest.raises(DataError, match=r"column 'p' is no probability in \[0, 1\] in row 3 \('9.0'\)"):
        read_category_examples(write(tmp_path, columns | {"a": [1, 0, 1]}), **options)
    with pytest.raises(DataError, match="column 'q' is null in row 1"):
        read_category_examples(write(tmp_path, columns | {"b": [0, 1, 1]}), **options)
    gap = {"a": [None, None, 1], "b": [None, 1, 1], "p": [None, None, -1.0]}
    with pytest.raises(DataError, match=r"column 'p' is no probability in \[0, 1\] in row 3 \('-1.0'\)"):
        read_category_examples(write(tmp_path, columns | gap), **options)
    nothing = {"a": [None, None, None], "p": pa.nulls(3)}
    assert np.isnan(read_category_examples(write(tmp_path, columns | nothing), **options).scores[:, 0]).all()
    with pytest.raises(ValueError, match="one column of scores for each category"):
        read_category_examples(write(tmp_path, columns), labels=["a", "b"], scores=["p"])


def test_one_value_alone_and_no_value_at_all_are_no_error(tmp_path):
    columns = {
        "false": [False, False, None],
        "true": [None, True, True],
        "none": pa.nulls(3),
        "nan": [float("nan")] * 3,
        "no": ["no", None, "no"],
        "yes": ["no", "yes", None],
    }
    rows = read_category_examples(write(tmp_path, columns), labels=list(columns), positive="yes")
    assert [(category.classes, category.known, category.positives) for category in rows.categories] == [
        (("false", "true"), 2, 0),
        (("false", "true"), 2, 2),
        (("not none", "none"), 0, 0),
        (("not nan", "nan"), 0, 0),
        (("no", "yes"), 2, 0),
        (("no", "yes"), 2, 1),
    ]
    heads = [("0", "1"), None, ("ok", "bad"), None, ("no", "yes"), None]
    rows = read_category_examples(write(tmp_path, columns), labels=list(columns), positive="yes", classes=heads)
    assert [category.classes for category in rows.categories][:4:2] == [("0", "1"), ("ok", "bad")]
    with pytest.raises(DataError, match="column 'none' has no label in any of its 3 rows"):
        rows.examples(2)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"b": ["x", "y"]}, {}, r"a\.parquet': column 'b' holds 'x' \(1 row\), 'y' \(1 row\): which is the positive"),
        ({"b": ["no", "yes"]}, {"positive": "y"}, r"column 'b' has no value 'y' \(--positive\); it holds 'no'"),
        ({"b": ["no", "no"]}, {"positive": "yes"}, r"column 'b' has no value 'yes' \(--positive\); it holds 'no' \(2"),
        ({"b": [0, 7]}, {"classes": [None, ("0", "1")]}, r"column 'b' holds '0' .*but the classes of what is judged"),
        ({"a": [None, None], "b": ["", None]}, {}, r"columns 'a', 'b' have no label in any of 2 rows"),
        ({"b": [[1], [0]]}, {}, "column 'b' must hold one value a row"),
        ({}, {}, r"has no column 'b'; its columns are 'a'; name another with --label COL"),
        ({"b": [1, 0], "w": [1, 1]}, {"weight": "v"}, "has no column 'v'.*--weight COL"),
    ],
)
def test_what_is_no_category_is_named(tmp_path, columns, options, message):
    with pytest.raises(DataError, match=message):
        read_category_examples(write(tmp_path, {"a": [True, False]} | columns), labels=["a", "b"], **options)


def test_a_third_value_and_identifiers_are_named_with_their_column(tmp_path):
    with pytest.raises(DataError, match=r"column 'b' holds 3 different values, a label has two: '0' \(1 row\)"):
        read_category_examples(write(tmp_path, {"a": [1, 1, 1], "b": [0, 1, 2]}), labels=["a", "b"])
    many = {"a": [1] * 1001, "b": list(range(1001))}
    with pytest.raises(DataError, match="column 'b' holds more than 1000 different values, a label has two"):
        read_category_examples(write(tmp_path, many), labels=["a", "b"])


def test_weights_count_where_the_label_is_known(tmp_path):
    columns = {"a": [1, 0, None], "b": [None, None, 1], "w": [0, 0, 2]}
    rows = read_category_examples(write(tmp_path, columns), labels=["a", "b"], weight="w")
    assert rows.examples(1).weights.tolist() == [2]
    with pytest.raises(DataError, match=r"a\.parquet': column 'w': all weights are 0"):
        rows.examples(0)


def test_embeddings_are_copied_only_where_they_must_be(tmp_path):
    columns = {"embedding": [[1.0], [2.0], [3.0]], "a": [1, 0, 1], "b": [None, 0, 1]}
    rows = read_category_examples(write(tmp_path, columns), labels=["a", "b"], embedding="embedding")
    assert rows.examples(0).embeddings is rows.embeddings
    assert rows.examples(1).embeddings.tolist() == [[2.0], [3.0]]
    assert rows.examples(1, embeddings=False).embeddings is None


def test_the_embeddings_of_the_same_rows_can_be_read_once_more(tmp_path):
    tables = write(tmp_path, make_columns())
    rows = together(tables)
    again = together(tables, hold=False)
    assert again.embeddings is None
    assert np.array_equal(np.concatenate(list(embedding_matrices(tables, again))), rows.embeddings)
    write(tmp_path, make_columns(seed=5))
    with pytest.raises(DataError, match="the rows have changed"):
        list(embedding_matrices(tables, again))


def test_blocks_of_embeddings_are_shown_in_one_reading(tmp_path):
    tables, shown, tracked = write(tmp_path, make_columns()), [], []

    def track(blocks, n_rows):
        for block in blocks:
            tracked.append(block.batch.num_rows)
            yield block

    rows = together(tables, on_block=lambda first, block: shown.append((first, block.copy())), track=track)
    assert sum(tracked) == N
    assert np.array_equal(np.concatenate([block for _, block in shown]), rows.embeddings)


@pytest.mark.parametrize("text", ["nan", "NA", "None", "?"])
def test_text_for_a_missing_label_is_not_taken_for_the_negative_class(text):
    with pytest.raises(
        DataError, match="in 3 rows, which would count as negative though it reads like a missing label"
    ):
        resolve_categories({"hate": {"yes": 2, text: 3}}, where="data", positive="yes")
    assert resolve_categories({"hate": {"yes": 2, "no": 3}}, where="data", positive="yes")[0].classes == ("no", "yes")


def test_a_positive_value_is_looked_for_in_all_columns_together():
    pair = {"true": 3, "false": 1}
    for held in ("nope", "false", "0"):
        with pytest.raises(DataError, match=f"'{held}'"):
            resolve_categories({"a": pair, "b": {"1": 2, "0": 2}}, where="data", positive=held)
    for held in ("TRUE", "1"):
        rules = resolve_categories({"a": pair, "b": {"1": 2, "0": 2}}, where="data", positive=held)
        assert [rule.positives for rule in rules] == [{"true"}, {"1"}]
    # What a column without a value would hold is not known.
    assert resolve_categories({"a": pair, "b": {}}, where="data", positive="yes")[0].positives == {"true"}
    with pytest.raises(DataError, match=r"column 'b' has no value 'y' \(--positive\); it holds 'no'"):
        resolve_categories({"a": pair, "b": {"no": 4, "yes": 1}}, where="data", positive="y")
