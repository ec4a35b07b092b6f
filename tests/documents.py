"""Runs a document: what its blocks show must be what happens.

In one temporary folder holding copies of sample_data and schemas:

- ```console blocks run in order in one shell: lines `$ command` (continued after a backslash by lines `> …`), each
  followed by its exact output, stdout and stderr together. Trailing spaces do not count; a line `...` stands for any
  number of lines; of a listing by `--help`, whose layout is typer's, only the words count. `$ echo $?` checks the exit
  code of the command before.
- ```python and ```sh blocks run afterwards, each by itself; a ```text block that directly follows a ```python block is
  its output.
- A ```sh block below `<!-- first command -->` or `<!-- test command -->` sets an environment up and is not run here.
- ```json blocks must parse. ```yaml and ```text blocks are only shown. Nothing else is allowed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SETUP = ("first command", "test command")
LANGUAGES = {"console", "python", "sh", "json", "yaml", "text"}
LONGEST_RUN = 300  # seconds; a hanging document must fail, not wait


# --- reading a document


@dataclass(frozen=True)
class Fence:
    """A fenced block: its language, the setup marker above it, its lines and where they stand (from 0)."""

    language: str
    marker: str
    start: int
    lines: tuple[str, ...]
    follows: "Fence | None"  # the block before, when only blank lines lie between

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


@dataclass(frozen=True)
class Step:
    """A command of a console block and the lines shown below it, at `start` … `stop` of the document."""

    command: str
    expected: tuple[str, ...]
    start: int
    stop: int


def fences(text: str) -> list[Fence]:
    found: list[Fence] = []
    lines = text.splitlines()
    previous, marker, position = None, "", 0
    while position < len(lines):
        line = lines[position]
        if line.startswith("```"):
            end = lines.index("```", position + 1)
            block = Fence(line[3:].strip(), marker, position + 1, tuple(lines[position + 1 : end]), previous)
            found.append(block)
            previous, marker, position = block, "", end
        elif line.strip():
            comment = re.fullmatch(r"<!-- (.*) -->", line)
            previous, marker = None, comment[1] if comment and comment[1] in SETUP else ""
        position += 1
    return found


def steps(block: Fence) -> list[Step]:
    found: list[Step] = []
    position = 0
    while position < len(block.lines):
        first = block.lines[position]
        assert first.startswith("$ "), f"line {block.start + position + 1}: expected `$ command`, found {first!r}"
        command = [first[2:]]
        position += 1
        while command[-1].endswith("\\"):
            continued = block.lines[position]
            assert continued.startswith("> "), f"line {block.start + position + 1}: expected `> `, found {continued!r}"
            command.append(continued[2:])
            position += 1
        start = position
        while position < len(block.lines) and not block.lines[position].startswith("$ "):
            position += 1
        place = block.start + start
        found.append(Step("\n".join(command), block.lines[start:position], place, block.start + position))
    return found


def console_steps(text: str) -> list[Step]:
    return [step for block in fences(text) if block.language == "console" for step in steps(block)]


# --- running it


def environment() -> dict[str, str]:
    """What a reader's shell has, less what would change an output from one machine to another."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {"PATH": path, "LC_ALL": "C.UTF-8", "HOME": os.environ.get("HOME", "/")}


def prepare(folder: Path) -> None:
    for name in ("sample_data", "schemas"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


def checkout_files() -> list[Path]:
    """The files that are, or would be, in a commit; outside a git checkout the test is skipped."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    # The folder may belong to another user than the one who runs the tests.
    command = [git, "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def copy_checkout(folder: Path) -> Path:
    """Copy into `folder` what a clone of the working tree would hold."""
    for path in checkout_files():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return folder


def run(command: list[str], folder: Path) -> tuple[int, list[str]]:
    """Exit code and output lines, stdout and stderr together."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=LONGEST_RUN,
        check=False,
    )
    return done.returncode, done.stdout.split("\n")


