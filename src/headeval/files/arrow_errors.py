"""What pyarrow raises on a damaged file, turned into the one error of this project."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from headeval.errors import DataError
from headeval.printable import printable, quoted

# Everything pyarrow was seen to raise on truncated or overwritten files: its own exceptions, the built-in ones it
# maps Arrow codes to, and those of its Python layer (names that are not UTF-8, offsets that do not fit).
_FROM_ARROW = (pa.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError, MemoryError, EOFError)

_LONGEST_REASON = 160


def shown(path: Path) -> str:
    """Return `path` quoted for a message; never shortened, since its last part tells files apart."""
    return quoted(path, longest=4096)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while pyarrow reads `path` into a DataError naming the file.

    Raises
    ------
    DataError : for any error of the operating system or of pyarrow.
    """
    try:
        yield
    except PermissionError as error:
        raise DataError(f"{shown(path)} may not be read: permission denied") from error
    except _FROM_ARROW as error:
        raise DataError(f"{shown(path)} cannot be read, it may be damaged or cut short: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return printable(error.strerror)
    lines = str(error).splitlines() or [type(error).__name__]
    return printable(lines[0], longest=_LONGEST_REASON)
