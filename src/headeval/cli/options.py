"""Options of the commands, each declared once."""

import csv
from pathlib import Path
from typing import Annotated, Literal

import typer

from headeval._version import __version__
from headeval.cli.console import write
from headeval.errors import UsageError
from headeval.printable import quoted

MOST_BINS = 10_000
CONFIDENCE_LIMITS = (0.001, 0.999999)
MIN_POSITIVES = 10


def _show_version(wanted: bool) -> None:
    if wanted:
        write(f"headeval {__version__}\n")
        raise typer.Exit


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


def _least_positives(value: int) -> int:
    if value < 1:
        raise UsageError(f"--min-positives must be at least 1, got {value}: of one class alone nothing can be fitted")
    return value


def refuse_for_one(several: str, *, min_positives: int = MIN_POSITIVES, allow_missing: bool = False) -> None:
    """Refuse options about categories that are left out, where there is no more than one.

    Parameters
    ----------
    several : what there would have to be, and how to say so.

    Raises
    ------
    UsageError : naming the option.
    """
    given = "--min-positives" if min_positives != MIN_POSITIVES else "--allow-missing" if allow_missing else None
    if given is not None:
        raise UsageError(f"{given} is for {several}: here there is only one, which is never left out")


def _class_list(value: str | None) -> str | None:
    class_names(value, None)
    return value


def class_names(value: str | None, positive: str | None) -> tuple[str, ...] | None:
    """Return the classes of --classes in their order, the flagged one last; None where it was not given.

    Parameters
    ----------
    positive : of --positive, which says the same of two classes.

    Raises
    ------
    UsageError : for fewer than two names, an empty one, one that is there twice, or where --positive is given as well.
    """
    if value is None:
        return None
    try:
        names = tuple(name.strip() for row in csv.reader([value], skipinitialspace=True) for name in row)
    except csv.Error as error:
        raise UsageError(
            f'--classes: a name with a line break stands in double quotes ("a",b), not {quoted(value)}'
        ) from error
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        raise UsageError(
            f"--classes takes at least two different names (a,b,c), the flagged one last, not {quoted(value)}"
        )
    if positive is not None:
        raise UsageError(
            f"--classes and --positive exclude each other: the last of --classes is flagged, {quoted(names[-1])}"
        )
    return names


def _bin_count(value: int | None) -> int | None:
    if value is not None and not 1 <= value <= MOST_BINS:
        raise UsageError(f"--bins must be from 1 to {MOST_BINS:,}, got {value:,}")
    return value


Data = Annotated[
    list[str], typer.Argument(metavar="DATA", help="Parquet or CSV files, folders or globs.", show_default=False)
]
Label = Annotated[
    str,
    typer.Option(help="Column with the labels. Several (a,b,c or 'cat_*') are categories, a head each.", metavar="COL"),
]
Positive = Annotated[
    str | None,
    typer.Option(
        help="The label value that is positive (flagged); needed unless labels are 0/1, false/true or safe/unsafe.",
        metavar="NAME",
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        callback=_class_list,
        help="All classes in their order, of labels or of columns of scores; the last is flagged. Not with --positive.",
        metavar="A,B,C",
        show_default=False,
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
    bool,
    typer.Option(
        "--drop-unlabelled",
        help="Leave out rows without a label, and say how many; of a category such rows are always left out.",
    ),
]
MinPositives = Annotated[
    int,
    typer.Option(
        "--min-positives",
        callback=_least_positives,
        help="Of several categories, leave out one with fewer known positives, or negatives, than this.",
        metavar="N",
    ),
]
AllowMissing = Annotated[
    bool,
    typer.Option("--allow-missing", help="Exit with 0 although categories were left out; without it the code is 5."),
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
Head = Annotated[
    Path | None,
    typer.Option(help="Linear-head file, or a folder of heads, one a category.", metavar="HEAD", show_default=False),
]
HeadWithDefault = Annotated[Path, typer.Option(help="Linear-head file, or a folder of them.", metavar="HEAD")]
Logit = Annotated[
    str | None,
    typer.Option(
        help="A column of logits, or one a class (a,b,c or 'z_*'), instead of a head.",
        metavar="COL",
        show_default=False,
    ),
]
Prob = Annotated[
    str | None,
    typer.Option(
        help="A column of probabilities, or one a class (a,b,c or 'p_*'), instead of a head.",
        metavar="COL",
        show_default=False,
    ),
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
CalibratedOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="What to write.  [default: the name of the head, folder or score file with -calibrated, in this folder]",
        metavar="FILE",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an output that exists.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No talk and no progress on stderr, only errors.")]
Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
]
