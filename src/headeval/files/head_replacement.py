"""Heads of a folder that get their names together; a mix of old and new ones is put back, or known for what it is.

A file is replaced by one rename, several are not. So the old heads are first kept beside the new ones, in a folder
`before-N` within the staging folder, N being the number of new heads; then these leave the staging folder one by one.
All N still there: nothing is replaced yet. None there: all are. Anything between is a mix, after a kill for good.
"""

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from headeval.errors import OutputError
from headeval.files.atomic import sync_folder, write_atomically
from headeval.files.head_names import SUFFIX
from headeval.printable import printable

_STAGING, _KEEPING, _KEPT, _PUT_BACK = ".headeval-", "keeping", "before-", "put-back"
_PATIENCE, _PAUSE = 10.0, 0.05  # seconds to wait for another program that replaces heads, which takes it far less


@contextmanager
def staging_folder(place: Path, shown: Path) -> Iterator[Path]:
    """Yield a new folder within `place`; whatever of it is left at the end goes away.

    It stays only where heads of `shown` have been replaced and could not be put back: it has the old ones.

    Raises
    ------
    OutputError : for whatever the system refuses meanwhile, about `shown`, as nobody else knows the folder.
    """
    staging = place / f"{_STAGING}{secrets.token_hex(8)}.tmp"
    try:
        staging.mkdir()
        yield staging
    except OutputError as error:
        told = str(error)
        for hidden in (staging / _KEEPING, staging):
            told = told.replace(printable(str(hidden)), printable(str(shown)))
        raise OutputError(told + _mixed(staging)) from error
    except FileExistsError as error:
        raise OutputError(
            f"{printable(str(shown))}: has appeared in the meantime; use --force, or another name{_mixed(staging)}"
        ) from error
    except OSError as error:
        reason = error.strerror or "unknown error"
        raise OutputError(f"{printable(str(shown))}: cannot be written: {reason}{_mixed(staging)}") from error
    finally:
        try:
            _remove(staging)
        finally:
            _remove(staging)  # once more: an interrupt may have come in between


def put_in_place(staging: Path, folder: Path, names: Sequence[str], *, force: bool) -> None:
    """Give finished files of `staging` their names in `folder`, or put back what was there.

    What a killed replacement has left there is settled by a complete new one, and goes away.

    Raises
    ------
    FileExistsError : where a name is taken and `force` is false.
    OSError, OutputError : where the system refuses, or another program is replacing heads there for long.
    """
    with _alone(folder) as locked:
        left = _left_by_kills(folder, locked=locked)
        _keep_old(staging, folder, names, force=force)
        placed: list[str] = []
        kept = staging / f"{_KEPT}{len(names)}"
        try:
            (staging / _KEEPING).rename(kept)
            for name in names:
                placed.append(name)
                _publish(staging / name, folder / name, force=force)
        except BaseException:  # an interrupt too: the old heads come back, and the error goes on
            # Where all have their names already, they stay: to put them back would be to mix them without a mark.
            if any((staging / name).exists() for name in names):
                back = [_put_back(kept / name, staging / name, folder / name) for name in placed]
                if all(back):
                    with suppress(OSError):
                        kept.rename(staging / _PUT_BACK)
            raise
        sync_folder(folder)
        for other in left:
            with suppress(OSError):
                shutil.rmtree(other, ignore_errors=True)


def interrupted_replacements(folder: Path) -> list[Path]:
    """Return where old heads of `folder` are kept of which some have been replaced, but not all."""
    found = (_kept_by(staging) for staging in sorted(folder.glob(f"{_STAGING}*.tmp")))
    return [kept.parent for kept in found if kept is not None]


def _left_by_kills(folder: Path, *, locked: bool) -> list[Path]:
    """Return the replacements that nobody will end; without locks these are the ones that stand still for long."""
    left = interrupted_replacements(folder)
    if left and not locked:
        before = {staging: staging.stat().st_mtime_ns for staging in left}
        time.sleep(_PATIENCE)
        left = interrupted_replacements(folder)
        if any(staging.stat().st_mtime_ns != before.get(staging) for staging in left):
            raise _busy(folder)
    return left


def _busy(folder: Path) -> OutputError:
    return OutputError(f"{printable(str(folder))}: another program is replacing the heads there; try again")


def _kept_by(staging: Path) -> Path | None:
    """Return the folder of the old heads where some of the new ones have their names, but not all."""
    try:
        names = os.listdir(staging)  # noqa: PTH208 - at one moment, while another program may be at it
    except OSError:
        return None
    waiting = sum(name.endswith(SUFFIX) for name in names)
    for name in names:
        number = name.removeprefix(_KEPT)
        if name != number and number.isdecimal() and 0 < waiting < int(number):
            return staging / name
    return None


def _remove(staging: Path) -> None:
    if _kept_by(staging) is None:
        with suppress(OSError):  # which it can raise all the same, where a folder cannot be closed
            shutil.rmtree(staging, ignore_errors=True)


def _mixed(staging: Path) -> str:
    kept = _kept_by(staging)
    if kept is None:
        return ""
    return f"\nsome heads had been replaced and could not be put back: the old ones are in {printable(str(kept))}"


def _keep_old(staging: Path, folder: Path, names: Sequence[str], *, force: bool) -> None:
    """Keep what is to be replaced, by a second name where there are such, and its permissions."""
    keeping = staging / _KEEPING
    keeping.mkdir()
    for name in names if force else ():
        target = folder / name
        if not target.exists():
            continue
        (staging / name).chmod(target.stat().st_mode & 0o777)
        try:
            os.link(target, keeping / name)
        except OSError:
            write_atomically(keeping / name, target.read_bytes(), force=False)
            shutil.copystat(target, keeping / name)


def _publish(staged: Path, target: Path, *, force: bool) -> None:
    """Rename a finished file; without `force` none that has appeared since is replaced."""
    if not force and os.path.lexists(target):
        raise FileExistsError
    staged.replace(target)


def _put_back(old: Path, staged: Path, target: Path) -> bool:
    """Return whether the target is as it was; the error on its way out is the one to report."""
    try:
        if old.exists():
            old.replace(target)
        elif not staged.exists():  # it got its name, where there was none before
            target.unlink(missing_ok=True)
    except OSError:
        return staged.exists()
    return True


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Keep other programs from replacing heads there; yields whether the system has a lock for that."""
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield False
        return
    try:
        yield _locked(partial(fcntl.flock, descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB), folder)
    finally:
        with suppress(OSError):
            os.close(descriptor)


def _locked(lock: Callable[[], None], folder: Path) -> bool:
    patience = time.monotonic() + _PATIENCE
    while True:
        try:
            lock()
        except BlockingIOError as error:
            if time.monotonic() > patience:
                raise _busy(folder) from error
            time.sleep(_PAUSE)
        except OSError:  # file systems without locks
            return False
        else:
            return True
