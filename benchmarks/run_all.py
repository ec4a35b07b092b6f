"""Run every benchmark, print its tables, and with --write put them into README.md.

    python benchmarks/run_all.py [NAME …] [--write] [--quick]

Ten to twelve minutes on two cores. Everything is run one after the other; leave the machine alone meanwhile.
"""

import argparse
import re
import subprocess
import sys
import time

from race import HERE, environ, told
from table import environment

SCRIPTS = ("startup", "fit", "folds_and_path", "job", "categories", "classes", "metrics", "memory")
README = HERE / "README.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def output_of(name: str, options: list[str]) -> str:
    """Run a benchmark, show what it prints as it comes, and return it."""
    command = [sys.executable, str(HERE / f"{name}.py"), *options]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ()) as process:  # noqa: S603
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise SystemExit(f"{name}: exit code {process.returncode}")
    return "".join(lines)


def without_environment(text: str) -> str:
    r"""Return a benchmark's tables without the paragraph below its title, which is the same in all.

    Examples
    --------
    >>> without_environment("## Fit\n\n2026-01-01 · a machine · commit 1\n\n### 1 × 1\n")
    '## Fit\n\n### 1 × 1\n'
    """
    return re.sub(r"\A(## [^\n]*\n)\n[^\n]* · commit [^\n]*\n", r"\1", text)


def with_results(document: str, results: str) -> str:
    r"""Return a document with other results between its marks.

    Examples
    --------
    >>> with_results(f"a {BEGIN} old {END} z", "new")
    'a <!-- results: begin -->\n\nnew\n\n<!-- results: end --> z'
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"there is no place between {BEGIN} and {END}")
    return f"{before}{begin}\n\n{results.strip()}\n\n{end}{after}"


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SCRIPTS)}; all where none is given")
    parser.add_argument("--write", action="store_true", help="put the results of all into README.md")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything run?")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(SCRIPTS):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    if asked.write and (asked.names or asked.quick):
        parser.error("--write takes the results of all, in full")
    begun, where = time.perf_counter(), environment()
    outputs = [output_of(name, ["--quick"] if asked.quick else []) for name in asked.names or SCRIPTS]
    took = f"All of it took {(time.perf_counter() - begun) / 60:.0f} minutes."
    told(took)
    if asked.write:
        results = "\n\n".join([where, took, *(without_environment(text).strip() for text in outputs)])
        README.write_text(with_results(README.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
