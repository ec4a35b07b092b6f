"""Which files the DATA arguments mean, and whether each is Parquet or CSV."""

import glob
import os
import stat
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Literal

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.foreign import foreign_kind
from headeval.files.locations import Location, RemoteFile, is_uri, local_path, masked_uri, parse_uri
from headeval.files.other_text import json_kind, text_advice
from headeval.printable import quoted

Kind = Literal["parquet", "csv"]

_PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
_CSV_SUFFIXES = frozenset({".csv"})
_PARQUET_MAGIC = b"PAR1"
_READ = "headeval reads Parquet (.parquet, .pq) and CSV (.csv) files"


def find_files(data: Sequence[str]) -> list[Location]:
    """Return the files that the DATA arguments name, in their order; `kind_of` tells what each is.

    Parameters
    ----------
    data : paths of files; folders, which stand for the tables directly inside; or glob patterns (`**` too),
        tried only where no such path exists. Folders and patterns give their files sorted by name. All of them may
        be URIs of a store that pyarrow knows (`s3://bucket/folder/*.parquet`), with its options behind a `?`.

    Raises
    ------
    DataError : for an empty argument, a missing, unreadable or empty file, an empty folder, a pattern without a
        match, a file that is named twice, or a store that cannot be reached.
    """
    paths = [path for argument in data for path in _expand(argument)]
    if not paths:
        raise DataError(f"no data file is named; {_READ}")
    _refuse_repeats(paths)
    return paths


def _expand(argument: str) -> list[Location]:
    if not argument.strip():
        # Path("") is the current folder, whose tables nobody asked for.
        raise DataError("an argument for DATA is empty: is a shell variable unset?")
    if not is_uri(argument):
        return _expand_locally(argument)
    try:
        if argument.lower().startswith("file:"):
            return _expand_locally(str(local_path(argument)))
        location = parse_uri(argument)
    except ValueError as error:
        raise DataError(f"{quoted(masked_uri(argument), longest=4096)} is no usable URI: {error}") from error
    from headeval.files.remote_listing import expand_remote  # not for who reads local files

    return [*expand_remote(location, _PARQUET_SUFFIXES | _CSV_SUFFIXES, readable=_READ)]


def _expand_locally(argument: str) -> list[Location]:
    path = Path(argument)
    with reading(path):
        if path.is_dir():
            return _tables_inside(path)
        if os.path.lexists(path) or not glob.has_magic(argument):
            return [path]
        matches = [Path(match) for match in sorted(glob.glob(argument, recursive=True))]  # noqa: PTH207 - absolute too
        files = [match for match in matches if not match.is_dir()]
    if not files:
        raise DataError(f"no file matches the pattern {quoted(argument, longest=4096)}")
    return [*files]


def _tables_inside(folder: Path) -> list[Location]:
    suffixes = _PARQUET_SUFFIXES | _CSV_SUFFIXES
    inside = (path for path in folder.iterdir() if path.suffix.lower() in suffixes and not path.name.startswith("."))
    files = sorted(path for path in inside if not path.is_dir())
    if not files:
        raise DataError(f"the folder {shown(folder)} holds no table; {_READ}")
    return [*files]


def _refuse_repeats(paths: Sequence[Location]) -> None:
    seen: dict[Hashable, Location] = {}
    for path in paths:
        first = seen.setdefault(_identity(path), path)
        if first is not path:
            same = "" if str(first) == str(path) else f" (also as {shown(first)})"
            raise DataError(f"{shown(path)} is given twice{same}: its rows would count double")


def _identity(path: Location) -> Hashable:
    """Return what two names of one file have in common, once it is clear that it can be a table."""
    if isinstance(path, RemoteFile):
        size, identity = path.size, path.identity
    else:
        status = _status(path)
        size, identity = status.st_size, (str(status.st_dev), str(status.st_ino))
    if size == 0:
        raise DataError(f"{shown(path)} is empty (0 bytes)")
    return identity


def _status(path: Path) -> os.stat_result:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataError(f"{shown(path)} does not exist") from error
    except (OSError, ValueError) as error:
        with reading(path):
            raise error
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{shown(path)} is not a regular file: save the table to a file first")
    return status


def kind_of(path: Location) -> Kind:
    """Tell by content, and only then by name, whether a file is Parquet or CSV.

    Raises
    ------
    DataError : where it cannot be read or is neither; pickles are recognised and never loaded.
    """
    suffix = path.suffix.lower()
    advice = ""
    with reading(path), path.open("rb") as stream:
        is_parquet = stream.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
        stream.seek(0)
        foreign = None if is_parquet else foreign_kind(stream, suffix) or json_kind(stream, suffix)
        if not (is_parquet or foreign or suffix in _CSV_SUFFIXES):
            advice = text_advice(stream)
    if is_parquet:
        if suffix in _CSV_SUFFIXES:
            raise DataError(f"{shown(path)} is named .csv but holds Parquet: rename it to .parquet")
        return "parquet"
    if foreign:
        raise DataError(f"{shown(path)} {foreign}")
    if suffix in _CSV_SUFFIXES:
        return "csv"
    if suffix in _PARQUET_SUFFIXES:
        raise DataError(f"{shown(path)} is no Parquet file, which starts with {quoted('PAR1')}: {advice}")
    raise DataError(f"{shown(path)} is of no known kind: {_READ}; {advice}")
