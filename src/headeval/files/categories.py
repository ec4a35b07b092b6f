"""Columns of names: labels, groups and slices, coded by the text of their values."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import reading, shown
from headeval.files.numeric import is_text, plain_type
from headeval.files.row_faults import Place
from headeval.files.value_texts import value_texts
from headeval.printable import quoted

MISSING = -1
_INTEGRAL = re.compile(r"([+-]?)(0|[1-9][0-9]*)(?:\.0*)?")


def canonical_number(text: str) -> str:
    """Return an integral number without sign of zero, plus sign or decimals; any other text unchanged.

    Examples
    --------
    >>> canonical_number("1.0"), canonical_number("-0"), canonical_number("0.5"), canonical_number("007")
    ('1', '0', '0.5', '007')
    """
    match = _INTEGRAL.fullmatch(text)
    if match is None:
        return text
    sign, digits = match.groups()
    return f"-{digits}" if sign == "-" and digits != "0" else digits


class Categories:
    """The distinct values of one column, numbered in the order in which they are met.

    Parameters
    ----------
    name : the column.
    numbers_in_text : whether integral numbers in the cells of a CSV file are one value however they are written.
    blank_is_missing : whether an empty text is a missing value.
    """

    def __init__(self, name: str, *, numbers_in_text: bool, blank_is_missing: bool) -> None:
        self.name = name
        self._numbers_in_text = numbers_in_text
        self._blank_is_missing = blank_is_missing
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def texts(self) -> Sequence[str]:
        """The values as text; value i has code i."""
        return list(self._numbers)

    def code_of(self, text: str) -> int:
        """Return the code of a value given as its text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def codes(self, column: pa.Array, place: Place) -> NDArray[np.int64]:
        """Return the code of each row, shape (n,), MISSING for a null, a NaN or (if so wished) an empty text.

        Bytes are taken for text where they are UTF-8, which is how some programs write text to Parquet.

        Raises
        ------
        DataError : where the column holds lists, structs, bytes of fixed length (UUIDs, hashes) or bytes that are not
            text.
        """
        kind = plain_type(column.type)
        if pa.types.is_nested(kind):
            raise DataError(
                f"{shown(place.path)}: column {quoted(self.name)} must hold one value a row, "
                f"but it is of type {quoted(kind)}"
            )
        if pa.types.is_fixed_size_binary(kind):
            raise self._unusable(column.type, place)
        with self._reading(column.type, place):
            coded = _encoded(column)
            indices = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
        # A dictionary may hold values that no row has: these are no categories.
        used = np.flatnonzero(np.bincount(indices, minlength=len(coded.dictionary))[: len(coded.dictionary)])
        with self._reading(column.type, place):
            texts = value_texts(coded.dictionary.take(pa.array(used)))
        codes = np.full(len(coded.dictionary) + 1, MISSING, dtype=np.int64)
        codes[used] = [self._number(text, kind, place) for text in texts]
        by_row: NDArray[np.int64] = codes[indices]
        return by_row

    @contextmanager
    def _reading(self, kind: pa.DataType, place: Place) -> Iterator[None]:
        """Tell types that pyarrow cannot turn into text from damaged files."""
        with reading(place.path):
            try:
                yield
            except pa.ArrowNotImplementedError as error:
                raise self._unusable(kind, place) from error
            except pa.ArrowInvalid as error:
                if not _is_binary(plain_type(kind)):
                    raise
                raise self._unusable(kind, place) from error

    def _unusable(self, kind: pa.DataType, place: Place) -> DataError:
        held = "holds binary data" if _is_binary(plain_type(kind)) else "cannot be read as text"
        return DataError(
            f"{shown(place.path)}: column {quoted(self.name)} {held} (type {quoted(kind)}); "
            "a column of text or numbers is needed"
        )

    def _number(self, text: str | None, kind: pa.DataType, place: Place) -> int:
        if text is None or (text == "" and self._blank_is_missing):
            return MISSING
        if pa.types.is_floating(kind) and text.lower() in ("nan", "-nan"):
            return MISSING
        if not is_text(kind) or (place.is_csv and self._numbers_in_text):
            text = canonical_number(text)
        return self.code_of(text)


def _encoded(column: pa.Array) -> pa.DictionaryArray:
    if isinstance(column, pa.ExtensionArray):
        return _encoded(column.storage)
    if pa.types.is_run_end_encoded(column.type):
        return _encoded(pc.run_end_decode(column))
    if pa.types.is_dictionary(column.type):
        return column
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string()).dictionary_encode()
    if pa.types.is_float16(column.type):
        return column.cast(pa.float32()).dictionary_encode()
    if pa.types.is_decimal32(column.type) or pa.types.is_decimal64(column.type):
        return column.cast(pa.decimal128(column.type.precision, column.type.scale)).dictionary_encode()
    return column.dictionary_encode()


def _is_binary(kind: pa.DataType) -> bool:
    names = ("is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary")
    return any(getattr(pa.types, name)(kind) for name in names)
