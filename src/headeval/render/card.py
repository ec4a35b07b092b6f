"""A model card: what is recorded of a classifier and how it was judged, with the limits that follow from the numbers.

Nothing is invented: what the record does not hold is listed as not recorded.

References
----------
Mitchell et al., Model cards for model reporting, Conference on Fairness, Accountability, and Transparency (2019).
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping

from headeval.certifying.claim_record import read_claim
from headeval.evaluation import Evaluation
from headeval.head import LinearHead
from headeval.metric import Metric
from headeval.printable import printable
from headeval.render.card_limits import limits, recorded
from headeval.render.claim import claim_section
from headeval.render.classes import about_flagged, class_sections, rows_of_classes
from headeval.render.comparison import comparison_section
from headeval.render.drift import drift_notes, drift_section
from headeval.render.evaluation_sections import flagging_rule
from headeval.render.markdown import sheet_markdown
from headeval.render.numbers import NOTHING, count, exact, interval_text, level, metric_value, number, percent
from headeval.render.sections import Column, Grid, Section, all_about, in_cell, in_sentence
from headeval.render.sheet import Sheet, report_sheet
from headeval.render.slices import slice_sections
from headeval.report import Report

_MOST_DIGITS_OF_A_COUNT = 15
_MOST_ROWS = 10**_MOST_DIGITS_OF_A_COUNT
_PER = 1000
_NEVER_RECORDED = (
    "what it is meant for, and what it must not be used for",
    "where the rows come from, of which time, and in which languages",
    "who labelled them, by which rules, and how far labellers agreed",
    "whom its errors harm, and how",
    "who answers for it, and under which licence it may be used",
)


def render_card(report: Report, head: LinearHead | None) -> str:
    """Return the model card of a judged classifier as Markdown.

    Parameters
    ----------
    head : the head that was judged; None where the scores came from a column.
    """
    return sheet_markdown(card_sheet(report, head))


def card_sheet(report: Report, head: LinearHead | None) -> Sheet:
    """Lay out the model card, for any format."""
    full = report_sheet(report)
    sections = tuple(_sections(report, head))
    return dataclasses.replace(full, title=f"Model card: {_name(report)}", sections=sections, verdict="")


def _name(report: Report) -> str:
    for key in ("head", "logit_column", "probability_column"):
        name = report.provenance.get(key)
        if isinstance(name, str):
            return in_cell(name if key == "head" else f"scores in column {name}")
    return "a classifier"


def _sections(report: Report, head: LinearHead | None) -> Iterator[Section]:
    evaluation = report.evaluation
    yield Section("Model", (_facts("model", _model(report, head)),))
    yield Section("Rows", (_facts("rows", _rows(report, head)),))
    yield from class_sections(report.classes)
    flagged = (
        Section("Measures", (_measures(evaluation),)),
        _threshold_section(report, head),
        *(() if report.claim is None else (claim_section(report.claim),)),
        *(() if report.comparison is None else (comparison_section(report.comparison, evaluation),)),
        *slice_sections(report.slices, evaluation),
    )
    yield from all_about(flagged, about_flagged(report.classes))
    if report.drift is not None:
        part = drift_section(report.drift)
        yield dataclasses.replace(part, footnotes=(*drift_notes(report.drift), *part.footnotes))
    nothing_found = "no rule of this card found a limit in the numbers, which does not mean that there is none"
    found = Section("Limits that follow from the numbers", (), footnotes=limits(report, head) or (nothing_found,))
    yield from all_about((found,), about_flagged(report.classes))
    yield Section("Not recorded", (), footnotes=tuple(_not_recorded(report, head)))


def _facts(caption: str, facts: Iterator[tuple[str, str]]) -> Grid:
    return Grid(caption, (Column("what"), Column("recorded")), tuple(facts), headed=False)


def _model(report: Report, head: LinearHead | None) -> Iterator[tuple[str, str]]:
    if head is None:
        names = report.evaluation.classes if report.classes is None else report.classes.classes
        yield "classes", ", ".join(map(in_cell, names))
    else:
        yield "kind", "linear head on embeddings of unit length"
        yield "embedding model", in_cell(head.embedding_model)
        yield "dimensions", count(head.dim)
        yield "classes", ", ".join(map(in_cell, head.classes))
        fit, solver = recorded(head, "fit"), _mapping(recorded(head, "fit").get("solver"))
        facts = {
            "l2": fit.get("l2"),
            "weights of the fit": fit.get("weight_column"),
            "solver": solver.get("method"),
            "converged": solver.get("converged"),
            "fitted by headeval": head.metrics.get("headeval_version"),
            "parametrisation": fit.get("parametrisation"),
        }
        yield from _known(facts)
        for scaling in _calibrations(head):
            yield "calibrated by", ", ".join(_scaling(scaling))
    yield "flagged class", in_cell(report.evaluation.classes[1])


def _rows(report: Report, head: LinearHead | None) -> Iterator[tuple[str, str]]:
    fits = [("fit", recorded(head, "fit")), *(("calibration", entry) for entry in _calibrations(head))]
    for step, entry in fits:
        facts = {
            f"rows of the {step}": entry.get("n"),
            f"of these {in_cell(report.evaluation.classes[1])}": entry.get("positives"),
            **_of_each_class(entry.get("rows_of_each_class")),
            "their labels, column": entry.get("label_column"),
            "left out, unlabelled": entry.get("unlabelled_left_out") or None,
            "fingerprint": entry.get("data_fingerprint"),
        }
        yield from _known(facts)
    counts = report.evaluation.counts
    yield "rows judged", count(counts.n)
    if report.classes is None:
        yield f"of these {in_cell(report.evaluation.classes[1])}", count(counts.positives)
    else:
        yield "of each class", rows_of_classes({part.name: part.n for part in report.classes.per_class})
    yield from _known({"their labels, column": report.provenance.get("label_column")})
    left_out = report.provenance.get("unlabelled_rows_left_out")
    if isinstance(left_out, int):
        yield "left out, unlabelled", count(left_out)
    if report.seen:
        used = "" if report.seen.exact else "about "
        yield "of the rows judged, used to make it", f"{used}{count(report.seen.either)}"


def _measures(evaluation: Evaluation) -> Grid:
    heading = "interval" if evaluation.confidence is None else level(evaluation.confidence)
    columns = (Column("measure"), Column("value", numeric=True), Column(heading, numeric=True), Column("meaning"))
    rows = tuple(
        (
            info.title,
            metric_value(metric, whole=info.scale == "count"),
            _interval(metric),
            printable(metric.reason or info.what),
        )
        for info, metric in evaluation.metrics()
    )
    return Grid("measures", columns, rows)


def _threshold_section(report: Report, head: LinearHead | None) -> Section:
    evaluation, counts = report.evaluation, report.evaluation.counts
    negative, positive = (in_cell(name) for name in evaluation.classes)
    rows = (
        (positive, count(counts.true_positives), count(counts.false_negatives), count(counts.positives)),
        (negative, count(counts.false_positives), count(counts.true_negatives), count(counts.negatives)),
    )
    columns = (Column("truly"), *(Column(heading, numeric=True) for heading in ("flagged", "passed", "all")))
    return Section(
        "Decision threshold",
        (Grid("rows by truth and decision", columns, rows),),
        lead=flagging_rule(evaluation),
        footnotes=(_chosen(report, head), *_errors(evaluation)),
    )


def _chosen(report: Report, head: LinearHead | None) -> str:
    """How the threshold came about, as far as the record tells."""
    claim = read_claim(head.metrics) if head else None
    if claim and claim.threshold == report.evaluation.threshold:
        if not claim.requirements:
            return f"the threshold was chosen by {printable(claim.chosen_by or 'headeval threshold')}"
        kept = " and ".join(f"{part.requirement} (from {count(part.n)} rows)" for part in claim.requirements)
        return f"the threshold was chosen to keep, with {percent(claim.confidence)} confidence, {kept}"
    given = {"option": "the threshold was given for this report", "default": "the threshold is the default"}
    said = given.get(str(report.provenance.get("threshold_from")))
    return said or "the threshold is the default or was set by hand"


def _errors(evaluation: Evaluation) -> Iterator[str]:
    """What the error rates mean for a thousand rows of each class."""
    negative, positive = map(in_sentence, evaluation.classes)
    if evaluation.fpr.value is not None:
        yield f"of {_PER:,} {negative} rows {_of_a_thousand(evaluation.fpr)} would be flagged"
    recall = evaluation.recall
    if recall.value is not None:
        yield f"of {_PER:,} {positive} rows {_of_a_thousand(recall, rest=True)} would be missed"


def _of_a_thousand(rate: Metric, *, rest: bool = False) -> str:
    """The rate, or what is left of 1, times a thousand; the interval is rounded outwards."""
    value = rate.value or 0.0
    ends = [rate.interval.lower, rate.interval.upper] if rate.interval else []
    if rest:
        value, ends = 1 - value, [1 - end for end in reversed(ends)]
    rows = round(_PER * value)
    some, all_but_some = value > 0 and rows == 0, value < 1 and rows == _PER
    about = "fewer than 1" if some else f"more than {_PER - 1}" if all_but_some else f"about {rows:,}"
    if not ends:
        return about
    # 1 - 0.98 is a little more than 0.02, which must not become one row more.
    lower, upper = (round(_PER * end, 6) for end in ends)
    return f"{about} (from {math.floor(lower):,} to {math.ceil(upper):,})"


def _not_recorded(report: Report, head: LinearHead | None) -> Iterator[str]:
    yield from _NEVER_RECORDED
    if head is None:
        yield "how the scores were made: the model, the rows it was fitted on, its calibration"
    else:
        if head.embedding_model == "unspecified":
            yield "which model made the embeddings"
        if not recorded(head, "fit"):
            yield "how the head was fitted, and on which rows"
        if not _calibrations(head):
            yield "whether the head was calibrated"
    if report.seen is None:
        yield "whether rows judged here were used to make it"
    if not report.slices:
        yield "how it does on groups of rows"


def _interval(metric: Metric) -> str:
    return interval_text(metric.interval) if metric.interval else NOTHING


def _calibrations(head: LinearHead | None) -> list[Mapping[str, object]]:
    entries = head.metrics.get("calibrations") if head else None
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def _scaling(entry: Mapping[str, object]) -> Iterator[str]:
    """Yield each parameter with its interval, as far as they are recorded."""
    names = ("temperature",) if entry.get("method") == "temperature" else ("method", "slope", "intercept")
    for name, value in _known({name: entry.get(name) for name in names}):
        yield f"{value if name == 'method' else f'{name} {value}'}{_bounds(_mapping(entry.get(f'{name}_interval')))}"


def _bounds(interval: Mapping[str, object]) -> str:
    """Return a recorded interval with a space before it; empty where none is. A bound of null is none."""
    lower, upper = interval.get("lower"), interval.get("upper", "")
    if upper is None:
        upper = math.inf
    if not isinstance(lower, float) or not isinstance(upper, float):
        return ""
    return f" [{number(lower)}, {number(upper)}]"


def _of_each_class(entry: object) -> dict[str, str]:
    """Return the rows of each class as they are recorded; a head file can hold anything under that name."""
    if not isinstance(entry, Mapping) or len(entry) < 2:
        return {}
    counts = {str(name): rows for name, rows in entry.items() if type(rows) is int and 0 <= rows < _MOST_ROWS}
    return {"of each class": rows_of_classes(counts)} if len(counts) == len(entry) else {}


def _mapping(entry: object) -> Mapping[str, object]:
    return entry if isinstance(entry, Mapping) else {}


def _known(facts: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what is recorded, as text; a head file can hold anything under these names."""
    for name, value in facts.items():
        if isinstance(value, bool):
            yield name, "yes" if value else "no"
        elif isinstance(value, int) and abs(value) < 10**_MOST_DIGITS_OF_A_COUNT:
            yield name, count(value)
        elif isinstance(value, float):
            yield name, exact(value)
        elif isinstance(value, str):
            yield name, in_cell(value, longest=80)
