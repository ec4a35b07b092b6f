"""Outputs appear whole or not at all, whatever fails on the way."""

# ruff: noqa: PT012 - what is under test is a with-block, and a block has more than one statement

import errno
import io
import os
import resource
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.errors import DataError, HeadevalError, OutputError
from headeval.files.atomic import atomic_file, check_output, write_atomically

OLD, NEW = b"the old contents\n", b"the new contents, a little longer\n"
FAULTS = [errno.ENOSPC, errno.EIO, errno.EACCES]

not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.fixture
def existing(tmp_path: Path) -> Path:
    path = tmp_path / "out.bin"
    path.write_bytes(OLD)
    return path


def failing(code: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# --- what is refused before any work is done


def test_a_fresh_name_is_accepted_and_nothing_is_created(tmp_path: Path) -> None:
    check_output(tmp_path / "out.bin", force=False)
    assert names(tmp_path) == []


def test_an_existing_file_needs_force_and_the_message_says_so(existing: Path) -> None:
    with pytest.raises(OutputError) as caught:
        check_output(existing, force=False)
    assert str(caught.value) == f"{existing}: already exists; use --force to replace it, or another name"
    assert caught.value.exit_code == 6
    check_output(existing, force=True)
    assert existing.read_bytes() == OLD


@pytest.mark.parametrize("force", [False, True])
def test_a_missing_folder_is_named(tmp_path: Path, force: bool) -> None:
    with pytest.raises(OutputError) as caught:
        check_output(tmp_path / "no" / "out.bin", force=force)
    assert str(caught.value) == (
        f"{tmp_path}/no/out.bin: cannot be written: the folder {tmp_path}/no does not exist; create it first"
    )


def test_a_file_in_the_place_of_the_folder_is_named(existing: Path) -> None:
    with pytest.raises(OutputError, match=r"the folder .*/out\.bin is not a folder$"):
        check_output(existing / "inner.bin", force=True)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ["", ".", "inner", "inner/..", "link"])
def test_a_folder_is_refused_even_with_force(tmp_path: Path, name: str, force: bool) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "link").symlink_to("inner")
    with pytest.raises(OutputError, match=r"is a folder; give the name of a file"):
        check_output(tmp_path / name, force=force)


def test_the_current_folder_is_refused_and_a_bare_name_lands_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match=r"^\.: is a folder"):
        check_output(Path("."), force=True)  # noqa: PTH201 - the spelling a user gives
    write_atomically(Path("bare.bin"), NEW, force=False)
    assert (tmp_path / "bare.bin").read_bytes() == NEW


def test_an_unwritable_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda folder, mode: not mode & os.W_OK)
    with pytest.raises(OutputError, match=r"no permission to create files in "):
        check_output(tmp_path / "out.bin", force=False)


@not_as_root
@pytest.mark.parametrize("mode", [0o500, 0o600, 0o000])
def test_a_really_unwritable_folder_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(mode)
    try:
        with pytest.raises(OutputError, match=r"cannot be written: "):
            check_output(folder / "out.bin", force=False)
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("name", ["/dev/null", "/dev/full"])
def test_a_device_is_refused_even_with_force(name: str) -> None:
    """Asked of check_output, which never writes: were it wrong, a write here would replace the machine's device."""
    if not Path(name).is_char_device():
        pytest.skip(f"no {name}")
    with pytest.raises(OutputError, match=r"is a device, a pipe or a socket; give the name of a file"):
        check_output(Path(name), force=True)


def test_a_named_pipe_is_refused_without_waiting_for_its_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match=r"is a device, a pipe or a socket"):
        write_atomically(tmp_path / "pipe", NEW, force=True)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # socket names are limited to 108 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(OutputError, match=r"is a device, a pipe or a socket"):
            check_output(Path("socket"), force=True)


