"""Options of the commands, each declared once."""

import math
import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from headeval._version import __version__
from headeval.cli.console import write
from headeval.errors import UsageError
from headeval.printable import quoted

MOST_BINS = 10_000
CONFIDENCE_LIMITS = (0.001, 0.999999)


def _show_version(wanted: bool) -> None:
    if wanted:
        write(f"headeval {__version__}\n")
        raise typer.Exit


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


def _model_name(value: str | None) -> str | None:
    if value is None:
        return None
    name = value.strip()
    if not name or any("\ud800" <= char <= "\udfff" for char in name):
        raise UsageError(f"--embedding-model {quoted(value)} is not a name")
    return name


def _probability(value: float | None) -> float | None:
    if value is not None and not 0 <= value <= 1:
        raise UsageError(f"--threshold must be a probability between 0 and 1, got {value!r}")
    return value


def confidence_level(value: float) -> float:
    """Return a confidence that intervals can have; beyond the limits nobody could tell one from another.

    Raises
    ------
    UsageError : where it is outside.
    """
    least, most = CONFIDENCE_LIMITS
    if not least <= value <= most:
        hint = f"; {value:g} % is {value / 100:g}" if 1 < value < 100 else ""
        raise UsageError(f"--confidence must be a share from {least:g} to {most:.6f}, got {value:g}{hint}")
    return value


def _fold_count(value: int | None) -> int | None:
    if value is not None and (value < 0 or value == 1):
        raise UsageError(f"--folds must be 0 (no out-of-fold metrics) or at least 2, got {value}")
    if value is not None and value > MOST_FOLDS:
        raise UsageError(f"--folds must be at most {MOST_FOLDS:,}, got {value:,}: each is a fit of its own")
    return value


def _bin_count(value: int | None) -> int | None:
    if value is not None and not 1 <= value <= MOST_BINS:
        raise UsageError(f"--bins must be from 1 to {MOST_BINS:,}, got {value:,}")
    return value


Data = Annotated[
    list[str], typer.Argument(metavar="DATA", help="Parquet or CSV files, folders or globs.", show_default=False)
]
Label = Annotated[str, typer.Option(help="Column with the labels.", metavar="COL")]
Positive = Annotated[
    str | None,
    typer.Option(
        help="The label value that is positive; needed unless labels are 0/1, false/true or safe/unsafe.",
        metavar="NAME",
    ),
]
Embedding = Annotated[
    str, typer.Option(help="Column with the embeddings, or the prefix of one column a dimension.", metavar="COL")
]
EmbeddingModel = Annotated[
    str | None,
    typer.Option(
        callback=_model_name,
        help="Model that made the embeddings; else from the Parquet metadata.",
        metavar="NAME",
        show_default=False,
    ),
]
DropUnlabelled = Annotated[
    bool, typer.Option("--drop-unlabelled", help="Leave out rows without a label, and say how many.")
]
Threshold = Annotated[
    float,
    typer.Option(
        callback=_probability, help="Flag when the probability is at least this; stored in the head.", metavar="T"
    ),
]
ThresholdOverride = Annotated[
    float | None,
    typer.Option(
        callback=_probability,
        help="Judge at this threshold instead of the head's (or 0.5).",
        metavar="T",
        show_default=False,
    ),
]
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
Engine = Annotated[
    Literal["local", "dask"],
    typer.Option(help="Where rows are read and summed: in this process, or by the workers of a Dask cluster."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Dask scheduler (tcp://host:8786); without it --engine dask starts a cluster on this machine.",
        metavar="ADDRESS",
        show_default=False,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(help="Column with row weights for the fit; the metrics count every row once.", metavar="COL"),
]
Group = Annotated[
    str | None,
    typer.Option(help="Column whose equal values must share a fold (conversation, template).", metavar="COL"),
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
Head = Annotated[Path | None, typer.Option(help="Linear-head file.", metavar="HEAD", show_default=False)]
HeadWithDefault = Annotated[Path, typer.Option(help="Linear-head file.", metavar="HEAD")]
Logit = Annotated[
    str | None, typer.Option(help="A column of logits, instead of a head.", metavar="COL", show_default=False)
]
Prob = Annotated[
    str | None,
    typer.Option(help="A column of probabilities, instead of a head.", metavar="COL", show_default=False),
]
Method = Annotated[
    Literal["temperature", "platt"],
    typer.Option(help="temperature: one factor, decisions at 0.5 stay. platt: slope and intercept."),
]
Bins = Annotated[
    int | None,
    typer.Option(
        callback=_bin_count,
        help="Bins of the calibration tables.  [default: 15 top-label, else 10]",
        metavar="N",
        show_default=False,
    ),
]
Binning = Annotated[
    Literal["equal-width", "equal-mass"], typer.Option(help="Bins of equal width, or with equally many rows.")
]
Output = Annotated[Path, typer.Option("--output", "-o", help="The file to write.", metavar="FILE", show_default=False)]
HeadOutput = Annotated[Path, typer.Option("--output", "-o", help="Where the head is written.", metavar="FILE")]
CalibratedOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="The file to write.  [default: the name of the head or score file with -calibrated, in this folder]",
        metavar="FILE",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an output that exists.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No talk and no progress on stderr, only errors.")]
Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
]
