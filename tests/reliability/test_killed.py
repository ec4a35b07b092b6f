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
from headeval.files.head_folder import read_heads

MOMENTS = 20  # at which each command is killed
COMMANDS = {
    "fit": "fit t.parquet --folds 0 -o out/h.json",
    "score": "score t.parquet --head head.json -o out/s.parquet",
    "fit folder": "fit t.parquet --label hate,spam,spite --folds 0 -o out/heads",
    "calibrate": "calibrate c.parquet --head head.json -o out/c.json",
    "threshold": "threshold c.parquet --head head.json --require fpr<=0.6 -o out/t.json",
    "report": "report c.parquet --head head.json --resamples 0 --require n>=1 --card out/a.md --junit out/a.xml",
}
# Every call that writes takes its time, and the process kills itself around the call of a given number.
SLOWED = """
import os, signal, sys, time
at, calls = int(sys.argv.pop(1)), 0
def slowed(call):
    def slow(*given, **named):
        global calls
        calls += 1
        if calls == at: os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        result = call(*given, **named)
        if calls == -at: os.kill(os.getpid(), signal.SIGKILL)
        return result
    return slow
for name in ("open", "write", "fsync", "close", "link", "replace", "rename", "mkdir", "unlink", "rmdir"):
    setattr(os, name, slowed(getattr(os, name)))
from headeval.__main__ import main
sys.argv[0] = "headeval"
try:
    main()
finally:
    open("calls", "w").write(str(calls))
"""
# The process sends itself a signal where a function of a module begins; of several, at one after the other.
SIGNALLED = """
import os, sys
number, moments = int(sys.argv[1]), sys.argv[2].split(",")
del sys.argv[1:3]
def at_a_moment(frame, event, _):
    if event == "call" and moments and f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}" == moments[0]:
        del moments[0]
        os.kill(os.getpid(), number)
from headeval.__main__ import main
sys.setprofile(at_a_moment)
sys.argv[0] = "headeval"
main()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with tables and a head, and an empty one for outputs."""
    for name, seed in (("t", 0), ("c", 1)):
        rng = np.random.default_rng(seed)
        e = rng.normal(size=(300, 4)).astype(np.float32)
        columns = {"embedding": pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), 4)}
        for at, label in enumerate(("label", "hate", "spam", "spite")):
            columns[label] = pa.array((e[:, at] + rng.normal(size=300) > 0).astype(int))
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet", row_group_size=50)
    (tmp_path / "out").mkdir()
    done = headeval(tmp_path, "fit t.parquet --folds 0 -o head.json")
    assert done.returncode == 0, done.stderr
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fit", "score", "fit folder"])
def test_a_command_killed_at_any_moment_leaves_old_or_new_bytes(name: str, place: Path) -> None:
    """What a kill leaves beside them is hidden, named .headeval-*.tmp, and disturbs no later run."""
    out, command = place / "out", COMMANDS[name].split()
    assert headeval(place, COMMANDS[name], "--quiet").returncode == 0
    new = tree(out)
    old = {file: content.replace(b"0.5", b"0.4") if file.endswith("json") else b"old" for file, content in new.items()}
    put(out, old)
    began = time.monotonic()
    with program(place, SLOWED, "0", *command, "--quiet", "--force") as child:
        child.communicate(timeout=300)
    took, calls = time.monotonic() - began, int((place / "calls").read_text())
    assert finished(tree(out)) == new
    rng = random.Random(name)
    mixed, killed = 0, 0
    for moment in range(MOMENTS):
        put(out, old)
        by_itself = moment % 2 == 0
        at = rng.choice((1, -1)) * rng.randint(1, calls) if by_itself else 0
        with program(place, SLOWED, str(at), *command, "--quiet", "--force") as child:
            if not by_itself:
                time.sleep(rng.uniform(0, took))
                child.kill()
            child.communicate(timeout=300)
        killed += child.returncode == -signal.SIGKILL
        found = finished(tree(out))
        assert found.keys() == old.keys()
        assert all(content in (old[file], new[file]) for file, content in found.items())
        assert all(path.name.startswith(".headeval-") and path.suffix == ".tmp" for path in hidden(out))
        if found not in (old, new):  # several files are not one: then no reader takes them
            mixed += 1
            with pytest.raises(HeadError, match="may be a mix of old and new"):
                read_heads(out / "heads")
            assert headeval(place, COMMANDS[name], "--quiet", "--force").returncode == 0
        if name == "fit folder":
            assert len(read_heads(out / "heads")) == 3
    assert killed > MOMENTS // 2
    assert mixed == 0 or name == "fit folder"
    put(out, old)
    assert headeval(place, COMMANDS[name], "--quiet", "--force").returncode == 0
    assert finished(tree(out)) == new


