"""A folder of heads: names that cannot leave it, and contents that change all at once or not at all."""

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headeval.errors import HeadError, OutputError
from headeval.files import head_folder, head_replacement
from headeval.files.head_folder import (
    check_heads_output,
    head_file_name,
    head_path,
    is_head_folder,
    read_heads,
    write_heads,
)
from headeval.files.head_names import category_of
from headeval.files.heads import read_head, write_head
from headeval.files.locations import parse_uri
from headeval.head import LinearHead

not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
NO_FILE_NAMES = set('/\\:*?"<>|') | {chr(code) for code in (*range(32), 127)}
DEVICES = ["con", "CON", "prn", "aux", "nul", "com1", "COM9", "lpt1", "com¹", "con.txt", "nul ", "Aux.tar.gz", "conin$"]


def head(seed: int = 0, *, model: str = "model", dim: int = 3, classes: tuple[str, ...] = ("no", "yes")) -> LinearHead:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(len(classes), dim))
    return LinearHead(model, classes, W, rng.normal(size=len(classes)), 0.5, {"seed": seed})


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- names


@pytest.mark.parametrize(
    "category",
    [
        "../evil",
        "..",
        ".",
        "a/b",
        "/etc/passwd",
        "a\\b",
        "C:\\x",
        ".hidden",
        "end.",
        "end ",
        " start",
        "x\x00y",
        "x\ny",
        "x\x1b[31m",
        "a\u202egpj.exe",
        "zero\u200bwidth",
        "line\u2028break",
        "100%",
        "%2F",
        "a:b",
        'a"b',
        "what?*",
        "e\u0301",
        *DEVICES,
    ],
)
def test_a_category_of_any_name_becomes_a_file_within_the_folder_and_reads_back(category: str, tmp_path: Path) -> None:
    folder = tmp_path / "heads"
    write_heads(folder, {category: head()}, force=False)
    (path,) = folder.iterdir()
    assert path.name == head_file_name(category)
    assert [entry.name for entry in tmp_path.iterdir()] == ["heads"]
    stem = path.name.removesuffix(".json")
    assert not set(stem) & NO_FILE_NAMES
    assert not any(char in stem for char in "\u202e\u200b\u2028")
    assert not stem.startswith((".", " "))
    assert not stem.endswith((".", " "))
    assert stem.split(".")[0].rstrip(" ").lower() not in {name.lower() for name in DEVICES}
    assert list(read_heads(folder)) == [category]


def test_plain_names_stay_as_they_are() -> None:
    assert head_file_name("self_harm") == "self_harm.json"
    assert head_file_name("Überfall 2.0") == "Überfall 2.0.json"
    assert head_file_name("console") == "console.json"


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=30))
def test_every_name_reads_back_and_no_two_share_a_file(category: str) -> None:
    try:
        name = head_file_name(category)
    except OutputError:
        return
    assert Path(name).name == name
    assert len(name.encode()) <= 200
    assert category_of(name) == category


@pytest.mark.parametrize(
    ("category", "said"),
    [("", "without a name"), ("x" * 196, "201 bytes"), ("é" * 98, "201 bytes"), ("\ud800", "no valid Unicode")],
)
def test_a_name_that_no_file_can_have_is_refused(category: str, said: str) -> None:
    with pytest.raises(OutputError, match=said):
        head_file_name(category)


def test_the_longest_name_is_still_a_file() -> None:
    assert len(head_file_name("x" * 195).encode()) == 200


@pytest.mark.parametrize(
    "categories", [("Hate", "hate"), ("straße", "STRASSE"), ("caf\u00e9", "cafe\u0301"), ("\u00c9", "e\u0301")]
)
def test_names_that_collide_where_case_plays_no_part_are_refused_and_nothing_is_made(
    categories: tuple[str, str], tmp_path: Path
) -> None:
    with pytest.raises(OutputError, match="rename a column"):
        check_heads_output(tmp_path / "heads", categories, force=True)
    with pytest.raises(OutputError, match="rename a column"):
        write_heads(tmp_path / "heads", dict.fromkeys(categories, head()), force=True)
    assert list(tmp_path.iterdir()) == []


# --- what is refused before any work is done