@pytest.mark.parametrize("stdout_is", ["a file", "a pipe"])
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_is_refused_also_when_it_is_redirected_to_a_file(
    tmp_path: Path, name: str, stdout_is: str
) -> None:
    """A redirected /dev/stdout leads to a regular file, which a rename would silently detach from the shell's."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    code = (
        "import sys; from pathlib import Path\n"
        "from headeval.errors import OutputError\n"
        "from headeval.files.atomic import check_output\n"
        "try: check_output(Path(sys.argv[1]), force=True)\n"
        "except OutputError as error: print(error, file=sys.stderr)\n"
    )
    redirected = tmp_path / "redirected"
    with redirected.open("wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / name)],  # an absolute name replaces tmp_path
            stdout=stdout if stdout_is == "a file" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=True,
            text=True,
        )
    assert done.stderr == f"{tmp_path / name}: is an open stream; give the name of a file to write\n"


def test_a_ring_of_links_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for path in (tmp_path / "a", tmp_path / "a" / "out.bin"):
        with pytest.raises(OutputError, match=os.strerror(errno.ELOOP)):
            check_output(path, force=True)


def test_a_name_that_is_too_long_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=os.strerror(errno.ENAMETOOLONG)):
        check_output(tmp_path / ("x" * 300), force=False)


def test_the_longest_possible_name_can_be_written(tmp_path: Path) -> None:
    """The temporary name is not the target's with something added, which would be too long."""
    write_atomically(tmp_path / ("x" * 255), NEW, force=False)
    assert names(tmp_path) == ["x" * 255]


def test_a_name_that_could_command_the_terminal_is_shown_escaped(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught:
        check_output(tmp_path / "\x1b[2Jno" / "x\n", force=False)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


# --- what is written


def test_the_file_appears_only_when_the_block_ends(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "out.bin", force=False) as file:
        file.write(NEW)
        file.flush()
        (temporary,) = names(tmp_path)
        assert temporary.startswith(".")
        assert (tmp_path / temporary).read_bytes() == NEW
    assert names(tmp_path) == ["out.bin"]
    assert (tmp_path / "out.bin").read_bytes() == NEW


def test_with_force_the_old_contents_stay_until_the_block_ends(existing: Path) -> None:
    with atomic_file(existing, force=True) as file:
        file.write(NEW)
        file.flush()
        assert existing.read_bytes() == OLD
    assert existing.read_bytes() == NEW
    assert names(existing.parent) == ["out.bin"]


def test_without_force_an_existing_file_is_refused_before_the_block_runs(existing: Path) -> None:
    with pytest.raises(OutputError, match="use --force"), atomic_file(existing, force=False):
        pytest.fail("the block must not run")
    assert existing.read_bytes() == OLD


@pytest.mark.parametrize("size", [0, 1, 8191, 8192, 8193, 3_000_000])
def test_all_bytes_arrive_whatever_the_size(tmp_path: Path, size: int) -> None:
    data = bytes(i * 31 % 251 for i in range(1000)) * (size // 1000 + 1)
    write_atomically(tmp_path / "out.bin", data[:size], force=False)
    assert (tmp_path / "out.bin").read_bytes() == data[:size]


def test_short_writes_of_the_system_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:7]))
    write_atomically(tmp_path / "out.bin", NEW * 1000, force=False)
    assert (tmp_path / "out.bin").read_bytes() == NEW * 1000


def test_temporary_names_cannot_be_predicted(tmp_path: Path) -> None:
    seen = set()
    for _ in range(20):
        with atomic_file(tmp_path / "out.bin", force=True):
            seen |= {name for name in names(tmp_path) if name != "out.bin"}
    assert len(seen) == 20


