"""Folders and patterns of a store, expanded through its listing by the rules for local ones."""

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from glob import has_magic

from pyarrow import fs

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.locations import RemoteFile
from headeval.files.store_errors import no_bucket

_BUCKETS = frozenset({"s3", "gs", "gcs", "abfs", "abfss"})


def expand_remote(location: RemoteFile, suffixes: Collection[str], *, readable: str) -> list[RemoteFile]:
    """Return the files that a URI means: itself, the tables of a folder, or the matches of a pattern.

    Parameters
    ----------
    suffixes : of the tables that are taken from a folder.
    readable : what headeval reads, for the message on a folder without tables.

    Raises
    ------
    DataError : where there is no such file, folder or match, and where the store cannot be asked.
    """
    with reading(location):
        info = _info(location)
    if info.type == fs.FileType.File:
        return [location.sibling(info.path, info.size)]
    if info.type == fs.FileType.Directory:
        return _tables_inside(location, suffixes, readable)
    if has_magic(location.key):
        with reading(location):
            found = list(_matching(location, *_split(location)))
        files = sorted((location.sibling(file.path, file.size) for file in found), key=lambda file: file.key)
        if files:
            return files
    _refuse_missing_bucket(location)
    missing = f"no file matches the pattern {shown(location)}" if has_magic(location.key) else None
    raise DataError(missing or f"{shown(location)} does not exist")


def _info(location: RemoteFile) -> fs.FileInfo:
    """Return what the store says of a name; where it refuses, in the words it has for a refused listing.

    To the question for a single name S3 answers with a bare number, whatever the reason.
    """
    try:
        return location.filesystem.get_file_info(location.path)
    except OSError as error:
        if "No response body" in str(error):
            location.filesystem.get_file_info(fs.FileSelector(location.path, allow_not_found=True))
        raise


def _tables_inside(folder: RemoteFile, suffixes: Collection[str], readable: str) -> list[RemoteFile]:
    with reading(folder):
        listing = folder.filesystem.get_file_info(fs.FileSelector(folder.path))
    found = (folder.sibling(info.path, info.size) for info in listing if info.type == fs.FileType.File)
    tables = (file for file in found if file.suffix.lower() in suffixes and not file.name.startswith("."))
    files = sorted(tables, key=lambda file: file.key)
    if not files:
        raise DataError(f"the folder {shown(folder)} holds no table; {readable}")
    return files


def _split(location: RemoteFile) -> tuple[str, list[str]]:
    """Return the folder to look in, and the parts of the pattern below it."""
    parts = location.key.split("/")
    plain = next(number for number, part in enumerate(parts) if has_magic(part))
    root = location.path.removesuffix(location.key)
    return (root + "/".join(parts[:plain])).rstrip("/") or "/", parts[plain:]


def _matching(location: RemoteFile, folder: str, pattern: Sequence[str]) -> Iterator[fs.FileInfo]:
    """Yield the files below `folder` that fit; each folder is listed apart, unless `**` asks for all of them."""
    recursive = "**" in pattern
    listing = location.filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=recursive))
    for info in listing:
        if recursive:
            names = info.path.removeprefix(folder).strip("/").split("/")
            if info.type == fs.FileType.File and _fits(names, pattern):
                yield info
        elif _fits([info.base_name], pattern[:1]):
            if len(pattern) == 1 and info.type == fs.FileType.File:
                yield info
            elif len(pattern) > 1 and info.type == fs.FileType.Directory:
                yield from _matching(location, info.path, pattern[1:])


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path fit those of a pattern; hidden names fit only what begins with a dot, too."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        deeper = bool(names) and not names[0].startswith(".") and _fits(names[1:], pattern)
        return _fits(names, pattern[1:]) or deeper
    if not names or not fnmatchcase(names[0], pattern[0]):
        return False
    hidden = names[0].startswith(".") and not pattern[0].startswith(".")
    return not hidden and _fits(names[1:], pattern[1:])


def _refuse_missing_bucket(location: RemoteFile) -> None:
    """Tell a missing bucket from a missing key, where the store lets us know."""
    if location.scheme not in _BUCKETS:
        return
    try:
        info = location.filesystem.get_file_info(location.path.partition("/")[0])
    except (OSError, ValueError):  # whoever may see a key need not be allowed to see its bucket
        return
    if info.type == fs.FileType.NotFound:
        raise DataError(f"{shown(location)} {no_bucket(location)}")
