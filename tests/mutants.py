"""Mutation testing of `core`: one small change of the code at a time, and whether a test sees it.

`make mutants` runs this file, `python tests/mutants.py ranking bins` a part of it. mutmut makes the mutants: every
function stands in a copy of the package once for each change, and a name says which of them is called. The tests are
collected once and run once, to see which test calls which function; then every mutant is a forked child that runs the
tests calling its function, the quickest first, until one fails.

The wording of an error is not mutated: texts inside `raise` statements are left alone. Why a mutant may survive stands
in `surviving_mutants.toml`; `--write` puts what survived into docs/reliability.md, and what has no reason is an error.
"""

import argparse
import ast
import difflib
import functools
import gc
import json
import math
import os
import re
import resource
import shutil
import signal
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
CORE = Path("src/headeval/core")
COPIED = [
    "src",
    "tests",
    "schemas",
    "sample_data",
    "docs",
    "benchmarks",
    ".ci",
    "pyproject.toml",
    "README.md",
    "Makefile",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
]
TESTS = ["tests/core", "-m", "not slow"]
REASONS = ROOT / "tests" / "surviving_mutants.toml"
PAGE = ROOT / "docs" / "reliability.md"
WANTED = 0.90
# Of the tests that call a function, so many seconds are run at most; a mutant that they pass counts as surviving.
LONGEST_RUN = 5.0
LONGEST_WAIT = (
    300.0  # for a mutant that waits instead of computing; one that computes on is ended by its processor time
)

Verdict = Literal["killed", "survived", "timeout", "untested"]


@dataclass
class Mutants:
    """What mutmut made: the names of mutants by module, and what each changes."""

    names: dict[str, list[str]] = field(default_factory=dict)
    changes: dict[str, str] = field(default_factory=dict)


def mutated_copy(folder: Path, modules: Iterable[str], wanted: set[tuple[str, str]] | None) -> Mutants:
    """Copy the checkout into `folder` with the core modules of these names mutated; `wanted` are names and changes."""
    try:
        from mutmut.mutation.file_mutation import mutate_file_contents
    except ImportError:
        sys.exit("mutmut is not installed; install it with: pip install -e '.[mutants]'")

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, folder / name)
    made = Mutants()
    for module in modules:
        path = CORE / f"{module}.py"
        code = (ROOT / path).read_text(encoding="utf-8")
        mutated = mutate_file_contents(str(path), code)
        (folder / path).write_text(mutated.code, encoding="utf-8")
        lines = mutated.code.splitlines()
        spans = mutated.line_span_by_function_name
        bodies = {name: lines[span.start - 1 : span.end] for name, span in spans.items()}
        places = _raises(code)
        for name in mutated.mutant_names:
            original = bodies[re.sub(r"__mutmut_\d+$", "__mutmut_orig", name)]
            change = _change(original, bodies[name])
            full = f"headeval.core.{module}.{name}"
            if not _only_wording(change, places) and (wanted is None or (full, change) in wanted):
                made.names.setdefault(module, []).append(name)
                made.changes[full] = change
    return made


def _raises(code: str) -> frozenset[str]:
    """Return the lines of all `raise` statements, stripped."""
    lines = code.splitlines()
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Raise)
    ]
    return frozenset(line.strip() for first, last in spans for line in lines[first - 1 : last])


def _only_wording(change: str, raises: frozenset[str]) -> bool:
    removed = [line[1:].strip() for line in change.splitlines() if line.startswith("-")]
    return bool(removed) and all(line in raises for line in removed)


def _change(original: list[str], mutated: list[str]) -> str:
    """Return the lines that differ, as a diff without context."""
    lines = difflib.unified_diff(_named_alike(original), _named_alike(mutated), n=0, lineterm="")
    return "\n".join(line.rstrip() for line in lines if not line.startswith(("---", "+++", "@@")))


def _named_alike(lines: list[str]) -> list[str]:
    return [re.sub(r"__mutmut_(orig|\d+)\b", "", line) for line in lines]


