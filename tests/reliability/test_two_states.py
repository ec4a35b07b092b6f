"""A path holds its old bytes or the complete new ones, whichever call to the system fails while a command writes."""

import errno
import itertools
import linecache
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from category_folders import moderation, write_folder
from faulty_disk import LATER, REMOVALS, FaultyDisk, tree
from headeval.cli.main import run
from headeval.errors import HeadError
from headeval.files.atomic import write_atomically
from headeval.files.head_folder import read_heads, write_heads
from headeval.head import LinearHead

OUT = "out"  # the folder that all outputs of a command are in, and nothing else
# What no command needs for a complete file: its durability after a power cut, its permissions, an atomic "no clobber".
TOLERATED = ("folder", "fchmod", "chmod", "link", *REMOVALS)


@dataclass(frozen=True)
class Case:
    """A command line, and the files that it writes; `{force}` becomes --force where they exist before."""

    arguments: str
    outputs: tuple[str, ...]
    code: int = 0


REPORT = "report test.parquet --head head.json --resamples 0 --require n>=1"
CASES = {
    "fit": Case("fit train.parquet --folds 0 -o out/h.json", ("h.json",)),
    "fit softmax": Case("fit train.parquet --label kind --classes a,b,bad --folds 0 -o out/h.json", ("h.json",)),
    "fit streamed": Case("fit train.parquet --folds 0 --memory 1MB -o out/h.json", ("h.json",)),
    "fit folder": Case(
        "fit moderation.parquet --label hate,violence --folds 0 -o out/heads",
        ("heads/hate.json", "heads/violence.json"),
    ),
    "score parquet": Case("score test.parquet --head head.json -o out/s.parquet", ("s.parquet",)),
    "score csv": Case("score test.parquet --head head.json -o out/s.csv", ("s.csv",)),
    "score folder": Case("score moderation.parquet --head heads -o out/s.parquet", ("s.parquet",)),
    "calibrate": Case("calibrate test.parquet --head head.json -o out/h.json", ("h.json",)),
    "calibrate scores": Case("calibrate scores.parquet -o out/s.parquet", ("s.parquet",)),
    "calibrate folder": Case(
        "calibrate moderation.parquet --head heads --label hate,violence -o out/heads",
        ("heads/hate.json", "heads/violence.json"),
    ),
    "threshold": Case("threshold test.parquet --head head.json --require fpr<=0.6 -o out/h.json", ("h.json",)),
    "html": Case(f"{REPORT} --html out/a.html", ("a.html",)),
    "documents": Case(f"{REPORT} --card out/a.md --junit out/a.xml", ("a.md", "a.xml")),
    "changed": Case(f"{REPORT} --baseline baseline.json --changed out/c.parquet", ("c.parquet",)),
    "plots": Case(f"{REPORT} --plots out/plots", ("plots/roc.png", "plots/roc.svg")),
    "documents of categories": Case(
        "report moderation.parquet --head heads --label hate,violence --resamples 0 "
        "--require *:n>=1 --card out/a.md --junit out/a.xml",
        ("a.md", "a.xml"),
    ),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables and heads, small enough for hundreds of runs."""
    folder = tmp_path_factory.mktemp("inputs")
    for name, seed in (("train", 0), ("test", 1)):
        rng = np.random.default_rng(seed)
        e = rng.normal(size=(90, 4)).astype(np.float32)
        y = (e[:, 0] + rng.normal(size=90) > 0).astype(int)
        kind = np.where(y == 1, "bad", np.where(e[:, 1] > 0, "b", "a")).tolist()
        columns: dict[str, Any] = {
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), 4),
            "label": y,
            "kind": kind,
        }
        columns["text"] = [rng.bytes(150).hex() for _ in range(90)]  # more than one buffer of what is written
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    moderation(folder / "moderation.parquet", n=200, seed=2)
    write_folder(folder / "heads", folder / "moderation.parquet")
    (folder / "heads" / "self harm.json").unlink()
    (folder / OUT).mkdir()
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert run(["fit", "train.parquet", "--folds", "0", "-o", "head.json"]) == 0
        assert run(["fit", "train.parquet", "--folds", "0", "--l2", "900", "-o", "baseline.json"]) == 0
        assert run(["score", "test.parquet", "--head", "head.json", "-o", "scores.parquet"]) == 0
    finally:
        os.chdir(before)
    return folder


@dataclass
class Runs:
    """Runs one case again and again, its outputs new or replaced, and knows the bytes before and after."""

    case: Case
    root: Path
    replaced: bool
    capsys: pytest.CaptureFixture[str]
    old: dict[str, bytes | None] = field(default_factory=dict)
    new: dict[str, bytes | None] = field(default_factory=dict)

    def prepare(self) -> None:
        out = self.root / OUT
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        if self.replaced:
            for name in self.case.outputs:
                (out / name).parent.mkdir(exist_ok=True)
                shutil.copy(self.root / ("baseline.json" if name.endswith(".json") else "test.parquet"), out / name)
        self.old = tree(out)

    def once(self, disk: FaultyDisk) -> tuple[int, str]:
        """Run and return the exit code and what was said on stderr."""
        self.prepare()
        arguments = [*self.case.arguments.split(), "--quiet", *(["--force"] if self.replaced else [])]
        self.capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            disk.install(patch)
            code = run(arguments)
        return code, self.capsys.readouterr().err

    def disk(self, fails_at: int, code: int = errno.ENOSPC, **how: Any) -> FaultyDisk:
        return FaultyDisk(self.root / OUT, fails_at, code, **how)

    def undisturbed(self) -> list[str]:
        """Run without a fault; keep what it wrote, and return the calls that it made."""
        disk = self.disk(0)
        assert self.once(disk) == (self.case.code, "")
        self.new = tree(self.root / OUT)
        assert sorted(name for name, content in self.new.items() if content is not None) == sorted(self.case.outputs)
        assert not disk.descriptors
        return disk.seen


@pytest.fixture
def runs(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Runs]:
    shutil.copytree(inputs, tmp_path / "w")
    monkeypatch.chdir(tmp_path / "w")
    monkeypatch.setenv("COLUMNS", "80")
    # Drawing takes seconds, and writes nothing.
    monkeypatch.setattr("headeval.render.plots.plots", lambda _: [("roc.png", b"\x89PNG" * 9), ("roc.svg", b"<svg/>")])
    return lambda name, *, replaced: Runs(CASES[name], tmp_path / "w", replaced, capsys)


def check(runs: Runs, disk: FaultyDisk, code: int, said: str, *, leftover: bool = False) -> None:
    """Old or complete new bytes, nothing else beside them, exit 6, and the first error on one line."""
    failed = disk.seen[disk.fails_at - 1]
    if "could not be put back" in said:
        assert disk.for_ever
        check_mixed(runs, code, said)
        return
    found = tree(runs.root / OUT)
    if leftover:
        found = {name: content for name, content in found.items() if ".headeval-" not in name}
    for name, content in found.items():
        assert content in (runs.old.get(name, b""), runs.new.get(name, b"")), name
    assert runs.old.keys() <= found.keys()
    assert not [name for name in found if ".headeval-" in name]
    if code == 0:
        assert failed in TOLERATED
        assert (found, said) == (runs.new, "")
        return
    assert code == 6
    assert said.count("\n") == 1
    assert said.startswith("headeval: out/")
    expected = {disk.code, LATER} if failed in TOLERATED else {disk.code}
    assert any(said.endswith(f": {os.strerror(code)}\n") for code in expected), said
    assert str(runs.root) not in said
    assert ".headeval-" not in said
    # All contents are written before the first file gets its name; heads of a folder get theirs all or none.
    if len(runs.case.outputs) == 1 or failed == "write" or "out/heads" in runs.case.arguments:
        assert found == runs.old


def check_mixed(runs: Runs, code: int, said: str) -> None:
    """The one state beside old and new: heads replaced by a disk that then let none be put back. No reader takes it."""
    first, second = said.splitlines()
    assert (code, first.startswith("headeval: out/heads")) == (6, True)
    kept = Path(second.rpartition(" are in ")[2])
    for name in runs.case.outputs:
        path = runs.root / OUT / name
        assert runs.old[name] in ([path.read_bytes()] if path.exists() else []) + [
            old.read_bytes() for old in [kept / path.name] if old.exists()
        ]
    with pytest.raises(HeadError, match="may be a mix of old and new"):
        read_heads(runs.root / OUT / "heads")


def sweep(runs: Runs, code: int, mode: str) -> None:
    """Fail the 1st, 2nd, ... call of the command's output until a run passes untouched."""
    calls = runs.undisturbed()
    assert {"open", "write", "fsync", "close"} <= set(calls)
    for k in itertools.count(1):
        disk = runs.disk(k, code, for_ever=mode != "once", gone=mode == "gone")
        ended = runs.once(disk)
        if len(disk.seen) < k:
            assert (*ended, tree(runs.root / OUT)) == (0, "", runs.new)
            break
        try:
            check(runs, disk, *ended, leftover=mode == "gone")
        except AssertionError as error:
            error.add_note(f"call {k}, {disk.seen[k - 1]}, of {disk.seen}: {ended}")
            raise
    assert k > len(calls)


@pytest.mark.parametrize(
    ("name", "replaced", "mode"),
    [
        ("fit", True, "for ever"),
        ("score parquet", False, "for ever"),
        ("fit folder", True, "once"),
        ("documents", True, "for ever"),
    ],
)
def test_whichever_call_fails_the_outputs_are_old_or_new(
    name: str, replaced: bool, mode: str, runs: Callable[..., Runs]
) -> None:
    sweep(runs(name, replaced=replaced), errno.ENOSPC, mode)


# A few commands fail in every way. The others write through the same door, and fail in one.
EVERY_WAY = ("fit", "score parquet", "fit folder", "documents")
WAYS = [
    *((name, at % 2 == 1, errno.ENOSPC, "for ever") for at, name in enumerate(EVERY_WAY)),
    *((name, at % 2 == 0, errno.ENOSPC, "for ever") for at, name in enumerate(CASES) if name not in EVERY_WAY),
    *((name, at % 2 == 0, errno.EACCES, "once") for at, name in enumerate(EVERY_WAY)),
    *((name, at % 2 == 1, errno.EIO, "gone") for at, name in enumerate(EVERY_WAY)),
    ("fit folder", True, errno.EIO, "once"),
    ("fit folder", True, errno.EIO, "gone"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "replaced", "code", "mode"), WAYS)
def test_whichever_call_of_any_command_fails_the_outputs_are_old_or_new(
    name: str, replaced: bool, code: int, mode: str, runs: Callable[..., Runs]
) -> None:
    sweep(runs(name, replaced=replaced), code, mode)


def interrupts(runs: Runs, *, step: int) -> None:
    """Interrupt the run before and after every call that writes."""
    for k in range(1, len(runs.undisturbed()) + 1, step):
        for when in ("before", "after"):
            disk = runs.disk(k, interrupt=when)
            ended = runs.once(disk)
            found = tree(runs.root / OUT)
            at = f"{when} call {k} of {disk.seen}: {ended}"
            # Where a folder is closed within rmtree, Python loses the exception: nothing but the signal itself, which
            # is not forgotten, then says that it came, and all that was left to do was to remove what is not needed.
            lost = disk.seen[k - 1] == "folder" and {*disk.seen[k - 1 :]} <= {"folder", *REMOVALS}
            assert ended == (130, "") or (lost and ended == (0, "") and found == runs.new), at
            assert not [name for name in found if ".headeval-" in name], at
            assert runs.old.keys() <= found.keys(), at
            assert all(content in (runs.old.get(name, b""), runs.new[name]) for name, content in found.items()), at
            if "out/heads" in runs.case.arguments:
                assert found in (runs.old, runs.new), at


@pytest.mark.parametrize(("name", "replaced", "step"), [("score csv", False, 1), ("fit folder", True, 5)])
def test_an_interrupt_at_a_call_that_writes_leaves_old_or_new_bytes_and_nothing_beside(
    name: str, replaced: bool, step: int, runs: Callable[..., Runs]
) -> None:
    interrupts(runs(name, replaced=replaced), step=step)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "replaced"),
    [("fit", True), ("fit folder", False), ("fit folder", True), ("documents", True)],
)
def test_an_interrupt_at_any_call_that_writes_leaves_old_or_new_bytes_and_nothing_beside(
    name: str, replaced: bool, runs: Callable[..., Runs]
) -> None:
    interrupts(runs(name, replaced=replaced), step=1)


