"""Output files that appear whole or not at all: written beside the target, then renamed into place.

Every file that headeval writes goes through `atomic_file`. What can go wrong with the file itself (it
exists, the disk is full, the folder is read-only) becomes an `OutputError`; what goes wrong in the code
that produces the contents is not this module's business and passes through unchanged.
"""

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from headeval.errors import OutputError
from headeval.files.locations import Location, is_same_file, looks_remote, masked_uri
from headeval.printable import printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_MOST_LINKS = 40  # as many symbolic links as Linux follows before it answers ELOOP

# How file systems (FAT, some network and FUSE mounts) and sandboxes say that they make no hard links.
_NO_HARD_LINKS = frozenset(
    {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EMLINK, errno.EXDEV}
)


def check_output(path: Path, *, force: bool, inputs: Iterable[Location] = ()) -> None:
    """Refuse an output that could not be written, before any long work is done for it.

    Nothing is created or changed. The answer can be out of date by the time the file is written;
    `atomic_file` asks again.

    Parameters
    ----------
    path : where the output is to appear; a symbolic link stands for the file it points to.
    force : whether an existing file may be replaced.
    inputs : files that must not be replaced, also with `force`: what is made from them holds less than they do.

    Raises
    ------
    OutputError
        The file exists and `force` is false, `path` is a URI, one of the inputs, a folder, a device or a pipe, or
        its folder is missing or not writable.
    """
    refuse_remote(path)
    for other in inputs:
        if is_same_file(path, other):
            raise OutputError(f"{printable(str(path))}: is one of the inputs; choose another name for the output")
    _checked_target(path, force=force)


