"""The part of a report on a baseline: both values, their difference, and which rows are decided otherwise."""

from headeval.comparison import Comparison
from headeval.core.intervals import Difference
from headeval.evaluation import METRICS, Evaluation
from headeval.render.numbers import NOTHING, count, exact, level, metric_value, number, signed
from headeval.render.sections import Column, Grid, Section, in_cell


def comparison_section(comparison: Comparison, new: Evaluation) -> Section:
    """Return the metrics of both, the new less the baseline with its interval, and the rows that changed side."""
    was = comparison.baseline
    rows = tuple(
        (
            METRICS[name].title,
            metric_value(getattr(was, name)),
            metric_value(getattr(new, name)),
            signed(difference.value),
            *(() if new.confidence is None else (_interval(difference),)),
        )
        for name, difference in comparison.differences.items()
    )
    headings = ("baseline", "new", "difference", *(() if new.confidence is None else (level(new.confidence),)))
    columns = (Column("measure"), *(Column(heading, numeric=True) for heading in headings))
    decided = Grid(
        "rows decided otherwise",
        (Column("rows"), Column("number", numeric=True)),
        (
            ("newly flagged", count(comparison.changes.newly_flagged)),
            ("no longer flagged", count(comparison.changes.no_longer_flagged)),
            ("right only by the new", count(comparison.only_new_right)),
            ("right only by the baseline", count(comparison.only_baseline_right)),
        ),
        headed=False,
    )
    return Section(
        "Comparison",
        (Grid("new less baseline", columns, rows), decided),
        lead=f"difference to the baseline {in_cell(comparison.name)} on the same rows",
        footnotes=_footnotes(comparison, new),
    )


def _footnotes(comparison: Comparison, new: Evaluation) -> tuple[str, ...]:
    notes = ["McNemar's test is left out: it needs independent rows of equal weight"]
    if comparison.mcnemar_p is not None:
        notes = [
            f"decisions, McNemar's exact test: {_p(comparison.mcnemar_p)}, how often chance alone parts them as far"
        ]
    auc = comparison.differences.get("auc")
    if auc is not None and auc.p_value is not None:
        notes.append(f"AUC, paired DeLong: {_p(auc.p_value)}, how often chance alone parts them as far")
    if new.threshold != comparison.baseline.threshold:
        notes.append(f"thresholds: baseline {exact(comparison.baseline.threshold)}, new {exact(new.threshold)}")
    methods = {part.interval.method for part in comparison.differences.values() if part.interval is not None}
    if methods:
        notes.append(f"intervals: {', '.join(sorted(methods))}")
    return tuple(notes)


def _p(value: float) -> str:
    text = number(value)
    return f"p {text[0]} {text[1:]}" if text[0] in "<>" else f"p = {text}"


def _interval(difference: Difference) -> str:
    if difference.interval is None:
        return NOTHING
    return f"[{signed(difference.interval.lower)}, {signed(difference.interval.upper)}]"
