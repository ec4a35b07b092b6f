"""Hold the cost model of docs/scaling.md against fits that read their rows anew in every pass.

    python benchmarks/scaling.py [--dim 768] [--bytes 500MB 1GB 2GB] [--memory 250MB] [--quick]

First the price of a gigabyte is measured on the smallest file: of the first reading, of every later one, and of each
sum over rows in memory. From these and the number of passes the time of every fit is foretold, and then measured.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from memory import amount
from race import ONE_THREAD, Result, script, timed_commands, told
from table import environment, markdown_table, number

SIZES, QUICK_SIZES = ("500MB", "1GB", "2GB"), ("4MB", "8MB", "16MB")
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds for a gigabyte of float32 embeddings, and seconds whatever the size.

    Attributes
    ----------
    first : of the first reading: decoding, checks, digests of rows.
    again : of a later reading.
    gradient, gradients : of loss and gradient, for one weight vector and for one and the folds'.
    hessian : of the Hessian, in float32.
    fixed : of a fit of next to no rows, its report included.
    """

    first: float
    again: float
    gradient: float
    gradients: float
    hessian: float
    fixed: float

    def foretold(self, gigabytes: float, passes: int, sampled: float) -> tuple[float, float]:
        """Return the least and the most that a fit with folds takes.

        The least reads and adds up at the same time, the most one after the other.

        Parameters
        ----------
        gigabytes : of all rows; `sampled` of those that are drawn into memory, where about 40 gradients are taken.
        passes : over all rows, the first reading left out: one draws a sample, one forms the Hessian with the first
            gradients, one scores the rows, and all others are for gradients.
        """
        reading = gigabytes * (self.first + passes * self.again)
        adding = gigabytes * ((passes - 2) * self.gradients + self.hessian + self.gradient)
        sample = sampled * (40 * self.gradient + 2 * self.hessian)
        return max(reading, adding) + sample + self.fixed, reading + adding + sample + self.fixed


def measured_prices(path: Path, folder: Path) -> Prices:
    """Measure the prices on a file that fits into memory."""
    import numpy as np

    from headeval.files.examples import read_examples
    from headeval.files.tables import open_tables
    from headeval.files.vector_blocks import embedding_matrices
    from headeval.solver.memory import ArraySource
    from headeval.solver.rows import RowColumns
    from headeval.solver.sums import Hessian, LossAndGradient

    tables = open_tables([str(path)])
    begun = time.perf_counter()
    examples = read_examples(tables, embedding="embedding", hold=False)
    first = time.perf_counter() - begun
    begun = time.perf_counter()
    rows = sum(len(matrix) for matrix in embedding_matrices(tables, examples))
    again = time.perf_counter() - begun
    embeddings = np.concatenate(list(embedding_matrices(tables, examples)))
    folds = (np.arange(rows) % FOLDS).astype(np.int16)
    source = ArraySource.of(embeddings, RowColumns(examples.labels, None, folds))
    W = np.random.default_rng(0).standard_normal((FOLDS + 1, source.d + 1))
    sums = (LossAndGradient(W[:1], (None,)), LossAndGradient(W, (None, *range(FOLDS))), Hessian(W[0], single=True))
    seconds = []
    for what in sums:
        source.total(what)
        begun = time.perf_counter()
        source.total(what)
        seconds.append(time.perf_counter() - begun)
    script("embeddings.py", folder / "few.parquet", "--rows", 200, "--dim", source.d)
    result = Result("few rows")
    timed_commands(result, [fit_command("few.parquet", "1MB")], cwd=folder, own=True)
    size = embeddings.nbytes / 1e9
    return Prices(first / size, again / size, *(part / size for part in seconds), fixed=result.best)


def fit_command(name: str, memory: str) -> list[str]:
    """Return the command of a fit that reads its rows in every pass."""
    options = ["--memory", memory, "--folds", str(FOLDS), "-o", "head.json", "--force", "--quiet"]
    return [sys.executable, "-m", "headeval", "fit", name, *options]


def main() -> None:
    """Measure, foretell, measure again, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--bytes", nargs="+", default=SIZES)
    parser.add_argument("--memory", default="250MB")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything run?")
    asked = parser.parse_args()
    os.environ.update(ONE_THREAD)
    lines = []
    with TemporaryDirectory() as made:
        folder, prices = Path(made), None
        for text in QUICK_SIZES if asked.quick else asked.bytes:
            rows = amount(text) // (4 * asked.dim)
            told(f"{rows:,} rows")
            script("embeddings.py", folder / "rows.parquet", "--rows", rows, "--dim", asked.dim)
            prices = prices or measured_prices(folder / "rows.parquet", folder)
            result = Result(text)
            memory = "3MB" if asked.quick else asked.memory
            timed_commands(result, [fit_command("rows.parquet", memory)], cwd=folder, own=True)
            passes = json.loads((folder / "head.json").read_text())["metrics"]["fit"]["solver"]["passes"]
            least, most = prices.foretold(rows * asked.dim * 4e-9, passes, amount(memory) / 3e9)
            foretold = f"{least:.0f} to {most:.0f}"
            lines.append([f"{rows:,}", text, f"{passes + 1}", foretold, number(result.best)])
    print(f"## Out of core, {asked.dim} dimensions, `--memory {asked.memory}`, five folds\n\n{environment()}\n")
    if prices is not None:
        header = [
            "seconds a GB",
            "first reading",
            "reading",
            "1 gradient",
            f"{FOLDS + 1} gradients",
            "Hessian",
            "fixed, s",
        ]
        values = (prices.first, prices.again, prices.gradient, prices.gradients, prices.hessian, prices.fixed)
        print(markdown_table(header, [["price", *map(number, values)]]))
    print()
    print(markdown_table(["rows", "file", "passes", "foretold, s", "measured, s"], lines))


if __name__ == "__main__":
    main()
