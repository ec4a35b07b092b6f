"""A disk that fails when it is told to: for tests of what a failed or interrupted call to the system leaves behind."""

import errno
import io
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CALLS = ("open", "write", "fsync", "close", "replace", "rename", "link", "mkdir", "chmod", "fchmod", "sendfile")
REMOVALS = ("unlink", "rmdir")
LATER = errno.EROFS  # what every further call fails with: were it reported, it would be the wrong one


@dataclass
class FaultyDisk:
    """Fails the `fails_at`-th call on the output side, and with `for_ever` all that follow; 0 only counts.

    Removing what is there still works, as on a full disk, unless `gone`. Of `interrupt`, "before" and "after" raise
    what Ctrl-C does, in place of the call or when it is done.
    """

    folder: Path
    fails_at: int
    code: int
    for_ever: bool = False
    gone: bool = False
    interrupt: str = ""
    seen: list[str] = field(default_factory=list)
    descriptors: dict[int, bool] = field(default_factory=dict)  # of ours, and whether of a folder
    real: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for name in (*CALLS, *REMOVALS):
            self.real[name] = getattr(os, name)
            patch.setattr(os, name, self._failing(name))
        self.real["io.open"] = io.open
        patch.setattr("builtins.open", self._opened)

    def _failing(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            kind = self._kind(name, arguments, named)
            if kind is None:
                return self.real[name](*arguments, **named)
            fault = self._fault(kind)
            if fault is not None and name != "close" and self.interrupt != "after":
                raise fault
            try:
                result = self.real[name](*arguments, **named)
            except OSError:
                if self.interrupt and fault is not None:
                    raise fault from None
                raise
            if name == "open":
                self.descriptors[result] = stat.S_ISDIR(os.fstat(result).st_mode)
            if name == "close":  # a network file system reports then what it could not write, and closes all the same
                del self.descriptors[arguments[0]]
            if fault is not None:
                raise fault
            return result

        return call

    def _opened(self, file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        """Stand for the `open` of Python, whose writes cannot be counted: outputs must not be made with it."""
        if not isinstance(file, int) and set(mode) & set("wax+") and self._within(file):
            raise AssertionError(f"{file} is written past the calls that are counted")
        return self.real["io.open"](file, mode, *arguments, **named)

    def _kind(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> str | None:
        first = arguments[0]
        if isinstance(first, int):
            if first not in self.descriptors:
                return None
            return "folder" if self.descriptors[first] else name
        inside = named["dir_fd"] in self.descriptors if named.get("dir_fd") is not None else self._within(first)
        if not inside:
            return None
        return "folder" if name == "open" and arguments[1] & os.O_ACCMODE == os.O_RDONLY else name

    def _within(self, path: Any) -> bool:
        return Path(os.path.abspath(os.fspath(path))).is_relative_to(self.folder)  # noqa: PTH100 - links stay

    def _fault(self, kind: str) -> BaseException | None:
        self.seen.append(kind)
        count = len(self.seen)
        if not self.fails_at or count < self.fails_at or (count > self.fails_at and not self.for_ever):
            return None
        if count > self.fails_at and kind in ("folder", *REMOVALS) and not self.gone:
            return None
        if self.interrupt:
            return KeyboardInterrupt()
        code = self.code if count == self.fails_at else LATER
        return OSError(code, os.strerror(code))


def tree(folder: Path) -> dict[str, bytes | None]:
    """All files with their bytes, and all folders, hidden ones too."""
    paths = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in paths}
