"""An Evaluation as titled grids of text, the same words and numbers for terminal, Markdown and HTML.

Text from outside has passed through `printable` here; each format still escapes what its own syntax would read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from headeval.core.calibration import Convention, ReliabilityTable
from headeval.core.thresholds import ConfusionCounts
from headeval.evaluation import Evaluation, Metric, MetricInfo
from headeval.printable import printable
from headeval.render.numbers import NOTHING, count, edges, exact, metric_value, number, share, signed

Tone = Literal["good", "bad", "doubtful"]

LONGEST_IN_SENTENCE = 40


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a grid; numbers stand right-aligned."""

    heading: str
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a reliability diagram: the share of positives, and the mean p it should equal; both in [0, 1]."""

    share: float
    mean: float


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of text; the first cell of a row names it.

    Attributes
    ----------
    caption : what the grid shows, for those who do not see where it stands.
    headed : whether a reader needs the headings to understand the columns.
    bars : one a row, None in a row without; or no bars at all.
    tones : one a row, of its verdict; or none at all.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    headed: bool = True
    bars: tuple[Bar | None, ...] = ()
    tones: tuple[Tone, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A title, a sentence, grids, and what has to be said below them."""

    title: str
    grids: tuple[Grid, ...]
    lead: str = ""
    footnotes: tuple[str, ...] = ()


def evaluation_sections(evaluation: Evaluation) -> tuple[Section, ...]:
    """Return ranking, calibration, decisions and reliability of one evaluation."""
    return (
        _ranking(evaluation),
        _calibration(evaluation),
        _decisions(evaluation),
        reliability_section(evaluation),
    )


def in_sentence(name: str) -> str:
    """Return a class name short enough to stand within a sentence, in quotes where it is not a word."""
    text = printable(name, longest=LONGEST_IN_SENTENCE)
    return text if text[:1].isalpha() else f"'{text}'"


def flagging_rule(evaluation: Evaluation) -> str:
    """Return when a row is flagged, in words."""
    return f"flagged when P({in_sentence(evaluation.classes[1])}) ≥ {exact(evaluation.threshold)}"


def reliability_section(evaluation: Evaluation, title: str = "Reliability") -> Section:
    """Return the positive-class table; runs of empty bins share one row."""
    table = evaluation.reliability
    positive = in_sentence(evaluation.classes[1])
    rows, bars = zip(*_reliability_rows(table), strict=True)
    headings = ("p", "rows", "mean p", "share positive", "gap")
    columns = tuple(Column(heading, numeric=heading != "p") for heading in headings)
    return Section(
        title,
        (Grid("share of positives by predicted probability", columns, rows, bars=bars),),
        lead=f"of the rows with P({positive}) in a bin, the share that is {positive} beside the mean p",
        footnotes=("gap = share positive - mean p: above 0, more are positive than p says",),
    )


def chance(table: ReliabilityTable) -> str:
    """Return the level that an ECE reaches by chance alone; it is rough, and shown with two decimals."""
    return f"~{number(table.ece_if_calibrated, 2)}"


def convention_bins(table: ReliabilityTable) -> str:
    """Return how the bins of a calibration error were made."""
    side = "[lo, hi)" if table.convention == "top-label-left" else "(lo, hi]"
    return f"{table.n_bins} {table.binning} {side}"


def _ranking(evaluation: Evaluation) -> Section:
    rows = []
    for info, metric in evaluation.metrics():
        if info.group == "ranking":
            rows.append(_measure(info, metric))
    counts = evaluation.counts
    prevalence = f"share of positives, {share(counts.positives, counts.n)}"
    rows.append(("prevalence", metric_value(evaluation.prevalence), prevalence))
    return Section("Ranking", (_measures("ranking", rows),))