class Plugin:
    """Takes pytest's loop over: all tests once, then every mutant in a child of its own."""

    def __init__(self, mutants: Mutants, *, at_once: int, told: Callable[[str, Verdict], None]) -> None:
        self.mutants = mutants
        self.at_once = at_once
        self.told = told
        self.calling: dict[str, list[Any]] = defaultdict(list)
        self.seconds: dict[str, float] = {}

    def pytest_runtestloop(self, session: Any) -> bool:
        self._record(session)
        _forget_caches()
        gc.freeze()  # children share this memory; a collection in each of them would copy it
        waiting = [(f"headeval.core.{module}.{name}") for module, names in self.mutants.names.items() for name in names]
        running: dict[int, tuple[str, float]] = {}
        for name in waiting:
            tests = self._tests_of(name)
            if not tests:
                self.told(name, "untested")
                continue
            while len(running) >= self.at_once:
                self._reap(running)
            limit = 5 + math.ceil(5 * sum(self.seconds[item.nodeid] for item in tests))
            running[_forked(name, tests, limit)] = (name, time.monotonic() + LONGEST_WAIT)
        while running:
            self._reap(running)
        return True

    def _record(self, session: Any) -> None:
        """Run every test once and note which functions it calls."""
        from _pytest.runner import runtestprotocol
        from mutmut.mutation.trampoline import set_mutant_under_test
        from mutmut.state import state

        set_mutant_under_test("stats")
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            began = time.process_time()
            reports = runtestprotocol(item, log=False, nextitem=following)
            self.seconds[item.nodeid] = time.process_time() - began
            broken = [report for report in reports if report.failed]
            if broken:
                sys.exit(f"{item.nodeid} fails before anything is changed:\n{broken[0].longreprtext}")
            for function in state()._stats:
                self.calling[function].append(item)
            state()._stats.clear()
        set_mutant_under_test("")

    def _tests_of(self, name: str) -> list[Any]:
        """Return the tests that call a mutant's function, its module's and the quickest first, while time is left."""
        calling = self.calling[re.sub(r"__mutmut_\d+$", "", name)]
        own = {f"test_{name.split('.')[2]}.py", "test_many_rows.py"}  # the latter for what very many rows take
        chosen: list[Any] = []
        seconds = 0.0
        for item in sorted(calling, key=lambda item: (item.path.name not in own, self.seconds[item.nodeid])):
            seconds += self.seconds[item.nodeid]
            if chosen and seconds > LONGEST_RUN:
                break
            chosen.append(item)
        return chosen

    def _reap(self, running: dict[int, tuple[str, float]]) -> None:
        """Wait for one child to end, or end one that takes too long."""
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child:
                name, _ = running.pop(child)
                late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
                self.told(name, "timeout" if late else "killed" if status else "survived")
                return
            for child, (name, until) in running.items():
                if time.monotonic() > until:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    del running[child]
                    self.told(name, "timeout")
                    return
            time.sleep(0.002)


def _forget_caches() -> None:
    """Empty every cache of a function: what it holds was computed by the code as it stands."""
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper):
            thing.cache_clear()


