"""The linear-head file: read with every rule checked, written so that any reader gets the same numbers."""

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headeval.errors import HeadError
from headeval.files.atomic import write_atomically
from headeval.files.head_rules import schema_problems, shape_problems
from headeval.files.locations import looks_remote, masked_uri
from headeval.files.strict_json import DEEPEST, LONGEST_INTEGER, DocumentError, member, parse_strict, refuse
from headeval.head import LinearHead
from headeval.printable import listed, printable, quoted

_MOST_BYTES = 512 * 2**20
_TABLE_SUFFIXES = frozenset({".csv", ".tsv"})  # Parquet is known by its content
_UNKNOWN_MODELS = frozenset({"", "unspecified"})


def read_head(path: str | os.PathLike[str]) -> LinearHead:
    """Read a linear-head file and check every rule of its format.

    Raises
    ------
    HeadError
        The file is missing, unreadable, too large, not strict JSON, or breaks a rule; the message names
        the file and the place of the first problem and counts the others.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> head = LinearHead.binary([1, 2], -1, classes=("safe", "unsafe"), embedding_model="model")
    >>> with TemporaryDirectory() as folder:
    ...     write_head(head, Path(folder, "head.json"))
    ...     read_head(Path(folder, "head.json")) == head
    True
    """
    path = Path(path)
    if looks_remote(path):
        raise HeadError(f"{printable(masked_uri(str(path)))}: a head is read from a local file; copy it here first")
    try:
        return _parsed(_contents(path))
    except DocumentError as error:
        swapped = "; are DATA and --head swapped?" if path.suffix.lower() in _TABLE_SUFFIXES else ""
        raise HeadError(f"{printable(str(path))}: {error}{swapped}") from error
    except MemoryError as error:
        raise HeadError(f"{printable(str(path))}: takes more memory to read than there is") from error


