"""What pyarrow raises on a damaged file, turned into the one error of this project."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from headeval.errors import DataError
from headeval.files.locations import Location, RemoteFile
from headeval.printable import printable, quoted

# Everything pyarrow was seen to raise on truncated or overwritten files, beside its own exceptions: the built-in ones
# it maps Arrow codes to, and those of its Python layer (names that are not UTF-8, offsets that do not fit).
_BUILT_IN = (OSError, ValueError, TypeError, LookupError, OverflowError, MemoryError, EOFError)

_LONGEST_REASON = 160


def shown(path: Location) -> str:
    """Return `path` quoted for a message; never shortened, since its last part tells files apart."""
    return quoted(path, longest=4096)


@contextmanager
def reading(path: Location) -> Iterator[None]:
    """Turn whatever goes wrong while pyarrow reads `path` into a DataError naming the file, credentials masked.

    Raises
    ------
    DataError : for any error of the operating system, of pyarrow or of a store.
    """
    try:
        yield
    except Exception as error:  # goes on, unless it is pyarrow's, whose classes are not loaded before it is needed
        if not _is_from_arrow(error):
            raise
        if isinstance(path, RemoteFile):
            from headeval.files.store_errors import explained  # not for who reads local files

            # What Arrow says may repeat the credentials of the URI, and would be shown as the cause.
            cause = None if path.secrets else error
            raise DataError(f"{shown(path)} {explained(path, error)}") from cause
        raise DataError(f"{shown(path)} {_explained_locally(error)}") from error


def _is_from_arrow(error: Exception) -> bool:
    arrow = sys.modules.get("pyarrow")  # where it has not been loaded, it has raised nothing
    return isinstance(error, _BUILT_IN) or (arrow is not None and isinstance(error, arrow.ArrowException))


def _explained_locally(error: BaseException) -> str:
    if isinstance(error, PermissionError):
        return "may not be read: permission denied"
    if isinstance(error, MemoryError):
        return f"does not fit into memory: {_reason(error)}; write it in smaller row groups, or use fewer columns"
    if isinstance(error, NotImplementedError):
        return f"cannot be read, it holds what pyarrow does not support: {_reason(error)}"
    return f"cannot be read, it may be damaged or cut short: {_reason(error)}"


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return printable(error.strerror)
    lines = str(error).splitlines() or [type(error).__name__]
    return printable(lines[0], longest=_LONGEST_REASON)