OURS = ("files/atomic.py", "files/head_replacement.py", "files/head_folder.py")


def interrupted_at(line: int, work: Callable[[], None]) -> str:
    """Do some work, interrupted before a line of ours of the given number; return where that was."""
    seen = 0

    def lines(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.endswith(OURS):
            return None
        # No signal is looked at where a `try` begins: its line does nothing.
        if event == "line" and linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() != "try:":
            seen += 1
            if seen == line:
                raise KeyboardInterrupt(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return lines

    before = sys.gettrace()
    try:
        sys.settrace(lines)
        work()
    except KeyboardInterrupt as interrupt:
        return str(interrupt)
    finally:
        sys.settrace(before)
    return ""


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("replaced", [False, True], ids=["new", "replaced"])
def test_an_interrupt_between_any_two_lines_leaves_an_old_or_new_file(
    replaced: bool, links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    for line in itertools.count(1):
        path = tmp_path / str(line) / "a"
        path.parent.mkdir()
        if replaced:
            path.write_bytes(b"old")
        interrupted = interrupted_at(line, partial(write_atomically, path, b"new", force=replaced))
        found = tree(path.parent)
        assert found in ({"a": b"old"} if replaced else {}, {"a": b"new"}), interrupted
        if not interrupted:
            break
    assert line > 30


@pytest.mark.parametrize("replaced", [False, True], ids=["new", "replaced"])
def test_an_interrupt_between_any_two_lines_leaves_old_or_new_heads(replaced: bool, tmp_path: Path) -> None:
    old, new = ({name: one_head(w + at) for at, name in enumerate("ab")} for w in (1, 5))
    states = []
    for line in itertools.count(1):
        folder = tmp_path / str(line) / "heads"
        folder.parent.mkdir()
        if replaced:
            write_heads(folder, old, force=False)
        interrupted = interrupted_at(line, partial(write_heads, folder, new, force=True))
        states.append(read_heads(folder) if folder.exists() else {})
        assert states[-1] in (old if replaced else {}, new), interrupted
        left = [name for name in tree(folder.parent) if ".headeval-" in name]
        assert not left, interrupted
        if not interrupted:
            break
    assert line > 60


def one_head(w: float) -> LinearHead:
    return LinearHead.binary([w], 0, classes=("no", "yes"), embedding_model="m")


def no_links(*_: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))