@pytest.mark.parametrize("planted", ["a file", "a link"])
def test_what_stands_under_the_temporary_name_already_is_neither_written_nor_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    victim, temporary = tmp_path / "victim", tmp_path / ".headeval-guessed.tmp"
    victim.write_bytes(OLD)
    temporary.hardlink_to(victim) if planted == "a file" else temporary.symlink_to(victim)
    monkeypatch.setattr("secrets.token_hex", lambda _: "guessed")
    with pytest.raises(OutputError, match=os.strerror(errno.EEXIST)):
        write_atomically(tmp_path / "out.bin", NEW, force=True)
    assert victim.read_bytes() == OLD
    assert names(tmp_path) == [temporary.name, "victim"]


def test_two_writers_at_once_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    with atomic_file(path, force=True) as first, atomic_file(path, force=True) as second:
        first.write(OLD)
        second.write(NEW)
    assert path.read_bytes() == OLD  # the outer block ends last
    assert names(tmp_path) == ["out.bin"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_gets_the_permissions_of_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "out.bin", NEW, force=False)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.bin").stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_a_replaced_file_keeps_its_permissions_from_the_first_byte_on(existing: Path, mode: int) -> None:
    existing.chmod(mode)
    with atomic_file(existing, force=True) as file:
        (temporary,) = [name for name in names(existing.parent) if name != "out.bin"]
        assert stat.S_IMODE((existing.parent / temporary).stat().st_mode) == mode
        file.write(NEW)
    assert stat.S_IMODE(existing.stat().st_mode) == mode
    assert existing.read_bytes() == NEW


def test_a_file_system_without_permissions_is_no_obstacle(existing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    existing.chmod(0o600)
    monkeypatch.setattr(os, "fchmod", failing(errno.EPERM))
    write_atomically(existing, NEW, force=True)
    assert existing.read_bytes() == NEW
    assert not stat.S_IMODE(existing.stat().st_mode) & 0o077


@pytest.mark.parametrize("target_exists", [True, False])
def test_a_symbolic_link_stays_and_its_file_is_written(tmp_path: Path, target_exists: bool) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "links").mkdir()
    target, link = tmp_path / "real" / "out.bin", tmp_path / "links" / "second"
    if target_exists:
        target.write_bytes(OLD)
    (tmp_path / "links" / "first").symlink_to("../real/out.bin")
    link.symlink_to("first")
    if target_exists:
        with pytest.raises(OutputError, match="use --force"):
            check_output(link, force=False)
    with atomic_file(link, force=target_exists) as file:
        assert names(tmp_path / "links") == ["first", "second"]  # the temporary file is beside the target
        file.write(NEW)
    assert link.is_symlink()
    assert target.read_bytes() == NEW
    assert not target.is_symlink()
    assert names(tmp_path / "real") == ["out.bin"]


def test_the_contents_are_synced_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def recorded_fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        events.append("folder" if stat.S_ISDIR(status.st_mode) else f"file of {status.st_size} bytes")
        fsync(descriptor)

    def recorded_replace(source: Path, target: Path) -> None:
        events.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    write_atomically(tmp_path / "out.bin", NEW, force=True)
    assert events == [f"file of {len(NEW)} bytes", "rename", "folder"]


def test_a_folder_that_cannot_be_synced_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    write_atomically(tmp_path / "out.bin", NEW, force=False)
    assert (tmp_path / "out.bin").read_bytes() == NEW


@pytest.mark.parametrize("force", [False, True])
def test_a_block_may_close_its_file_and_the_contents_are_synced_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    synced = []
    fsync = os.fsync

    def recorded_fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    with (
        atomic_file(tmp_path / "out.txt", force=force) as file,
        io.TextIOWrapper(file, encoding="utf-8", newline="\n") as text,
    ):
        text.write("grüße\n")
    assert (tmp_path / "out.txt").read_bytes() == "grüße\n".encode()
    assert synced[0] == len("grüße\n".encode())


def test_pyarrow_can_write_a_table_through_it(tmp_path: Path) -> None:
    table = pa.table({"logit": [0.5, -1.25]})
    with atomic_file(tmp_path / "out.parquet", force=False) as file, pq.ParquetWriter(file, table.schema) as writer:
        writer.write_table(table)
    assert pq.read_table(tmp_path / "out.parquet").equals(table)


