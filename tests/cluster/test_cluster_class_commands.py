"""Commands on more than two classes with `--engine dask`: what they write and show is that of one machine."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.cli.main import run

# Each starts a cluster, and whole commands.
pytestmark = [pytest.mark.usefixtures("small_parts"), pytest.mark.slow]

CLASSES = ("neither", "offensive", "hate")
SAME_OPTIMUM = 1e-8


def test_fit_report_and_score_are_those_of_one_machine(
    address: str,
    make_tables: Callable[..., list[str]],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    data = make_tables(n_files=2)
    rng = np.random.default_rng(3)
    for path in data:
        table = pq.read_table(path).drop_columns(["label"])
        E = np.array(table["embedding"].to_pylist())
        y = np.argmax(E[:, :3] + rng.gumbel(size=(len(E), 3)), axis=1)
        pq.write_table(table.append_column("label", pa.array([CLASSES[c] for c in y])), path, row_group_size=60)

    def ran(*arguments: str) -> str:
        capsys.readouterr()
        assert run([*arguments]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    there = ("--engine", "dask", "--scheduler", address)
    fitting = ("fit", *data, "--classes", ",".join(CLASSES), "--group", "group", "--weight", "weight", "--quiet")
    ran(*fitting, "--embedding-model", "m", "-o", "here.json")
    ran(*fitting, "--embedding-model", "m", "-o", "there.json", *there)
    heads = [json.loads(Path(name).read_text(encoding="utf-8")) for name in ("here.json", "there.json")]
    assert heads[0]["classes"] == heads[1]["classes"] == list(CLASSES)
    for key in ("W", "b"):
        np.testing.assert_allclose(heads[1][key], heads[0][key], rtol=0, atol=SAME_OPTIMUM)
    assert (
        heads[0]["metrics"]["evaluation"]["all_classes"]["confusion"]
        == heads[1]["metrics"]["evaluation"]["all_classes"]["confusion"]
    )
    reporting = ("report", *data, "--head", "here.json", "--format", "json", "--resamples", "20")
    assert ran(*reporting, *there) == ran(*reporting)
    scoring = ("score", *data, "--head", "here.json", "--quiet")
    ran(*scoring, "-o", "here.parquet")
    ran(*scoring, "-o", "there.parquet", *there)
    assert pq.read_table("there.parquet").equals(pq.read_table("here.parquet"), check_metadata=True)
    bare = ("report", "here.parquet", "--prob", "prob_*", "--positive", "hate", "--format", "json", "--resamples", "20")
    assert ran(*bare, *there) == ran(*bare)
