"""A small labelled table with its head, and a way to run the command line in this process."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.cli.main import run


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def headeval(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Run headeval in an empty folder and return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "HEADEVAL_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = run([os.fspath(a) if isinstance(a, Path) else str(a) for a in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


def rows(n: int, seed: int) -> dict[str, object]:
    """Noisy, linearly related embeddings of 4 dimensions with labels safe/unsafe."""
    rng = np.random.default_rng(seed)
    e = rng.normal(size=(n, 4)).astype(np.float32)
    logit = 4 * e[:, 0] / np.linalg.norm(e, axis=1) - 0.5
    labels = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "unsafe", "safe")
    flat = pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), 4)
    return {"id": pa.array(range(n)), "embedding": flat, "label": pa.array(labels.tolist())}


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., Path]:
    """Write a table of `rows` and return its path; keyword arguments replace or (None) drop columns."""

    def make(
        name: str = "train.parquet", *, n: int = 120, seed: int = 0, model: str | None = "m", **columns: object
    ) -> Path:
        content = {key: value for key, value in (rows(n, seed) | columns).items() if value is not None}
        table = pa.table(content)
        table = table.replace_schema_metadata({"embedding_model": model} if model else {})
        pq.write_table(table, tmp_path / name)
        return tmp_path / name

    return make


@pytest.fixture
def fitted(headeval: Callable[..., Outcome], make_table: Callable[..., Path], tmp_path: Path) -> Path:
    """Fit linear-head.json on train.parquet and return its path."""
    outcome = headeval("fit", make_table(), "--quiet")
    assert outcome.code == 0, outcome.err
    return tmp_path / "linear-head.json"
