"""Time the way from a Parquet file to a written head, and to a printed report, beside pandas and scikit-learn.

    python benchmarks/job.py [--shape 50000x768] [--test-rows 10000] [--rounds 3] [--patience 20] [--quick]

Whole programs are timed, from their start to their end: headeval's commands and `sklearn_job.py`, which does the same
as people write it, by default L-BFGS in float32 and by Newton's method in float64 to a gradient of 1e-9. The quicker of
the two counts. headeval's report has intervals from a bootstrap beside the numbers that the script prints.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fit import size, title
from race import HERE, Result, output_of, script, timed_commands, told
from table import Goal, environment, goals_table, markdown_table, number

SHAPE, QUICK_SHAPE = "50000x768", "500x40"
TIMES_FASTER = 3.0
BLOCKS_APART = 1_000_000  # the test rows are others than those of the fit
HEADEVAL, SCRIPT, NEWTON = "**headeval**", "pandas + scikit-learn, lbfgs", "pandas + scikit-learn, newton-cholesky"


@dataclass(frozen=True, slots=True)
class Job:
    """Attributes: name in the table, the programs one after the other, the head they write."""

    name: str
    commands: Sequence[Sequence[str]]
    head: str
    own: bool = False


def headeval(*arguments: str) -> list[str]:
    """Return a command of headeval."""
    return [sys.executable, "-m", "headeval", *arguments]


def jobs(*, with_report: bool) -> list[Job]:
    """Return the job done by each."""
    fit = headeval("fit", "rows.parquet", "--folds", "0", "-o", "ours.json", "--force", "--quiet")
    report = headeval("report", "test.parquet", "--head", "ours.json", "--quiet")
    test = ["--test", "test.parquet"] if with_report else []
    people = [sys.executable, str(HERE / "sklearn_job.py"), "rows.parquet"]
    return [
        Job(HEADEVAL, [fit, report] if with_report else [fit], "ours.json", own=True),
        Job(SCRIPT, [[*people, "lbfgs.json", *test]], "lbfgs.json"),
        Job(NEWTON, [[*people, "newton.json", *test, "--solver", "newton-cholesky"]], "newton.json"),
    ]


def run(jobs: Sequence[Job], folder: Path, *, rounds: int, patience: float) -> dict[str, Result]:
    """Run the jobs in turn, then judge the heads."""
    results = {job.name: Result(job.name) for job in jobs}
    for number_of_round in range(rounds):
        for job in jobs:
            if number_of_round == 0 or sum(results[job.name].seconds) < patience:
                timed_commands(results[job.name], job.commands, cwd=folder, own=job.own)
    norms = output_of("gradient.py", folder / "rows.parquet", *(folder / job.head for job in jobs)).split()
    for job, norm in zip(jobs, norms, strict=True):
        results[job.name].facts["gradient"] = float(norm)
    return results


def table(results: Mapping[str, Result]) -> str:
    """Return what each took."""
    ours = results[HEADEVAL].best
    header = ["", "best (s)", "median (s)", "CPU (s)", "runs", "× headeval", "‖g‖∞", "peak (MB)"]
    lines = []
    for name, one in results.items():
        times = [*map(number, (one.best, one.median, min(one.cpu))), str(len(one.seconds)), number(one.best / ours)]
        lines.append([name, *times, f"{one.facts['gradient']:.1e}", f"{one.peak / 1e6:,.0f}"])
    return markdown_table(header, lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", default=SHAPE, help="rows x dimensions")
    parser.add_argument("--test-rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=20.0, help="seconds after which one does not run again")
    parser.add_argument("--quick", action="store_true", help="a tiny shape, once: does it run at all?")
    asked = parser.parse_args()
    if asked.quick:
        asked.shape, asked.test_rows, asked.rounds = QUICK_SHAPE, 400, 1
    n, d = size(asked.shape)
    print(f"## The whole job\n\n{environment()}")
    reached = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        script("embeddings.py", folder / "rows.parquet", "--rows", n, "--dim", d)
        script("embeddings.py", folder / "test.parquet", "--rows", asked.test_rows, "--dim", d, "--skip", BLOCKS_APART)
        for with_report, what in ((False, "to the written head"), (True, "to the printed report")):
            told(f"whole job, {title(asked.shape)}, {what}")
            results = run(jobs(with_report=with_report), folder, rounds=asked.rounds, patience=asked.patience)
            print(f"\n### {title(asked.shape)}, from Parquet {what}\n\n{table(results)}", flush=True)
            ratio = min(results[SCRIPT].best, results[NEWTON].best) / results[HEADEVAL].best
            reached.append(Goal(f"{title(asked.shape)}, {what}: faster than the script", TIMES_FASTER, ratio, True))
    print(f"\n### Goals\n\n{goals_table(reached[:1])}")


if __name__ == "__main__":
    main()
