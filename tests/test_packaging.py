"""What is shipped: the distributions' content, their dependencies, and that the installed command works alone."""

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from importlib import metadata
from pathlib import Path
from shutil import copytree

import pytest

from documents import ROOT, checkout_files, copy_checkout

PACKAGE = ROOT / "src" / "headeval"
RUN_TIME = {"numpy", "typer", "rich", "pyarrow", "jsonschema"}
PACKAGE_FILES = ("*.py", "*.j2", "*.css", "*.js", "LICENSE")  # of what is vendored, the licence too
# Part of another package's interface, and always installed with it.
BROUGHT_ALONG = {"referencing": "jsonschema"}


def requirement_name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return found[0].lower()


def project() -> dict[str, object]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        table: dict[str, object] = tomllib.load(file)["project"]
    return table


def imported_packages() -> dict[str, str]:
    """Every third-party package imported in src/headeval, and one file that imports it."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            found.update({name.split(".")[0]: path.name for name in names})
    own = {"headeval", "_typeshed"}  # the latter is known to type checkers only
    return {name: file for name, file in found.items() if name not in sys.stdlib_module_names | own}


def test_run_time_dependencies_are_the_five() -> None:
    dependencies = project()["dependencies"]
    assert isinstance(dependencies, list)
    assert {requirement_name(text) for text in dependencies} == RUN_TIME


def test_every_import_is_declared() -> None:
    """A package that only the development environment happens to hold would fail at a user's."""
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    optional = {requirement_name(text) for extra in ("html", "plots") for text in extras[extra]}
    undeclared = {
        name: file
        for name, file in imported_packages().items()
        if BROUGHT_ALONG.get(name, name) not in RUN_TIME | optional
    }
    assert not undeclared


@pytest.mark.parametrize(("brought", "by"), BROUGHT_ALONG.items())
def test_what_is_brought_along_is_required_by_its_bringer(brought: str, by: str) -> None:
    assert brought in {requirement_name(text) for text in metadata.requires(by) or [] if "extra" not in text}


def test_lowest_versions_cover_every_dependency() -> None:
    script = ROOT / ".ci" / "lowest_versions.py"
    if not script.exists():
        pytest.skip("not a checkout")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, encoding="utf-8", check=True)
    lines = done.stdout.splitlines()
    assert {line.split("==")[0] for line in lines} == RUN_TIME
    assert [line.replace("==", ">=") for line in lines] == project()["dependencies"]


def test_the_versions_that_are_said_to_be_tested_go_with_the_lowest_that_are_allowed() -> None:
    def numbers(version: str) -> tuple[int, ...]:
        return tuple(map(int, version.split(".")))

    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) \|$", text, flags=re.MULTILINE)
    assert [f"{name}>={lowest}" for name, lowest, _ in rows] == project()["dependencies"]
    assert all(numbers(lowest) <= numbers(newest) for _, lowest, newest in rows)


# --- the built distributions


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel made from it, built from what a clone would hold."""
    clone = copy_checkout(tmp_path_factory.mktemp("clone"))
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(clone)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        own = [path for pattern in PACKAGE_FILES for path in PACKAGE.rglob(pattern)]
        package = {f"headeval/{path.relative_to(PACKAGE).as_posix()}" for path in own}
        schemas = {f"headeval/schemas/{path.name}": path.read_bytes() for path in (ROOT / "schemas").glob("*.json")}
        assert schemas
        assert all(archive.read(name) == content for name, content in schemas.items())
        described = {name for name in names if ".dist-info/" in name}
        assert names - described == package | schemas.keys() | {"headeval/py.typed"}
        (licence,) = [name for name in described if name.endswith("licenses/LICENSE")]
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()


@pytest.mark.slow
def test_two_builds_give_the_same_wheel_byte_for_byte(wheel: Path, tmp_path: Path) -> None:
    """From another folder, at another time, with other rights and another order of the files on the disk."""
    paths = [path for path in checkout_files() if path.is_relative_to(ROOT)]
    clone = tmp_path / "another place"
    for path in reversed(paths):
        target = clone / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
        target.chmod(0o600)
        os.utime(target, (10**9, 10**9))
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path / "dist"), str(clone)]
    environment = {**os.environ, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "LC_ALL": "C"}
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (again,) = (tmp_path / "dist").glob("*.whl")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


@pytest.mark.slow
def test_wheel_requires_exactly_the_five(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        fields = Parser().parsestr(archive.read(name).decode())
    required = [text for text in fields.get_all("Requires-Dist", []) if "extra ==" not in text]
    assert {requirement_name(text) for text in required} == RUN_TIME
    assert len(required) == len(RUN_TIME)
    assert fields["Requires-Python"] == ">=3.11"


@pytest.mark.slow
def test_sdist_holds_what_its_tests_need(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    wanted = {
        "pyproject.toml",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "tests/documents.py",
        "sample_data/scores.csv",
        ".ci/run",
    }
    assert names >= wanted | {f"schemas/{schema.name}" for schema in (ROOT / "schemas").glob("*.json")}


@pytest.mark.slow
def test_installed_wheel_works_alone(wheel: Path, tmp_path: Path) -> None:
    """In an empty environment, away from the checkout, with nothing but the run-time dependencies."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    folder = tmp_path / "elsewhere"
    copytree(ROOT / "sample_data", folder / "sample_data")

    def run(*command: str) -> str:
        done = subprocess.run(
            [str(home / "bin" / command[0]), *command[1:]],
            cwd=folder,
            env=surroundings,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    run("python", "-m", "pip", "install", "--quiet", str(wheel))
    assert "click" not in run("python", "-m", "pip", "list", "--format=freeze")
    place = run("python", "-c", "import headeval; print(headeval.__file__)").strip()
    assert Path(place).is_relative_to(home)

    fitted = run("headeval", "fit", "sample_data/moderation_train.parquet", "--l2", "1.0")
    assert re.search(r"\bauc\b", fitted, flags=re.IGNORECASE)
    head = json.loads((folder / "linear-head.json").read_text(encoding="utf-8"))
    assert (head["dim"], head["classes"]) == (384, ["safe", "unsafe"])
    reported = run("headeval", "report", "sample_data/moderation_test.parquet", "--head", "linear-head.json")
    assert re.search(r"\bauc\b", reported, flags=re.IGNORECASE)
    version = (PACKAGE / "_version.py").read_text(encoding="utf-8").split('"')[-2]
    assert version in run("python", "-m", "headeval", "--version")
