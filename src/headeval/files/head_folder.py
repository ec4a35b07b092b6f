"""A folder of heads, one file a category: names that cannot leave it, and contents that change all at once."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from headeval.errors import HeadError, OutputError
from headeval.files.atomic import refuse_remote, sync_folder
from headeval.files.head_names import SUFFIX, category_of, head_file_name, head_file_names
from headeval.files.head_replacement import interrupted_replacements, put_in_place, staging_folder
from headeval.files.heads import check_embedding_model, read_head, write_head
from headeval.files.locations import Location, RemoteFile, looks_remote, masked_uri
from headeval.head import LinearHead
from headeval.printable import listed, printable, quoted

__all__ = ["check_heads_output", "head_file_name", "head_path", "is_head_folder", "read_heads", "write_heads"]


def is_head_folder(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a folder, and so stands for all heads in it; what cannot be looked at is none."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where a name is too long or a folder is closed


def check_heads_output(
    folder: Path, categories: Iterable[str], *, force: bool, inputs: Iterable[Location] = ()
) -> None:
    """Refuse a folder of heads that could not be written, before any long work is done for it; nothing is created.

    Parameters
    ----------
    folder : where the heads are to be; it is made where it is missing.
    categories : whose heads are to be written, each once.
    force : whether heads of these categories may be replaced.
    inputs : files and folders that must not be replaced, also with `force`.

    Raises
    ------
    OutputError
        Two categories would share a file where case plays no part, a name is no file name, a head exists and `force`
        is false, the folder holds heads of other categories (which would be judged beside the new ones), or files
        cannot be made there.
    """
    names = head_file_names(categories)
    refuse_remote(folder)
    try:
        _check_folder(folder, names, force=force, inputs=[path for path in inputs if not isinstance(path, RemoteFile)])
    except HeadError as error:  # a file there, whose name is no category's
        raise OutputError(str(error)) from error
    except OSError as error:
        raise _cannot_write(folder, error) from error


def write_heads(folder: Path, heads: Mapping[str, LinearHead], *, force: bool) -> None:
    """Write one file a category into `folder`, all or none.

    All files are complete on the disk before the first gets its name; an error on the way puts back what was there.

    Parameters
    ----------
    folder : is made where it is missing; what it holds beside heads stays.
    heads : by category; at least one.
    force : whether heads of these categories may be replaced.

    Raises
    ------
    OutputError : as of `check_heads_output`, and when writing or renaming fails.
    ValueError : as of `headeval.files.heads.write_head`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> head = LinearHead.binary([1, 2], -1, classes=("not hate", "hate"), embedding_model="model")
    >>> with TemporaryDirectory() as folder:
    ...     write_heads(Path(folder, "heads"), {"hate": head}, force=False)
    ...     read_heads(Path(folder, "heads")) == {"hate": head}
    True
    """
    if not heads:
        raise ValueError("there is no head to write")
    check_heads_output(folder, heads, force=force)
    names = head_file_names(heads)
    is_new = not folder.exists()
    with staging_folder(folder.parent if is_new else folder, folder) as staging:
        for category, head in heads.items():
            write_head(head, staging / names[category])
        if not is_new:
            put_in_place(staging, folder, list(names.values()), force=force)
            return
        staging.rename(folder)
    sync_folder(folder.parent)


def read_heads(folder: str | os.PathLike[str]) -> dict[str, LinearHead]:
    """Read all heads of a folder, by category, in the order of their names.

    Every file that ends in .json is a head, and its name that of the category; whatever else is there, hidden files
    too, is left alone.

    Raises
    ------
    HeadError
        The folder is missing, cannot be read or has no head; a head cannot be read or has not two classes; or two
        heads are of different embedding models or widths. The message names the file.
    """
    folder = Path(folder)
    if looks_remote(folder):
        raise HeadError(
            f"{printable(masked_uri(str(folder)))}: heads are read from a local folder; copy the folder here first"
        )
    files = _found(folder)
    if not files:
        raise HeadError(f"{printable(str(folder))}: holds no head, which would be a file that ends in {SUFFIX}")
    # Between the two stamps nothing was replaced, or they differ; then one look for a mark at any moment between them
    # is enough. Before or after both, it would miss a program that is killed, or ends, in between.
    before = _stamps(files)
    _refuse_half_replaced(folder)
    heads = {category: read_head(path) for category, path in files.items()}
    if _stamps(_found(folder)) != before:
        raise HeadError(f"{printable(str(folder))}: its heads were replaced while they were being read; try again")
    _check_alike(heads, files)
    return heads


def head_path(folder: Path, category: str) -> Path:
    """Return the file of a category that `read_heads` has read, by its own name."""
    return _files_by_category(folder)[category]


def _refuse_half_replaced(folder: Path) -> None:
    """Refuse a folder in which old heads and new ones may stand beside each other."""
    for staging in interrupted_replacements(folder):
        raise HeadError(
            f"{printable(str(folder))}: its heads are being replaced, or were when a program was killed, and may be a "
            f"mix of old and new\nwrite them again, or put back the old ones that are in {printable(staging.name)} and "
            "remove it"
        )


def _stamps(files: Mapping[str, Path]) -> dict[str, tuple[int, int, int] | None]:
    """Return what of each file changes when it is replaced, and also when it is then put back."""
    found: dict[str, tuple[int, int, int] | None] = {}
    for category, path in files.items():
        try:
            status = path.stat()
        except OSError:  # reading it says so
            found[category] = None
        else:
            found[category] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    return found


def _found(folder: Path) -> dict[str, Path]:
    """Return the files that are heads, of a folder that may not be there."""
    try:
        return _files_by_category(folder)
    except NotADirectoryError as error:
        raise HeadError(f"{printable(str(folder))}: is no folder, expected one that holds heads") from error
    except FileNotFoundError as error:
        raise HeadError(f"{printable(str(folder))}: does not exist; expected a folder of heads") from error
    except OSError as error:
        raise HeadError(f"{printable(str(folder))}: cannot be read: {error.strerror or 'unknown error'}") from error


def _files_by_category(folder: Path) -> dict[str, Path]:
    """Return the files that are heads; several names of one category are an error."""
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or not path.name.lower().endswith(SUFFIX):
            continue
        if path.exists() and not path.is_file():
            raise HeadError(f"{printable(str(path))}: is no plain file, as a head is; take it away")
        try:
            category = category_of(path.name)
        except UnicodeError as error:
            raise HeadError(
                f"{printable(str(path))}: its name, which is that of the category, is no valid Unicode: rename it"
            ) from error
        if category in files:
            raise HeadError(
                f"{printable(str(path))}: is a head of {quoted(category)}, and so is "
                f"{printable(files[category].name)}: one must go"
            )
        files[category] = path
    return dict(sorted(files.items()))


def _check_alike(heads: Mapping[str, LinearHead], files: Mapping[str, Path]) -> None:
    """Refuse heads that cannot score the same rows, or that decide between more than two classes."""
    first, *_ = heads
    named = next((category for category, head in heads.items() if head.embedding_model != "unspecified"), first)
    for category, head in heads.items():
        path = printable(str(files[category]))
        if len(head.classes) != 2:
            raise HeadError(
                f"{path}: has {len(head.classes)} classes; a head of one category among others has two. "
                f"Use it by itself: --head {path}"
            )
        if head.dim != heads[first].dim:
            raise HeadError(
                f"{path}: is for embeddings of {head.dim} dimensions, {printable(files[first].name)} beside it for "
                f"{heads[first].dim}; heads of one folder score the same rows"
            )
        check_embedding_model(heads[named], name=head.embedding_model, source=f"{path}")


def _check_folder(folder: Path, names: Mapping[str, str], *, force: bool, inputs: Iterable[Path]) -> None:
    if not folder.exists():
        if folder.is_symlink():
            raise OutputError(f"{printable(str(folder))}: is a link to what does not exist; give another folder")
        if not folder.parent.is_dir():
            raise OutputError(f"{printable(str(folder))}: cannot be made: its folder does not exist; create it first")
        _check_writable(folder.parent, folder)
        return
    if not folder.is_dir():
        raise OutputError(f"{printable(str(folder))}: is a file; heads of several categories go into a folder")
    _refuse_inputs(folder, names, inputs)
    others = [path.name for category, path in _files_by_category(folder).items() if names.get(category) != path.name]
    if others:
        raise OutputError(
            f"{printable(str(folder))}: holds {listed(others, longest=3)}, which would be read as heads of other "
            "categories beside the new ones: take them away, or choose another folder"
        )
    for name in names.values():
        target = folder / name
        if target.is_symlink() or (target.exists() and not target.is_file()):
            raise OutputError(f"{printable(str(target))}: is no plain file, and is not replaced: take it away")
        if target.exists() and not force:
            raise _already_exists(target)
    _check_writable(folder, folder)


def _refuse_inputs(folder: Path, names: Mapping[str, str], inputs: Iterable[Path]) -> None:
    targets = [folder, *(folder / name for name in names.values())]
    for other in inputs:
        for target in targets:
            if target.exists() and other.exists() and target.samefile(other):
                raise OutputError(
                    f"{printable(str(target))}: is one of the inputs; choose another folder for the output"
                )


def _check_writable(folder: Path, shown: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(
            f"{printable(str(shown))}: cannot be written: no permission to create files in {printable(str(folder))}"
        )


def _already_exists(path: Path) -> OutputError:
    return OutputError(f"{printable(str(path))}: already exists; use --force to replace it, or another folder")


def _cannot_write(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{printable(str(path))}: cannot be written: {error.strerror or 'unknown error'}")