def _forked(name: str, tests: list[Any], seconds: int) -> int:
    """Start a child that runs `tests` with one mutant and ends with 0 only if all pass in time; return its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        from _pytest.runner import runtestprotocol
        from mutmut.mutation.trampoline import set_mutant_under_test

        set_mutant_under_test(name)
        gc.disable()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        for item in tests:
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=None)):
                break
        else:
            code = 0
    finally:
        os._exit(code)


def _survivors_of(verdicts: Path) -> set[tuple[str, str]]:
    """Return the names and changes of what survived an earlier run."""
    lines = map(json.loads, verdicts.read_text(encoding="utf-8").splitlines())
    return {(name, change) for name, verdict, change in lines if verdict in ("survived", "untested")}


def _modules(wanted: list[str]) -> list[str]:
    there = sorted(path.stem for path in (ROOT / CORE).glob("*.py") if path.stem != "__init__")
    unknown = set(wanted) - set(there)
    if unknown:
        sys.exit(f"core has no module {', '.join(sorted(unknown))}")
    return wanted or there


@dataclass(frozen=True)
class Reason:
    """Why mutants of a function may survive: all of them, or those whose change matches."""

    function: str
    reason: str
    change: str = ""

    def explains(self, name: str, change: str) -> bool:
        return bool(re.fullmatch(self.function, function_of(name)) and re.search(self.change, change))


def function_of(name: str) -> str:
    """Return the function of a mutant as `module.function` or `module.Class.method`.

    >>> function_of("headeval.core.bins.xǁBinsǁtotal__mutmut_3"), function_of("headeval.core.draws.x__drawn__mutmut_1")
    ('bins.Bins.total', 'draws._drawn')
    """
    module, mangled = re.sub(r"__mutmut_\d+$", "", name).split(".")[2:]
    return f"{module}.{mangled[2:].replace('ǁ', '.') if mangled.startswith('xǁ') else mangled[2:]}"


def explained(survivors: Iterable[tuple[str, str]], reasons: list[Reason]) -> tuple[Counter[Reason], list[str]]:
    """Count the surviving mutants, given by name and change, by their first reason; return the names without any."""
    counts: Counter[Reason] = Counter()
    left = []
    for name, change in survivors:
        found = next((reason for reason in reasons if reason.explains(name, change)), None)
        if found is None:
            left.append(name)
        else:
            counts[found] += 1
    return counts, left


def _reasons() -> list[Reason]:
    with REASONS.open("rb") as file:
        return [Reason(**entry) for entry in tomllib.load(file).get("survivors", [])]


def _table(verdicts: dict[str, Verdict]) -> Iterator[str]:
    """Yield a line a module: how many mutants, and how many of them were killed."""
    by_module: dict[str, Counter[Verdict]] = defaultdict(Counter)
    for name, verdict in verdicts.items():
        by_module[name.split(".")[2]][verdict] += 1
    for module, counts in [*sorted(by_module.items()), ("all", sum(by_module.values(), Counter()))]:
        dead = counts["killed"] + counts["timeout"]
        yield f"{module:22} {counts.total():6} {dead:6} {dead / counts.total():6.1%}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="modules of core; all, if none is named")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="run these tests only")
    parser.add_argument("--again", type=Path, metavar="VERDICTS", help="only what survived by this verdicts.jsonl")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="children at the same time")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".mutants", help="where the mutated copy and the results go"
    )
    parser.add_argument("--write", action="store_true", help="put what survived into docs/reliability.md")
    options = parser.parse_args()
    folder = options.folder.resolve()
    survived = None if options.again is None else _survivors_of(options.again)
    mutants = mutated_copy(folder, _modules(options.modules), survived)
    verdicts: dict[str, Verdict] = {}
    survivors = folder / "survivors.txt"

    with survivors.open("w", encoding="utf-8") as file, (folder / "verdicts.jsonl").open("w", encoding="utf-8") as log:

        def told(name: str, verdict: Verdict) -> None:
            verdicts[name] = verdict
            print(json.dumps([name, verdict, mutants.changes[name]]), file=log, flush=True)
            if verdict in ("survived", "untested"):
                print(f"{verdict} {name}\n{mutants.changes[name]}\n", file=file, flush=True)
            if len(verdicts) % 100 == 0:
                print(f"{len(verdicts)} of {len(mutants.changes)}", file=sys.stderr, flush=True)

        os.chdir(folder)
        os.environ |= {"HYPOTHESIS_PROFILE": "mutants", "OPENBLAS_NUM_THREADS": "1", "MUTANT_UNDER_TEST": ""}
        sys.path.insert(0, str(folder / "src"))
        import pytest

        plugin = Plugin(mutants, at_once=options.at_once, told=told)
        pytest.main(
            [*options.tests, "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-s"], plugins=[plugin]
        )
    if not verdicts:
        sys.exit("no mutant was tried")
    print(f"{'module':22} mutants killed", *_table(verdicts), f"survivors: {survivors}", sep="\n")
    alive = [(name, mutants.changes[name]) for name, verdict in verdicts.items() if verdict in ("survived", "untested")]
    counts, left = explained(alive, _reasons())
    print(*(f"no reason in {REASONS.name}: {name}" for name in left), sep="\n")
    if options.write:
        write_page(len(verdicts), counts)
    return 0 if not left and len(alive) <= (1 - WANTED) * len(verdicts) else 1


def write_page(tried: int, counts: Counter[Reason]) -> None:
    """Put the table of surviving mutants between its marks in docs/reliability.md."""
    alive = counts.total()
    rows = sorted(
        f"| `{reason.function}`".replace("\\", "") + f" | {count} | {reason.reason} |"
        for reason, count in counts.items()
    )
    head = f"Of {tried:,} mutants {tried - alive:,} were killed ({(tried - alive) / tried:.1%}) and {alive} survived."
    fold = "<details><summary>What survived, and why a test would not tell</summary>"
    table = ["| function | survivors | why a test would not tell |", "|---|---|---|", *rows]
    text = "\n".join([head, "", fold, "", *table, "", "</details>"])
    before, mark, rest = PAGE.read_text(encoding="utf-8").partition("<!-- survivors -->\n")
    after = rest.partition("<!-- end of survivors -->")[2]
    PAGE.write_text(f"{before}{mark}{text}\n<!-- end of survivors -->{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
