"""Options of `headeval report` alone, each declared once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from headeval.cli import options
from headeval.errors import UsageError

MOST_RESAMPLES = 1_000_000


def _resample_count(value: int | None) -> int | None:
    if value is not None and not 0 <= value <= MOST_RESAMPLES:
        raise UsageError(f"--resamples must be from 0 (no bootstrap intervals) to {MOST_RESAMPLES:,}, got {value:,}")
    return value


def _share(value: float | None) -> float | None:
    if value is not None and not 0 < value < 1:
        raise UsageError(f"--prevalence must lie between 0 and 1, both excluded, got {value:g} (0.1 % is 0.001)")
    return value


def _amount(value: float | None) -> float | None:
    if value is not None and not 0 < value < 1e15:
        raise UsageError(f"--per-day must be a number of rows above 0 and below 1e15, got {value:g}")
    return value


Require = Annotated[
    list[str] | None,
    typer.Option(
        help="Exit 1 unless met, e.g. 'auc>=0.95' or, on a bound of its interval, 'fpr.upper<=0.02' (repeatable). "
        "Of a category or class 'hate:auc>=0.8', of each of them '*:auc>=0.8'.",
        metavar="'METRIC>=NUMBER'",
        show_default=False,
    ),
]
RequireEach = Annotated[
    list[str] | None,
    typer.Option(
        help="The same for every value of --by, e.g. 'recall.lower>=0.5' (repeatable).",
        metavar="'METRIC>=NUMBER'",
        show_default=False,
    ),
]
MinRows = Annotated[
    int, typer.Option(min=1, help="--require-each skips slices with fewer rows, and says so.", metavar="N")
]
By = Annotated[
    list[str] | None,
    typer.Option(help="Also judge each value of this column (repeatable).", metavar="COL", show_default=False),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        help="Compare with this head, or folder of heads, on the same rows.", metavar="HEAD", show_default=False
    ),
]
BaselineLogit = Annotated[
    str | None, typer.Option(help="Compare with this column of logits.", metavar="COL", show_default=False)
]
BaselineProb = Annotated[
    str | None, typer.Option(help="Compare with this column of probabilities.", metavar="COL", show_default=False)
]
Changed = Annotated[
    Path | None,
    typer.Option(
        help="Write the rows that the baseline decides otherwise (.parquet or .csv).",
        metavar="FILE",
        show_default=False,
    ),
]
Reference = Annotated[
    list[str] | None,
    typer.Option(
        help="Look for drift from, and rows shared with, this file (repeatable).", metavar="FILE", show_default=False
    ),
]
Identifier = Annotated[
    str | None,
    typer.Option(
        "--id", help="Column that names the rows.  [default: id, where there is one]", metavar="COL", show_default=False
    ),
]
Weight = Annotated[
    str | None, typer.Option(help="Column with row weights; all metrics are then weighted.", metavar="COL")
]
Group = Annotated[
    str | None,
    typer.Option(
        help="Column whose equal values are not independent (conversation, template); widens the intervals.",
        metavar="COL",
    ),
]
Confidence = Annotated[
    float, typer.Option(callback=options.confidence_level, help="Confidence of all intervals.", metavar="SHARE")
]
Resamples = Annotated[
    int | None,
    typer.Option(
        callback=_resample_count,
        help="Resamples of the bootstrap; 0 leaves its intervals out.  [default: 1000, fewer beyond 100,000 rows]",
        metavar="N",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers; recorded.", metavar="N")]
Prevalence = Annotated[
    float | None,
    typer.Option(
        callback=_share,
        help="Share of positives in the traffic to come: adds alerts, misses and precision.",
        metavar="SHARE",
        show_default=False,
    ),
]
PerDay = Annotated[
    float | None,
    typer.Option(callback=_amount, help="Rows a day, with --prevalence.", metavar="N", show_default=False),
]
EceConvention = Annotated[
    Literal["top-label", "top-label-left", "positive-class"],
    typer.Option(help="Which ECE the metrics `ece` and `mce` are; the positive-class one is always shown."),
]
Format = Annotated[Literal["table", "json", "markdown"], typer.Option("--format", help="What is written to stdout.")]
Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        help="Also write a self-contained page with charts and a threshold slider (needs headeval[html]).",
        metavar="FILE",
        show_default=False,
    ),
]
Plots = Annotated[
    Path | None,
    typer.Option(
        "--plots",
        help="Also write the charts as SVG and PNG (needs headeval[plots]).",
        metavar="FOLDER",
        show_default=False,
    ),
]
Card = Annotated[
    Path | None,
    typer.Option("--card", help="Also write a model card in Markdown.", metavar="FILE", show_default=False),
]
Junit = Annotated[
    Path | None,
    typer.Option(
        "--junit", help="Also write the requirements as JUnit test cases.", metavar="FILE", show_default=False
    ),
]
