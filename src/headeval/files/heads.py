"""The linear-head file: read with every rule checked, written so that any reader gets the same numbers."""

import json
import math
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headeval.errors import HeadError
from headeval.files.atomic import write_atomically
from headeval.files.locations import looks_remote, masked_uri
from headeval.files.schemas import validator
from headeval.files.strict_json import DEEPEST, LONGEST_INTEGER, DocumentError, member, parse_strict, refuse
from headeval.head import LinearHead
from headeval.printable import listed, printable, quoted

if TYPE_CHECKING:
    from jsonschema import ValidationError

_MOST_BYTES = 512 * 2**20
_UNKNOWN_MODELS = frozenset({"", "unspecified"})
_STAND_INS = {"classes": ["reference", "flagged"], "W": [[0.0], [0.0]], "b": [0.0, 0.0]}


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
        raise HeadError(f"{printable(str(path))}: {error}") from error
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
        raise HeadError(
            f"{printable(source)}: the embeddings are from {quoted(name)}, the head was fitted on "
            f"{quoted(head.embedding_model)}; weights and thresholds do not transfer between embedding models"
        )


def _contents(path: Path) -> bytes:
    try:
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


def _parsed(data: bytes) -> LinearHead:
    document: Any = parse_strict(data)
    refuse(_schema_problems(document))
    refuse(_shape_problems(document))
    return LinearHead(
        embedding_model=document["embedding_model"],
        classes=tuple(document["classes"]),
        W=np.array(document["W"], dtype=np.float64),
        b=np.array(document["b"], dtype=np.float64),
        threshold=document["threshold"],
        metrics=document.get("metrics", {}),
    )


def _schema_problems(document: object) -> Iterator[str]:
    """Apply linear-head.schema.json; to the items of W, b and classes the same rules in a faster way.

    A validator takes microseconds for each number, and quadratic time to compare items of mixed types.
    """
    if not isinstance(document, dict):
        yield f"$: is {_kind(document)}, expected an object"
        return
    light = document | {key: value for key, value in _STAND_INS.items() if key in document}
    classes = document.get("classes")
    if isinstance(classes, list) and set(map(type, classes)) <= {str}:
        light["classes"] = classes
    errors = validator("linear-head").iter_errors(light)
    yield from dict.fromkeys(map(_explained, sorted(errors, key=lambda error: [str(step) for step in error.path])))
    if "classes" in document and light["classes"] is not classes:
        yield from _item_problems(classes, "$.classes", fewest=2, types={str}, expected="a string")
    if "W" in document:
        yield from _item_problems(document["W"], "$.W", fewest=2, types={list}, expected="an array")
        for c, row in enumerate(document["W"] if isinstance(document["W"], list) else []):
            if isinstance(row, list):
                yield from _item_problems(row, f"$.W[{c}]", fewest=1, types={int, float}, expected="a number")
    if "b" in document:
        yield from _item_problems(document["b"], "$.b", fewest=2, types={int, float}, expected="a number")


def _item_problems(value: object, path: str, *, fewest: int, types: set[type], expected: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: is {_kind(value)}, expected an array"
        return
    if len(value) < fewest:
        yield f"{path}: has {_counted(value, 'item')}, expected at least {fewest}"
    if not set(map(type, value)) <= types:  # the exact types: a bool is no number
        for i, item in enumerate(value):
            if type(item) not in types:
                yield f"{path}[{i}]: is {_kind(item)}, expected {expected}"


def _shape_problems(document: dict[str, Any]) -> Iterator[str]:
    classes, W, b, dim = (document[key] for key in ("classes", "W", "b", "dim"))
    if len(W) != len(classes):
        yield f"$.W: has {_counted(W, 'row')}, expected {len(classes)}, one for each class"
    if len(b) != len(classes):
        yield f"$.b: has {_counted(b, 'number')}, expected {len(classes)}, one for each class"
    for c, row in enumerate(W):
        if len(row) != dim:
            yield f"$.W[{c}]: has {_counted(row, 'number')}, expected dim = {_number(dim)}"


def _explained(error: "ValidationError") -> str:
    """Return place and reason of a schema violation in this project's words."""
    path = "$"
    for step in error.absolute_path:
        path = f"{path}[{step}]" if isinstance(step, int) else member(path, step)
    value, rule = error.instance, error.validator_value
    match error.validator:
        case "type":
            reason = f"is {_kind(value)}, expected {'an' if rule[0] in 'aio' else 'a'} {rule}"
        case "required":
            reason = f"has no key {listed(key for key in rule if key not in value)}"
        case "additionalProperties":
            unknown = listed(key for key in value if key not in error.schema["properties"])
            reason = f"has the unknown key {unknown}; whatever has no key of its own belongs under 'metrics'"
        case "minLength":
            reason = "is an empty string"
        case "minimum" | "maximum":
            reason = f"is {_number(value)}, expected at {'least' if error.validator == 'minimum' else 'most'} {rule}"
        case "minItems":
            reason = f"has {_counted(value, 'item')}, expected at least {rule}"
        case "uniqueItems":
            reason = f"holds {quoted(next(name for name, n in Counter(value).items() if n > 1))} more than once"
        case _:
            reason = printable(error.message, longest=120)
    return f"{path}: {reason}"


def _kind(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"the number {_number(value)}"
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names[type(value)]


def _counted(items: list[object], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _number(value: float) -> str:
    return printable(str(value), longest=24)


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
