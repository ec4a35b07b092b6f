"""What every benchmark prints: where it ran, Markdown tables, and goals beside what was reached."""

import datetime
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("headeval", "numpy", "scipy", "scikit-learn", "glum", "pandas", "pyarrow", "typer")


@dataclass(frozen=True, slots=True)
class Goal:
    """A ratio to reach, or a number of megabytes.

    Attributes
    ----------
    what : is measured.
    limit : what it should be, at least or at most.
    found : what it is.
    at_least : whether more is better.
    unit : behind both numbers.
    """

    what: str
    limit: float
    found: float
    at_least: bool = False
    unit: str = "×"

    @property
    def reached(self) -> bool:
        """Whether the number, not rounded, is within the limit."""
        return self.found >= self.limit if self.at_least else self.found <= self.limit


def goals_table(goals: Iterable[Goal]) -> str:
    """Return goals beside what was reached; a miss is said plainly.

    Examples
    --------
    >>> print(goals_table([Goal("sorts", 4.0, 4.04)]))
    | goal | to reach | reached |  |
    |---|---:|---:|---:|
    | sorts | at most 4 × | 4.04 × | **missed** |
    """
    lines = []
    for goal in goals:
        bound = f"{'at least' if goal.at_least else 'at most'} {goal.limit:,.4g} {goal.unit}"
        lines.append([goal.what, bound, f"{number(goal.found)} {goal.unit}", "yes" if goal.reached else "**missed**"])
    return markdown_table(["goal", "to reach", "reached", ""], lines)


def number(value: float) -> str:
    """Return a number with three digits, or more where it has more before the point.

    Examples
    --------
    >>> number(0.01234), number(12.34), number(1234.5)
    ('0.0123', '12.3', '1,234')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def environment() -> str:
    """Return one Markdown paragraph: date, processor, cores, what else runs, versions, commit."""
    parts = [
        datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start",
        f"Python {platform.python_version()}",
        *(f"{name} {_version(name)}" for name in PACKAGES),
        f"commit {_commit()}",
    ]
    return " · ".join(parts)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the first column is text, all others are set to the right as numbers.

    Examples
    --------
    >>> print(markdown_table(["what", "s"], [["sort", "0.7"]]))
    | what | s |
    |---|---:|
    | sort | 0.7 |
    """
    lines = [_line(header), f"|---|{'---:|' * (len(header) - 1)}", *map(_line, rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    # The report of a run is written into this folder, so that what it changes there makes no other commit.
    here, words = Path(__file__).resolve().parent, ("rev-parse", "--short", "HEAD")
    changed = ("status", "--porcelain", "--untracked-files=no", "--", "../src", "*.py")
    commit, changes = _git(here, words), _git(here, changed)
    return "unknown" if commit is None else f"{commit}, changed since" if changes else commit


def _git(here: Path, words: Sequence[str]) -> str | None:
    command = ("git", *words)
    try:
        found = subprocess.run(  # noqa: S603 - as written above
            command, cwd=here, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
