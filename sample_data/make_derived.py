"""Regenerate moderation_small.csv and scores.csv, byte for byte, from the Parquet files beside this script.

Run `python sample_data/make_derived.py [FOLDER]`; FOLDER, where the files are written, is this script's own by default.
Needs scikit-learn: the scores must come from a classifier that shares no code with headeval.
"""

import csv
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression

HERE = Path(__file__).resolve().parent
SMALL_ROWS = 120  # the Parquet files are a random permutation, so their first rows are a fair sample


def main(folder: Path) -> None:
    """Write both files into `folder` and print their paths."""
    train = pq.read_table(HERE / "moderation_train.parquet")
    test = pq.read_table(HERE / "moderation_test.parquet")
    for name, rows in (("moderation_small.csv", small_rows(train)), ("scores.csv", score_rows(train, test))):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        print(folder / name)


def small_rows(train: pa.Table) -> list[list[str]]:
    """Return the header and the first rows, each embedding a JSON array of the shortest float32 decimals."""
    part = train.slice(0, SMALL_ROWS)
    embeddings = [f"[{', '.join(str(value) for value in row)}]" for row in vectors(part)]
    ids, labels = part["id"].to_pylist(), part["label"].to_pylist()
    rows = [[str(number), label, cell] for number, label, cell in zip(ids, labels, embeddings, strict=True)]
    return [["id", "label", "embedding"], *rows]


def score_rows(train: pa.Table, test: pa.Table) -> list[list[str]]:
    """Return the header and the test rows with the probability of "unsafe" by a logistic regression (C = 1)."""
    # Newton's method ends within a few units of the last place of the optimum, whatever the linear
    # algebra library; nine significant digits then leave nothing of its rounding.
    model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-14)
    model.fit(unit(vectors(train)), np.array(train["label"].to_pylist()) == "unsafe")
    probs = model.predict_proba(unit(vectors(test)))[:, 1]
    ids, labels = test["id"].to_pylist(), test["label"].to_pylist()
    rows = [[str(number), label, f"{prob:.9g}"] for number, label, prob in zip(ids, labels, probs, strict=True)]
    return [["id", "label", "prob"], *rows]


def vectors(table: pa.Table) -> np.ndarray:
    """Return the embeddings as float32, (n, d)."""
    return np.array(table["embedding"].to_pylist(), dtype=np.float32)


def unit(embeddings: np.ndarray) -> np.ndarray:
    """Return the rows divided by their length, in float64."""
    rows = embeddings.astype(np.float64)
    result: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
