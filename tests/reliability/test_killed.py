"""A command that is killed or interrupted, or whose reader has gone: old or new outputs, and no second word."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.errors import HeadError
from headeval.files.head_folder import read_heads, write_heads
from headeval.files.heads import write_head
from headeval.head import LinearHead

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

MOMENTS = 20  # at which each command is killed
COMMANDS = {
    "fit": "fit t.parquet --folds 0 -o out/h.json",
    "score": "score t.parquet --head head.json -o out/s.parquet",
    "fit folder": "fit t.parquet --label hate,spam,spite --folds 0 -o out/heads",
    "calibrate": "calibrate c.parquet --head head.json -o out/c.json",
    "threshold": "threshold c.parquet --head head.json --require fpr<=0.6 -o out/t.json",
    "report": "report c.parquet --head head.json --resamples 0 --require n>=1 --card out/a.md --junit out/a.xml",
}
# Each line of stdin is a run in a process of its own, made by fork where all is loaded already. In it every call that
# writes takes its time, and the process kills itself around the call of a given number, or is killed after some time.
SLOWED = """
import importlib, os, signal, sys, time
at, calls = 0, 0
def slowed(call):
    def slow(*given, **named):
        global calls
        calls += 1
        if calls == at: os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        try:
            return call(*given, **named)
        finally:
            if calls == -at: os.kill(os.getpid(), signal.SIGKILL)
    return slow
for name in ("open", "write", "fsync", "close", "link", "replace", "rename", "mkdir", "unlink", "rmdir"):
    setattr(os, name, slowed(getattr(os, name)))
for name in ("numpy", "pyarrow.parquet", "jsonschema", "headeval.cli.main", "headeval.files.heads",
             "headeval.files.output", "headeval.files.tables", "headeval.solver.training"):
    importlib.import_module(name)
from headeval.__main__ import main
sys.argv[0] = "headeval"
for line in sys.stdin:
    at, seconds = int(line.split()[0]), float(line.split()[1])
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        calls = 0
        try:
            main()
        finally:
            open("calls", "w").write(str(calls))
    if seconds:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
# The process sends itself a signal where a module begins to load or one of its functions is called, at one moment after
# the other; "name*2" is its second call. Modules are found by their path, and what they hold is replaced as they load.
SIGNALLED = """
import os, sys
from collections import Counter
from importlib.machinery import PathFinder
number, moments = int(sys.argv[1]), sys.argv[2].split(",")
del sys.argv[1:3]
calls = Counter()
def reached(name):
    calls[name] += 1
    place, _, count = (*moments, "")[0].partition("*")
    if place == name and calls[name] >= int(count or 1):
        with open("used", "a") as file:
            file.write(moments.pop(0) + "\\n")
        os.kill(os.getpid(), number)
def watched(name, call):
    def reaching(*given, **named):
        reached(name)
        return call(*given, **named)
    return reaching
class Finder:
    def find_spec(self, module, path=None, target=None):
        names = {moment.partition(":")[2].partition("*")[0] for moment in moments if moment.startswith(module + ":")}
        if not names:
            return None
        spec = PathFinder.find_spec(module, path)
        execute = spec.loader.exec_module
        def loading(loaded):
            reached(module + ":<module>")
            execute(loaded)
            for name in names - {"<module>"}:
                *owner, last = name.split(".")
                holder = getattr(loaded, owner[0]) if owner else loaded
                setattr(holder, last, watched(module + ":" + name, getattr(holder, last)))
        spec.loader.exec_module = loading
        return spec
sys.meta_path.insert(0, Finder())
from headeval.__main__ import main
sys.argv[0] = "headeval"
main()
"""
# A signal at the line of a given number of what is ours; the first is `try`, which does nothing yet.
FIRST_LINES = """
import os, sys
number, at, seen = int(sys.argv[1]), int(sys.argv[2]), 0
sys.argv[:] = ["headeval", "--version"]
def lines(frame, event, _):
    global seen
    if not frame.f_code.co_filename.endswith(("headeval/__main__.py", "cli/signals.py")):
        return None
    if event == "line":
        seen += 1
        if seen == at:
            os.kill(os.getpid(), number)
    return lines
from headeval.__main__ import main
sys.settrace(lines)
main()
"""