@contextmanager
def atomic_file(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Open a binary file for writing that appears at `path` when the with-block ends without an error.

    Until then, and after any error or interruption, `path` is as it was before and the temporary
    file beside it is gone. The block may close the file itself. A new file gets the usual
    permissions (umask), a replaced one keeps those of its predecessor.

    Parameters
    ----------
    path : where the output is to appear; a symbolic link stays and the file it points to is written.
    force : whether an existing file may be replaced; without it, not even a file that appears
        while the block runs is replaced.

    Raises
    ------
    OutputError
        As `check_output` does, and when writing, syncing or renaming fails. Whatever else the block
        raises passes through unchanged, unless writing this file had failed before.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     target = Path(folder, "greeting.txt")
    ...     with atomic_file(target, force=False) as file:
    ...         _ = file.write(b"good morning")
    ...     target.read_text()
    'good morning'
    """
    target = _checked_target(path, force=force)
    temporary = target.with_name(f".headeval-{secrets.token_hex(8)}.tmp")
    raw: _OutputFile | None = None
    is_ours = True
    try:
        raw = _OutputFile(temporary, shown=path, mode=_mode_of(target))
        file = io.BufferedWriter(raw)
        yield file
        if not file.closed:
            file.flush()
        raw.finish()
        with _os_errors_of(path):
            _publish(temporary, target, force=force)
    except Exception as error:  # goes on, or as the failed write that caused it
        if raw is None:  # it was not made, and what has its name may be another's
            is_ours = not isinstance(error, OutputError)
        elif raw.failure not in (None, error):  # a library has made another error of the failed write, or hidden it
            raise raw.failure from error
        raise
    finally:
        try:
            _discard(raw, temporary if is_ours else None)
        finally:
            _discard(raw, temporary if is_ours else None)  # once more: an interrupt may have come in between
    sync_folder(target.parent)


def _discard(raw: "_OutputFile | None", temporary: Path | None) -> None:
    """Close what is open, as some systems remove no open file, and remove it where it has not got its name."""
    if raw is not None:
        raw.release()
    if temporary is not None:
        with suppress(OSError):  # the error on its way out, if any, is the one to report
            temporary.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes, *, force: bool) -> None:
    """Write `data` to `path`, whole or not at all; parameters and errors as for `atomic_file`."""
    with atomic_file(path, force=force) as file:
        file.write(data)


class _OutputFile(io.FileIO):
    """The temporary file: its failed writes are OutputErrors, and the first one is remembered."""

    def __init__(self, temporary: Path, *, shown: Path, mode: int | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self.shown = shown
        self.failure: OutputError | None = None
        try:
            self.descriptor = os.open(temporary, flags, 0o666 if mode is None else mode)
        except OSError as error:
            raise _cannot_write(shown, error) from error
        # The descriptor outlives close(), so that a block which closes its file does not prevent the sync.
        super().__init__(self.descriptor, "wb", closefd=False)
        if mode is not None and hasattr(os, "fchmod"):
            # Without chmod (FAT) the mode given to open stands, which is never wider than the old one.
            with suppress(OSError):
                os.fchmod(self.descriptor, mode)

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return os.write(self.descriptor, data)
        except OSError as error:
            failure = _cannot_write(self.shown, error)
            self.failure = self.failure or failure
            raise failure from error

    def finish(self) -> None:
        """Bring the contents to the disk and give the descriptor back; a forgotten failure is raised here."""
        if self.failure is not None:
            raise self.failure
        with _os_errors_of(self.shown):
            os.fsync(self.descriptor)
            descriptor, self.descriptor = self.descriptor, -1
            os.close(descriptor)  # network file systems report a full disk only now

    def release(self) -> None:
        """Close without writing what is still buffered; the buffer above sees a closed file and keeps quiet."""
        self.close()
        if self.descriptor >= 0:
            with suppress(OSError):
                os.close(self.descriptor)
            self.descriptor = -1


def refuse_remote(path: Path) -> None:
    """Refuse an output that was given as a URI: outputs are local files, which appear whole or not at all.

    Raises
    ------
    OutputError : naming the URI without its credentials.
    """
    if looks_remote(path):
        uri = printable(masked_uri(str(path)))
        raise OutputError(f"{uri}: cannot be written: outputs are local files; write one and copy it there")


def _checked_target(path: Path, *, force: bool) -> Path:
    """Return the file that `path` stands for, links followed, if it may and can be written."""
    refuse_remote(path)
    with _os_errors_of(path):
        target = _followed(path)
        status = _status_of(target)
    if status is not None and not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a device, a pipe or a socket"
        raise OutputError(f"{printable(str(path))}: is {what}; give the name of a file to write")
    if status is not None and not force:
        raise _already_exists(path)
    folder = target.parent
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist; create it first"
        raise OutputError(f"{printable(str(path))}: cannot be written: the folder {printable(str(folder))} {what}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(
            f"{printable(str(path))}: cannot be written: no permission to create files in {printable(str(folder))}"
        )
    return target


def _followed(path: Path) -> Path:
    """Follow the links of `path` one by one; refuse those that stand for an open stream of a process."""
    link = path
    for _ in range(_MOST_LINKS):
        # Behind /dev/stdout may be a regular file, which must be continued, not replaced by another.
        folder = Path(os.path.realpath(link.parent))  # Path.resolve has no OSError for a ring of links
        if folder.is_relative_to("/proc") or folder == Path("/dev/fd"):
            raise OutputError(f"{printable(str(path))}: is an open stream; give the name of a file to write")
        link = folder / link.name
        if not link.is_symlink():
            return link
        link = folder / link.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _status_of(target: Path) -> os.stat_result | None:
    try:
        return target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _mode_of(target: Path) -> int | None:
    status = _status_of(target)
    return None if status is None else status.st_mode & 0o777


def _publish(temporary: Path, target: Path, *, force: bool) -> None:
    """Give the finished file its name; without `force` this fails where the name is taken."""
    if force:
        temporary.replace(target)
        return
    try:
        os.link(temporary, target)  # unlike a rename, never replaces; the caller removes the other name
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _publish_without_links(temporary, target)


def _publish_without_links(temporary: Path, target: Path) -> None:
    """Reserve the name with an empty file of our own, which only we replace."""
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        temporary.replace(target)
    except BaseException as error:  # an interrupt too: the reserved name must go, and the error goes on
        with suppress(OSError):
            if not isinstance(error, FileExistsError) and target.stat().st_size == 0:
                target.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Make new names durable where that is possible; the files are complete and in place either way."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _os_errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise _already_exists(path) from error
    except OSError as error:
        raise _cannot_write(path, error) from error


def _already_exists(path: Path) -> OutputError:
    return OutputError(f"{printable(str(path))}: already exists; use --force to replace it, or another name")


def _cannot_write(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{printable(str(path))}: cannot be written: {error.strerror or 'unknown error'}")


def make_folder(path: Path) -> None:
    """Create a folder, and those above it, unless it is there.

    Raises
    ------
    OutputError : where it cannot be created.
    """
    refuse_remote(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{printable(str(path))}: cannot be created: {error.strerror or error}") from error
