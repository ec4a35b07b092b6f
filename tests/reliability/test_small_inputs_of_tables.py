"""Small tables on which others went wrong: the right rows and classes, or an error that names the rows."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from headeval.files.category_labels import resolve_categories
from headeval.files.row_faults import Place, RowFaults
from headeval.files.vectors import EmbeddingColumns, VectorReader

Headeval = Callable[..., Any]
MATRIX = np.array([[1.0, 2], [3, 4], [5, 12]])  # of lengths √5, 5 and 13
LOGITS = [5 / 5**0.5 - 1, 11 / 5 - 1, 29 / 13 - 1]  # u·(1, 2) − 1
HEAD = {"embedding_model": "m", "dim": 2, "classes": ["0", "1"], "W": [[0, 0], [1, 2]], "b": [0, -1], "threshold": 0.5}
ROUNDING = 1e-15


@pytest.fixture
def scored(headeval: Headeval, tmp_path: Path) -> Callable[..., Any]:
    """Score a table with the head above: the columns of the output, or the outcome where there is none."""
    (tmp_path / "head.json").write_text(json.dumps(HEAD))

    def score(data: str, output: str = "out.parquet") -> Any:
        outcome = headeval("score", data, "--head", "head.json", "-o", output, "--quiet")
        if outcome.code:
            assert not Path(output).exists()
            return outcome
        read = pq.read_table if output.endswith(".parquet") else pyarrow.csv.read_csv
        return read(output).to_pydict()

    return score


def parquet(**columns: Any) -> str:
    pq.write_table(pa.table(columns), "t.parquet")
    return "t.parquet"


def csv_file(text: str) -> str:
    Path("t.csv").write_text(text)
    return "t.csv"


def fixed(matrix: np.ndarray, **options: Any) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1], **options)


def refused(outcome: Any, *words: str) -> None:
    assert outcome.code == 3, outcome
    assert len(outcome.err.splitlines()) <= 2
    for word in words:
        assert word in outcome.err


# --- the last row of a fixed-size-list column taken as a slice; a null row in the middle; a list column with one
# --- shorter row, one empty row, one NaN: the right rows, or an error with row numbers


@pytest.mark.parametrize("first", [0, 1, 2])
def test_the_rows_of_a_slice_are_its_own(scored: Callable[..., Any], first: int) -> None:
    """Their numbers begin in the middle of the memory that they share with the other rows."""
    found = scored(parquet(embedding=fixed(MATRIX)[first:], id=pa.array([7, 8, 9])[first:]))
    assert found["id"] == [7, 8, 9][first:]
    assert found["logit"] == pytest.approx(LOGITS[first:], abs=ROUNDING)


def test_the_last_row_of_a_slice_in_memory_is_read_from_where_it_lies() -> None:
    """A file has no offsets; blocks of a table that was read do."""
    whole = fixed(MATRIX)
    for array in (whole, whole.cast(pa.list_(pa.float64())), whole.cast(pa.large_list(pa.float64()))):
        faults, last = RowFaults(), array[2:]
        batch = pa.RecordBatch.from_arrays([last], names=["embedding"])
        assert last.offset == 2
        reader = VectorReader(EmbeddingColumns(("embedding",), False, np.float64))
        found = reader.read(batch, Place(Path("t.parquet"), np.array([3]), False, faults))
        assert found is not None
        assert found.tolist() == [[5.0, 12.0]]
        faults.raise_if_any()


def test_a_null_row_in_the_middle_is_named_and_shifts_no_other(scored: Callable[..., Any]) -> None:
    hollow = fixed(MATRIX, mask=pa.array([False, True, False]))
    refused(scored(parquet(embedding=hollow)), "'t.parquet': column 'embedding' is null in row 2")
    without = scored(parquet(embedding=hollow.filter(pa.array([True, False, True]))))
    assert without["logit"] == pytest.approx([LOGITS[0], LOGITS[2]], abs=ROUNDING)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([3.0], "has not the 2 numbers of the other rows in row 3"),
        ([], "has no numbers (width 0) in row 3"),
        ([3.0, float("nan")], "holds NaN or an infinity in row 3"),
        ([3.0, None], "holds a null inside the vector in row 3"),
        (None, "is null in row 3"),
    ],
)
def test_a_row_of_a_list_column_that_is_no_vector_is_named(scored: Callable[..., Any], row: Any, said: str) -> None:
    rows = [[3.0, 4.0], [5.0, 12.0], row, [1.0, 2.0]]
    refused(scored(parquet(embedding=pa.array(rows, pa.list_(pa.float64())))), f"column 'embedding' {said}")


# --- label text NA, NC, NE: three classes, no null


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_country_codes_are_three_classes_and_none_is_missing(headeval: Headeval, kind: str) -> None:
    codes = ["NA", "NC", "NE", "NA"] * 5
    if kind == "parquet":
        data = parquet(embedding=fixed(np.arange(1.0, 41).reshape(20, 2)), label=codes)
    else:
        rows = "".join(f'"[{i}, {40 - i}]",{code}\n' for i, code in enumerate(codes, 1))
        data = csv_file(f"embedding,label\n{rows}")
    refused(headeval("fit", data), "holds 3 different values: 'NA' (10 rows), 'NC' (5 rows), 'NE' (5 rows)")
    done = headeval("fit", data, "--classes", "NE,NC,NA", "--folds", "0", "--drop-unlabelled", "-o", "h.json")
    assert done.code == 0, done.err
    assert "20 rows: 10 NA (flagged class), 5 NE, 5 NC" in done.out
    assert json.loads(Path("h.json").read_text())["classes"] == ["NE", "NC", "NA"]


# --- label 1.0 and 1: one class by rule


@pytest.mark.parametrize("kind", ["text", "csv", "float", "integer"])
def test_1_and_1_point_0_are_one_class_however_the_labels_are_stored(headeval: Headeval, kind: str) -> None:
    texts = ["1.0", "0", "1", "0.0"]
    p = [0.9, 0.2, 0.8, 0.7]
    if kind == "csv":
        data = csv_file("p,label\n" + "".join(f"{prob},{text}\n" for prob, text in zip(p, texts, strict=True)))
    else:
        column = {"text": texts, "float": [1.0, 0.0, 1.0, -0.0], "integer": [1, 0, 1, 0]}[kind]
        data = parquet(p=p, label=column)
    outcome = headeval("report", data, "--prob", "p", "--format", "json", "--resamples", "0")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["classes"], found["positives"], found["negatives"]) == (["0", "1"], 2, 2)
    assert found["counts"]["false_positives"] == 1


@pytest.mark.parametrize("positive", ["2", "2.0"])
def test_2_and_2_point_0_are_one_class_in_text_too(headeval: Headeval, positive: str) -> None:
    data = parquet(p=[0.9, 0.2, 0.8, 0.7], label=["2.0", "3", "2", "3.0"])
    outcome = headeval("report", data, "--prob", "p", "--positive", positive, "--format", "json", "--resamples", "0")
    assert outcome.code == 0, outcome.err
    assert (json.loads(outcome.out)["positives"], json.loads(outcome.out)["negatives"]) == (2, 2)


def test_a_label_column_that_holds_the_positive_number_alone_is_positive_however_it_is_written() -> None:
    """It was taken for a column without any positive row."""
    counts = {"hate": {"2": 1, "3": 1}, "spam": {"2.0": 4}, "other": {"3.0": 4}}
    rules = resolve_categories(counts, where="data", positive="2")
    assert [rule.positives for rule in rules] == [{"2"}, {"2.0"}, set()]


# --- label columns that hold "cancer" and "not cancer": --positive required


def test_which_of_cancer_and_not_cancer_is_positive_has_to_be_said(headeval: Headeval) -> None:
    data = parquet(p=[0.9, 0.2, 0.8, 0.7], label=["cancer", "not cancer", "cancer", "not cancer"])
    choices = "--positive 'cancer' or --positive 'not cancer'"
    refused(headeval("report", data, "--prob", "p"), "which is the positive class?", choices)
    refused(headeval("fit", parquet(embedding=fixed(MATRIX[:2]), label=["cancer", "not cancer"])), choices)
    for positive, auc in (("cancer", 1.0), ("not cancer", 0.0)):
        data = parquet(p=[0.9, 0.2, 0.8, 0.7], label=["cancer", "not cancer", "cancer", "not cancer"])
        outcome = headeval("report", data, "--prob", "p", "--positive", positive, "--format", "json")
        found = json.loads(outcome.out)
        assert (found["classes"][1], found["metrics"]["auc"]) == (positive, auc)


# --- a CSV cell `[0.1 0.2 ... 0.9]`: refused, naming the ellipsis. A cell `"[0.1, 0.2, NaN]"`: refused with its row.
# --- A space-separated cell: accepted only if every row has the same width


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["3 4", "[0.1 0.2 ... 0.9]"], "is shortened with an ellipsis (...) in row 2 ('[0.1 0.2 ... 0.9]')"),
        (['"[3, 4]"', '"[0.1, 0.2, …, 0.9]"'], "is shortened with an ellipsis (...) in row 2"),
        (['"[3, 4]"', '"[0.1, 0.2, NaN]"'], "holds NaN, an infinity or a null in row 2 ('[0.1, 0.2, NaN]')"),
        (["3 4", "5 12", "6 8 9"], "has not the 2 numbers of the other rows in row 3"),
        (["3 4", "6"], "is a single number, not a vector in row 2 ('6')"),
        (["3 4", "5 x"], "is no vector of numbers in row 2 ('5 x')"),
    ],
)
def test_cells_that_are_no_vectors_are_refused_with_their_rows(
    scored: Callable[..., Any], cells: list[str], said: str
) -> None:
    outcome = scored(csv_file("embedding,id\n" + "".join(f"{cell},x\n" for cell in cells)))
    refused(outcome, f"'t.csv': column 'embedding' {said}")


@pytest.mark.parametrize(
    "cells", [["1 2", "3 4", "5 12"], ["[1. 2.]", " 3   4 ", '"[5,12]"'], ["1\t2", "3\t4", "5\t12"]]
)
def test_cells_of_numbers_apart_by_spaces_are_vectors_where_all_have_the_same_width(
    scored: Callable[..., Any], cells: list[str]
) -> None:
    found = scored(csv_file("embedding,id\n" + "".join(f"{cell},x\n" for cell in cells)))
    assert found["logit"] == pytest.approx(LOGITS, abs=ROUNDING)


def test_spaced_cells_of_one_width_that_is_not_the_heads_are_refused(scored: Callable[..., Any]) -> None:
    refused(scored(csv_file("embedding,id\n1 2 3,x\n4 5 6,x\n")), "embeddings have 3 numbers, the head expects 2")


# --- an id column of 20-digit text: passed through `score` unchanged

IDS = [
    "12345678901234567890",
    "00000000000000000012",
    "98765432109876543210",
]  # no float, no int64, no leading zero lost


@pytest.mark.parametrize("source", ["parquet", "csv"])
@pytest.mark.parametrize("target", ["parquet", "csv"])
def test_identifiers_of_20_digits_pass_through_score_unchanged(
    headeval: Headeval, scored: Callable[..., Any], source: str, target: str
) -> None:
    if source == "parquet":
        data = parquet(id=IDS, embedding=fixed(MATRIX))
    else:
        rows = zip(IDS, MATRIX.tolist(), strict=True)
        data = csv_file("id,embedding\n" + "".join(f'{text},"{vector}"\n' for text, vector in rows))
    scored(data, f"out.{target}")
    if target == "parquet":
        column = pq.read_table("out.parquet")["id"]
        assert pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        assert column.to_pylist() == IDS
    else:
        assert re.findall(r'^"?(\d+)"?,', Path("out.csv").read_text(), re.MULTILINE) == IDS