def hidden(folder: Path) -> list[Path]:
    return [path for path in (*folder.iterdir(), *folder.glob("heads/*")) if path.name.startswith(".")]


@pytest.mark.slow
@pytest.mark.parametrize("existing", [(), ("spite",)], ids=["an empty folder", "a folder that lacks heads"])
def test_heads_of_which_some_are_missing_after_a_kill_are_not_taken_for_all(
    existing: tuple[str, ...], place: Path
) -> None:
    """Old heads that were not there cannot be missed: the folder says by itself that not all are placed."""
    heads = place / "out" / "heads"
    assert headeval(place, COMMANDS["fit folder"], "--quiet").returncode == 0
    new = tree(heads)
    for file in set(new) - {f"{name}.json" for name in existing}:
        (heads / file).unlink()
    text = SLOWED.replace("if calls == -at", "if call.__name__ == 'replace' and calls > 0")
    with program(place, text, "0", *COMMANDS["fit folder"].split(), "--quiet", "--force") as child:
        child.communicate(timeout=300)
    assert child.returncode == -signal.SIGKILL
    assert finished(tree(heads)).keys() == {"hate.json", *(f"{name}.json" for name in existing)}
    with pytest.raises(HeadError, match="may be a mix of old and new"):
        read_heads(heads)
    judged = headeval(place, "report c.parquet --head out/heads --label hate --resamples 0")
    assert (judged.returncode, judged.stdout) == (4, b"")
    assert headeval(place, COMMANDS["fit folder"], "--quiet", "--force").returncode == 0
    assert tree(heads) == new
    assert list(read_heads(heads)) == ["hate", "spam", "spite"]


WRITING = "headeval.files.atomic:write"
PUBLISHING = "headeval.files.atomic:_publish"
PLACES = {
    "loading the command line": ("fit", "headeval.cli.main:<module>"),
    "loading numpy": ("fit", "numpy:<module>"),
    "loading pyarrow": ("score", "pyarrow:<module>"),
    "opening": ("calibrate", "headeval.files.tables:open_tables"),
    "reading": ("report", "headeval.files.tables:blocks"),
    "fitting": ("fit", "headeval.solver.training:train"),
    "writing a table": ("score", WRITING),
    "writing a head": ("calibrate", WRITING),
    "writing heads": ("fit folder", "headeval.files.head_replacement:put_in_place"),
    "between two heads": (
        "fit folder",
        "headeval.files.head_replacement:_publish,headeval.files.head_replacement:_put_back",
    ),
    "making a folder of heads": ("fit folder", WRITING),
    "naming documents": ("report", PUBLISHING),
    "printing": ("threshold", "headeval.cli.console:show"),
    "leaving": ("report", "headeval.cli.main:_flushed"),
    "twice": ("threshold", f"{PUBLISHING},headeval.files.atomic:_remove"),
    "three times": (
        "fit folder",
        f"{PUBLISHING},headeval.files.atomic:_remove,headeval.files.head_replacement:_remove",
    ),
}
QUICK = {"loading numpy": signal.SIGINT, "writing a table": signal.SIGTERM, "twice": signal.SIGINT}


def check_signal(place: Path, moment: str, number: signal.Signals) -> None:
    name, at = PLACES[moment]
    old: dict[str, bytes] = {}
    if moment == "between two heads":
        assert headeval(place, COMMANDS[name], "--l2", "9", "--quiet").returncode == 0
        old = tree(place / "out")
    with program(place, SIGNALLED, str(int(number)), at, *COMMANDS[name].split(), "--quiet", "--force") as child:
        out, err = child.communicate(timeout=300)
    assert (child.returncode, err) == (128 + number, b"")
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
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", PLACES)
def test_a_signal_at_any_moment_of_any_command_has_its_code_and_leaves_nothing(
    moment: str, number: signal.Signals, place: Path
) -> None:
    """Also a second and a third one, which come while the first is being obeyed."""
    check_signal(place, moment, number)


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
@pytest.mark.parametrize("name", ["fit", "fit folder", "calibrate", "threshold", "report"])
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
def test_a_program_that_ignores_interrupts_goes_on_ignoring_them(place: Path) -> None:
    """As under nohup, or in the background of a script."""
    text = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + SIGNALLED
    with program(place, text, str(int(signal.SIGINT)), WRITING, *COMMANDS["fit"].split(), "--quiet") as child:
        child.communicate(timeout=300)
    assert child.returncode == 0
    assert (place / "out" / "h.json").exists()
