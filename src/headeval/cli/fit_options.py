"""Options of `fit` alone."""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headeval.errors import UsageError
from headeval.printable import quoted

if TYPE_CHECKING:
    from headeval.files.tables import Tables

AUTO = "auto"
MOST_FOLDS = 1000
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def _penalties(value: str) -> str:
    """Return the option as it is, once it is clear that `penalties` can read it."""
    penalties(value)
    return value


def penalties(value: str) -> tuple[float, ...] | None:
    """Return the penalties of --l2, one or several; None for a grid.

    Raises
    ------
    UsageError : for what is no such number, and for a list with a 0 or the same number twice.
    """
    if value.strip().lower() == AUTO:
        return None
    try:
        found = tuple(float(part) for part in value.split(","))
    except ValueError as error:
        raise UsageError(f"--l2 takes a number, several (0.1,1,10) or auto, not {quoted(value)}") from error
    for number in found:
        if not (math.isfinite(number) and number >= 0):
            raise UsageError(f"--l2 must be a finite number of at least 0, got {number:g}")
    if len(found) > 1 and (0.0 in found or len(set(found)) < len(found)):
        raise UsageError(f"--l2 {quoted(value)}: of several penalties each must be above 0 and stand once")
    return found


def _bytes(value: str | None) -> str | None:
    memory_bytes(value)
    return value


def memory_bytes(value: str | None) -> int | None:
    """Return the bytes of --memory.

    Raises
    ------
    UsageError : for what is no amount of memory.
    """
    if value is None:
        return None
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?I?B?)\s*", value.upper())
    unit = match and (match[2] if match[2] in _UNITS else f"{match[2]}B")
    if match is None or unit not in _UNITS or float(match[1]) <= 0:
        raise UsageError(f"--memory takes an amount such as 2GB or 500MB, not {quoted(value)}")
    return int(float(match[1]) * _UNITS[unit])


def _fold_count(value: int | None) -> int | None:
    if value is not None and (value < 0 or value == 1):
        raise UsageError(f"--folds must be 0 (no out-of-fold metrics) or at least 2, got {value}")
    if value is not None and value > MOST_FOLDS:
        raise UsageError(f"--folds must be at most {MOST_FOLDS:,}, got {value:,}: each is a fit of its own")
    return value


def several_labels(
    tables: "Tables", label: str, taken: tuple[str | None, ...], *, classes: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Return the label columns of --label, each of a category; None where it is the name of one column.

    Parameters
    ----------
    taken : columns with another meaning, which no pattern matches.
    classes : of --classes, which is for one column.

    Raises
    ------
    UsageError : where `classes` were given beside several columns.
    DataError : for columns that are missing.
    """
    if label in tables.column_names or not any(mark in label for mark in ",*?["):
        return None
    if classes is not None:
        raise UsageError(
            f"--classes names the values of one label column, but --label {quoted(label)} names several columns, "
            "whose heads have two classes each: leave --classes out"
        )
    from headeval.files.label_columns import label_columns

    return label_columns(tables, label, taken=[column for column in taken if column is not None])


L2 = Annotated[
    str,
    typer.Option(
        "--l2",
        callback=_penalties,
        help="Ridge penalty on the weights; scikit-learn's C is 1/l2. Several (0.1,1,10) or auto: best out of fold.",
        metavar="NUMBER",
    ),
]
L2Rule = Annotated[
    Literal["best", "one-se"],
    typer.Option(
        "--l2-rule",
        help="Of several penalties: the least log loss, or the largest within one standard error of it.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        callback=_bytes,
        help="Memory to use (2GB); rows that do not fit are read anew in every pass.  [default: most of what is free]",
        metavar="SIZE",
        show_default=False,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        callback=_fold_count,
        help="Folds of the out-of-fold metrics; 0 skips them.  [default: 5]",
        metavar="N",
        show_default=False,
    ),
]
EvaluationData = Annotated[
    list[str] | None,
    typer.Option(
        "--eval", help="Judge on this file instead of out of fold (repeatable).", metavar="FILE", show_default=False
    ),
]
HeadOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Where the head is written; for several labels a folder.  [default: linear-head.json, or heads]",
        metavar="FILE",
        show_default=False,
    ),
]