def write_head(head: LinearHead, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write `head` so that `read_head` gives back the same bits; the file appears whole or not at all.

    Every number is the shortest decimal that reads back as the same float64, and each row of W is a line of its own.

    Parameters
    ----------
    force : whether an existing file may be replaced.

    Raises
    ------
    OutputError
        The file exists and `force` is false, or cannot be written.
    ValueError
        `head.metrics` holds something that a strict JSON document cannot.
    """
    data = _encoded(head_document(head))
    try:
        again = _parsed(data)
    except DocumentError as error:
        raise ValueError(f"the head cannot be written as a linear-head file: {error}") from error
    if replace(again, metrics={}) != replace(head, metrics={}):
        raise ValueError("the head cannot be written as a linear-head file: it would not read back the same")
    write_atomically(Path(path), data, force=force)


def head_document(head: LinearHead) -> dict[str, Any]:
    """Return the linear-head document of `head`: dicts, lists, strings and numbers, in the order of the file.

    Raises
    ------
    ValueError
        `head.metrics` holds something that a strict JSON document cannot: a key that is not a string, a
        number that is not finite, or an object such as an array or a date.

    Examples
    --------
    >>> head = LinearHead.binary([1, 2], -1, classes=("safe", "unsafe"), embedding_model="model")
    >>> head_document(head)["W"]
    [[0.0, 0.0], [1.0, 2.0]]
    """
    document: dict[str, Any] = {
        "embedding_model": head.embedding_model,
        "dim": head.dim,
        "classes": list(head.classes),
        "W": head.W.tolist(),
        "b": head.b.tolist(),
        "threshold": head.threshold,
    }
    if head.metrics:
        document["metrics"] = _plain(head.metrics, "metrics", depth=2)
    return document


def check_embedding_model(head: LinearHead, *, name: str | None, source: str) -> None:
    """Refuse embeddings of another model than the head's; an unknown model on either side is no contradiction.

    Parameters
    ----------
    name : the model of the embeddings; None, "" and "unspecified" mean that it is not known.
    source : where `name` comes from, for the message: a file or an option.

    Raises
    ------
    HeadError
        Both names are known and differ.
    """
    if name is None or name in _UNKNOWN_MODELS or head.embedding_model in _UNKNOWN_MODELS:
        return
    if name != head.embedding_model:
        same = f"if they are one model, name it as the head does: --embedding-model {quoted(head.embedding_model)}"
        other = "weights and thresholds do not transfer between embedding models"
        raise HeadError(
            f"{printable(source)}: the embeddings are from {quoted(name)}, the head was fitted on "
            f"{quoted(head.embedding_model)}; {other}" + (f"\n{same}" if one_model(name, head.embedding_model) else "")
        )


def one_model(name: str, other: str) -> bool:
    """Whether two names differ by their owner, which stands before a slash, or by their case alone.

    Examples
    --------
    >>> one_model("sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2"), one_model("a/small", "a/large")
    (True, False)
    """
    return name.rsplit("/", 1)[-1].casefold() == other.rsplit("/", 1)[-1].casefold()


def _contents(path: Path) -> bytes:
    try:
        if not _may_hold_a_head(path.stat().st_mode):
            raise DocumentError("is a device, expected a linear-head file")
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            has_size = stat.S_ISREG(status.st_mode)  # a pipe has none
            data = b"" if has_size and status.st_size > _MOST_BYTES else file.read(-1 if has_size else _MOST_BYTES + 1)
            if max(status.st_size, len(data)) > _MOST_BYTES:
                raise DocumentError(f"is larger than {_MOST_BYTES // 2**20} MB, which no linear head is")
            return data
    except FileNotFoundError as error:
        raise HeadError(f"{printable(str(path))}: does not exist; expected a linear-head file") from error
    except IsADirectoryError as error:
        raise HeadError(f"{printable(str(path))}: is a folder, expected a linear-head file") from error
    except OSError as error:
        raise HeadError(f"{printable(str(path))}: cannot be read: {error.strerror or 'unknown error'}") from error


def _may_hold_a_head(mode: int) -> bool:
    """Whether reading ends: a device can go on for ever; a pipe, also one of the shell's, ends with its writer."""
    return not (stat.S_ISCHR(mode) or stat.S_ISBLK(mode))


def _parsed(data: bytes) -> LinearHead:
    if data.startswith(b"PAR1"):
        raise DocumentError("is a Parquet table, no head: are DATA and --head swapped?")
    document: Any = parse_strict(data)
    refuse(schema_problems(document))
    refuse(shape_problems(document))
    return LinearHead(
        embedding_model=document["embedding_model"],
        classes=tuple(document["classes"]),
        W=np.array(document["W"], dtype=np.float64),
        b=np.array(document["b"], dtype=np.float64),
        threshold=document["threshold"],
        metrics=document.get("metrics", {}),
    )


def _encoded(document: dict[str, Any]) -> bytes:
    """Write one key a line, and one row of W a line, so that two heads can be compared line by line."""
    members = []
    for key, value in document.items():
        if key == "W":
            text = "[\n" + ",\n".join(f"    {_json(row)}" for row in value) + "\n  ]"
        elif key == "metrics":
            text = _json(value, indent=2).replace("\n", "\n  ")  # a line break in a string is escaped
        else:
            text = _json(value)
        members.append(f"  {_json(key)}: {text}")
    return ("{\n" + ",\n".join(members) + "\n}\n").encode()


def _json(value: object, *, indent: int | None = None) -> str:
    # A float is written by its repr, which is the shortest decimal that reads back the same.
    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)


def _plain(value: object, path: str, *, depth: int) -> object:
    """Return `value` in the types that JSON has, or raise ValueError naming the place."""
    if depth > DEEPEST + 1:
        raise ValueError(f"{path} is nested more than {DEEPEST} levels deep")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError(f"{path} has a key that is not a string, got {listed(map(repr, value))}")
        return {
            _plain(key, f"a key of {path}", depth=depth): _plain(item, member(path, key), depth=depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(item, f"{path}[{i}]", depth=depth + 1) for i, item in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 10**LONGEST_INTEGER:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value):
        return str(value)
    raise ValueError(f"{path} must be something that JSON can hold, got {printable(repr(value), longest=60)}")