def test_a_folder_that_is_not_there_is_accepted_and_not_made(tmp_path: Path) -> None:
    check_heads_output(tmp_path / "heads", ["a", "b"], force=False)
    assert list(tmp_path.iterdir()) == []


def test_a_head_that_exists_needs_force(tmp_path: Path) -> None:
    write_heads(tmp_path / "heads", {"a": head()}, force=False)
    with pytest.raises(OutputError, match=r"heads/a\.json: already exists; use --force"):
        check_heads_output(tmp_path / "heads", ["a", "b"], force=False)
    check_heads_output(tmp_path / "heads", ["a", "b"], force=True)


@pytest.mark.parametrize("force", [False, True])
def test_heads_of_other_categories_in_the_folder_are_refused_also_with_force(force: bool, tmp_path: Path) -> None:
    write_heads(tmp_path / "heads", {"stale": head()}, force=False)
    before = tree(tmp_path)
    with pytest.raises(OutputError, match=r"'stale\.json'.*heads of other categories"):
        check_heads_output(tmp_path / "heads", ["a"], force=force)
    with pytest.raises(OutputError, match=r"'stale\.json'"):
        write_heads(tmp_path / "heads", {"a": head()}, force=force)
    assert tree(tmp_path) == before


def test_what_is_no_head_stays_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "heads"
    folder.mkdir()
    (folder / "README.md").write_text("mine")
    (folder / ".hidden.json").write_text("mine too")
    write_heads(folder, {"a": head(1)}, force=False)
    assert sorted(tree(folder)) == [".hidden.json", "README.md", "a.json"]
    assert list(read_heads(folder)) == ["a"]


@pytest.mark.parametrize("which", ["folder", "file"])
def test_an_input_is_never_replaced(which: str, tmp_path: Path) -> None:
    folder = tmp_path / "heads"
    write_heads(folder, {"a": head()}, force=False)
    with pytest.raises(OutputError, match="is one of the inputs"):
        check_heads_output(folder, ["a"], force=True, inputs=[folder if which == "folder" else folder / "a.json"])


def test_an_input_in_a_store_is_no_file_of_the_folder(tmp_path: Path) -> None:
    """It is not looked for on the disk, whatever its name."""
    write_heads(tmp_path / "heads", {"a": head()}, force=False)
    check_heads_output(tmp_path / "heads", ["a"], force=True, inputs=[parse_uri("s3://bucket/heads/a.json")])


def test_a_file_is_no_folder_and_a_missing_parent_is_named(tmp_path: Path) -> None:
    (tmp_path / "heads").write_text("")
    with pytest.raises(OutputError, match="is a file; heads of several categories go into a folder"):
        check_heads_output(tmp_path / "heads", ["a"], force=True)
    with pytest.raises(OutputError, match="create it first"):
        check_heads_output(tmp_path / "absent" / "heads", ["a"], force=True)
    with pytest.raises(OutputError, match="outputs are local files"):
        check_heads_output(Path("s3://bucket/heads"), ["a"], force=True)


@not_as_root
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "heads"
    folder.mkdir(mode=0o500)
    with pytest.raises(OutputError, match="no permission"):
        check_heads_output(folder, ["a"], force=False)


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_within_the_folder_leads_nowhere(dangling: bool, tmp_path: Path) -> None:
    folder, outside = tmp_path / "heads", tmp_path / "outside.json"
    folder.mkdir()
    if not dangling:
        outside.write_text("precious")
    (folder / "a.json").symlink_to(outside)
    with pytest.raises(OutputError, match="no plain file"):
        write_heads(folder, {"a": head()}, force=True)
    assert outside.exists() != dangling
    assert dangling or outside.read_text() == "precious"


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "heads").symlink_to(tmp_path / "real")
    write_heads(tmp_path / "heads", {"a": head()}, force=False)
    assert read_head(tmp_path / "real" / "a.json") == head()


# --- all or nothing


def test_heads_read_back_bit_for_bit_in_the_order_of_their_names(tmp_path: Path) -> None:
    heads = {name: head(seed) for seed, name in enumerate(["violence", "hate", "a/b"])}
    write_heads(tmp_path / "heads", heads, force=False)
    again = read_heads(tmp_path / "heads")
    assert list(again) == ["a/b", "hate", "violence"]
    assert again == heads
    for name, one in heads.items():
        write_head(one, tmp_path / "alone.json", force=True)
        assert (tmp_path / "heads" / head_file_name(name)).read_bytes() == (tmp_path / "alone.json").read_bytes()


