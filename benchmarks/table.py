"""What every benchmark prints: where it ran, and a Markdown table."""

import datetime
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("headeval", "numpy", "scipy", "scikit-learn")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def environment() -> str:
    """Return one Markdown paragraph: date, processor, cores, versions, threads of the BLAS, commit."""
    threads = ", ".join(f"{name}={os.environ.get(name, 'unset')}" for name in THREADS)
    parts = [
        datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        f"{_processor()}, {os.cpu_count()} cores",
        f"Python {platform.python_version()}",
        *(f"{name} {_version(name)}" for name in PACKAGES),
        threads,
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
    here, describe = Path(__file__).resolve().parent, ("git", "describe", "--always", "--dirty")
    try:
        found = subprocess.run(  # noqa: S603 - as written above
            describe, cwd=here, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()
