"""Options of `headeval threshold` alone, each declared once."""

import math
from pathlib import Path
from typing import Annotated, Literal

import typer

from headeval.cli import options
from headeval.errors import UsageError


def _false_positive_cost(value: float | None) -> float | None:
    return _cost(value, "--cost-fp")


def _miss_cost(value: float | None) -> float | None:
    return _cost(value, "--cost-fn")


def _cost(value: float | None, option: str) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise UsageError(f"{option} must be a finite number above 0, got {value:g}")
    return value


Data = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA",
        help="Labelled Parquet or CSV files, folders or globs; not those of the fit.",
        show_default=False,
    ),
]
Require = Annotated[
    list[str] | None,
    typer.Option(
        help="Certify this, e.g. 'fpr<=0.01' or 'recall>=0.8' (repeatable: all hold together); 'hate:fpr<=0.01' of one "
        "category.",
        metavar="'METRIC<=NUMBER'",
        show_default=False,
    ),
]
Maximise = Annotated[
    Literal["recall", "precision", "f1", "accuracy", "specificity"] | None,
    typer.Option(
        help="What to make large among the certified thresholds.  [default: recall; specificity where only recall "
        "is required]",
        show_default=False,
    ),
]
CostFp = Annotated[
    float | None,
    typer.Option(
        callback=_false_positive_cost,
        help="Cost of a false positive: the cheapest certified threshold on these rows is taken.",
        metavar="COST",
        show_default=False,
    ),
]
CostFn = Annotated[
    float | None, typer.Option(callback=_miss_cost, help="Cost of a miss.", metavar="COST", show_default=False)
]
Confidence = Annotated[
    float,
    typer.Option(
        callback=options.confidence_level, help="Confidence with which all requirements hold together.", metavar="SHARE"
    ),
]
Benign = Annotated[
    list[str] | None,
    typer.Option(
        help="Unlabelled benign traffic, for 'flag_rate<=0.001' (repeatable).", metavar="FILE", show_default=False
    ),
]
Planning = Annotated[bool, typer.Option("--plan", help="Only show how many rows the requirements take; needs no DATA.")]
Format = Annotated[Literal["table", "json"], typer.Option("--format", help="What is written to stdout.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Where the head is written.  [default: the name of the head or folder with -threshold, in this folder]",
        metavar="FILE",
        show_default=False,
    ),
]
