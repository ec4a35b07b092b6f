"""README.md and docs/*.md are executable: what they show is what happens (documents.py says how they are run).

`python tests/test_readme.py --rewrite` writes the real outputs into the blocks, and the pictures beside the pages.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from documents import LANGUAGES, ROOT, complaints, copy_checkout, environment, fences, help_agrees, prepare, rewritten
from headeval import errors

README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = ("fit", "score", "calibrate", "threshold", "report")
BESIDE_THE_CLASSES = {0, 1, 70, 130, 141, 143}  # exit codes that are no error of the user's input


# --- the documents


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


needs_readme = pytest.mark.skipif(not read(README), reason="README.md is empty")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_document_shows_what_happens(path: Path, tmp_path: Path) -> None:
    prepare(tmp_path)
    found = complaints(read(path), tmp_path)
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_block_escapes_the_checks(path: Path) -> None:
    text = read(path)
    unknown = [f"line {block.start}: {block.language!r}" for block in fences(text) if block.language not in LANGUAGES]
    assert not unknown
    assert not re.findall(r"^(?:[ \t>]+```|~~~).*$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_json_blocks_parse(path: Path) -> None:
    for block in fences(read(path)):
        if block.language == "json":
            json.loads(block.text)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_pictures_are_there(path: Path) -> None:
    for name in pictures(read(path)):
        assert "<svg" in (path.parent / name).read_text(encoding="utf-8")


def pictures(text: str) -> list[str]:
    return re.findall(r"^!\[.+\]\((.+)\)$", text, flags=re.MULTILINE)


def setup_command(text: str, marker: str) -> str:
    found = [block for block in fences(text) if block.marker == marker]
    assert [(block.language, len(block.lines)) for block in found] == [("sh", 1)], f"one line of sh after {marker!r}"
    return found[0].lines[0]


@needs_readme
def test_ci_finds_the_test_command() -> None:
    done = subprocess.run([str(ROOT / ".ci" / "test_command")], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.rstrip("\n") == setup_command(read(README), "test command")


@pytest.mark.slow
@needs_readme
def test_the_first_command_works_in_a_fresh_clone(tmp_path: Path) -> None:
    clone = copy_checkout(tmp_path)
    command = setup_command(read(README), "first command")
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COLUMNS"))}
    surroundings["PATH"] = environment()["PATH"]
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=clone,
        env=surroundings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^.*\bauc\b.*\d\.\d+", done.stdout, flags=re.IGNORECASE | re.MULTILINE), done.stdout
    assert json.loads((clone / "linear-head.json").read_text(encoding="utf-8"))["dim"] == 384


# --- the command line is documented


def help_text(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "headeval", *arguments, "--help"],
        capture_output=True,
        encoding="utf-8",
        # Wide enough that no name is broken over two lines.
        env={**environment(), "COLUMNS": "250", "TERMINAL_WIDTH": "250"},
        check=True,
    )
    return done.stdout


def options_of(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


def commands_of(text: str) -> set[str]:
    """Names in the first column below the heading `Commands`, framed or not."""
    listing = text.split("Commands", 1)[-1].splitlines()[1:]
    return {found[1] for line in listing if (found := re.match(r"[│|]?\s{1,2}([a-z][a-z-]*)\s{2,}", line))}


@needs_readme
def test_every_command_and_option_is_documented() -> None:
    documented = "\n".join(read(path) for path in DOCUMENTS)
    assert commands_of(help_text()) == set(COMMANDS)
    for command in COMMANDS:
        assert f"headeval {command}" in documented
        offered = options_of(help_text(command))
        assert "--help" in offered
        missing = offered - options_of(documented)
        assert not missing, f"headeval {command}"


def documented_codes(text: str) -> set[int]:
    """First cells of the table below the heading that speaks of exit codes."""
    section = re.split(r"^#+ .*exit codes.*$", text, maxsplit=1, flags=re.IGNORECASE | re.MULTILINE)[-1]
    section = re.split(r"^#+ ", section, maxsplit=1, flags=re.MULTILINE)[0]
    return {int(code) for code in re.findall(r"^\|\s*`?(\d+)`?\s*\|", section, flags=re.MULTILINE)}


@needs_readme
def test_documented_exit_codes_are_those_of_the_errors() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    codes = {kind.exit_code for kind in classes if issubclass(kind, errors.HeadevalError)}
    assert documented_codes(read(README)) == codes | BESIDE_THE_CLASSES


# --- the harness itself, on small documents


def document(*blocks: str) -> str:
    return "\n\n".join(["# A document", *blocks]) + "\n"


SHELL = "```console\n$ echo one \\\n> two   \none two\n$ (exit 3)\n$ echo $?\n3\n```"
STATE = "```console\n$ word=kept; cd sample_data\n```\n\n```console\n$ echo $word $(ls scores.*)\nkept scores.csv\n```"
PYTHON = '```python\nprint("a")\nprint("b")\n```\n\n```text\na\nb\n```'

RIGHT = {
    "output, continuation and exit code": SHELL,
    "state from block to block": STATE,
    "stderr": "```console\n$ echo wrong >&2\nwrong\n```",
    "no newline at the end": "```console\n$ printf x\nx\n$ echo y\ny\n```",
    "any number of lines": "```console\n$ seq 5\n1\n...\n5\n$ seq 2\n1\n...\n2\n```",
    "not a terminal": "```console\n$ test -t 1 || echo piped; echo ${COLUMNS-unset}\npiped\nunset\n```",
    "python and its output": PYTHON,
    "silent python": "```python\nx = 1\n```\n\nShown only:\n\n```text\nanything\n```",
    "sh": "```sh\ntest -f schemas/x || true\n```",
    "blank lines between commands": "```console\n$ echo a\na\n\n$ echo b\nb\n```",
    "setup is not run here": "<!-- first command -->\n```sh\nexit 1\n```",
}
WRONG = {
    "other output": "```console\n$ echo one\ntwo\n```",
    "an exit code": "```console\n$ (exit 3)\n$ echo $?\n0\n```",
    "output that is not shown": "```console\n$ echo one\n```",
    "output that is not there": "```console\n$ true\none\n```",
    "one line too many": "```console\n$ seq 3\n1\n2\n```",
    "a gap before a missing line": "```console\n$ seq 5\n1\n...\n6\n```",
    "a pattern taken for text": "```console\n$ echo abc\na.c\n```",
    "python that prints something else": PYTHON.replace("\na\nb\n", "\na\nc\n"),
    "python that prints unseen": "```python\nprint(1)\n```",
    "python that fails": "```python\nraise SystemExit(1)\n```",
    "sh that fails halfway": "```sh\nfalse\ntrue\n```",
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_a_right_document_passes(text: str, tmp_path: Path) -> None:
    prepare(tmp_path)
    assert complaints(document(text), tmp_path) == []


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_wrong_document_fails(text: str, tmp_path: Path) -> None:
    assert len(complaints(document(text), tmp_path)) == 1


@pytest.mark.parametrize(
    "text", ["```console\necho one\n```", "```console\n$ echo \\\none\n```", "```console\n$ exit 1\n$ true\n```"]
)
def test_a_malformed_document_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        complaints(document(text), tmp_path)


def test_rewriting_replaces_what_differs_and_keeps_what_agrees(tmp_path: Path) -> None:
    old = document("```console\n$ echo one\nold\nlines\n$ seq 9\n1\n...\n$ echo two\n```", "The end.")
    new = document("```console\n$ echo one\none\n$ seq 9\n1\n...\n$ echo two\ntwo\n```", "The end.")
    assert rewritten(old, tmp_path) == new
    assert rewritten(new, tmp_path) == new


def test_rewriting_fills_in_what_python_prints_but_no_traceback(tmp_path: Path) -> None:
    old = document(PYTHON.replace("\na\nb\n", "\n"), "```python\n1 / 0\n```\n\n```text\nunknown\n```")
    assert rewritten(old, tmp_path) == old.replace("```text\n```", "```text\na\nb\n```")


def test_of_a_help_listing_only_the_words_count() -> None:
    old = ["Usage: x [OPTIONS] {DATA}", "", "  DATA  Files.", "  --force  Replace an", "           output."]
    new = ["Usage: x [OPTIONS] {DATA}...", "", "  DATA <list[str]>  Files.", "  --force  Replace an output."]
    assert help_agrees(old, new)
    assert not help_agrees(old, [*new, "  --other  More."])


def test_setup_commands_are_one_marked_line() -> None:
    text = document("<!-- test command -->\n```sh\nmake me\n```", "```sh\nother\n```")
    assert setup_command(text, "test command") == "make me"
    with pytest.raises(AssertionError, match="one line of sh"):
        setup_command(text, "first command")


def test_help_is_read_framed_or_plain() -> None:
    plain = "Usage\n\nOptions:\n  --help  x\n\nCommands:\n  fit    Fit a head.\n  score  Score.\n"
    framed = "Usage\n╭─ Commands ─╮\n│ fit    Fit.   │\n│ score  Score. │\n╰─╯\n"
    assert commands_of(plain) == commands_of(framed) == {"fit", "score"}
    assert options_of("--l2, --require 'auc>=0.95' -o/--output, a--b, --by") == {
        "--l2",
        "--require",
        "--output",
        "--by",
    }


def test_exit_codes_are_read_from_their_table_only() -> None:
    text = "## Exit codes\n\n| code | |\n|---|---|\n| 0 | done |\n| `70` | bug |\n\n## Else\n\n| 9 | x |\n"
    assert documented_codes(text) == {0, 70}


def rewrite() -> None:
    for path in DOCUMENTS:
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder))
            old = read(path)
            new = rewritten(old, Path(folder))
            if new != old:
                path.write_text(new, encoding="utf-8")
                print(f"rewritten: {path.relative_to(ROOT)}")
            for name in pictures(old):  # which its own commands have drawn
                (path.parent / name).parent.mkdir(exist_ok=True)
                shutil.copyfile(Path(folder) / name, path.parent / name)


if __name__ == "__main__":
    if sys.argv[1:] != ["--rewrite"]:
        sys.exit("usage: python tests/test_readme.py --rewrite")
    rewrite()
