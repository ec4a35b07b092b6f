"""Time fits, to a gradient that vanishes, beside scikit-learn, glum and one product of matrices.

    python benchmarks/fit.py [--shapes 50000x768 …] [--decays 0.5 1.0] [--rounds 5] [--patience 6] [--quick]

Each solver is a process of its own with the same rows in memory (`solvers.py`). They run in turn, so that what else the
machine does falls on all; one that has taken more than `--patience` seconds does not run again. The threads of a BLAS
can cost more than they gain, on few rows or beside other programs: scikit-learn's solvers of the goals and the product
also run with one thread, Newton's method only where rows are few.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from race import Contestant, Result, race, script, told
from table import Goal, environment, goals_table, markdown_table, number

SHAPES = ("2000x384", "50000x768", "200000x384", "20000x3072")
QUICK_SHAPES = ("500x40",)
TIMES_FASTER, PRODUCTS = 6.0, 4.0
PRODUCTS_AT = "50000x768"
MANY_DIMENSIONS, LBFGS_TIMES, LBFGS_TIMES_MANY = 3072, 1.0, 2.0
HEADEVAL, NEWTON, LBFGS, PRODUCT = (
    "**headeval**",
    "scikit-learn newton-cholesky, float64",
    "scikit-learn lbfgs, float32, as it comes",
    "one float32 XᵀX",
)
ONE = ", 1 thread"


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a table.

    Attributes
    ----------
    name : in the table.
    solver : in `solvers.py`.
    threads : to hold it to; None for its own.
    slow : whether it takes minutes on many numbers.
    goal : whether a goal speaks of it.
    """

    name: str
    solver: str
    threads: int | None = None
    slow: bool = False
    goal: bool = True


ENTRIES = (
    Entry(HEADEVAL, "headeval"),
    Entry(LBFGS, "lbfgs"),
    Entry(LBFGS + ONE, "lbfgs", 1),
    Entry(NEWTON, "newton-cholesky", slow=True),
    Entry(NEWTON + ONE, "newton-cholesky", 1, slow=True),
    Entry("scikit-learn lbfgs, float64, as far as it goes", "lbfgs-to-the-end", slow=True, goal=False),
    Entry("glum, float64", "glum", slow=True, goal=False),
    Entry("headeval.core's IRLS, float64", "irls", slow=True, goal=False),
    Entry(PRODUCT, "product"),
    Entry(PRODUCT + ONE, "product", 1),
)
SMALL, LARGE = 2**21, 2**25  # numbers in an array


def entries(shape: str, *, goals_only: bool) -> list[Entry]:
    """Return what runs on a shape: all, but on many numbers nothing that takes minutes and answers no question."""
    n, d = size(shape)
    chosen = [entry for entry in ENTRIES if entry.goal or not goals_only]
    if n * d > SMALL:
        chosen = [entry for entry in chosen if not (entry.slow and entry.threads)]
    if n * d > LARGE:
        chosen = [entry for entry in chosen if entry.solver != "lbfgs-to-the-end"]
        if goals_only:
            chosen = [entry for entry in chosen if not entry.slow or shape == PRODUCTS_AT]
    if d >= MANY_DIMENSIONS:
        chosen = [entry for entry in chosen if entry.solver != "irls"]
    return chosen


def size(shape: str) -> tuple[int, int]:
    """Return rows and dimensions of `rows x dimensions`."""
    n, d = shape.split("x")
    return int(n), int(d)


def title(shape: str) -> str:
    """Return a shape to read."""
    n, d = size(shape)
    return f"{n:,} × {d:,}"


def goals(shape: str, decay: float, results: Mapping[str, Result]) -> list[Goal]:
    """Return what the results on a shape are held to; a competitor with one thread is one more of them."""
    ours, place = results[HEADEVAL], f"{title(shape)}, decay {decay:g}"
    found = [Goal(f"{place}: ‖g‖∞ in 10⁻⁹", 1.0, ours.facts["gradient"] * 1e9, unit="")]
    most = LBFGS_TIMES_MANY if size(shape)[1] >= MANY_DIMENSIONS else LBFGS_TIMES
    for threads in ("", ONE):
        newton, lbfgs, product = (results.get(name + threads) for name in (NEWTON, LBFGS, PRODUCT))
        if newton:
            ratio = newton.best / ours.best
            found.append(Goal(f"{place}: faster than newton-cholesky{threads}", TIMES_FASTER, ratio, at_least=True))
        if lbfgs:
            found.append(Goal(f"{place}: time of default lbfgs{threads}", most, ours.best / lbfgs.best))
        if product and not threads and shape == PRODUCTS_AT:
            found.append(Goal(f"{place}: products XᵀX", PRODUCTS, ours.best / product.best))
    return found


def table(results: Mapping[str, Result]) -> str:
    """Return the results of a shape, as they stand."""
    ours = results[HEADEVAL].best
    header = ["", "best (s)", "median (s)", "CPU (s)", "runs", "× headeval", "‖g‖∞", "steps", "peak (MB)", "threads"]
    lines = []
    for name, one in results.items():
        gradient = one.facts["gradient"]
        lines.append(
            [
                name,
                number(one.best),
                number(one.median),
                number(min(one.cpu)),
                str(len(one.seconds)),
                number(one.best / ours),
                "" if gradient is None else f"{gradient:.1e}",
                str(one.facts["steps"]),
                f"{one.peak / 1e6:,.0f}",
                str(one.facts["threads"]),
            ]
        )
    return markdown_table(header, lines)


def run(shape: str, decay: float, entries: Sequence[Entry], *, rounds: int, patience: float) -> dict[str, Result]:
    """Make the rows of a shape and let all solvers run on them."""
    n, d = size(shape)
    with TemporaryDirectory() as folder:
        script("embeddings.py", folder, "--rows", n, "--dim", d, "--decay", decay)
        told(f"{title(shape)}, decay {decay:g}: {', '.join(entry.name for entry in entries)}")
        contestants = [
            Contestant(
                entry.name,
                ["solvers.py", entry.solver, str(Path(folder))],
                own=entry.solver == "headeval",
                threads=entry.threads,
            )
            for entry in entries
        ]
        return race(contestants, rounds=rounds, patience=patience)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="rows x dimensions, as 50000x768")
    parser.add_argument("--decays", nargs="+", type=float, default=[0.5, 1.0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patience", type=float, default=6.0)
    parser.add_argument("--quick", action="store_true", help="tiny shapes, once: does it run at all?")
    asked = parser.parse_args()
    if asked.quick:
        asked.shapes, asked.decays, asked.rounds = QUICK_SHAPES, asked.decays[:1], 1
    print(f"## Fit\n\n{environment()}")
    reached = []
    for decay in asked.decays:
        for shape in asked.shapes:
            chosen = entries(shape, goals_only=decay != asked.decays[0])
            results = run(shape, decay, chosen, rounds=asked.rounds, patience=asked.patience)
            reached += goals(shape, decay, results)
            print(f"\n### {title(shape)}, decay of the spectrum {decay:g}\n\n{table(results)}", flush=True)
    print(f"\n### Goals\n\n{goals_table(reached)}")


if __name__ == "__main__":
    main()