def run_steps(commands: list[str], folder: Path) -> list[list[str]]:
    """Run the commands in one shell, so that variables, `cd` and `$?` carry over; return each one's output."""
    marks = [f"--- output of command {number} ends ---" for number in range(len(commands))]
    script = ["code=0"]
    for command, mark in zip(commands, marks, strict=True):
        # The subshell gives `$?` back what the last command left there.
        script += ["(exit $code)", command, "code=$?", f"printf '\\n%s\\n' '{mark}'"]
    _, lines = run(["bash", "-c", "\n".join(script)], folder)
    outputs = []
    for command, mark in zip(commands, marks, strict=True):
        assert mark in lines, f"the shell did not get past: {command}\n" + "\n".join(lines)
        end = lines.index(mark)
        outputs.append(tidy(lines[:end]))
        lines = lines[end + 1 :]
    return outputs


def tidy(lines: list[str] | tuple[str, ...]) -> list[str]:
    """Lines without trailing spaces, and without blank lines at the end."""
    kept = [line.rstrip() for line in lines]
    while kept and not kept[-1]:
        kept.pop()
    return kept


def agrees(expected: list[str], found: list[str]) -> bool:
    """Are the lines equal, `...` standing for any number of lines?"""
    pattern = "".join("(?:.*\n)*" if line == "..." else re.escape(f"{line}\n") for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in found)) is not None


def help_agrees(expected: list[str], found: list[str]) -> bool:
    """Do two listings of options say the same? Their layout is typer's, and changes with its version."""

    def said(lines: list[str]) -> str:
        text = "".join("".join(line.split()) for line in lines if not line.startswith("Usage:"))
        return re.sub(r"<list\[\w+\]>", "", text)

    return said(expected) == said(found)


@dataclass(frozen=True)
class Outcome:
    """What a part of the document says, at lines `start` … `stop`, and what happened; None where it says nothing."""

    part: str
    expected: list[str]
    found: list[str]
    right: bool
    start: int | None
    stop: int | None


def outcomes(text: str, folder: Path) -> Iterator[Outcome]:
    """Run a whole document in `folder`."""
    commands = console_steps(text)
    for step, found in zip(commands, run_steps([step.command for step in commands], folder), strict=True):
        expected = tidy(step.expected)
        same = help_agrees if step.command.endswith(" --help") else agrees
        part = f"line {step.start}: $ {step.command}"
        yield Outcome(part, expected, found, same(expected, found), step.start, step.stop)
    blocks = fences(text)
    for block in blocks:
        if block.language == "python":
            shown = [other for other in blocks if other.follows is block and other.language == "text"]
            yield python_outcome(block, shown[0] if shown else None, folder)
        elif block.language == "sh" and not block.marker:
            code, lines = run(["bash", "-ec", block.text], folder)
            yield Outcome(f"line {block.start}: sh, exit code {code}", [], tidy(lines), code == 0, None, None)


def python_outcome(block: Fence, shown: Fence | None, folder: Path) -> Outcome:
    code, lines = run([sys.executable, "-c", block.text], folder)
    expected, found = tidy(shown.lines) if shown else [], tidy(lines)
    part = f"line {block.start}: python, exit code {code}"
    if code != 0 or shown is None:
        return Outcome(part, expected, found, code == 0 and not found, None, None)
    return Outcome(part, expected, found, agrees(expected, found), shown.start, shown.start + len(shown.lines))


def complaints(text: str, folder: Path) -> list[str]:
    """Run a whole document in `folder` and say what differs."""
    wrong = [outcome for outcome in outcomes(text, folder) if not outcome.right]
    return [
        "\n".join([one.part, "--- the document says", *one.expected, "--- this happened", *one.found]) for one in wrong
    ]


def rewritten(text: str, folder: Path) -> str:
    """The document with what really happens in its blocks; what agrees already, `...` included, stays."""
    lines = text.splitlines()
    wrong = [one for one in outcomes(text, folder) if not one.right and one.start is not None]
    for one in sorted(wrong, key=lambda one: one.start or 0, reverse=True):
        lines[one.start : one.stop] = one.found
    return "".join(f"{line}\n" for line in lines)