def test_force_replaces_and_keeps_the_permissions(tmp_path: Path) -> None:
    folder = tmp_path / "heads"
    write_heads(folder, {"a": head(1), "b": head(2)}, force=False)
    (folder / "a.json").chmod(0o600)
    write_heads(folder, {"a": head(3), "b": head(4)}, force=True)
    assert read_heads(folder) == {"a": head(3), "b": head(4)}
    assert (folder / "a.json").stat().st_mode & 0o777 == 0o600
    assert sorted(tree(folder)) == ["a.json", "b.json"]


@pytest.mark.parametrize("old", [{}, {"a": head(1)}, {"a": head(1), "b": head(2), "c": head(3)}])
@pytest.mark.parametrize("fails_at", [1, 2, 3])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_an_error_between_two_renames_puts_the_old_heads_back(
    old: dict[str, LinearHead],
    fails_at: int,
    error: BaseException,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "heads"
    folder.mkdir()
    (folder / "note.txt").write_text("mine")
    if old:
        write_heads(folder, old, force=False)
    before, calls = tree(tmp_path), []
    rename: Callable[..., Any] = Path.replace

    def failing(self: Path, target: Path) -> Any:
        if not self.parent.name.startswith("before-"):  # what is put back
            calls.append(target)
            if len(calls) == fails_at:
                raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    new = {name: head(seed) for seed, name in enumerate("abc", start=10)}
    with pytest.raises(OutputError if isinstance(error, OSError) else KeyboardInterrupt):
        write_heads(folder, new, force=True)
    assert tree(tmp_path) == before


def test_a_full_disk_leaves_the_folder_as_it_was_and_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "heads"
    write_heads(folder, {"a": head(1), "b": head(2)}, force=False)
    before, written, write = tree(tmp_path), [], os.write

    def full(descriptor: int, data: Any) -> int:
        written.append(len(data))
        if len(written) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OutputError, match=rf"^{folder}/b\.json: cannot be written: No space left"):
        write_heads(folder, {"a": head(3), "b": head(4)}, force=True)
    monkeypatch.undo()
    assert tree(tmp_path) == before


def test_a_new_folder_is_not_made_where_a_head_cannot_be_written(tmp_path: Path) -> None:
    broken = LinearHead("m", ("no", "yes"), np.zeros((2, 2)), np.zeros(2), 0.5, {"x": object()})
    with pytest.raises(ValueError, match="JSON"):
        write_heads(tmp_path / "heads", {"a": head(), "b": broken}, force=False)
    assert list(tmp_path.iterdir()) == []


def test_without_force_a_head_that_appears_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "heads"
    folder.mkdir()
    make = Path.mkdir

    def meanwhile(self: Path, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        if self.name == "keeping":  # all heads are complete, and none has its name
            (folder / "b.json").write_text("of another process")

    monkeypatch.setattr(Path, "mkdir", meanwhile)
    with pytest.raises(OutputError, match="appeared in the meantime"):
        write_heads(folder, {"a": head(1), "b": head(2)}, force=False)
    assert tree(folder) == {"b.json": b"of another process"}


# --- reading


def test_only_a_folder_is_a_head_folder(tmp_path: Path) -> None:
    (tmp_path / "head.json").write_text("{}")
    assert is_head_folder(tmp_path)
    assert not is_head_folder(tmp_path / "head.json")
    assert not is_head_folder(tmp_path / "absent")


def test_a_folder_that_holds_no_heads_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(HeadError, match=r"holds no head.*\.json"):
        read_heads(tmp_path)
    with pytest.raises(HeadError, match="does not exist"):
        read_heads(tmp_path / "absent")
    with pytest.raises(HeadError, match="is no folder"):
        read_heads(tmp_path / "notes.txt")
    with pytest.raises(HeadError, match="local folder"):
        read_heads("s3://bucket/heads")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", r"bad\.json: "), (b'{"dim": 1}', r"bad\.json: "), (b"\xff", r"bad\.json: ")],
)
def test_a_head_that_cannot_be_read_is_named(content: bytes, said: str, tmp_path: Path) -> None:
    write_heads(tmp_path / "heads", {"a": head()}, force=False)
    (tmp_path / "heads" / "bad.json").write_bytes(content)
    with pytest.raises(HeadError, match=said):
        read_heads(tmp_path / "heads")