def head(w: float) -> LinearHead:
    return LinearHead.binary([w, 0, 0, 0], 0, classes=("0", "1"), embedding_model="unspecified")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with tables and a head, and an empty one for outputs."""
    for name, seed in (("t", 0), ("c", 1)):
        rng = np.random.default_rng(seed)
        e = rng.normal(size=(60, 4)).astype(np.float32)
        columns = {"embedding": pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), 4)}
        for at, label in enumerate(("label", "hate", "spam", "spite")):
            columns[label] = pa.array((e[:, at] + rng.normal(size=60) > 0).astype(int))
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet", row_group_size=20)
    (tmp_path / "out").mkdir()
    write_head(head(1.5), tmp_path / "head.json")
    return tmp_path


def headeval(folder: Path, command: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    arguments = [sys.executable, "-m", "headeval", *command.split(), *options]
    return subprocess.run(arguments, cwd=folder, capture_output=True, check=False, timeout=300)


def program(folder: Path, text: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", text, *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def finished(found: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in found.items() if ".headeval-" not in name}


def put(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


class Slowed:
    """A program that runs one command again and again, each time in a process of its own."""

    def __init__(self, place: Path, command: str, text: str = SLOWED) -> None:
        self.place = place
        self.program = subprocess.Popen(
            [sys.executable, "-c", text, *command.split(), "--quiet", "--force"],
            cwd=place,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, at: int = 0, seconds: float = 0) -> int:
        """Kill it around a call or after some seconds, and return how it ended."""
        assert self.program.stdin is not None
        assert self.program.stdout is not None
        self.program.stdin.write(f"{at} {seconds}\n")
        self.program.stdin.flush()
        return int(self.program.stdout.readline())

    def __enter__(self) -> "Slowed":
        return self

    def __exit__(self, *_: object) -> None:
        self.program.communicate(timeout=60)


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("name", ["fit", "score", "fit folder"])
def test_a_command_killed_at_any_moment_leaves_old_or_new_bytes(name: str, place: Path) -> None:
    """What a kill leaves beside them is hidden, named .headeval-*.tmp, and disturbs no later run."""
    out, rng = place / "out", random.Random(name)
    with Slowed(place, COMMANDS[name]) as slowed:
        assert slowed.run() == 0
        new = tree(out)
        old = {file: old_bytes(file, content) for file, content in new.items()}
        assert all(old[file] != new[file] for file in new)
        put(out, old)
        began = time.monotonic()
        assert slowed.run() == 0
        took, calls = time.monotonic() - began, int((place / "calls").read_text())
        mixed, killed = 0, 0
        for moment in range(MOMENTS):
            put(out, old)
            by_itself = moment % 2 == 0
            at = rng.choice((1, -1)) * rng.randint(1, calls)
            ended = slowed.run(at=at) if by_itself else slowed.run(seconds=rng.uniform(0.001, took))
            assert ended == -signal.SIGKILL or (ended == 0 and not by_itself)
            killed += ended == -signal.SIGKILL
            found = finished(tree(out))
            assert found.keys() == old.keys()
            assert all(content in (old[file], new[file]) for file, content in found.items())
            assert all(path.name.startswith(".headeval-") and path.suffix == ".tmp" for path in hidden(out))
            if found not in (old, new):  # several files are not one: then no reader takes them
                mixed += 1
                with pytest.raises(HeadError, match="may be a mix of old and new"):
                    read_heads(out / "heads")
                assert slowed.run() == 0
                assert finished(tree(out)) == new
            if name == "fit folder":
                assert len(read_heads(out / "heads")) == 3
        assert killed > MOMENTS // 2
        assert mixed == 0 or name == "fit folder"
        put(out, old)
        assert slowed.run() == 0
        assert finished(tree(out)) == new


def old_bytes(file: str, new: bytes) -> bytes:
    """Another head, or another table."""
    return new.replace(b'"threshold": 0.5', b'"threshold": 0.4') if file.endswith("json") else b"old"


def hidden(folder: Path) -> list[Path]:
    return [path for path in (*folder.iterdir(), *folder.glob("heads/*")) if path.name.startswith(".")]


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("existing", [(), ("spite",)], ids=["an empty folder", "a folder that lacks heads"])
def test_heads_of_which_some_are_missing_after_a_kill_are_not_taken_for_all(
    existing: tuple[str, ...], place: Path
) -> None:
    """Old heads that were not there cannot be missed: the folder says by itself that not all are placed."""
    heads = place / "out" / "heads"
    heads.mkdir()
    write_heads(heads, dict.fromkeys(("hate", "spam", "spite"), head(2)), force=False)
    for file in {"hate", "spam", "spite"} - set(existing):
        (heads / f"{file}.json").unlink()
    with Slowed(
        place, COMMANDS["fit folder"], SLOWED.replace("if calls == -at", "if call.__name__ == 'replace'")
    ) as killed:
        assert killed.run() == -signal.SIGKILL
    assert finished(tree(heads)).keys() == {"hate.json", *(f"{name}.json" for name in existing)}
    with pytest.raises(HeadError, match="may be a mix of old and new"):
        read_heads(heads)
    judged = headeval(place, "report c.parquet --head out/heads --label hate --resamples 0")
    assert (judged.returncode, judged.stdout) == (4, b"")
    assert headeval(place, COMMANDS["fit folder"], "--quiet", "--force").returncode == 0
    assert not hidden(heads)
    assert list(read_heads(heads)) == ["hate", "spam", "spite"]


ATOMIC, REPLACEMENT = "headeval.files.atomic", "headeval.files.head_replacement"
WRITING, PUBLISHING = f"{ATOMIC}:_OutputFile.write", f"{ATOMIC}:_publish"
PLACES = {
    "loading the command line": ("fit", "headeval.cli.main:<module>"),
    "loading numpy": ("fit", "numpy:<module>"),
    "loading pyarrow": ("score", "pyarrow:<module>"),
    "opening": ("calibrate", "headeval.files.tables:open_tables"),
    "reading": ("report", "headeval.files.tables:Tables.blocks"),
    "fitting": ("fit", "headeval.solver.training:train"),
    "writing a table": ("score", WRITING),
    "writing a head": ("calibrate", WRITING),
    "writing heads": ("fit folder", f"{REPLACEMENT}:put_in_place"),
    "between two heads": ("fit folder", f"{REPLACEMENT}:_publish*2,{REPLACEMENT}:_put_back"),
    "naming documents": ("report", PUBLISHING),
    "printing": ("threshold", "headeval.cli.console:show"),
    "leaving": ("report", "headeval.cli.main:_flushed"),
    "three times": ("threshold", f"{PUBLISHING},{ATOMIC}:_discard,{ATOMIC}:_discard*2"),
    "four times": (
        "fit folder",
        f"{PUBLISHING},{ATOMIC}:_discard,{REPLACEMENT}:_remove,{REPLACEMENT}:_remove*2",
    ),
}
QUICK = {"loading numpy": signal.SIGINT, "writing a table": signal.SIGTERM, "three times": signal.SIGINT}
# Both signals for what is answered in ways of its own, and one of them elsewhere.
SLOW = [
    (moment, number)
    for at, moment in enumerate(PLACES)
    for number in (signal.SIGINT, signal.SIGTERM)
    if QUICK.get(moment) != number
    and (moment in {"loading the command line", "between two heads"} or (number == signal.SIGINT) == (at % 2 == 0))
]


def check_signal(place: Path, moment: str, number: signal.Signals) -> None:
    name, at = PLACES[moment]
    if moment in {"writing heads", "between two heads"}:
        (place / "out" / "heads").mkdir()
        write_heads(place / "out" / "heads", dict.fromkeys(("hate", "spam", "spite"), head(2)), force=False)
    old = tree(place / "out")
    with program(place, SIGNALLED, str(int(number)), at, *COMMANDS[name].split(), "--quiet", "--force") as child:
        out, err = child.communicate(timeout=300)
    assert (child.returncode, err) == (128 + number, b"")
    assert (place / "used").read_text().splitlines() == at.split(",")
    assert out == b"" or moment in {"leaving", "printing"}
    found = tree(place / "out")
    assert not hidden(place / "out")
    if moment in {"leaving", "printing"}:
        assert found
    else:
        assert found == old


@pytest.mark.parametrize("moment", QUICK)
def test_a_signal_has_its_code_and_leaves_nothing(moment: str, place: Path) -> None:
    check_signal(place, moment, QUICK[moment])


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "number"), SLOW)
def test_a_signal_at_any_moment_of_any_command_has_its_code_and_leaves_nothing(
    moment: str, number: signal.Signals, place: Path
) -> None:
    """Also a second and a third one, which come while the first is being obeyed."""
    check_signal(place, moment, number)


@pytest.mark.slow
def test_an_interrupt_at_any_line_from_the_first_of_ours_is_130_without_a_word(tmp_path: Path) -> None:
    for at in range(2, 100):
        with program(tmp_path, FIRST_LINES, str(int(signal.SIGINT)), str(at)) as child:
            out, err = child.communicate(timeout=300)
        if child.returncode == 0:  # past the last line, or past the one that says to ignore what comes as we leave
            break
        assert (child.returncode, err) == (130, b""), at
    assert at > 20
    assert out.startswith(b"headeval ")


def gone(folder: Path, command: str) -> tuple[int, bytes]:
    """Run with a stdout whose reader has gone; return exit code and stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    arguments = [sys.executable, "-m", "headeval", *command.split()]
    try:
        done = subprocess.run(arguments, cwd=folder, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=300)
    finally:
        os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fit folder", "threshold", "report"])
def test_a_closed_pipe_is_141_without_a_word_and_the_outputs_are_complete(name: str, place: Path) -> None:
    assert headeval(place, COMMANDS[name], "--quiet").returncode == 0
    new = tree(place / "out")
    for path in (place / "out").rglob("*.*"):
        path.unlink()
    assert gone(place, f"{COMMANDS[name]} --quiet --force") == (141, b"")
    assert tree(place / "out") == new


@pytest.mark.slow
@pytest.mark.parametrize("command", ["--help", "--version", "fit --help", ""])
def test_a_closed_pipe_is_141_for_what_is_only_said(command: str, place: Path) -> None:
    assert gone(place, command) == (141, b"")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_was_told_to_ignore_a_signal_goes_on_ignoring_it(number: signal.Signals, place: Path) -> None:
    """As under nohup, in the background of a script, or after `trap ''`."""
    text = f"import signal; signal.signal({int(number)}, signal.SIG_IGN)\n" + SIGNALLED
    with program(place, text, str(int(number)), WRITING, *COMMANDS["fit"].split(), "--quiet") as child:
        _, err = child.communicate(timeout=300)
    assert (child.returncode, err) == (0, b"")
    assert (place / "used").exists()
    assert (place / "out" / "h.json").exists()
