"""The sample files: derived ones regenerate byte for byte, and say what the Parquet files say."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

SAMPLES = Path(__file__).resolve().parent.parent / "sample_data"
SHARED = SAMPLES.parent.parent / "shared" / "data"
DERIVED = ("moderation_small.csv", "scores.csv")
MOST_BYTES = 9_000_000


def read_csv(name: str) -> list[dict[str, str]]:
    with (SAMPLES / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_derived_files_regenerate_byte_for_byte(tmp_path: Path) -> None:
    command = [sys.executable, str(SAMPLES / "make_derived.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(tmp_path / name) for name in DERIVED]
    for name in DERIVED:
        assert (tmp_path / name).read_bytes() == (SAMPLES / name).read_bytes(), name


def test_small_csv_holds_the_first_training_rows_to_the_last_bit() -> None:
    rows = read_csv("moderation_small.csv")
    train = pq.read_table(SAMPLES / "moderation_train.parquet").slice(0, len(rows))
    assert len(rows) == 120
    assert [int(row["id"]) for row in rows] == train["id"].to_pylist()
    assert [row["label"] for row in rows] == train["label"].to_pylist()
    assert {row["label"] for row in rows} == {"safe", "unsafe"}
    embeddings = np.array([json.loads(row["embedding"]) for row in rows], dtype=np.float32)
    assert np.array_equal(embeddings, np.array(train["embedding"].to_pylist(), dtype=np.float32))


def test_scores_are_of_the_test_rows_in_their_order() -> None:
    rows = read_csv("scores.csv")
    test = pq.read_table(SAMPLES / "moderation_test.parquet")
    assert [int(row["id"]) for row in rows] == test["id"].to_pylist()
    assert [row["label"] for row in rows] == test["label"].to_pylist()
    assert all(0 < float(row["prob"]) < 1 for row in rows)


def test_the_parts_share_no_id_and_exactly_the_embeddings_that_the_readme_counts() -> None:
    tables = {name: pq.read_table(SAMPLES / f"moderation_{name}.parquet") for name in ("train", "calibration", "test")}
    ids = {name: set(table["id"].to_pylist()) for name, table in tables.items()}
    assert len(set.union(*ids.values())) == 756 + 252 + 252
    vectors = {name: [tuple(row) for row in table["embedding"].to_pylist()] for name, table in tables.items()}
    train, calibration, test = (set(rows) for rows in vectors.values())
    assert len(vectors["train"]) - len(train) == 7
    assert [len(train & calibration), len(train & test), len(calibration & test)] == [3, 3, 1]


def test_a_sample_is_unsafe_exactly_when_a_known_category_is_true() -> None:
    """The README's account of `label` and of nulls."""
    for path in sorted(SAMPLES.glob("moderation_*.parquet")):
        rows = pq.read_table(path).drop_columns(["id", "embedding"]).to_pylist()
        for row in rows:
            label = row.pop("label")
            assert (label == "unsafe") == any(row.values())
        assert any(value is None for row in rows for value in row.values())


@pytest.mark.skipif(not SHARED.is_dir(), reason="the originals do not lie beside the checkout")
def test_parquet_files_equal_the_originals() -> None:
    for path in sorted(SAMPLES.glob("*.parquet")):
        if path.name.startswith("tweets_"):
            original = pq.read_table(SHARED / path.name)
            assert pq.read_table(path).equals(original.take(list(range(0, original.num_rows, 5))), check_metadata=True)
        else:
            assert path.read_bytes() == (SHARED / path.name).read_bytes(), path.name


def test_samples_stay_small() -> None:
    assert sum(path.stat().st_size for path in SAMPLES.iterdir() if path.is_file()) < MOST_BYTES
