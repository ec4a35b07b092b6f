"""Commands that score rows while they are read: no embedding is held, and blocks change no byte of what is shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.files import embedded_rows, row_sample
from headeval.files.examples import read_examples
from headeval.files.heads import read_head
from headeval.files.tables import open_tables

Headeval = Callable[..., Any]
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "report.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def other(headeval: Headeval, make_table: Callable[..., Path], fitted: Path) -> Path:
    """Another head of the same model."""
    outcome = headeval("fit", make_table("other.parquet", seed=5), "--quiet", "-o", "other.json")
    assert outcome.code == 0, outcome.err
    return fitted.parent / "other.json"


def written(headeval: Headeval, fitted: Path, *data: object) -> list[object]:
    """Run every command that streams and return all it shows and writes."""
    options = ("--head", fitted, "--quiet", "--force")
    reported = (*data, *options, "--baseline", "other.json", "--reference", "ref.parquet", "--by", "team")
    found = [
        headeval("report", *reported, "--format", "json", "--resamples", "20"),
        headeval("calibrate", *data, *options, "--method", "platt", "-o", "calibrated.json"),
        headeval("threshold", *data, *options, "--require", "fpr<=0.9", "-o", "t.json", "--benign", "ref.parquet"),
        headeval("score", *data, *options, "-o", "scored.csv"),
    ]
    assert [outcome.code for outcome in found] == [0, 0, 0, 0], [outcome.err for outcome in found]
    outputs = [Path(name).read_bytes() for name in ("calibrated.json", "t.json", "scored.csv")]
    return [*(outcome.out for outcome in found), *outputs]


@pytest.mark.parametrize(("rows", "threads"), [(1, "1"), (7, "3"), (65_536, "2")])
def test_blocks_and_threads_change_no_byte(
    rows: int,
    threads: str,
    headeval: Headeval,
    make_table: Callable[..., Path],
    fitted: Path,
    other: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test = make_table("test.parquet", seed=1, team=pa.array([f"t{i % 3}" for i in range(120)]))
    make_table("ref.parquet", seed=2, n=90)
    whole = written(headeval, fitted, test)
    monkeypatch.setattr("headeval.files.parquet_rows.MOST_ROWS", rows)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    table = pq.read_table(test)
    pq.write_table(table, test, row_group_size=11)
    assert written(headeval, fitted, test) == whole


def test_no_embedding_is_held(
    headeval: Headeval, make_table: Callable[..., Path], fitted: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = make_table("test.parquet", seed=1, team=pa.array([f"t{i % 3}" for i in range(120)]))
    make_table("ref.parquet", seed=2, n=90, label=None)
    held: list[bool] = []
    plain = embedded_rows.EmbeddedRows.gather

    def gather(self: embedded_rows.EmbeddedRows, matrices: Any) -> None:
        held.append(self._keeping.hold)
        plain(self, matrices)

    monkeypatch.setattr(embedded_rows.EmbeddedRows, "gather", gather)
    written(headeval, fitted, test)
    assert len(held) >= 4
    assert not any(held)


def test_a_baseline_is_scored_while_the_rows_are_read_and_as_it_is_alone(
    headeval: Headeval, make_table: Callable[..., Path], fitted: Path, other: Path
) -> None:
    test = make_table("test.parquet", seed=1)

    def report(*options: object) -> Any:
        return json.loads(headeval("report", test, *options, "--resamples", "0", "--format", "json").out)

    both, alone = report("--head", fitted, "--baseline", other), report("--head", other)
    assert both["comparison"]["baseline_evaluation"]["metrics"] == alone["metrics"]
    assert both["metrics"] == report("--head", fitted)["metrics"] != alone["metrics"]


def test_a_calibrated_head_decides_as_the_score_command_does(
    headeval: Headeval, make_table: Callable[..., Path], fitted: Path
) -> None:
    content = {"label": pa.array([None if i % 9 == 4 else i % 2 for i in range(120)])}
    test = make_table("test.parquet", seed=1, **content)
    assert headeval("calibrate", test, "--head", fitted, "--drop-unlabelled", "--positive", "1", "-q").code == 0
    head = read_head(Path("linear-head-calibrated.json"))
    embeddings = read_examples(open_tables([str(test)]), embedding="embedding", drop_unlabelled=True).embeddings
    before = read_head(fitted).flagged(embeddings)
    assert np.array_equal(head.flagged(embeddings), before)
    assert headeval("score", test, "--head", "linear-head-calibrated.json", "-o", "s.parquet", "-q").code == 0
    scored = pq.read_table("s.parquet")
    kept = np.array([label is not None for label in scored["label"].to_pylist()])
    assert np.array_equal(scored["flagged"].to_numpy()[kept], before)


def test_a_reference_too_large_to_be_held_is_sampled_and_that_is_said(
    headeval: Headeval, make_table: Callable[..., Path], fitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test, reference = make_table("test.parquet", seed=1), make_table("ref.parquet", seed=1, n=150)
    vectors = np.stack(pq.read_table(reference)["embedding"].to_pylist()).astype(np.float32)
    vectors[:30] *= np.float32(1.001)  # the same direction, but for rounding
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 4)
    make_table("ref.parquet", seed=1, n=150, embedding=flat)
    asked = ("report", test, "--head", fitted, "--reference", reference, "--resamples", "0")
    whole = json.loads(headeval(*asked, "--format", "json").out)
    monkeypatch.setattr(row_sample.RowSample.__init__, "__kwdefaults__", {"most_bytes": 60 * 16, "seed": 0})
    sampled = json.loads(headeval(*asked, "--format", "json").out)
    jsonschema.validate(sampled, SCHEMA)
    shift, leaked = sampled["drift"]["mean_shift"], sampled["drift"]["leakage"]
    assert (shift["n"], shift["reference_n"]) == (60, 60)
    assert "n" not in whole["drift"]["mean_shift"]
    assert leaked["exact"] == whole["drift"]["leakage"]["exact"]
    assert 0 < leaked["compared"] <= 60
    assert leaked["near"] == leaked["compared"]  # each of them is found, wherever it stands in the reference
    same = ("ks", "psi", "prevalence")
    assert {name: sampled["drift"][name] for name in same} == {name: whole["drift"][name] for name in same}
    text = " ".join(headeval(*asked).out.split())
    assert "of random samples: 60/120 rows here and 60/150 of the reference" in text
