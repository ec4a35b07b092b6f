"""Columns of names that files store differently: equal values are one, and what cannot be compared is refused."""

import re
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.categories import MISSING, canonical_number
from headeval.files.coded_columns import Coded
from headeval.files.numeric import is_number, is_text, plain_type
from headeval.files.table_file import TableFile
from headeval.files.tables import Tables
from headeval.printable import quoted

_BOOLEANS = re.compile("true|false", re.IGNORECASE)
# What text says of the values of another type; text that says anything else cannot be compared with them.
_SAID_IN_TEXT = {"boolean": _BOOLEANS, "date": re.compile("-?[0-9]{4,}-[0-9]{2}-[0-9]{2}")}
_LABELS = {"text", "number", "boolean"}  # what a column of labels means is decided by its values


def check_comparable(tables: Tables, names: Iterable[str], *, labels: Iterable[str] = ()) -> None:
    """Refuse columns that two files hold in types whose values cannot be compared.

    Parameters
    ----------
    names : of groups and slices.
    labels : of labels, of which numbers, text and booleans are told apart elsewhere.

    Raises
    ------
    DataError : naming both files and types.
    """
    for name in labels:
        kinds = _files_by_kind(tables, name)
        if not _LABELS.issuperset(kinds):
            _check(kinds, name)
    for name in names:
        _check(_files_by_kind(tables, name), name)


def one_value_each(tables: Tables, name: str, column: Coded) -> Coded:
    """Return a column of groups or slices in which a number or boolean is one value, however files spell it.

    It is called as integers and booleans are (3, true) where any row spells it so, else as most rows do.

    Raises
    ------
    DataError : for text beside the booleans or dates of another file that is none.
    """
    kinds = _files_by_kind(tables, name)
    for kind, pattern in _SAID_IN_TEXT.items():
        both = kind in kinds and "text" in kinds
        other = next((text for text in column.texts if both and not pattern.fullmatch(text)), None)
        if other is not None:
            raise _not_comparable(name, kinds[kind], kinds["text"], f", such as {quoted(other)}")
    plain = {text: _plain(text, booleans="boolean" in kinds) for text in column.texts}
    if len(set(plain.values())) == len(plain):
        return column
    counts, called = column.counts(), {text: text for text in column.texts if plain[text] == text}
    for text in sorted(column.texts, key=lambda text: (-counts[text], text)):
        called.setdefault(plain[text], text)
    code = {of: index for index, of in enumerate(dict.fromkeys(plain.values()))}
    codes = np.array([*(code[plain[text]] for text in column.texts), MISSING], dtype=np.int32)
    return Coded(tuple(called[of] for of in code), codes[column.codes])


def _plain(text: str, *, booleans: bool) -> str:
    return text.lower() if booleans and _BOOLEANS.fullmatch(text) else canonical_number(text)


def _files_by_kind(tables: Tables, name: str) -> dict[str, TableFile]:
    """Return the kinds of values of a column, each with the first file of it."""
    found: dict[str, TableFile] = {}
    for file in tables.files:
        if (kind := _kind(file.field(name).type)) is not None:
            found.setdefault(kind, file)
    return found


def _kind(kind: pa.DataType) -> str | None:
    """Return which types have values that can be compared; None where there are none, or no use of them."""
    kind = plain_type(kind)
    if is_number(kind) or pa.types.is_decimal(kind):
        return "number"
    if is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return "text"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamp with a zone"
    known = {"boolean": "is_boolean", "date": "is_date", "time": "is_time", "duration": "is_duration"}
    return next((of for of, test in known.items() if getattr(pa.types, test)(kind)), None)


def _check(kinds: Mapping[str, TableFile], name: str) -> None:
    if len(kinds) <= 1 or set(kinds) in ({"text", "number"}, *({"text", kind} for kind in _SAID_IN_TEXT)):
        return
    first, second = list(kinds.values())[:2]
    raise _not_comparable(name, first, second)


def _not_comparable(name: str, first: TableFile, second: TableFile, such_as: str = "") -> DataError:
    return DataError(
        f"column {quoted(name)} is of type {_type(first, name)} in {shown(first.path)}, but of type "
        f"{_type(second, name)} in {shown(second.path)}{such_as}: the values of one cannot be compared with those of "
        "the other\nstore the column in the same type in all files"
    )


def _type(file: TableFile, name: str) -> str:
    return "text (CSV)" if file.is_csv else quoted(file.field(name).type)
