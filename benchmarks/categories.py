"""Time eight categories in units of one: whole commands, from a Parquet file to the written heads.

    python benchmarks/categories.py [--shapes 756x384 …] [--rounds 5] [--quick]

Every second category has four labels in ten unknown. One is a fit of the first category alone.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from embeddings import Embeddings
from race import Result, timed_commands, told
from table import Goal, environment, goals_table, markdown_table, number

SHAPES = ("756x384", "20000x384", "50000x768")
CATEGORIES, UNKNOWN = 8, 0.4
TIMES = 3.0
ONE, EIGHT = "one category", "eight categories"


def write_categories(path: Path, n: int, d: int) -> None:
    """Write embeddings with columns c0 … c7, true, false or null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = np.concatenate([block for block, _ in Embeddings(d).blocks(n)])
    rng = np.random.default_rng(1)
    columns = {"embedding": pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), d)}
    for number_of_category in range(CATEGORIES):
        z = rows @ rng.standard_normal(d).astype(np.float32)
        z = 3 * (z - z.mean()) / z.std() - 1.5 - 0.2 * number_of_category + rng.logistic(size=n)
        unknown = rng.random(n) < (UNKNOWN if number_of_category % 2 else 0.0)
        columns[f"c{number_of_category}"] = pa.array(z > 0, mask=unknown)
    pq.write_table(pa.table(columns), path)


def results_of(folder: Path, options: list[str], *, rounds: int) -> dict[str, Result]:
    """Run both commands in turn."""
    labels = {ONE: ["--label", "c0", "-o", "head.json"], EIGHT: ["--label", "c*", "-o", "heads"]}
    results = {name: Result(name) for name in labels}
    for _ in range(rounds):
        for name, label in labels.items():
            command = [sys.executable, "-m", "headeval", "fit", "rows.parquet", *label, *options, "--force", "--quiet"]
            timed_commands(results[name], [command], cwd=folder, own=True)
    return results


def table(results: Mapping[str, Result]) -> str:
    """Return what each took."""
    header = ["", "best (s)", "median (s)", "CPU (s)", "runs", "× one", "peak (MB)"]
    lines = []
    for name, each in results.items():
        times = [*map(number, (each.best, each.median, min(each.cpu))), str(len(each.seconds))]
        lines.append([name, *times, number(each.best / results[ONE].best), f"{each.peak / 1e6:,.0f}"])
    return markdown_table(header, lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="rows x dimensions")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tiny shape, once: does it run at all?")
    asked = parser.parse_args()
    if asked.quick:
        asked.shapes, asked.rounds = ["400x20"], 1
    print(f"## Categories\n\n{environment()}")
    goals = []
    for shape in asked.shapes:
        n, d = map(int, shape.split("x"))
        with TemporaryDirectory() as name:
            folder = Path(name)
            write_categories(folder / "rows.parquet", n, d)
            for options, how in (([], "with five folds"), (["--folds", "0"], "without folds")):
                told(f"categories, {n:,} × {d}, {how}")
                results = results_of(folder, options, rounds=asked.rounds)
                title = f"{n:,} × {d}, {how}"
                print(f"\n### {title}\n\n{table(results)}", flush=True)
                goals.append(Goal(f"{title}: eight, in fits of one", TIMES, results[EIGHT].best / results[ONE].best))
    print(f"\n### Goals\n\n{goals_table(goals)}")


if __name__ == "__main__":
    main()
