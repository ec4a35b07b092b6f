"""The gradient at weights, in float64 and by nothing of headeval, so that all results are judged by one measure.

    python benchmarks/gradient.py rows.parquet head.json … [--l2 1]

prints ‖g‖∞ of each head, one a line.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROWS = 4096
Block = tuple[NDArray[np.float32], NDArray[np.uint8]]


def unit_rows(embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return rows in float64, brought to unit length there: float32 rows miss it by their rounding."""
    rows = embeddings.astype(np.float64)
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows


def gradient_norms(blocks: Iterable[Block], W: NDArray[np.float64], *, l2: float) -> NDArray[np.float64]:
    """Return ‖g‖∞ of Σ softplus(z) − y z + (l2/2) ‖w‖² over unit rows.

    Parameters
    ----------
    blocks : of embeddings (m, d) and labels (m,) in {0, 1}.
    W : (k, d+1) with the intercepts last, which have no penalty.
    """
    g = l2 * W
    g[:, -1] = 0.0
    for embeddings, labels in blocks:
        rows, positive = unit_rows(embeddings), (labels > 0)[:, None]
        z = rows @ W[:, :-1].T + W[:, -1]
        e = np.exp(-np.abs(z))
        p, not_p = np.where(z > 0, 1.0, e) / (1 + e), np.where(z > 0, e, 1.0) / (1 + e)
        residual = np.where(positive, -not_p, p)
        g[:, :-1] += residual.T @ rows
        g[:, -1] += residual.sum(axis=0)
    norms: NDArray[np.float64] = np.abs(g).max(axis=1)
    return norms


def gradient_norm(
    embeddings: NDArray[np.float32], labels: NDArray[np.uint8], w: NDArray[np.float64], *, l2: float
) -> float:
    """Return the same for one weight vector (d+1,) and rows in memory."""
    parts = (slice(first, first + _ROWS) for first in range(0, len(labels), _ROWS))
    return float(gradient_norms(((embeddings[part], labels[part]) for part in parts), w[None], l2=l2)[0])


def head_weights(document: dict[str, Any]) -> NDArray[np.float64]:
    """Return (d+1,) of a head file: of headeval's, where a class is a row, or of `sklearn_job.py`."""
    if "W" in document:
        (low, high), (low_b, high_b) = np.array(document["W"]), document["b"]
        return np.append(high - low, high_b - low_b)
    return np.append(document["weights"][0], document["bias"])


def parquet_blocks(path: Path) -> Iterator[Block]:
    """Yield the rows of a file of `embeddings.py`."""
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(_ROWS, columns=["label", "embedding"]):
        embeddings = batch["embedding"].flatten().to_numpy()
        labels = np.array(batch["label"].to_pylist()) == "unsafe"
        yield embeddings.reshape(len(labels), -1), labels.astype(np.uint8)


def main() -> None:
    """Print the gradients."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("heads", type=Path, nargs="+")
    parser.add_argument("--l2", type=float, default=1.0)
    asked = parser.parse_args()
    W = np.stack([head_weights(json.loads(path.read_text())) for path in asked.heads])
    for norm in gradient_norms(parquet_blocks(asked.data), W, l2=asked.l2):
        print(norm)


if __name__ == "__main__":
    main()
