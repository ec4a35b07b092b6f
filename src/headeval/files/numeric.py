"""Columns of one number a row: scores, weights and the dimensions of wide embeddings."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.row_faults import Place
from headeval.printable import quoted

# A decimal number as people and programs write it; Arrow's parser takes all of these (a blank around them is cut off).
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NOT_FINITE = r"(?i)^[+-]?(?:nan|inf|infinity)$"
_DECIMAL_COMMA = r"^[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?$"


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds integers or floats; bool is none of them."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text, in any of Arrow's layouts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values behind extension, dictionary and run-end encodings.

    Examples
    --------
    >>> plain_type(pa.dictionary(pa.int32(), pa.string()))
    DataType(string)
    """
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return kind


def plain(column: pa.Array) -> pa.Array:
    """Return the values behind extension, dictionary and run-end encodings, text always as `string`-like."""
    if isinstance(column, pa.ExtensionArray):
        return plain(column.storage)
    if pa.types.is_dictionary(column.type):
        return plain(column.dictionary_decode())
    if pa.types.is_run_end_encoded(column.type):
        return plain(pc.run_end_decode(column))
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())  # few kernels know the view layout
    return column


def read_numbers(column: pa.Array, name: str, place: Place) -> NDArray[np.float64] | None:
    """Return the numbers of a column, shape (n,); None where rows are at fault, which are then noted in `place`.

    Text is read as numbers only where it comes from a CSV file. A null, an empty cell, NaN and the infinities are
    faults.

    Raises
    ------
    DataError : where the type of the column is not a number.
    """
    with reading(place.path):
        column = plain(column)
    label = f"column {quoted(name)}"
    if place.is_csv:
        return _finite(_parsed(column, label, place), column, label, place)
    if not (is_number(column.type) or pa.types.is_decimal(column.type)):
        raise DataError(f"{shown(place.path)}: {label} must hold numbers, but it is of type {quoted(column.type)}")
    if column.null_count:
        place.fault(as_mask(column.is_null()), f"{label} is null", advice="fill these rows or leave them out")
        return None
    with reading(place.path):
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return _finite(values, column, label, place)


def _parsed(cells: pa.Array, label: str, place: Place) -> NDArray[np.float64] | None:
    trimmed = pc.utf8_trim_whitespace(cells)
    empty = as_mask(pc.equal(trimmed, ""))
    if empty.any():
        place.fault(empty, f"{label} is empty", advice="fill these rows or leave them out")
        return None
    try:
        return trimmed.cast(pa.float64()).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]  # untyped pyarrow
    except pa.ArrowInvalid:
        pass
    number = pc.or_(pc.match_substring_regex(trimmed, _NUMBER), pc.match_substring_regex(trimmed, _NOT_FINITE))
    bad = ~as_mask(number)
    if not bad.any():
        return np.array([float(cell) for cell in trimmed.to_pylist()], dtype=np.float64)
    commas = as_mask(pc.match_substring_regex(trimmed, _DECIMAL_COMMA))
    advice = "write decimals with a point, not a comma" if commas[bad].all() else "expected a number such as -0.25"
    place.fault(bad, f"{label} is not a number", advice=advice, cells=_first_cells(cells, bad))
    return None


def _finite(
    values: NDArray[np.float64] | None, column: pa.Array, label: str, place: Place
) -> NDArray[np.float64] | None:
    if values is None:
        return None
    bad = ~np.isfinite(values)
    if bad.any():
        place.fault(bad, f"{label} is NaN or infinite", cells=_first_cells(column, bad))
        return None
    return values


def _first_cells(column: pa.Array, where: NDArray[np.bool_]) -> list[object]:
    return [column[int(index)].as_py() for index in np.flatnonzero(where)[:8]]


def as_mask(array: pa.Array) -> NDArray[np.bool_]:
    """Return an array of bool without nulls, shape (n,), as NumPy's."""
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)