def _calibration(evaluation: Evaluation) -> Section:
    headings = ("ECE", "if calibrated", "MCE")
    columns = (Column("convention"), Column("bins"), *(Column(heading, numeric=True) for heading in headings))
    errors = tuple(
        (
            table.convention,
            convention_bins(table),
            number(table.ece),
            chance(table),
            number(table.mce),
        )
        for table in evaluation.calibration
    )
    scores = [
        _measure(info, metric)
        for info, metric in evaluation.metrics()
        if info.group == "calibration" and info.name not in {"ece", "mce", "ece_positive_class"}
    ]
    return Section(
        "Calibration",
        (Grid("calibration errors", columns, errors), _measures("proper scores", scores)),
        footnotes=(
            *(_question(table.convention, evaluation) for table in evaluation.calibration),
            "if calibrated: the ECE of a perfectly calibrated head on such rows, by chance and on average",
            "MCE: the largest gap of one bin; where bins hold few rows it is mostly chance",
        ),
    )


def _question(convention: Convention, evaluation: Evaluation) -> str:
    if convention == "positive-class":
        return f"{convention}: does 0.9 mean 90 % {in_sentence(evaluation.classes[1])}?"
    return f"{convention}: is the likelier class right as often as its probability says?"


def _decisions(evaluation: Evaluation) -> Section:
    counts = evaluation.counts
    negative, positive = (printable(name) for name in evaluation.classes)
    outcomes = (
        (positive, counts.true_positives, counts.false_negatives, counts.positives),
        (negative, counts.false_positives, counts.true_negatives, counts.negatives),
        ("all", counts.flagged, counts.n - counts.flagged, counts.n),
    )
    columns = (Column("truly"), *(Column(heading, numeric=True) for heading in ("flagged", "passed", "all")))
    fractions = _fractions(counts)
    rates = [
        (info.title, metric_value(metric), fractions.get(info.name, ""), metric.reason or info.what)
        for info, metric in evaluation.metrics()
        if info.group == "decision"
    ]
    return Section(
        "Decisions",
        (
            Grid("rows by truth and decision", columns, tuple((name, *map(count, row)) for name, *row in outcomes)),
            Grid(
                "rates at the threshold",
                (Column("measure"), Column("value", numeric=True), Column("rows", numeric=True), Column("meaning")),
                tuple(rates),
                headed=False,
            ),
        ),
        lead=flagging_rule(evaluation),
    )


def _fractions(counts: ConfusionCounts) -> dict[str, str]:
    hits = counts.true_positives
    return {
        "accuracy": share(hits + counts.true_negatives, counts.n),
        "precision": share(hits, counts.flagged),
        "recall": share(hits, counts.positives),
        "specificity": share(counts.true_negatives, counts.negatives),
        "fpr": share(counts.false_positives, counts.negatives),
    }


def _measure(info: MetricInfo, metric: Metric) -> tuple[str, str, str]:
    return (info.title, metric_value(metric), metric.reason or info.what)


def _measures(caption: str, rows: list[tuple[str, str, str]]) -> Grid:
    columns = (Column("measure"), Column("value", numeric=True), Column("meaning"))
    return Grid(caption, columns, tuple(rows), headed=False)


def _reliability_rows(table: ReliabilityTable) -> Iterator[tuple[tuple[str, ...], Bar | None]]:
    bounds = edges([*table.lower.tolist(), float(table.upper[-1])])
    first_empty: int | None = None
    for index, rows in enumerate(table.counts.tolist()):
        if not rows:
            first_empty = index if first_empty is None else first_empty
            if index + 1 < table.n_bins and not table.counts[index + 1]:
                continue
            yield (_interval(bounds, first_empty, index + 1), "0", NOTHING, NOTHING, NOTHING), None
            first_empty = None
            continue
        share_positive, mean = float(table.accuracy[index]), float(table.confidence[index])
        numbers = (number(mean), number(share_positive), signed(share_positive - mean))
        yield (_interval(bounds, index, index + 1), count(rows), *numbers), Bar(share_positive, mean)


def _interval(bounds: list[str], lower: int, upper: int) -> str:
    """The first bin takes p = 0 as well."""
    return f"{'(' if lower else '['}{bounds[lower]}, {bounds[upper]}]"
