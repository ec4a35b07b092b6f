"""A small folder of tables and heads for command lines to work on, and what a run changes in it."""

import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from fuzz.promises import scratch
from headeval.files.heads import write_head
from headeval.head import LinearHead

ROWS = 40
Contents = dict[str, bytes]


@cache
def prepared() -> Path:
    """Return the folder, made once; nothing is ever written to it again."""
    folder = scratch() / "prepared"
    (folder / "heads").mkdir(parents=True)
    table = _table()
    pq.write_table(table.replace_schema_metadata({"embedding_model": "m"}), folder / "rows.parquet")
    pyarrow.csv.write_csv(table.drop_columns(["embedding"]), folder / "rows.csv")
    pyarrow.csv.write_csv(table.select(["logit", "prob", "label"]), folder / "scores.csv")
    (folder / "broken.csv").write_text('e0,e1,label\n1,2,safe\n1,"2\n', encoding="utf-8")
    (folder / "broken.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    (folder / "broken.json").write_text('{"dim": 2', encoding="utf-8")
    _write_heads(folder)
    return folder


def _table() -> pa.Table:
    rng = np.random.default_rng(0)
    e = rng.normal(size=(ROWS, 2)).astype(np.float32)
    logits = 2 * e[:, 0] - 0.5
    positive = rng.random(ROWS) < 1 / (1 + np.exp(-logits))
    three = np.where(positive, "hate", np.where(e[:, 1] > 0, "rude", "fine"))
    return pa.table(
        {
            "id": [f"row {row}" for row in range(ROWS)],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), 2),
            "e0": e[:, 0],
            "e1": e[:, 1],
            "label": np.where(positive, "unsafe", "safe").tolist(),
            "three": three.tolist(),
            "cat_a": positive.astype(int),
            "cat_b": pa.array([int(x > 0) if x < 1 else None for x in e[:, 1].tolist()]),
            "logit": logits.astype(float),
            "prob": 1 / (1 + np.exp(-logits.astype(float))),
            "weight": rng.integers(0, 3, ROWS),
            "group": [f"g{row % 7}" for row in range(ROWS)],
        }
    )


def _write_heads(folder: Path) -> None:
    two = LinearHead.binary([2.0, 0.0], -0.5, classes=("safe", "unsafe"), embedding_model="m")
    write_head(two, folder / "linear-head.json")
    for name in ("cat_a", "cat_b"):
        head = LinearHead.binary([1.0, 1.0], 0.0, classes=(f"not {name}", name), embedding_model="m")
        write_head(head, folder / "heads" / f"{name}.json")
    three = LinearHead(
        embedding_model="m",
        classes=("fine", "rude", "hate"),
        W=np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0]]),
        b=np.zeros(3),
        threshold=0.4,
    )
    write_head(three, folder / "three.json")


@cache
def originals() -> Contents:
    """Return what the folder holds: the bytes of every file by its name."""
    return contents(prepared())


def contents(folder: Path) -> Contents:
    """Return the bytes of every file below `folder` by its name; what is no file and no folder has none."""
    paths = [path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b"" for path in paths}


@cache
def workplace() -> Path:
    """Return the folder that commands run in; `tidy` makes it as the prepared one."""
    folder = scratch() / "work"
    tidy(folder)
    return folder


def tidy(folder: Path) -> None:
    """Make `folder` a copy of the prepared one."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared(), folder)