# --- what goes wrong


@pytest.fixture(params=[False, True], ids=["new", "replaced"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A target that is new, or exists already; afterwards it must be as it was, with nothing beside it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "out.bin"
    if request.param:
        path.write_bytes(OLD)
    yield path
    assert names(folder) == (["out.bin"] if request.param else [])
    assert not request.param or path.read_bytes() == OLD


@pytest.mark.parametrize("code", FAULTS)
@pytest.mark.parametrize("size", [1, 100_000], ids=["at the flush", "at the write"])
def test_a_failed_write_is_an_output_error_with_file_and_reason(
    target: Path, monkeypatch: pytest.MonkeyPatch, code: int, size: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing(code))
        with pytest.raises(OutputError) as caught:
            write_atomically(target, b"x" * size, force=target.exists())
    assert str(caught.value) == f"{target}: cannot be written: {os.strerror(code)}"


@pytest.mark.parametrize("code", FAULTS)
def test_a_failed_sync_is_an_output_error_with_file_and_reason(
    target: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "fsync", failing(code))
    with pytest.raises(OutputError) as caught:
        write_atomically(target, NEW, force=target.exists())
    assert str(caught.value) == f"{target}: cannot be written: {os.strerror(code)}"


def test_a_failed_close_is_an_output_error(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS reports a full disk only when the file is closed."""
    close = os.close

    def failing_close(descriptor: int) -> None:
        close(descriptor)
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", failing_close)
        with pytest.raises(OutputError, match=os.strerror(errno.EDQUOT)):
            write_atomically(target, NEW, force=target.exists())


@pytest.mark.parametrize("code", FAULTS)
def test_a_failed_rename_is_an_output_error(target: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr(os, "replace", failing(code))
    with pytest.raises(OutputError) as caught:
        write_atomically(target, NEW, force=True)
    assert str(caught.value) == f"{target}: cannot be written: {os.strerror(code)}"


def test_a_failed_link_is_an_output_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.ENOSPC))
    with pytest.raises(OutputError, match=os.strerror(errno.ENOSPC)):
        write_atomically(tmp_path / "out.bin", NEW, force=False)
    assert names(tmp_path) == []


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EACCES])
def test_where_hard_links_are_unsupported_the_file_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "link", failing(code))
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "out.bin", NEW, force=False)
    finally:
        os.umask(before)
    assert (tmp_path / "out.bin").read_bytes() == NEW
    assert stat.S_IMODE((tmp_path / "out.bin").stat().st_mode) == 0o640
    assert names(tmp_path) == ["out.bin"]


@pytest.mark.parametrize("fault", [OSError(errno.EIO, os.strerror(errno.EIO)), KeyboardInterrupt()])
def test_without_hard_links_a_failed_rename_leaves_no_empty_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    def interrupted(*_: object) -> None:
        raise fault

    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(OutputError if isinstance(fault, OSError) else KeyboardInterrupt):
        write_atomically(tmp_path / "out.bin", NEW, force=False)
    assert names(tmp_path) == []


@pytest.mark.parametrize("links", [True, False])
def test_without_force_a_file_that_appears_meanwhile_is_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", failing(errno.EPERM))
    path = tmp_path / "out.bin"
    with pytest.raises(OutputError) as caught, atomic_file(path, force=False) as file:
        file.write(NEW)
        path.write_bytes(OLD)
    assert str(caught.value) == f"{path}: already exists; use --force to replace it, or another name"
    assert path.read_bytes() == OLD
    assert names(tmp_path) == ["out.bin"]


def test_a_folder_that_appears_meanwhile_is_an_output_error(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    with pytest.raises(OutputError, match="cannot be written"), atomic_file(path, force=True):
        path.mkdir()
    assert names(tmp_path) == ["out.bin"]


def test_a_folder_that_vanishes_meanwhile_is_an_output_error(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OutputError, match=os.strerror(errno.ENOENT)), atomic_file(folder / "out.bin", force=True):
        for entry in folder.iterdir():
            entry.unlink()
        folder.rmdir()


def test_a_temporary_file_that_cannot_be_created_is_an_output_error(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing(errno.EROFS))
        with pytest.raises(OutputError, match=os.strerror(errno.EROFS)), atomic_file(target, force=target.exists()):
            pytest.fail("the block must not run")


def test_a_real_limit_of_the_system_is_an_output_error(target: Path) -> None:
    """No patched function: the kernel itself refuses to let the file grow."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(OutputError, match=os.strerror(errno.EFBIG)):
            write_atomically(target, b"x" * 200_000, force=target.exists())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize(
    "error",
    [
        DataError("rows.csv: row 3: not a number"),
        ValueError("a bug"),
        FileNotFoundError(errno.ENOENT, "another file", "input.csv"),
        FileExistsError(errno.EEXIST, "another file", "elsewhere"),
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("closed", [False, True])
def test_what_the_block_raises_passes_through_unchanged(target: Path, error: BaseException, closed: bool) -> None:
    with pytest.raises(type(error)) as caught, atomic_file(target, force=target.exists()) as file:
        file.write(NEW)
        if closed:
            file.close()
        raise error
    assert caught.value is error


@pytest.mark.parametrize("swallowing", ["wrapped by a library", "hidden by a library", "as it is"])
def test_a_failed_write_is_reported_whatever_a_library_makes_of_it(
    target: Path, monkeypatch: pytest.MonkeyPatch, swallowing: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing(errno.ENOSPC))
        with (
            pytest.raises(OutputError, match=os.strerror(errno.ENOSPC)),
            atomic_file(target, force=target.exists()) as file,
        ):
            try:
                file.write(b"x" * 100_000)
            except HeadevalError as error:
                if swallowing == "wrapped by a library":
                    raise OSError("sink refused") from error
                if swallowing == "as it is":
                    raise
            patch.undo()  # the disk has room again, but bytes are missing


def test_a_failed_write_inside_pyarrow_is_an_output_error(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"logit": [float(i) for i in range(50_000)]})
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing(errno.ENOSPC))
        with (
            pytest.raises(OutputError, match=os.strerror(errno.ENOSPC)),
            atomic_file(target, force=target.exists()) as file,
        ):
            pq.write_table(table, file)


def test_the_first_error_is_reported_even_when_the_clean_up_fails_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(errno.ENOSPC))
        patch.setattr(os, "unlink", failing(errno.EIO))
        with pytest.raises(OutputError, match=os.strerror(errno.ENOSPC)):
            write_atomically(tmp_path / "out.bin", NEW, force=False)
    assert "out.bin" not in names(tmp_path)


def test_a_leftover_name_after_success_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", failing(errno.EIO))
        write_atomically(tmp_path / "out.bin", NEW, force=False)
    assert (tmp_path / "out.bin").read_bytes() == NEW


def test_bytes_still_buffered_at_a_failure_never_reach_a_reused_descriptor(tmp_path: Path) -> None:
    """The buffer dies after its descriptor was closed and its number given to another file."""
    with pytest.raises(KeyError), atomic_file(tmp_path / "out.bin", force=False) as file:
        file.write(NEW)
        number = file.fileno()
        raise KeyError
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
    assert other == number
    assert file.closed
    del file
    os.close(other)
    assert (tmp_path / "other").read_bytes() == b""


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else pytest.skip("no /proc")  # noqa: PTH208
    write_atomically(tmp_path / "out.bin", NEW, force=False)
    with pytest.raises(KeyError), atomic_file(tmp_path / "out.bin", force=True):
        raise KeyError
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
