"""A command imports only what it uses: each is run in a process of its own, and its modules are looked at."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from documents import ROOT
from headeval.cli.main import run

SAMPLE = ROOT / "sample_data"
ROWS, SCORES = SAMPLE / "moderation_small.csv", SAMPLE / "scores.csv"

PROGRAM = """
import json, sys
from headeval.__main__ import main
try:
    main()
finally:
    with open("modules.json", "w") as file:
        json.dump(sorted(sys.modules), file)
"""
# The tables are read without these, whatever the command; a cluster and a remote file are for who asks for them.
NEVER = {"pandas", "scipy", "sklearn", "dask", "distributed", "fsspec", "numpy.testing", "pyarrow.dataset", "pygments"}
DRAWING = {"jinja2", "matplotlib", "headeval.render.page", "headeval.render.plots"}
DOCUMENTS = {"headeval.render.card", "headeval.render.junit", "xml.etree.ElementTree"}
TERMINAL = {"rich", "headeval.render.terminal"}
JUDGING = {"headeval.evaluation", "headeval.evidence", "headeval.core.bootstrap", "headeval.report", "headeval.curves"}


@dataclass(frozen=True)
class Ran:
    code: int
    modules: frozenset[str]
    err: str


def ran(arguments: Sequence[object], folder: Path) -> Ran:
    """Run a command, piped, where a package named pandas could be imported, and return what it has loaded."""
    (folder / "site" / "pandas").mkdir(parents=True, exist_ok=True)
    (folder / "site" / "pandas" / "__init__.py").write_text('__version__ = "3.0.0"\n')
    paths = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return Ran(done.returncode, frozenset(json.loads((folder / "modules.json").read_text())), done.stderr)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    folder = tmp_path_factory.mktemp("fitted")
    done = ran(["fit", ROWS, "--embedding-model", "all-MiniLM-L6-v2"], folder)
    assert done.code == 0, done.err
    return folder / "linear-head.json", done


@pytest.mark.parametrize("command", ["fit", "calibrate", "report"])
def test_a_missing_file_is_told_before_numpy_and_pyarrow_are_loaded(command: str, tmp_path: Path) -> None:
    done = ran([command, "absent.parquet"], tmp_path)
    assert done.code == 3
    assert done.err == "headeval: 'absent.parquet' does not exist\n"
    assert not done.modules & {"numpy", "pyarrow", "jsonschema", "rich"}


def test_fit_loads_neither_drawing_nor_a_progress_bar_when_piped(fitted: tuple[Path, Ran]) -> None:
    loaded = fitted[1].modules
    assert {"rich.table", "jsonschema", "headeval.solver.training"} <= loaded
    assert not loaded & (NEVER | DRAWING | DOCUMENTS | {"rich.progress", "rich.live", "rich.markdown", "rich.syntax"})
    assert "pyarrow.parquet" not in loaded  # the rows are CSV


def test_score_measures_nothing_and_loads_nothing_that_does(fitted: tuple[Path, Ran], tmp_path: Path) -> None:
    done = ran(["score", ROWS, "--head", fitted[0], "-o", "scored.csv"], tmp_path)
    assert done.code == 0, done.err
    assert {"numpy", "pyarrow", "jsonschema"} <= done.modules
    assert not done.modules & (NEVER | DRAWING | DOCUMENTS | TERMINAL | JUDGING)
    assert not {name for name in done.modules if name.startswith("headeval.solver")}


def test_a_report_as_json_of_a_score_file_loads_neither_schemas_nor_tables_for_the_eye(tmp_path: Path) -> None:
    done = ran(["report", SCORES, "--prob", "prob", "--format", "json"], tmp_path)
    assert done.code == 0, done.err
    assert {*JUDGING, "headeval.render.document"} <= done.modules
    assert not done.modules & (NEVER | DRAWING | DOCUMENTS | TERMINAL)
    unused = {"jsonschema", "referencing", "pyarrow.parquet", "headeval.render.markdown", "headeval.solver.training"}
    assert not done.modules & unused


def test_a_threshold_as_json_loads_no_tables_for_the_eye(fitted: tuple[Path, Ran], tmp_path: Path) -> None:
    done = ran(["threshold", "--plan", "--require", "fpr<=0.01", "--format", "json"], tmp_path)
    assert done.code == 0, done.err
    assert "headeval.render.threshold" in done.modules
    assert not done.modules & (NEVER | DRAWING | DOCUMENTS | TERMINAL | {"jsonschema"})


def test_pandas_is_hidden_from_the_process_of_a_command_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0  # as a test or a notebook does, after importing the command line
    assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("headeval")]
