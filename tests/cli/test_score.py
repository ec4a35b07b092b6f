"""`headeval score` adds what a gateway would decide to every row, and keeps all other columns."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Headeval = Callable[..., Any]


def gateway(head: dict[str, Any], e: list[float]) -> tuple[float, float, bool]:
    """The head file evaluated with nothing but arithmetic."""
    norm = math.sqrt(sum(x * x for x in e)) or 1.0
    z = [
        sum(w * x / norm for w, x in zip(row, e, strict=True)) + b for row, b in zip(head["W"], head["b"], strict=True)
    ]
    p = math.exp(z[1] - max(z)) / sum(math.exp(v - max(z)) for v in z)
    return z[1] - z[0], p, p >= head["threshold"]


def test_scores_are_what_another_program_computes_from_the_head_file(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    data = make_table("new.parquet", n=50, seed=3)
    outcome = headeval("score", data, "-o", "scores.parquet")
    assert (outcome.code, outcome.out) == (0, "")
    scores = pq.read_table(tmp_path / "scores.parquet")
    assert scores.column_names == ["id", "label", "logit", "prob", "flagged"]
    head = json.loads(fitted.read_text(encoding="utf-8"))
    for e, row in zip(pq.read_table(data)["embedding"].to_pylist(), scores.to_pylist(), strict=True):
        logit, prob, flagged = gateway(head, e)
        assert row["logit"] == pytest.approx(logit, abs=1e-12)
        assert row["prob"] == pytest.approx(prob, abs=1e-12)
        assert row["flagged"] is flagged
    assert f"{sum(scores['flagged'].to_pylist())} flagged" in outcome.err


def test_labels_are_not_needed_and_other_columns_pass_through(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    ids = pa.array([f"{10**19 + i}" for i in range(30)])
    data = make_table("new.parquet", n=30, id=ids, label=None, tag=pa.array([None, "=cmd()", 'a,"b"\n'] * 10))
    assert headeval("score", data, "-o", "s.parquet").code == 0
    back = pq.read_table(tmp_path / "s.parquet")
    assert back["id"].to_pylist() == ids.to_pylist()
    assert back["tag"].to_pylist() == [None, "=cmd()", 'a,"b"\n'] * 10
    assert headeval("score", data, "-o", "s.csv").code == 0
    with (tmp_path / "s.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [row["id"] for row in read] == ids.to_pylist()
    assert [row["tag"] for row in read] == ["", "=cmd()", 'a,"b"\n'] * 10
    assert [float(row["logit"]) for row in read] == back["logit"].to_pylist()


def test_report_on_the_scores_equals_report_on_the_head(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path]
) -> None:
    data = make_table("new.parquet", n=80, seed=4)
    headeval("score", data, "-o", "scores.parquet")
    by_head, by_scores = (
        json.loads(headeval("report", *arguments, "--format", "json").out)
        for arguments in ([data, "--head", fitted], ["scores.parquet"])
    )
    for key in ("metrics", "counts", "threshold", "classes", "calibration", "reliability"):
        assert by_head[key] == by_scores[key], key


def test_columns_that_are_in_the_way_are_an_error(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    outcome = headeval("score", make_table("new.parquet", prob=pa.array([0.5] * 120)), "-o", "s.parquet")
    assert (outcome.code, (tmp_path / "s.parquet").exists()) == (3, False)
    assert "'prob'" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-o", "s.txt"], 6, ".parquet or .csv"),
        (["-o", "new.parquet", "--force"], 6, "one of the inputs"),
        (["-o", "s.parquet", "--head", "absent.json"], 4, "absent.json"),
        (["-o", "s.parquet", "--embedding-model", "other"], 4, "'other'"),
        (["-o", "s.parquet", "--embedding", "id"], 3, "id"),
        ([], 2, "--output"),
    ],
)
def test_what_cannot_be_done_leaves_the_files_as_they_were(
    headeval: Headeval,
    fitted: Path,
    make_table: Callable[..., Path],
    tmp_path: Path,
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    data = make_table("new.parquet")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    outcome = headeval("score", data, *arguments)
    assert outcome.code == code, outcome.err
    assert words in outcome.err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_head_of_another_width_is_refused(headeval: Headeval, fitted: Path, make_table: Callable[..., Path]) -> None:
    wide = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 600), 5)
    outcome = headeval("score", make_table("wide.parquet", embedding=wide), "-o", "s.parquet")
    assert outcome.code == 3
    assert "5" in outcome.err
    assert "4" in outcome.err


def test_a_null_embedding_late_in_the_file_leaves_no_output(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    vectors = [[0.1, 0.2, 0.3, 0.4]] * 119 + [None]
    data = make_table("new.parquet", embedding=pa.array(vectors, pa.list_(pa.float32())))
    before = sorted(tmp_path.iterdir())
    outcome = headeval("score", data, "-o", "s.parquet")
    assert outcome.code == 3
    assert "row 120" in outcome.err
    assert sorted(tmp_path.iterdir()) == before


def test_files_that_name_another_model_than_the_head_are_refused_with_both_names(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path]
) -> None:
    outcome = headeval("score", make_table("new.parquet", model="other-model"), "-o", "s.parquet")
    assert outcome.code == 4
    assert "'other-model'" in outcome.err
    assert "'m'" in outcome.err
