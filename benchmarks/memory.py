"""Measure the memory of fits, with their rows in memory and with a file larger than the memory allowed.

    python benchmarks/memory.py [--shapes 50000x768 …] [--bytes 2GB] [--memory 1GB] [--quick]

The large file is made in the temporary folder (TMPDIR) block by block, and removed. A peak is that of the whole
process, Python and its libraries included.
"""

import argparse
import json
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fit import size, title
from race import HERE, Result, output_of, script, timed_commands, told
from table import Goal, environment, goals_table, markdown_table, number

SHAPES, QUICK_SHAPES = ("50000x768", "200000x384", "20000x3072"), ("500x40",)
TIMES_ARRAY, PLUS = 1.5, 300e6
LARGE_DIM = 768
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
WAYS = ("--folds 0", "--folds 5", "--l2 auto")


def amount(text: str) -> int:
    """Return the bytes of 8GB or 500MB."""
    match = re.fullmatch(r"([0-9.]+)([KMGT]B)", text.strip().upper())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount such as 8GB")
    return int(float(match[1]) * UNITS[match[2]])


def fitted(folder: Path, *options: str) -> Result:
    """Run one fit."""
    result = Result(" ".join(options))
    command = [
        sys.executable,
        "-m",
        "headeval",
        "fit",
        "rows.parquet",
        *options,
        "-o",
        "head.json",
        "--force",
        "--quiet",
    ]
    timed_commands(result, [command], cwd=folder, own=True)
    solver = json.loads((folder / "head.json").read_text())["metrics"]["fit"]["solver"]
    result.facts["passes"] = solver["passes"]
    return result


def in_memory(shape: str) -> tuple[list[list[str]], list[Goal]]:
    """Return lines of the table, and the goals, of a shape that fits into memory."""
    n, d = size(shape)
    array = 4 * n * d
    limit = TIMES_ARRAY * array + PLUS
    lines, goals = [], []
    with TemporaryDirectory() as name:
        folder = Path(name)
        script("embeddings.py", folder / "rows.parquet", "--rows", n, "--dim", d)
        for way in WAYS:
            told(f"memory, {title(shape)}, {way}")
            result = fitted(folder, *way.split())
            goals.append(Goal(f"{title(shape)}, {way}: peak", limit / 1e6, result.peak / 1e6, unit="MB"))
            lines.append(_line(f"{title(shape)}, `{way}`", array, result))
        result = Result("script")
        people = [sys.executable, str(HERE / "sklearn_job.py"), "rows.parquet", "lbfgs.json"]
        timed_commands(result, [people], cwd=folder)
        lines.append(_line(f"{title(shape)}, pandas + scikit-learn lbfgs", array, result))
    return lines, goals


def _line(what: str, array: int, result: Result) -> list[str]:
    peak, passes = result.peak, result.facts.get("passes", "")
    return [what, f"{array / 1e6:,.0f}", f"{peak / 1e6:,.0f}", number(peak / array), str(passes), number(result.best)]


def out_of_core(nbytes: int, memory: str, dim: int) -> tuple[list[str], Goal]:
    """Return a line of the table, and the goal, of a file larger than the memory allowed."""
    n = nbytes // (4 * dim)
    with TemporaryDirectory() as name:
        folder = Path(name)
        free = shutil.disk_usage(folder).free
        if free < 1.2 * nbytes:
            raise SystemExit(f"{folder}: {free / 1e9:.1f} GB free, a file of {nbytes / 1e9:.1f} GB is wanted")
        told(f"memory, writing {nbytes / 1e9:g} GB")
        script("embeddings.py", folder / "rows.parquet", "--rows", n, "--dim", dim)
        size_on_disk = (folder / "rows.parquet").stat().st_size
        told(f"memory, {size_on_disk / 1e9:.2f} GB within {memory}")
        result = fitted(folder, "--folds", "0", "--memory", memory)
        norm = float(output_of("gradient.py", folder / "rows.parquet", folder / "head.json"))
    place = f"{n:,} × {dim}, a file of {size_on_disk / 1e9:.2f} GB"
    passes, peak = result.facts["passes"], result.peak / 1e6
    line = [
        place,
        memory,
        f"{peak:,.0f}",
        str(passes),
        f"{norm:.1e}",
        number(result.best),
        number(result.best / passes),
    ]
    return line, Goal(f"{place}: peak", amount(memory) / 1e6, peak, unit="MB")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="rows x dimensions, as 50000x768")
    parser.add_argument("--bytes", type=amount, nargs="+", default=[amount("2GB")], help="of the large files")
    parser.add_argument("--memory", default="1GB", help="for the fit of a large file")
    parser.add_argument("--quick", action="store_true", help="a tiny shape and 20 MB: does it run at all?")
    asked = parser.parse_args()
    if asked.quick:
        asked.shapes, asked.bytes, asked.memory = QUICK_SHAPES, [amount("20MB")], "300MB"
    print(f"## Memory\n\n{environment()}")
    goals, lines = [], []
    for shape in asked.shapes:
        more, reached = in_memory(shape)
        lines += more
        goals += reached
    header = ["", "array (MB)", "peak (MB)", "arrays", "passes", "s"]
    print(f"\n### Rows in memory, from a Parquet file\n\n{markdown_table(header, lines)}", flush=True)
    large = [out_of_core(nbytes, asked.memory, LARGE_DIM) for nbytes in asked.bytes]
    header = ["", "`--memory`", "peak (MB)", "passes", "‖g‖∞", "s", "s a pass"]
    print(f"\n### Rows read anew in every pass\n\n{markdown_table(header, [line for line, _ in large])}", flush=True)
    print(f"\n### Goals\n\n{goals_table([*goals, *(goal for _, goal in large)])}")


if __name__ == "__main__":
    main()