def test_a_dangling_link_is_a_head_that_is_missing(tmp_path: Path) -> None:
    write_heads(tmp_path / "heads", {"a": head()}, force=False)
    (tmp_path / "heads" / "b.json").symlink_to(tmp_path / "gone.json")
    with pytest.raises(HeadError, match=r"b\.json: does not exist"):
        read_heads(tmp_path / "heads")


@pytest.mark.parametrize("name", ["%68ate.json", "hate.JSON"])
def test_a_folder_that_could_not_be_read_afterwards_is_not_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "heads").mkdir()
    write_head(head(), tmp_path / "heads" / "hate.json")
    (tmp_path / "heads" / "hate.json").rename(tmp_path / "heads" / name)
    with pytest.raises(OutputError, match="would be read as heads of other categories"):
        check_heads_output(tmp_path / "heads", ["hate"], force=True)
    assert head_path(tmp_path / "heads", "hate").name == name


def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path) -> None:
    write_heads(tmp_path / "heads", {"a": head()}, force=False)
    os.mkfifo(tmp_path / "heads" / "p.json")
    with pytest.raises(HeadError, match=r"p\.json: is no plain file"):
        read_heads(tmp_path / "heads")


def test_a_replacement_that_was_killed_is_noticed(tmp_path: Path) -> None:
    """Of a folder in which old heads stand beside new ones nobody could tell which is which."""
    folder = tmp_path / "heads"
    write_heads(folder, {"a": head(), "b": head(1)}, force=False)
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom headeval.files import head_folder, head_replacement\n"
        "heads = head_folder.read_heads(sys.argv[1])\npublish, done = head_replacement._publish, []\n"
        "def once(*given, **named):\n"
        "    if done: os.kill(os.getpid(), 9)\n"
        "    done.append(publish(*given, **named))\n"
        "head_replacement._publish = once\n"
        "head_folder.write_heads(Path(sys.argv[1]), heads, force=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    with pytest.raises(
        HeadError, match=r"may be a mix of old and new\nwrite them again, or put back .* in \.headeval-"
    ):
        read_heads(folder)
    for staging in folder.glob(".headeval-*"):
        shutil.rmtree(staging)
    assert list(read_heads(folder)) == ["a", "b"]


def interrupted(folder: Path, *, placed: int) -> Path:
    """What a kill leaves after some of two heads have their names, the folder having held none before."""
    staging = folder / ".headeval-0.tmp"
    (staging / "before-2").mkdir(parents=True)
    for number, name in enumerate(("a.json", "b.json")):
        write_head(head(number), (folder if number < placed else staging) / name)
    return staging


@pytest.mark.parametrize("placed", [0, 1, 2])
def test_heads_that_were_not_all_placed_are_refused_though_none_were_there_before(placed: int, tmp_path: Path) -> None:
    interrupted(tmp_path, placed=placed)
    if placed == 0:
        with pytest.raises(HeadError, match="holds no head"):
            read_heads(tmp_path)
    elif placed == 1:
        with pytest.raises(HeadError, match="may be a mix of old and new"):
            read_heads(tmp_path)
    else:
        assert list(read_heads(tmp_path)) == ["a", "b"]


def test_complete_new_heads_settle_what_a_kill_has_left(tmp_path: Path) -> None:
    staging = interrupted(tmp_path, placed=1)
    write_heads(tmp_path, {"a": head(5), "b": head(6)}, force=True)
    assert read_heads(tmp_path) == {"a": head(5), "b": head(6)}
    assert not staging.exists()


