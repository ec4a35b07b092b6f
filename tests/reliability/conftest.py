"""A way to run the command line in this process, in an empty folder."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from headeval.cli.main import run


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def headeval(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Run headeval in an empty folder and return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "HEADEVAL_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = run([os.fspath(a) if isinstance(a, Path) else str(a) for a in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
