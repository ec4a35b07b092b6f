"""An Evaluation as titled grids of text, the same words and numbers for terminal, Markdown and HTML."""

from collections.abc import Iterator

from headeval.core.calibration import Convention, ReliabilityTable
from headeval.core.calibration_evidence import CalibrationNoise
from headeval.core.intervals import Interval
from headeval.evaluation import METRICS, Evaluation
from headeval.metric import Metric, MetricInfo
from headeval.render.bars import sparkline
from headeval.render.numbers import (
    NOTHING,
    count,
    edges,
    exact,
    interval_text,
    level,
    metric_value,
    number,
    share,
    signed,
)
from headeval.render.sections import Bar, Column, Grid, Section, in_cell, in_sentence
from headeval.render.traffic import traffic_section


def evaluation_sections(evaluation: Evaluation) -> tuple[Section, ...]:
    """Return ranking, calibration, decisions, what they mean a day where it was asked, and reliability."""
    return (
        _ranking(evaluation),
        _calibration(evaluation),
        _decisions(evaluation),
        *(() if evaluation.traffic is None else (traffic_section(evaluation.traffic, evaluation.confidence),)),
        reliability_section(evaluation),
    )


def flagging_rule(evaluation: Evaluation) -> str:
    """Return when a row is flagged, in words."""
    return f"flagged when P({in_sentence(evaluation.classes[1])}) ≥ {exact(evaluation.threshold)}"


def reliability_section(evaluation: Evaluation, title: str = "Reliability") -> Section:
    """Return the positive-class table; runs of empty bins share one row."""
    positive = in_sentence(evaluation.classes[1])
    rows, bars = zip(*_reliability_rows(evaluation), strict=True)
    intervals = () if evaluation.confidence is None else (level(evaluation.confidence),)
    headings = ("p", "rows", "mean p", "positive", *intervals, "gap")
    columns = tuple(Column(heading, numeric=heading != "p") for heading in headings)
    return Section(
        title,
        (Grid("share of positives by predicted probability", columns, rows, bars=bars),),
        lead=f"of the rows with P({positive}) in a bin, the share that is {positive} beside the mean p",
        footnotes=("gap = positive - mean p: above 0, more are positive than p says",),
    )


def chance(noise: CalibrationNoise) -> str:
    """Return the ECE that chance alone shows, on average and at its 95th percentile; simulated, so three decimals."""
    return f"{number(noise.mean, 3)}, up to {number(noise.quantile_95, 3)}"


def convention_bins(table: ReliabilityTable) -> str:
    """Return how the bins of a calibration error were made."""
    side = "[lo, hi)" if table.convention == "top-label-left" else "(lo, hi]"
    return f"{table.n_bins} {table.binning} {side}"


def _ranking(evaluation: Evaluation) -> Section:
    rows = _group(evaluation, "ranking")
    at = evaluation.best_f1_threshold
    if at is not None:
        rows = [(*row[:-1], f"at {exact(at)}, {row[-1]}") if row[0] == "best F1" else row for row in rows]
    info, metric = METRICS["prevalence"], evaluation.prevalence
    prevalence = _measure(info, metric, evaluation.confidence)
    prevalence = (*prevalence[:-1], f"{info.what}, {_of(evaluation, info.name)}".removesuffix(", "))
    line = evaluation.recall_by_fpr
    return Section(
        "Ranking",
        (_measures("ranking", [*rows, prevalence], evaluation.confidence),),
        lead=f"ROC {sparkline(line)} recall as the FPR goes from 0 to 1" if line else "",
        footnotes=_methods(evaluation, ("auc", "ap")),
    )


def _calibration(evaluation: Evaluation) -> Section:
    tables, noise = evaluation.calibration, evaluation.noise
    ece = (evaluation.ece, evaluation.ece_positive_class)[: len(tables)]
    lines = [
        ("bins", *map(convention_bins, tables)),
        ("ECE", *(number(table.ece) for table in tables)),
        *([(level(evaluation.confidence), *map(_interval_cell, ece))] if evaluation.confidence is not None else []),
        ("if calibrated", *map(chance, noise)),
        ("corrected", *(number(part.ece_corrected) for part in noise)),
        ("MCE", *(number(table.mce) for table in tables)),
    ]
    columns = (Column("convention"), *(Column(table.convention) for table in tables))
    scores = _group(evaluation, "calibration", without=("ece", "ece_corrected", "mce", "ece_positive_class"))
    return Section(
        "Calibration",
        (
            Grid("calibration errors", columns, tuple(lines)),
            _measures("proper scores and Cox calibration", scores, evaluation.confidence),
        ),
        footnotes=(
            *(_question(table.convention, evaluation) for table in tables),
            "if calibrated: the ECE of a perfectly calibrated head on such rows by chance, mean and 95th percentile",
            "corrected: the ECE less what chance adds to it",
            "MCE: the largest gap of one bin; where bins hold few rows it is mostly chance",
            _brier_story(evaluation),
            *_methods(evaluation, ("ece", "log_loss", "calibration_slope")),
        ),
    )


def _brier_story(evaluation: Evaluation) -> str:
    parts = evaluation.brier_parts
    return (
        f"Brier {number(evaluation.brier.value or 0.0)} = reliability {number(parts.reliability)}"
        f" - resolution {number(parts.resolution)} + uncertainty {number(parts.uncertainty)}"
        f" + within bins {signed(parts.within_bin_variance - parts.within_bin_covariance)}"
    )


def _question(convention: Convention, evaluation: Evaluation) -> str:
    if convention == "positive-class":
        return f"{convention}: does 0.9 mean 90 % {in_sentence(evaluation.classes[1])}?"
    return f"{convention}: is the likelier class right as often as its probability says?"