@pytest.fixture(params=["no fcntl", "ENOTSUP"])
def no_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system, or a file system, that has no locks; waiting takes no time."""
    monkeypatch.setattr(head_replacement, "_PATIENCE", 0.01)
    if request.param == "no fcntl":
        monkeypatch.setitem(sys.modules, "fcntl", None)
    else:
        monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", failing(errno.ENOTSUP))


def failing(code: int) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.usefixtures("no_locks")
def test_complete_new_heads_settle_what_a_kill_has_left_also_without_locks(tmp_path: Path) -> None:
    staging = interrupted(tmp_path, placed=1)
    write_heads(tmp_path, {"a": head(5), "b": head(6)}, force=True)
    assert read_heads(tmp_path) == {"a": head(5), "b": head(6)}
    assert not staging.exists()


@pytest.mark.usefixtures("no_locks")
def test_without_locks_a_program_that_is_still_replacing_heads_is_not_disturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staging = interrupted(tmp_path, placed=1)
    monkeypatch.setattr(time, "sleep", lambda _: os.utime(staging, ns=(1, 1)))  # it makes progress
    before = tree(tmp_path)
    with pytest.raises(OutputError, match="another program is replacing the heads there; try again"):
        write_heads(tmp_path, {"a": head(5), "b": head(6)}, force=True)
    assert tree(tmp_path) == before


def test_two_programs_do_not_replace_heads_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    write_heads(tmp_path / "heads", {"a": head()}, force=False)
    before = tree(tmp_path)
    monkeypatch.setattr(head_replacement, "_PATIENCE", 0.1)
    other = os.open(tmp_path / "heads", os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(OutputError, match="heads: another program is replacing the heads there; try again"):
            write_heads(tmp_path / "heads", {"a": head(1)}, force=True)
        assert tree(tmp_path) == before
    finally:
        os.close(other)
    write_heads(tmp_path / "heads", {"a": head(1)}, force=True)
    assert read_heads(tmp_path / "heads") == {"a": head(1)}


def test_an_interrupt_after_the_last_rename_leaves_the_new_heads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To put the old ones back then would be to mix them without a mark."""
    folder = tmp_path / "heads"
    write_heads(folder, {"a": head(1), "b": head(2)}, force=False)
    publish = head_replacement._publish

    def interrupted_at_last(staged: Path, target: Path, *, force: bool) -> None:
        publish(staged, target, force=force)
        if target.name == "b.json":
            raise KeyboardInterrupt

    monkeypatch.setattr(head_replacement, "_publish", interrupted_at_last)
    monkeypatch.setattr(head_replacement, "_put_back", lambda *_: pytest.fail("nothing is to be put back"))
    with pytest.raises(KeyboardInterrupt):
        write_heads(folder, {"a": head(3), "b": head(4)}, force=True)
    assert sorted(tree(folder)) == ["a.json", "b.json"]
    assert read_heads(folder) == {"a": head(3), "b": head(4)}


def writing(folder: Path) -> list[Callable[[], object]]:
    """The steps of a program that replaces two heads, at any of which it may be killed or be overtaken."""
    staging = folder / ".headeval-0.tmp"
    staging.mkdir()
    for number, name in enumerate(("a.json", "b.json")):
        write_head(head(10 + number), staging / name)
    return [
        lambda: (staging / "before-2").mkdir(),
        lambda: (staging / "a.json").replace(folder / "a.json"),
        lambda: (staging / "b.json").replace(folder / "b.json"),
        lambda: shutil.rmtree(staging),
    ]


MOMENTS_OF_READING = 5  # the calls below, with two heads to read


def while_reading(patch: pytest.MonkeyPatch, steps: dict[int, list[Callable[[], object]]]) -> list[int]:
    """Take steps of another program before the calls of a given number that `read_heads` makes to look at the disk."""
    calls: list[int] = []

    def stepping(call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*given: Any) -> Any:
            for step in steps.get(len(calls), []):
                step()
            calls.append(len(calls))
            return call(*given)

        return stepped

    for name in ("_stamps", "interrupted_replacements", "read_head"):
        patch.setattr(head_folder, name, stepping(getattr(head_folder, name)))
    return calls


