"""How long commands take to start, beside what Python and typer take by themselves: a Markdown table.

    python benchmarks/startup.py [--rounds 10]

Each command runs once a round, so that what else the machine does falls on all of them; the best of all rounds is what
the command costs where nothing disturbs it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from table import Goal, environment, goals_table, markdown_table

SAMPLE = Path(__file__).resolve().parents[1] / "sample_data"
YARDSTICK = "import typer"
GOAL = 2.5  # `headeval --help` takes at most this many times the CPU time of `import typer`


@dataclass(frozen=True, slots=True)
class Timed:
    """A command with the seconds that each of its runs took."""

    name: str
    command: Sequence[str]
    code: int = 0
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def run(self, folder: Path) -> None:
        """Run it once, its output thrown away; anything but the expected exit code ends the benchmark."""
        begun = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 - the commands below
            self.command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        self.wall.append(time.perf_counter() - begun)
        self.cpu.append(usage.ru_utime + usage.ru_stime)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != self.code:
            raise SystemExit(f"{self.name}: exit code {process.returncode} instead of {self.code}")


def python(name: str, program: str) -> Timed:
    """Return a one-line program."""
    return Timed(name, (sys.executable, "-c", program))


def headeval(arguments: str, *, code: int = 0) -> Timed:
    """Return a command line of headeval; `@` stands for the sample data."""
    words = [str(SAMPLE / word[1:]) if word.startswith("@") else word for word in arguments.split()]
    return Timed(f"headeval {arguments.replace('@', '')}", (sys.executable, "-m", "headeval", *words), code)


def commands() -> list[Timed]:
    """Return what is timed, in the order of the table."""
    return [
        python("python -c pass", "pass"),
        python(YARDSTICK, "import typer"),
        python("import headeval", "import headeval"),
        headeval("--help"),
        headeval("--version"),
        headeval("report --help"),
        headeval("report absent.parquet", code=3),
        python("import numpy, pyarrow.compute", "import numpy, pyarrow.compute"),
        headeval("report @scores.csv --prob prob --format json"),
        headeval("report @scores.csv --prob prob"),
        headeval("fit @moderation_small.csv --folds 0 --force"),
        headeval("score @moderation_test.parquet --head linear-head.json -o scored.parquet --force"),
    ]


def row(timed: Timed, yardstick: Timed) -> list[str]:
    """Return a line of the table, in milliseconds."""
    times = (min(timed.wall), statistics.median(timed.wall), min(timed.cpu), statistics.median(timed.cpu))
    return [f"`{timed.name}`", *(f"{1000 * t:.0f}" for t in times), f"{min(timed.cpu) / min(yardstick.cpu):.2f}"]


def main() -> None:
    """Time everything and print the table."""
    parser = argparse.ArgumentParser(description="Time how commands start.")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one round: does it run at all?")
    asked = parser.parse_args()
    rounds = 1 if asked.quick else asked.rounds
    timed = commands()
    print(f"## Start-up\n\n{environment()}\n")
    with TemporaryDirectory() as folder:
        for one in timed:
            one.run(Path(folder))  # once unseen: byte code is compiled, files come into the cache
            one.wall.clear()
            one.cpu.clear()
        for _ in range(rounds):
            for one in timed:
                one.run(Path(folder))
    yardstick, shown = (next(one for one in timed if one.name == name) for name in (YARDSTICK, "headeval --help"))
    header = ["command", "wall, best (ms)", "wall, median", "CPU, best (ms)", "CPU, median", f"CPU of `{YARDSTICK}`"]
    print(markdown_table(header, [row(one, yardstick) for one in timed]))
    print()
    ratio = min(shown.cpu) / min(yardstick.cpu)
    goal = Goal(f"CPU time of `headeval --help`, in that of `{YARDSTICK}`", GOAL, ratio)
    print(f"### Goals\n\n{goals_table([goal])}")


if __name__ == "__main__":
    main()
