"""Every command of headeval on the same small tables, and all bytes that come of it.

Run by itself (`python -m reliability.every_command FOLDER ...`) it is the child of a test: in another locale, say.
"""

import contextlib
import io
import itertools
import json
import locale
import os
import re
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from headeval.cli.main import run

# DATA is always a folder, so that its name in an output does not tell how many files are in it.
SOME = (
    "fit train -o h.json --embedding-model m",
    "score test --head h.json -o s.parquet --embedding-model m",
    "score test --head h.json -o s.csv --embedding-model m",
    "calibrate test --head h.json -o hp.json --method platt --embedding-model m",
    "calibrate test --prob p -o pt.parquet",
    "threshold test --head h.json -o ht.json --require fpr<=0.9 --benign benign --embedding-model m",
    "report test --head h.json --format json --resamples 20 --by team --embedding-model m",
    "report test --prob p --format markdown --resamples 9 --weight w --group g --card p.md --junit p.xml --require n>1",
)
MORE = (
    "report test --head h.json --resamples 0 --reference train --format json --embedding-model m",
    (
        "report test --prob p --resamples 0 --binning equal-mass --ece-convention top-label-left --html p.html"
        " --changed changed.parquet --baseline-prob old --prevalence 0.01 --per-day 1000"
    ),
    "fit train -o hw.json --weight w --group g --l2 0.1,1,10 --embedding-model m",
    "fit train -o hs.json --memory 80KB --embedding-model m",
    "fit train -o soft.json --label cls --classes a,b,c --embedding-model m",
    "fit train -o heads --label hate,self* --embedding-model m",
    "score test --head heads -o sheads.parquet --embedding-model m",
    "score test --head soft.json -o ssoft.parquet --embedding-model m",
    "calibrate test --head h.json -o hc.json --embedding-model m",
    "calibrate s.parquet --logit logit -o sl.csv --method platt",
    "calibrate test --head soft.json --label cls -o softc.json --embedding-model m",
    "calibrate test --head heads --label hate,self* -o headsc --embedding-model m",
    "threshold test --head h.json -o ht2.json --require fpr<=0.9 --format json --embedding-model m",
    "threshold test --head heads --label hate,self* --require fpr<=0.9 -o headst --embedding-model m",
    "report test --head h.json --baseline hs.json --resamples 20 --changed c.parquet --embedding-model m",
    "report test --head soft.json --label cls --format json --resamples 20 --html soft.html --embedding-model m",
    (
        "report test --head heads --label hate,self* --format json --resamples 20 --html heads.html --card heads.md"
        " --junit heads.xml --require *:auc>=0.1 --by team --embedding-model m"
    ),
)
ALL = SOME + MORE
CHOICES = {"some": SOME, "all": ALL}
INPUTS = ("train", "test", "benign")


def labelled(n: int, seed: int) -> pa.Table:
    """Rows whose embeddings are multiples of 1/64, the same numbers as float32, as float64 and in decimals."""
    rng = np.random.default_rng(seed)
    e = np.round(rng.normal(size=(n, 8)) * 64) / 64
    y = rng.random(n) < 1 / (1 + np.exp(0.5 - 4 * e[:, 0] / np.linalg.norm(e, axis=1)))
    second = e[:, 1] + 0.3 * rng.normal(size=n) > 0
    known = rng.random(n) < 0.7
    columns: dict[str, Any] = {
        "id": [f"r{i}" for i in range(n)],
        "embedding": vectors(e.astype(np.float32)),
        "label": y.astype(np.int64),
        "team": pa.array([f"Täm {k}" for k in rng.integers(0, 3, n)]).dictionary_encode(),
        "tag": pa.array([f"t{i // 10}" for i in range(n)]).dictionary_encode(),
        "w": rng.integers(1, 5, n) / 2,
        "g": np.arange(n) // 3,
        # two decimals: many rows tie
        "p": np.round(0.5 * rng.random(n) + 0.4 * y, 2).clip(0.01, 0.99),
        "old": np.round(0.6 * rng.random(n) + 0.3 * y, 2).clip(0.01, 0.99),
        "cls": np.array(["a", "b", "c"])[y.astype(int) + (e[:, 1] > 0)],
        "hate": y,
        "self harm": [bool(label) if there else None for label, there in zip(second, known, strict=True)],
        "text": [None if i % 7 == 3 else "x" * int(k) for i, k in enumerate(rng.integers(0, 200, n))],
    }
    return pa.table(columns).replace_schema_metadata({"embedding_model": "m"})


def vectors(e: NDArray[Any]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), e.shape[1])


def tables(n: int = 120) -> dict[str, pa.Table]:
    return {name: labelled(n - 10 * place, place) for place, name in enumerate(INPUTS)}


def write(
    folder: Path,
    given: dict[str, pa.Table],
    *,
    kind: Literal["parquet", "csv"] = "parquet",
    cuts: tuple[float, ...] = (),
    group_rows: int | None = None,
) -> Path:
    """Write each table into a folder of its own, cut into files at these shares of its rows."""
    for name, table in given.items():
        (folder / name).mkdir(parents=True)
        ends = [0, *(int(cut * len(table)) for cut in cuts), len(table)]
        for number, (start, end) in enumerate(itertools.pairwise(ends)):
            path, part = folder / name / f"{number}.{kind}", table.slice(start, end - start)
            if kind == "parquet":
                pq.write_table(part, path, row_group_size=group_rows or len(table))
            else:
                pyarrow.csv.write_csv(as_text(part), path)
    return folder


def as_text(table: pa.Table) -> pa.Table:
    """Columns as they stand in a CSV file: vectors are JSON, and names are text."""
    lists = pa.array([json.dumps(e) for e in table["embedding"].to_pylist()])
    for name, column in (("embedding", lists), ("team", table["team"].cast("str")), ("tag", table["tag"].cast("str"))):
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def made(folder: Path, commands: tuple[str, ...] = SOME) -> dict[str, bytes]:
    """Run the commands in a folder and return what they show and write, by name; all must succeed."""
    back = Path.cwd()
    os.chdir(folder)
    try:
        for command in commands:
            (out, shown), (err, said) = captured(), captured()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run(command.split())
                out.flush()
                err.flush()
            assert code == 0, (command, said.getvalue().decode())
            name = re.sub(r"[^a-z0-9.]+", "-", command.replace(" --force", ""))
            Path(f"{name}.out").write_bytes(shown.getvalue())
            Path(f"{name}.err").write_bytes(said.getvalue())
    finally:
        os.chdir(back)
    return files_of(folder)


def captured() -> tuple[io.TextIOWrapper, io.BytesIO]:
    raw = io.BytesIO()
    return io.TextIOWrapper(raw, encoding="utf-8"), raw


def files_of(folder: Path) -> dict[str, bytes]:
    """All files of a folder but the tables given to the commands."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0] not in INPUTS)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(paths)}


def main() -> None:
    """FOLDER some|all [decimal comma] [threads of pyarrow]."""
    folder, choice, comma, threads = [*sys.argv[1:], "", ""][:4]
    if comma:
        locale.setlocale(locale.LC_ALL, "")
        assert locale.localeconv()["decimal_point"] == ","
    if threads:
        pa.set_cpu_count(int(threads))
    made(Path(folder), CHOICES[choice])


if __name__ == "__main__":
    main()
