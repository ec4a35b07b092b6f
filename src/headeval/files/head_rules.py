"""The rules of the linear-head format, and how a broken one is told."""

import difflib
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headeval.files.schemas import validator
from headeval.files.strict_json import member
from headeval.printable import listed, printable, quoted

if TYPE_CHECKING:
    from jsonschema import ValidationError

_STAND_INS = {"classes": ["reference", "flagged"], "W": [[0.0], [0.0]], "b": [0.0, 0.0]}


def schema_problems(document: object) -> Iterator[str]:
    """Yield where a document breaks linear-head.schema.json; for W, b and classes the same rules in a faster way.

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


def shape_problems(document: dict[str, Any]) -> Iterator[str]:
    """Yield which lengths of a document that keeps the schema do not fit together."""
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
        case "required" | "additionalProperties":
            missing = [key for key in error.schema["required"] if key not in value]
            reason = _wrong_keys(missing, [key for key in value if key not in error.schema["properties"]])
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


def _wrong_keys(missing: list[str], unknown: list[str]) -> str:
    if not missing:
        return f"has the unknown key {listed(unknown)}; whatever has no key of its own belongs under 'metrics'"
    text = f"has no key {listed(missing)}"
    if not unknown:
        return text
    alike = (len(missing), len(unknown)) == (1, 1) and difflib.get_close_matches(
        missing[0].casefold(), [unknown[0].strip().casefold()]
    )
    return f"{text}, and an unknown one {listed(unknown)}" + (": did you mean it?" if alike else "")


def _kind(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"the number {_number(value)}"
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names[type(value)]


def _counted(items: list[object], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _number(value: float) -> str:
    return printable(str(value), longest=24)
