"""Time a softmax head beside scikit-learn's L-BFGS, with the gradient that each reaches.

    python benchmarks/classes.py [--shapes 8000x384x3 …] [--data FILE.parquet] [--rounds 5] [--patience 20] [--quick]

Rows are those of `embeddings.py`, classes drawn from a softmax model of them; --data takes embeddings and labels of a
file instead. Every solver gets one thread and, in a race of its own, all of them.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from embeddings import EMBEDDINGS, LABELS, SPREAD, Embeddings
from race import Contestant, Result, race, told
from table import Goal, environment, goals_table, markdown_table, number

SHAPES = ("8000x384x3", "20000x384x100")
FASTER = 1.0
OURS, DEFAULT = "**headeval**", "scikit-learn lbfgs, as it comes"
SOLVERS = {
    OURS: "headeval",
    DEFAULT: "lbfgs",
    "scikit-learn lbfgs, 1,000 steps": "lbfgs-longer",
    "scikit-learn lbfgs, to the end": "lbfgs-to-the-end",
}
MANY_CLASSES = 50  # with which L-BFGS to the end takes minutes


def write_classes(folder: Path, n: int, d: int, n_classes: int) -> None:
    """Write embeddings and classes drawn from a softmax model of them."""
    rows = np.concatenate([block for block, _ in Embeddings(d).blocks(n)])
    rng = np.random.default_rng(1)
    W = rng.standard_normal((d, n_classes)).astype(np.float32)
    z = rows @ W
    z *= SPREAD / z.std()
    z += rng.gumbel(size=z.shape)
    np.save(folder / EMBEDDINGS, rows)
    np.save(folder / LABELS, z.argmax(axis=1).astype(np.uint8))


def write_file(folder: Path, path: Path) -> str:
    """Write embeddings and classes of a Parquet file, and return what it is."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["embedding", "label"])
    rows = np.stack(table["embedding"].to_pylist()).astype(np.float32)
    classes, codes = np.unique(table["label"].to_pylist(), return_inverse=True)
    np.save(folder / EMBEDDINGS, rows)
    np.save(folder / LABELS, codes.astype(np.uint8))
    return f"{path.name}: {len(rows):,} × {rows.shape[1]}, {len(classes)} classes"


def raced(folder: Path, names: Mapping[str, str], threads: int | None, *, rounds: int, patience: float) -> Any:
    """Let the solvers run in turn."""
    contestants = [
        Contestant(name, ["class_solvers.py", solver, str(folder)], own=name == OURS, threads=threads)
        for name, solver in names.items()
    ]
    return race(contestants, rounds=rounds, patience=patience)


def table(results: Mapping[str, Result]) -> str:
    """Return what each took."""
    header = ["", "best (s)", "median (s)", "CPU (s)", "runs", "× headeval", "‖g‖∞", "passes", "peak (MB)"]
    lines = []
    for name, one in results.items():
        times = [*map(number, (one.best, one.median, min(one.cpu))), str(len(one.seconds))]
        facts = [f"{one.facts['gradient']:.1e}", str(one.facts["steps"]), f"{one.peak / 1e6:,.0f}"]
        lines.append([name, *times, number(one.best / results[OURS].best), *facts])
    return markdown_table(header, lines)


def section(title: str, folder: Path, names: Mapping[str, str], *, rounds: int, patience: float) -> Sequence[Goal]:
    """Print the tables of some rows, and return their goals."""
    goals = []
    for threads, how in ((1, "one thread each"), (None, "all threads")):
        told(f"classes, {title}, {how}")
        results = raced(folder, names, threads, rounds=rounds, patience=patience)
        print(f"\n### {title}, {how}\n\n{table(results)}", flush=True)
        ratio = results[DEFAULT].best / results[OURS].best
        goals.append(Goal(f"{title}, {how}: of lbfgs' time as it comes", FASTER, ratio, at_least=True))
    return goals


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="*", default=SHAPES, help="rows x dimensions x classes")
    parser.add_argument("--data", type=Path, help="a Parquet file with the columns embedding and label")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patience", type=float, default=20.0, help="seconds after which one does not run again")
    parser.add_argument("--quick", action="store_true", help="a tiny shape, once: does it run at all?")
    asked = parser.parse_args()
    if asked.quick:
        asked.shapes, asked.rounds = ["500x20x4"], 1
    print(f"## Classes\n\n{environment()}")
    goals: list[Goal] = []
    for shape in [] if asked.data else asked.shapes:
        n, d, n_classes = map(int, shape.split("x"))
        names = {name: solver for name, solver in SOLVERS.items() if n_classes < MANY_CLASSES or "end" not in solver}
        with TemporaryDirectory() as folder:
            write_classes(Path(folder), n, d, n_classes)
            title = f"{n:,} × {d}, {n_classes} classes"
            goals += section(title, Path(folder), names, rounds=asked.rounds, patience=asked.patience)
    if asked.data:
        with TemporaryDirectory() as folder:
            title = write_file(Path(folder), asked.data)
            goals += section(title, Path(folder), SOLVERS, rounds=asked.rounds, patience=asked.patience)
    print(f"\n### Goals\n\n{goals_table(goals)}")


if __name__ == "__main__":
    main()
