"""The house rules, read from the source: who may import whom, how long things may be, what may not be said."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from documents import ROOT, checkout_files

PACKAGE = ROOT / "src" / "headeval"
LONGEST_MODULE = 300
LONGEST_FUNCTION = 40

# Rooms that everything stands on and that import nothing of the project outside themselves.
FOUNDATIONS = {"core", "errors", "printable", "_version"}
# What may import a room; a third-party package belongs to the rooms named.
PACKAGES = {
    "pyarrow": {"files"},
    "jsonschema": {"files"},
    "referencing": {"files"},
    "rich": {"render", "cli"},
    "typer": {"cli"},
    "jinja2": {"render"},
    "matplotlib": {"render"},
    "dask": {"cluster"},
    "distributed": {"cluster"},
}
DRAWERS = {"utils", "util", "helpers", "common", "misc"}
# function -> why it is longer than LONGEST_FUNCTION
LONG_FUNCTIONS = {
    "headeval.cli.fit.fit": "25 options, a line each; the body is about 35 lines with its imports apart",
    "headeval.cli.report.report": "41 options, a line each; most of the body hands them on",
    "headeval.cli.score.score": "nine options, a line each; the body is 32 lines with its imports apart",
    "headeval.cli.calibrate.calibrate": "19 options, a line each; the body is short",
    "headeval.cli.threshold.threshold": "20 options, a line each; the body is short",
    "headeval.files.examples.read_examples": "sixteen arguments, a line each; the body is 38 lines",
    "headeval.files.category_rows.read_category_examples": "sixteen arguments, a line each",
}


def module_name(path: Path) -> str:
    parts = ("headeval", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def imports(name: str, tree: ast.AST) -> Iterator[str]:
    """Every module that `name` imports, at its top or inside a function, as a full dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno}: a relative import"
            source = node.module or ""
            for alias in node.names:
                full = f"{source}.{alias.name}"
                yield full if full in TREES else source


def room(name: str) -> str:
    """`core` for headeval.core.checks, `head` for headeval.head, `` for headeval itself."""
    return name.split(".")[1] if "." in name else ""


def may_import(importer: str, imported: str) -> bool:
    """The import rule between two rooms."""
    if importer == imported:
        return True
    if imported in {"", "__main__", "cli"}:
        return importer == "__main__" and imported == "cli"
    if importer in FOUNDATIONS:
        return False
    if imported in FOUNDATIONS or importer == "cli":
        return True
    if imported == "files":
        return importer in {"", "cluster"}  # only commands (and the public names) touch disk, and workers for them
    if imported == "cluster":
        return False
    return imported != "render"


def inner_imports() -> dict[str, set[str]]:
    return {
        name: {target for target in imports(name, tree) if target.split(".")[0] == "headeval"}
        for name, tree in TREES.items()
    }


def test_imports_run_downward_only() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, targets in inner_imports().items()
        for target in sorted(targets)
        if not may_import(room(name), room(target))
    ]
    assert not wrong


def test_no_two_modules_import_each_other() -> None:
    try:
        TopologicalSorter(inner_imports()).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("cli", "render", True),
        ("render", "evaluation", True),
        ("render", "files", False),
        ("render", "cli", False),
        ("solver", "core", True),
        ("solver", "files", False),
        ("cluster", "files", True),
        ("cluster", "solver", True),
        ("solver", "cluster", False),
        ("files", "cluster", False),
        ("solver", "render", False),
        ("files", "head", True),
        ("files", "errors", True),
        ("evaluation", "cli", False),
        ("core", "errors", False),
        ("printable", "errors", False),
        ("errors", "printable", False),
        ("core", "solver", False),
        ("__main__", "cli", True),
        ("", "cli", False),
    ],
)
def test_the_rule_itself(importer: str, imported: str, allowed: bool) -> None:
    assert may_import(importer, imported) == allowed


def test_packages_stay_in_their_rooms() -> None:
    wrong = []
    for name, tree in TREES.items():
        for target in {full.split(".")[0] for full in imports(name, tree)} - {"headeval"}:
            if target in sys.stdlib_module_names or target == "_typeshed":  # known to type checkers only
                continue
            here = room(name)
            # numpy is the common language of arrays, but errors and text need none of it.
            allowed = here not in FOUNDATIONS - {"core"} if target == "numpy" else here in PACKAGES.get(target, set())
            if not allowed:
                wrong.append(f"{name} imports {target}")
    assert not wrong


