"""Categories on a cluster: one reading by its workers, and the heads that one process makes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from headeval.cli.main import run

pytestmark = pytest.mark.slow  # each starts a cluster and whole commands


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.usefixtures("small_parts")
def test_heads_and_scores_of_categories_are_those_of_one_process(
    address: str,
    make_tables: Callable[..., list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tables, rng = make_tables(), np.random.default_rng(3)
    for path in tables:
        table = pq.read_table(path)
        for name, unknown in (("a", 0.3), ("b", 0.1)):
            truth = np.array(table["label"].to_pylist()) == "unsafe"
            flags = [None if rng.random() < unknown else bool(flag ^ (rng.random() < 0.2)) for flag in truth]
            table = table.append_column(name, [flags])
        pq.write_table(table, path)
    on_cluster = ["--engine", "dask", "--scheduler", address]
    here, there = tmp_path / "here", tmp_path / "there"
    assert run(["fit", *tables, "--label", "a,b", "--weight", "weight", "-o", str(here)]) == 0
    code = run(["fit", *tables, "--label", "a,b", "--weight", "weight", "-o", str(there), *on_cluster])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    assert "held by the Dask cluster" in captured.out
    for name in ("a.json", "b.json"):
        one, other = read(here / name), read(there / name)
        np.testing.assert_allclose(one["W"], other["W"], atol=1e-7)
        fits = [head["metrics"]["fit"] for head in (one, other)]
        for key in ("n", "positives", "unlabelled_left_out", "data_fingerprint", "row_digests"):
            assert fits[0][key] == fits[1][key]
        for key in ("auc", "ap"):
            measured = [head["metrics"]["evaluation"]["metrics"][key] for head in (one, other)]
            assert measured[0] == pytest.approx(measured[1], abs=1e-6)
    for folder, engine in ((here, []), (here, on_cluster)):
        assert (
            run(["score", *tables, "--head", str(folder), "-o", str(tmp_path / f"{len(engine)}.parquet"), *engine]) == 0
        )
    assert pq.read_table(tmp_path / "0.parquet").equals(pq.read_table(tmp_path / "4.parquet"))