def test_a_reader_takes_old_heads_or_new_ones_whenever_a_writer_takes_its_steps_or_is_killed(tmp_path: Path) -> None:
    old, new = ({"a": head(start), "b": head(start + 1)} for start in (0, 10))
    found = []
    for number, moments in enumerate(combinations_with_replacement(range(MOMENTS_OF_READING + 1), 4)):
        folder = tmp_path / str(number)
        write_heads(folder, old, force=False)
        steps: dict[int, list[Callable[[], object]]] = {}
        for moment, step in zip(moments, writing(folder), strict=True):  # of the last moment: never
            steps.setdefault(moment, []).append(step)
        with pytest.MonkeyPatch.context() as patch:
            calls = while_reading(patch, steps)
            try:
                heads = read_heads(folder)
            except HeadError as error:
                found.append("mixed" if "replaced" in str(error) else str(error))
            else:
                assert heads in (old, new), moments
                assert len(calls) == MOMENTS_OF_READING
                found.append("old" if heads == old else "new")
    assert set(found) == {"old", "new", "mixed"}


def test_a_reader_notices_heads_that_were_replaced_and_put_back_while_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, kept = tmp_path / "heads", tmp_path / "kept"
    write_heads(folder, {"a": head(0), "b": head(1)}, force=False)
    write_head(head(9), tmp_path / "new.json")
    time.sleep(0.05)  # the clock of a file system ticks a hundred times a second
    replacing: list[Callable[[], object]] = [
        lambda: os.link(folder / "a.json", kept),
        lambda: (tmp_path / "new.json").replace(folder / "a.json"),
    ]
    while_reading(monkeypatch, {2: replacing, 3: [lambda: kept.replace(folder / "a.json")]})
    with pytest.raises(HeadError, match="were replaced while they were being read"):
        read_heads(folder)


def test_heads_replaced_while_they_are_read_are_not_taken_for_one_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_heads(tmp_path / "heads", {"a": head(), "b": head()}, force=False)
    read: list[Path] = []

    def slow(path: Path) -> LinearHead:
        if read:
            write_heads(tmp_path / "heads", {"a": head(1), "b": head(1)}, force=True)
        read.append(path)
        return read_head(path)

    monkeypatch.setattr(head_folder, "read_head", slow)
    with pytest.raises(HeadError, match="were replaced while they were being read; try again"):
        read_heads(tmp_path / "heads")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (head(model="another"), "'another'.*'model'"),
        (head(dim=4), "of 4 dimensions, a.json beside it for 3"),
        (head(classes=("a", "b", "c")), "has 3 classes"),
    ],
)
def test_heads_that_cannot_score_the_same_rows_are_refused_by_name(
    other: LinearHead, said: str, tmp_path: Path
) -> None:
    (tmp_path / "heads").mkdir()
    write_head(head(), tmp_path / "heads" / "a.json")
    write_head(other, tmp_path / "heads" / "b.json")
    with pytest.raises(HeadError, match=rf"b\.json: .*{said}"):
        read_heads(tmp_path / "heads")


def test_a_head_that_names_no_model_goes_with_any_but_the_others_must_agree(tmp_path: Path) -> None:
    write_heads(tmp_path / "heads", {"a": head(model="unspecified"), "b": head(model="m")}, force=False)
    assert len(read_heads(tmp_path / "heads")) == 2
    write_head(head(model="other"), tmp_path / "heads" / "c.json")
    with pytest.raises(HeadError, match=r"c\.json"):
        read_heads(tmp_path / "heads")


def test_two_files_of_one_category_are_refused(tmp_path: Path) -> None:
    write_heads(tmp_path / "heads", {"hate": head()}, force=False)
    shutil.copy(tmp_path / "heads" / "hate.json", tmp_path / "heads" / "%68ate.json")
    with pytest.raises(HeadError, match=r"'hate'.*one must go"):
        read_heads(tmp_path / "heads")


@pytest.mark.parametrize("name", [b"\xff.json", b"%FF.json"])
def test_a_file_whose_name_is_no_text_is_named(name: bytes, tmp_path: Path) -> None:
    write_heads(tmp_path / "heads", {"hate": head()}, force=False)
    content = (tmp_path / "heads" / "hate.json").read_bytes()
    (tmp_path / "heads" / os.fsdecode(name)).write_bytes(content)
    with pytest.raises(HeadError, match="no valid Unicode"):
        read_heads(tmp_path / "heads")
    with pytest.raises(OutputError, match="no valid Unicode"):
        check_heads_output(tmp_path / "heads", ["hate"], force=True)
