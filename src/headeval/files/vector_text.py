"""Embeddings written as text: a JSON array in a cell, or the numbers separated by blanks."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headeval.files.row_faults import Place

_BLANK = r"[ \t\r\n]*"
_JSON_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
# The grammar of JSON, so that the fast path takes exactly the arrays of numbers that a JSON parser takes.
_JSON = rf"^{_BLANK}\[{_BLANK}{_JSON_NUMBER}(?:{_BLANK},{_BLANK}{_JSON_NUMBER})*{_BLANK}\]{_BLANK}$"
# What printing a NumPy array gives ("1." too); without brackets there must be two numbers at least.
_PRINTED_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_MORE = rf"(?:[ \t\r\n]+{_PRINTED_NUMBER})"
_SPACED = rf"^{_BLANK}(?:\[{_BLANK}{_PRINTED_NUMBER}{_MORE}*{_BLANK}\]|{_PRINTED_NUMBER}{_MORE}+){_BLANK}$"
_EXPECTED = "expected a JSON array of numbers such as [0.1, -0.2]"
_PROBLEMS = (
    (re.compile(r"\.\.\.|…"), "is shortened with an ellipsis (...)", "write out all numbers, for example as JSON"),
    (re.compile(r"(?i)nan|inf|null|none"), "holds NaN, an infinity or a null", ""),
    (re.compile(r"^\s*$"), "is empty", _EXPECTED),
    (re.compile(r"^\s*\[\s*\]\s*$"), "has no numbers (width 0)", _EXPECTED),
    (re.compile(rf"^\s*{_PRINTED_NUMBER}\s*$"), "is a single number, not a vector", _EXPECTED),
    (re.compile(""), "is no vector of numbers", _EXPECTED),
)


def read_vector_cells(
    cells: pa.Array, label: str, place: Place
) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """Return the numbers of all cells, one after the other, and how many each cell has, shape (n,).

    Parameters
    ----------
    cells : text without nulls. A cell is a JSON array of numbers, or numbers separated by blanks, with or without
        brackets around them.
    label : what the column is called in a message.
    place : where the faults of the cells are noted; the answer is None if there are any.
    """
    as_json = _matches(cells, _JSON)
    if as_json.all():
        return _read_json(cells)
    spaced = ~as_json
    spaced[spaced] = _matches(cells.filter(pa.array(spaced)), _SPACED)
    bad = ~(as_json | spaced)
    if bad.any():
        _note(cells, bad, label, place)
        return None
    return _read_any(cells)


def _read_json(cells: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Split and convert cells that match the JSON grammar; several times faster than a JSON parser on each."""
    # Most writers put the same separator everywhere. Where one does not, a number keeps a blank or a comma, which
    # Arrow refuses to convert.
    separator = ", " if len(cells) and ", " in cells[0].as_py() else ","
    try:
        return _converted(pc.split_pattern(pc.ascii_trim(cells, "[] \t\r\n"), separator))
    except pa.ArrowInvalid:
        return _read_any(cells)


def _read_any(cells: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    bare = pc.replace_substring_regex(cells, r"[\[\], \t\r\n]+", " ")
    return _converted(pc.split_pattern(pc.ascii_trim(bare, " "), " "))


def _converted(parts: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    lengths = pc.list_value_length(parts).to_numpy(zero_copy_only=False).astype(np.int64)
    return parts.flatten().cast(pa.float64()).to_numpy(zero_copy_only=False), lengths


def _note(cells: pa.Array, bad: NDArray[np.bool_], label: str, place: Place) -> None:
    positions = np.flatnonzero(bad)
    texts = [cells[int(position)].as_py() for position in positions]
    kinds = np.array([next(kind for kind, (sign, _, _) in enumerate(_PROBLEMS) if sign.search(text)) for text in texts])
    for kind in dict.fromkeys(kinds.tolist()):
        _, problem, advice = _PROBLEMS[kind]
        where = np.zeros(len(bad), dtype=np.bool_)
        where[positions[kinds == kind]] = True
        shown = [text for text, other in zip(texts, kinds, strict=True) if other == kind]
        place.fault(where, f"{label} {problem}", advice=advice, cells=shown if shown[0].strip() else None)


def _matches(cells: pa.Array, pattern: str) -> NDArray[np.bool_]:
    return np.asarray(pc.match_substring_regex(cells, pattern).to_numpy(zero_copy_only=False), dtype=np.bool_)
