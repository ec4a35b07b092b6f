"""Rows with labels of several categories, some unknown, and a folder with a head of each: made by numpy alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headeval.core.logistic import logistic_regression_fit
from headeval.files.heads import write_head
from headeval.head import LinearHead

# which dimension tells it, intercept, share of unknown labels
CATEGORIES = {"hate": (0, -1.0, 0.3), "self harm": (1, -1.5, 0.5), "violence": (2, 0.0, 0.0)}
DIM = 5


def moderation(path: Path, *, n: int, seed: int, **more: Any) -> Path:
    """Embeddings with a label of each category, or none; further columns are of all rows."""
    rng = np.random.default_rng(seed)
    e = rng.normal(size=(n, DIM)).astype(np.float32)
    u = e / np.linalg.norm(e, axis=1, keepdims=True)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), DIM)
    columns: dict[str, Any] = {"embedding": flat}
    for name, (at, intercept, unknown) in CATEGORIES.items():
        y = rng.random(n) < 1 / (1 + np.exp(-5 * u[:, at] - intercept))
        known = rng.random(n) >= unknown
        columns[name] = pa.array([bool(label) if there else None for label, there in zip(y, known, strict=True)])
    table = pa.table(columns | more).replace_schema_metadata({"embedding_model": "m"})
    pq.write_table(table, path, row_group_size=max(1, n // 3))
    return path


def write_folder(folder: Path, train: Path, *, sharpened: float = 2.0, names: tuple[str, ...] = ()) -> Path:
    """A head of each category, with logits that are too large and a threshold of its own."""
    table = pq.read_table(train)
    e = np.array(table["embedding"].to_pylist(), dtype=np.float64)
    u = e / np.linalg.norm(e, axis=1, keepdims=True)
    folder.mkdir()
    for place, name in enumerate(names or CATEGORIES):
        y = table[name].to_pylist()
        known = [row for row, label in enumerate(y) if label is not None]
        w = sharpened * logistic_regression_fit(u[known], [int(y[row]) for row in known], 1.0, 50)
        head = LinearHead.binary(
            w[:-1],
            w[-1],
            classes=("false", "true"),
            embedding_model="m",
            threshold=0.3 + 0.2 * (place % 3),
            metrics={"evaluation": {"auc": 0.5}},
        )
        write_head(head, folder / f"{name}.json")
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
