"""The JSON schemas that describe headeval's files, read from the package or, in a checkout, from its top level."""

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_REFERS_TO = {"categories-report": ("report",)}


def load_schema(name: str) -> dict[str, Any]:
    """Return the schema `name`, such as "linear-head", freshly parsed: the caller may change it.

    Raises
    ------
    LookupError
        There is no schema of this name.

    Examples
    --------
    >>> load_schema("linear-head")["title"]
    'Linear head'
    """
    schema: dict[str, Any] = json.loads(_schema_text(f"{name}.schema.json"))
    return schema


@cache
def validator(name: str) -> "Draft202012Validator":
    """Return a validator (JSON Schema draft 2020-12) for the schema `name`.

    A reference to anything but these schemas is an error and never a request to another host.

    Raises
    ------
    LookupError
        There is no schema of this name.

    Examples
    --------
    >>> validator("linear-head").is_valid({"dim": 3})
    False
    """
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    others = (Resource.from_contents(load_schema(other)) for other in _REFERS_TO.get(name, ()))
    registry: Registry[Any] = Registry().with_resources((str(other.id()), other) for other in others)
    return Draft202012Validator(load_schema(name), registry=registry)


def _schema_text(file_name: str) -> str:
    # An installed package carries a copy of the folder; the original at the top level stands in a checkout.
    for folder in (resources.files("headeval") / "schemas", Path(__file__).parents[3] / "schemas"):
        if file_name == Path(file_name).name and (folder / file_name).is_file():
            return (folder / file_name).read_text(encoding="utf-8")
    raise LookupError(f"no schema file named {file_name}")