def _decisions(evaluation: Evaluation) -> Section:
    counts = evaluation.counts
    negative, positive = (in_cell(name) for name in evaluation.classes)
    outcomes = (
        (positive, counts.true_positives, counts.false_negatives, counts.positives),
        (negative, counts.false_positives, counts.true_negatives, counts.negatives),
        ("all", counts.flagged, counts.n - counts.flagged, counts.n),
    )
    columns = (Column("truly"), *(Column(heading, numeric=True) for heading in ("flagged", "passed", "all")))
    rates = [
        _measure(info, metric, evaluation.confidence, _of(evaluation, info.name))
        for info, metric in evaluation.metrics()
        if info.group == "decision"
    ]
    weighed = ("rates are weighted, the counts are rows",) if evaluation.weighted else ()
    return Section(
        "Decisions",
        (
            Grid("rows by truth and decision", columns, tuple((name, *map(count, row)) for name, *row in outcomes)),
            _measures("rates at the threshold", rates, evaluation.confidence, counted=True),
        ),
        lead=flagging_rule(evaluation),
        footnotes=(*weighed, *_rate_methods(evaluation)),
    )


def _of(evaluation: Evaluation, name: str) -> str:
    """Return the rows behind a rate, such as 58/81; nothing where rows weigh differently."""
    counts = evaluation.counts
    hits = counts.true_positives
    if evaluation.weighted:
        return ""
    return {
        "prevalence": share(counts.positives, counts.n),
        "accuracy": share(hits + counts.true_negatives, counts.n),
        "precision": share(hits, counts.flagged),
        "recall": share(hits, counts.positives),
        "specificity": share(counts.true_negatives, counts.negatives),
        "fpr": share(counts.false_positives, counts.negatives),
        "flag_rate": share(counts.flagged, counts.n),
    }.get(name, "")


def _group(evaluation: Evaluation, group: str, without: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    return [
        _measure(info, metric, evaluation.confidence)
        for info, metric in evaluation.metrics()
        if info.group == group and info.name not in without
    ]


def _measure(info: MetricInfo, metric: Metric, confidence: float | None, rows: str | None = None) -> tuple[str, ...]:
    """Return title, value, interval where there are any, rows where they are counted, and meaning."""
    cells = [info.title, metric_value(metric)]
    if confidence is not None:
        cells.append(_interval_cell(metric))
    if rows is not None:
        cells.append(rows)
    return (*cells, metric.reason or info.what)


def _interval_cell(metric: Metric) -> str:
    return "" if metric.interval is None else interval_text(metric.interval)


def _measures(caption: str, rows: list[tuple[str, ...]], confidence: float | None, *, counted: bool = False) -> Grid:
    columns = [Column("measure"), Column("value", numeric=True)]
    if confidence is not None:
        columns.append(Column(level(confidence), numeric=True))
    if counted:
        columns.append(Column("rows", numeric=True))
    return Grid(caption, (*columns, Column("meaning")), tuple(rows), headed=confidence is not None)


def _methods(evaluation: Evaluation, names: tuple[str, ...]) -> tuple[str, ...]:
    """Say how intervals were computed, once for all that share a method."""
    if evaluation.confidence is None:
        return ()
    methods: dict[str, list[str]] = {}
    for name in names:
        metric = getattr(evaluation, name)
        if metric.interval is not None:
            methods.setdefault(metric.interval.method, []).append(METRICS[name].title)
    found = "; ".join(f"{', '.join(titles)}: {method}" for method, titles in methods.items())
    return (f"intervals: {found}",) if found else ()


def _rate_methods(evaluation: Evaluation) -> tuple[str, ...]:
    shown = next((metric.interval for _, metric in evaluation.metrics() if metric.guarantee and metric.interval), None)
    if shown is None:
        return ()
    return (f"intervals: {shown.method}; requirements on bounds are held against the exact ones, Clopper-Pearson",)


def _reliability_rows(evaluation: Evaluation) -> Iterator[tuple[tuple[str, ...], Bar | None]]:
    table = evaluation.reliability
    bounds = edges([*table.lower.tolist(), float(table.upper[-1])])
    intervals = evaluation.reliability_intervals
    first_empty: int | None = None
    for index, rows in enumerate(table.counts.tolist()):
        if not rows:
            first_empty = index if first_empty is None else first_empty
            if index + 1 < table.n_bins and not table.counts[index + 1]:
                continue
            blank = [NOTHING] * (4 if evaluation.confidence is not None else 3)
            yield (_interval(bounds, first_empty, index + 1), "0", *blank), None
            first_empty = None
            continue
        share_positive, mean = float(table.accuracy[index]), float(table.confidence[index])
        sure = () if evaluation.confidence is None else (_short_interval(intervals[index]),)
        numbers = (number(mean), number(share_positive), *sure, signed(share_positive - mean))
        yield (_interval(bounds, index, index + 1), count(rows), *numbers), Bar(share_positive, mean)


def _short_interval(interval: Interval | None) -> str:
    """Return an interval in few digits, but never one that looks as if it had no width."""
    if interval is None:
        return NOTHING
    for digits in range(2, 12):
        lower, upper = number(interval.lower, digits), number(interval.upper, digits)
        if lower != upper:
            break
    return f"[{lower}, {upper}]"


def _interval(bounds: list[str], lower: int, upper: int) -> str:
    """The first bin takes p = 0 as well."""
    return f"{'(' if lower else '['}{bounds[lower]}, {bounds[upper]}]"
