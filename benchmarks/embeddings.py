"""Synthetic embeddings of unit length with labels: what every benchmark fits on, made in blocks of any number.

    python benchmarks/embeddings.py FOLDER|FILE.parquet --rows 50000 --dim 768 [--decay 0.5] [--seed 0]

The columns are independent normal numbers whose scale falls as a power of their number, around a common mean, like the
principal components of what encoders give. Labels follow a logistic model of the rows, about a fifth of them positive.
A block depends on the seed and its own number alone, so that a file larger than memory holds the same rows.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 8192
PREVALENCE = 0.2
SPREAD = 3.0  # standard deviation of the logits that the labels follow: an AUC of about 0.95
MEAN = 0.5  # length of the common mean, of the root mean square length of what is around it
EMBEDDINGS, LABELS = "embeddings.npy", "labels.npy"

Block = tuple[NDArray[np.float32], NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Rows without end.

    Attributes
    ----------
    dim : numbers of an embedding.
    decay : the scale of column k is k^−decay; 0 is a flat spectrum.
    seed : of everything drawn.
    """

    dim: int
    decay: float = 0.5
    seed: int = 0

    def blocks(self, n: int, *, skip: int = 0) -> Iterator[Block]:
        """Yield n rows in blocks, after so many whole blocks."""
        w, b = self._model()
        for number, first in enumerate(range(0, n, BLOCK_ROWS), start=skip + 1):
            rng = np.random.default_rng((self.seed, number))
            rows = self._rows(rng, min(BLOCK_ROWS, n - first))
            yield rows, (rng.random(len(rows)) < _sigmoid(rows @ w + b)).astype(np.uint8)

    def _rows(self, rng: np.random.Generator, n: int) -> NDArray[np.float32]:
        scale = np.arange(1, self.dim + 1, dtype=np.float32) ** np.float32(-self.decay)
        rows = rng.standard_normal((n, self.dim), dtype=np.float32) * scale
        rows[:, 0] += MEAN * np.linalg.norm(scale)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def _model(self) -> tuple[NDArray[np.float32], np.float32]:
        """Return weights and intercept that give the wanted spread and prevalence on rows of their own."""
        rng = np.random.default_rng((self.seed, 0))
        rows = self._rows(rng, BLOCK_ROWS)
        w = rng.standard_normal(self.dim).astype(np.float32)
        w *= np.float32(SPREAD) / (rows @ w).std()
        z = (rows @ w).astype(np.float64)
        low, high = -100.0, 100.0
        for _ in range(60):
            b = (low + high) / 2
            low, high = (low, b) if _sigmoid(z + b).mean() > PREVALENCE else (b, high)
        return w, np.float32(low)


def _sigmoid(z: NDArray[Any]) -> NDArray[Any]:
    p: NDArray[Any] = 1 / (1 + np.exp(-z))
    return p


def write_arrays(folder: Path, source: Embeddings, n: int) -> None:
    """Write n rows as two .npy files."""
    rows = np.lib.format.open_memmap(folder / EMBEDDINGS, mode="w+", dtype=np.float32, shape=(n, source.dim))
    labels = np.empty(n, dtype=np.uint8)
    first = 0
    for block, y in source.blocks(n):
        rows[first : first + len(y)] = block
        labels[first : first + len(y)] = y
        first += len(y)
    rows.flush()
    np.save(folder / LABELS, labels)


def read_arrays(folder: Path) -> Block:
    """Return embeddings and labels as they lie in memory after reading."""
    return np.load(folder / EMBEDDINGS), np.load(folder / LABELS)


def write_parquet(path: Path, source: Embeddings, n: int, *, skip: int = 0) -> None:
    """Write n rows as most writers do, a list of float32 a row, block by block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({"id": pa.int64(), "label": pa.string(), "embedding": pa.list_(pa.float32())})
    names = pa.array(["safe", "unsafe"])
    first = 0
    with pq.ParquetWriter(path, schema) as writer:
        for rows, labels in source.blocks(n, skip=skip):
            ends = pa.array(np.arange(len(rows) + 1, dtype=np.int32) * source.dim)
            columns = [
                pa.array(np.arange(first, first + len(rows))),
                names.take(pa.array(labels)),
                pa.ListArray.from_arrays(ends, pa.array(rows.reshape(-1))),
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            first += len(rows)


def main() -> None:
    """Write rows; in a process of its own, so that the one that times stays small."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path, help="a folder for two .npy files, or a .parquet file")
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--dim", type=int, required=True)
    parser.add_argument("--decay", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, help="blocks to leave out before the first")
    asked = parser.parse_args()
    source = Embeddings(asked.dim, asked.decay, asked.seed)
    if asked.target.suffix == ".parquet":
        write_parquet(asked.target, source, asked.rows, skip=asked.skip)
    else:
        write_arrays(asked.target, source, asked.rows)


if __name__ == "__main__":
    main()