def test_no_module_is_a_drawer() -> None:
    assert not {name for name in TREES if DRAWERS & set(name.split("."))}


def test_modules_stay_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert not {str(path): length for path, length in lengths.items() if length > LONGEST_MODULE}


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from `def` to its end, without its docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    documentation = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - documentation


def test_functions_stay_short() -> None:
    lengths = {
        f"{name}.{node.name}": code_lines(node)
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    long = {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}
    assert long.keys() == LONG_FUNCTIONS.keys(), long


def test_only_commands_write_to_the_terminal() -> None:
    def talks(node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id == "print"
        return isinstance(node, ast.Attribute) and ast.unparse(node) in {"sys.stdout", "sys.stderr"}

    found = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        if room(name) != "cli"
        for node in ast.walk(tree)
        if talks(node)
    ]
    assert not found


LIGHT_IMPORT = "import headeval"
# What typer itself brings in is its own affair, so it is loaded first and does not count.
LIGHT_COMMAND = """
import typer
before = set(sys.modules)
from headeval.__main__ import main
sys.argv = ["headeval", *{arguments!r}]
try:
    main()
except SystemExit as leave:
    assert leave.code == {code}
"""
HEAVY = {"numpy", "pyarrow", "jsonschema", "referencing", "rich", "pygments", "jinja2", "matplotlib", "pandas", "scipy"}


@pytest.mark.parametrize(
    "statements",
    [
        LIGHT_IMPORT,
        LIGHT_COMMAND.format(arguments=["--help"], code=0),
        LIGHT_COMMAND.format(arguments=["--version"], code=0),
        LIGHT_COMMAND.format(arguments=["fit", "--help"], code=0),
        LIGHT_COMMAND.format(arguments=["fit", "--nope"], code=2),
    ],
    ids=["import", "help", "version", "help of a command", "unknown option"],
)
def test_starting_is_light(statements: str) -> None:
    """Neither `import headeval` nor what a command line says at once waits for what only the work needs."""
    report = "import json\nprint()\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    script = f"import sys\nbefore = set()\n{statements}\n{report}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    rooms = {name.split(".")[1] for name in loaded if name.startswith("headeval.")}
    assert "headeval" in loaded
    assert rooms <= {"_version", "__main__", "cli", "errors", "printable"}
    assert not {name.split(".")[0] for name in loaded} & HEAVY


# Written in two halves, so that this file does not hold what it looks for.
TELLTALES = re.compile(
    "|".join(("pypi" + r"\.org", "files\\." + "pythonhosted", r"(?<![\w.~-])/" + "work/", "/t" + r"mp/v\b")).encode()
)


def test_no_file_names_a_registry_or_a_build_machine() -> None:
    found = {str(path): hits for path in checkout_files() if (hits := TELLTALES.findall(path.read_bytes()))}
    assert not found


def test_no_lock_file_is_committed() -> None:
    def locks(path: Path) -> bool:
        return path.suffix == ".lock" or path.name in {"package-lock.json", "pylock.toml"}

    assert not [path for path in checkout_files() if locks(path)]


def mapped_modules() -> list[str]:
    """Paths in the first column of the source map of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `([\w/]+\.py)` \|", text, flags=re.MULTILINE)


def test_the_source_map_lists_every_module_and_nothing_else() -> None:
    def is_module(path: Path) -> bool:
        return path.name != "__init__.py" or path.parent == PACKAGE

    modules = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if is_module(path)}
    listed = mapped_modules()
    assert len(listed) == len(set(listed))
    assert set(listed) == modules, f"not listed: {modules - set(listed)}; listed in vain: {set(listed) - modules}"


def make_steps(line: str) -> str:
    return re.sub(r"^\t\$\(PYTHON\) ", "", line)


def run_steps(line: str) -> str:
    return re.sub(r'^"\$python" ', "", line)


@pytest.mark.parametrize(
    "step", ["ruff format --check", "ruff check", "mypy", "pytest -n 3 --dist worksteal -m slow", "plant_faults"]
)
def test_ci_and_make_run_the_same_words(step: str) -> None:
    """The same step by hand and in CI, so that neither is stricter than the other."""

    def line(file: str, strip: Callable[[str], str]) -> list[str]:
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        return [strip(text) for text in lines if step in text and "--fix" not in text and strip(text) != text]

    by_hand, in_ci = line("Makefile", make_steps), line(".ci/run", run_steps)
    assert by_hand
    assert by_hand == in_ci
