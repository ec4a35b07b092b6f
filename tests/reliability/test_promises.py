"""docs/reliability.md names tests that are there, says which are slow, and leaves no file of this folder out."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from documents import ROOT

PAGE = ROOT / "docs" / "reliability.md"
TESTS = ROOT / "tests"


def named() -> list[tuple[str, str, bool]]:
    """Return file, test and whether it is called slow, of every test that the page names; a file alone has no test."""
    found = []
    file = ""
    for path, test, slow in re.findall(r"`([\w/]+\.py)?(?:::(\w+))?`( \(slow\))?", PAGE.read_text(encoding="utf-8")):
        file = path or file
        if path or test:
            found.append((file, test, bool(slow)))
    return found


@cache
def slowness(file: str) -> dict[str, bool]:
    """Return the tests of a file and whether each is slow."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    everything = any(ast.unparse(node).startswith("pytestmark = pytest.mark.slow") for node in tree.body)
    return {
        node.name: everything or any("mark.slow" in ast.unparse(mark) for mark in node.decorator_list)
        for node in functions
        if node.name.startswith("test_")
    }


@pytest.mark.skipif(not PAGE.exists(), reason="not a checkout")
def test_every_test_that_the_page_names_is_there_and_as_slow_as_it_says() -> None:
    tests = [(file, test, slow) for file, test, slow in named() if test]
    assert len(tests) > 100
    wrong = [f"{file}::{test}" for file, test, slow in tests if slowness(file).get(test) is not slow]
    assert wrong == []


@pytest.mark.skipif(not PAGE.exists(), reason="not a checkout")
def test_every_file_of_tests_here_keeps_a_promise_of_the_page() -> None:
    files = {path.relative_to(TESTS).as_posix() for path in Path(__file__).parent.glob("test_*.py")}
    assert files - {file for file, _, _ in named()} == {"reliability/test_promises.py"}
