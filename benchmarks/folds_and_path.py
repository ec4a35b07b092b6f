"""Time five folds, and nine penalties on them, in units of one fit and beside scikit-learn.

    python benchmarks/folds_and_path.py [--shapes 50000x768 …] [--rounds 3] [--patience 10] [--quick]

Twice: the solver alone, on rows in memory, beside scikit-learn's `cross_val_predict` and `LogisticRegressionCV`; and
whole commands from a Parquet file, where reading it is part of every one.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fit import size, title
from race import Contestant, Result, race, script, timed_commands, told
from table import Goal, environment, goals_table, markdown_table, number

SHAPES = ("50000x768", "2000x384")
FOLDS_TIMES, AUTO_TIMES = 3.0, 4.0
FIT, FOLDS, AUTO = "headeval: a fit", "headeval: five folds", "headeval: nine penalties, five folds"
SOLVERS = {
    FIT: "headeval",
    FOLDS: "headeval-folds",
    AUTO: "headeval-auto",
    "scikit-learn lbfgs: a fit": "lbfgs",
    "scikit-learn lbfgs: cross_val_predict and a fit": "lbfgs-folds",
    "scikit-learn lbfgs: LogisticRegressionCV, nine penalties": "lbfgs-path",
}
# With more than one BLAS thread scikit-learn is quicker on many rows and slower on few.
ONE_THREAD_BELOW = 2**21
COMMANDS = {
    FIT: ("--folds", "0"),
    FOLDS: ("--folds", "5"),
    AUTO: ("--l2", "auto"),
}


def solver_results(folder: Path, shape: str, *, rounds: int, patience: float) -> dict[str, Result]:
    """Let the solvers run on rows in memory."""
    n, d = size(shape)
    threads = 1 if n * d < ONE_THREAD_BELOW else None
    contestants = []
    for name, solver in SOLVERS.items():
        own = solver.startswith("headeval")
        command = ["trainings.py", solver, str(folder)]
        contestants.append(Contestant(name, command, own=own, threads=None if own else threads))
    return race(contestants, rounds=rounds, patience=patience)


def command_results(folder: Path, *, rounds: int) -> dict[str, Result]:
    """Run the commands on a Parquet file, in turn."""
    results = {name: Result(name) for name in COMMANDS}
    for _ in range(rounds):
        for name, options in COMMANDS.items():
            command = [sys.executable, "-m", "headeval", "fit", "rows.parquet", *options, "--force", "--quiet"]
            timed_commands(results[name], [command], cwd=folder, own=True)
    return results


def goals(place: str, results: Mapping[str, Result]) -> list[Goal]:
    """Return what five folds and nine penalties are held to."""
    one, folds, auto = (results[name].best for name in (FIT, FOLDS, AUTO))
    return [
        Goal(f"{place}: five folds, in fits", FOLDS_TIMES, folds / one),
        Goal(f"{place}: nine penalties, in fits", AUTO_TIMES, auto / one),
        Goal(f"{place}: nine penalties, in fits with five folds", AUTO_TIMES, auto / folds),
    ]


def times(results: Mapping[str, Result], name: str) -> list[str]:
    """Return the columns that both tables have."""
    one, each = results[FIT].best, results[name]
    peak = f"{each.peak / 1e6:,.0f}"
    seconds = map(number, (each.best, each.median, min(each.cpu)))
    return [name, *seconds, str(len(each.seconds)), number(each.best / one), peak]


def solver_columns(facts: Mapping[str, Any]) -> list[str]:
    """Return what only the solvers tell."""
    loss = f"{facts['log_loss']:.6f}" if "log_loss" in facts else ""
    return [f"{facts['gradient']:.1e}", str(facts["steps"]), f"{facts['l2']:g}", loss, str(facts["threads"])]


def table(results: Mapping[str, Result], *, solvers: bool) -> str:
    """Return the results of a shape."""
    header = ["", "best (s)", "median (s)", "CPU (s)", "runs", "× a fit", "peak (MB)"]
    if not solvers:
        return markdown_table(header, [times(results, name) for name in results])
    header += ["‖g‖∞", "passes", "l2", "log loss out of fold", "threads"]
    lines = [[*times(results, name), *solver_columns(one.facts)] for name, one in results.items()]
    return markdown_table(header, lines)


def sections(shape: str, *, rounds: int, patience: float) -> tuple[str, Sequence[Goal]]:
    """Return the tables of a shape, and its goals."""
    n, d = size(shape)
    with TemporaryDirectory() as name:
        folder = Path(name)
        told(f"folds and penalties, {title(shape)}")
        script("embeddings.py", folder, "--rows", n, "--dim", d)
        solved = solver_results(folder, shape, rounds=rounds, patience=patience)
        script("embeddings.py", folder / "rows.parquet", "--rows", n, "--dim", d)
        commanded = command_results(folder, rounds=rounds)
    parts = [
        f"### {title(shape)}, in memory",
        table(solved, solvers=True),
        f"### {title(shape)}, commands from a Parquet file",
        table(commanded, solvers=False),
    ]
    reached = goals(f"{title(shape)}, in memory", solved) + goals(f"{title(shape)}, commands", commanded)
    return "\n\n".join(parts), reached


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="rows x dimensions, as 50000x768")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=10.0, help="seconds after which one does not run again")
    parser.add_argument("--quick", action="store_true", help="a tiny shape, once: does it run at all?")
    asked = parser.parse_args()
    if asked.quick:
        asked.shapes, asked.rounds = ["500x40"], 1
    print(f"## Folds and penalties\n\n{environment()}")
    reached: list[Goal] = []
    for shape in asked.shapes:
        text, more = sections(shape, rounds=asked.rounds, patience=asked.patience)
        reached += more
        print(f"\n{text}", flush=True)
    print(f"\n### Goals\n\n{goals_table(reached)}")


if __name__ == "__main__":
    main()
