"""Several categories as a sheet: a row each, what they are on average, and what was required of them."""

from collections.abc import Iterator, Sequence

from headeval.category_report import CategoriesReport, JudgedCategory
from headeval.core.intervals import Interval
from headeval.evaluation import METRICS, Evaluation
from headeval.metric import Metric
from headeval.printable import printable
from headeval.render.category_notes import merged_notes, named
from headeval.render.category_parts import ALL_SLICES, claims_sections, comparison_sections, slices_sections
from headeval.render.numbers import DIGITS, NOTHING, UNDEFINED, count, number, percent
from headeval.render.requirements import requirements_section, verdict_line
from headeval.render.sections import Column, Grid, Section, in_cell
from headeval.render.sheet import Sheet, evaluation_notes, judged_lines, provenance_lines
from headeval.report import Report

RANKED = {"auc": "AUC", "ap": "AP"}
DECIDED = {"ece_positive_class": "ECE pos.", "recall": "recall", "fpr": "FPR"}

Cells = tuple[str, ...]


def categories_sheet(report: CategoriesReport, *, all_slices: str = ALL_SLICES) -> Sheet:
    """Lay out a report of several categories; `how` is a caution where rows made their head, or one is not judged.

    Parameters
    ----------
    all_slices : tells a reader where those slices are that the sheet leaves out.
    """
    return Sheet(
        title="headeval report",
        provenance=(*provenance_lines(report.provenance), *_measured_lines(report)),
        how=_how(report),
        caution=bool(report.in_sample) or len(report.judged) < len(report.parts),
        sections=(
            overview_section(report),
            *claims_sections(report),
            *comparison_sections(report),
            *slices_sections(report, all_slices=all_slices),
        ),
        notes=category_notes(report),
        requirements=requirements_section(report, convention=_convention(report)),
        verdict=verdict_line(report.verdicts),
        tone="good" if report.passed else "bad",
    )


def _convention(report: CategoriesReport) -> str | None:
    """Return the ECE convention chosen, which is the same for all categories."""
    return next((part.evaluation.calibration[0].convention for _, part in report.judged), None)


def category_notes(report: CategoriesReport) -> tuple[str, ...]:
    """Return what a reader must not miss, each note once with the categories that it concerns; printable."""
    return merged_notes(
        [*((name, evaluation_notes(part.evaluation, part.notes)) for name, part in report.judged), *not_judged(report)]
    )


def not_judged(report: CategoriesReport) -> list[tuple[str, tuple[str, ...]]]:
    """Return the other categories without a note: what is said of the judged ones is not of every category."""
    return [(part.name, ()) for part in report.parts if part.report is None]


def overview_section(report: CategoriesReport) -> Section:
    """Return a row a category: its rows, how well they are ranked, and what is decided at its own threshold."""
    heading = Column("category")
    ranked = Grid(
        "rows and ranking",
        (heading, *_numbers("known", "unknown", "prevalence", *RANKED.values())),
        (
            *map(_rows_and_ranking, report.parts),
            (_AVERAGE, "", "", _average(report, "prevalence"), *(_average(report, name) for name in RANKED)),
        ),
    )
    ece, *rates = DECIDED
    decided = Grid(
        "calibration, and decisions at the threshold",
        (heading, *_numbers(DECIDED[ece], "threshold", *(DECIDED[name] for name in rates))),
        (
            *map(_decisions, report.parts),
            (_AVERAGE, _average(report, ece), "", *(_average(report, name) for name in rates)),
        ),
    )
    return Section("Categories", (ranked, decided), lead=_lead(report), footnotes=tuple(_foot(report)))


_AVERAGE = "macro average"


def _lead(report: CategoriesReport) -> str:
    own = "each at its own threshold"
    given = {part.provenance.get("threshold_from") for _, part in report.judged}
    same = {"option": "all at the threshold given", "default": "all at the default threshold"}
    return same.get(given.pop() or "", own) if len(given) == 1 else own


def _numbers(*headings: str) -> tuple[Column, ...]:
    return tuple(Column(heading, numeric=True) for heading in headings)


def _rows_and_ranking(part: JudgedCategory) -> Cells:
    rows = (count(part.known), count(part.unknown))
    return (in_cell(part.name), *rows, *(_cell(part.report, name) for name in ("prevalence", *RANKED)))


def _decisions(part: JudgedCategory) -> Cells:
    ece, *rates = DECIDED
    threshold = NOTHING if part.report is None else number(part.report.evaluation.threshold)
    return (in_cell(part.name), _cell(part.report, ece), threshold, *(_cell(part.report, name) for name in rates))


def _cell(report: Report | None, name: str) -> str:
    """A number with its interval on the line below; the prevalence alone, beside the rows that it comes from."""
    if report is None:
        return NOTHING
    metric: Metric = getattr(report.evaluation, name)
    if metric.value is None:
        return UNDEFINED
    return _two_lines(number(metric.value), None if name == "prevalence" else metric.interval)


def _two_lines(value: str, interval: Interval | None) -> str:
    """Three decimals, since nobody needs more of an interval, and 80 columns hold no more."""
    return value if interval is None else f"{value}\n[{number(interval.lower, 3)}, {number(interval.upper, 3)}]"


def _average(report: CategoriesReport, name: str) -> str:
    average = report.averages[name]
    if average.value is None:
        return UNDEFINED
    few = average.categories < len(report.judged)
    return f"{number(average.value)}{f' of {average.categories}' if few else ''}"


def _foot(report: CategoriesReport) -> Iterator[str]:
    confidence = _confidence(report)
    if confidence is not None:
        yield f"below each number its {percent(confidence)} interval"
    yield "AP: average precision, where a random ranking scores the prevalence; ECE pos.: positive-class ECE"
    yield "macro average: the mean over the categories where the number is defined, each counting the same"
    if any(round(part.evaluation.threshold, DIGITS) != part.evaluation.threshold for _, part in report.judged):
        yield "thresholds are rounded here; the heads, and this report as JSON, hold all their digits"
    if any(part.evaluation.weighted for _, part in report.judged):
        yield "rows are weighted, the counts are rows"
    without = [(part.name, (part.why,)) for part in report.parts if part.report is None]
    if without:
        yield from merged_notes([*without, ("", ())])  # the empty one keeps the names where it is all of them
    titles = {"prevalence": METRICS["prevalence"].title} | RANKED | DECIDED
    undefined = [(name, tuple(_undefined(part.evaluation, titles))) for name, part in report.judged]
    yield from merged_notes([*undefined, ("", ())])


def _undefined(evaluation: Evaluation, titles: dict[str, str]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, title in titles.items():
        metric: Metric = getattr(evaluation, name)
        if metric.value is None:
            reasons.setdefault(metric.reason, []).append(title)
    for reason, missing in reasons.items():
        yield f"{', '.join(missing)} undefined: {printable(reason)}"


def _confidence(report: CategoriesReport) -> float | None:
    return next((part.evaluation.confidence for _, part in report.judged), None)


def _measured_lines(report: CategoriesReport) -> Iterator[tuple[str, str]]:
    """Return how many categories were judged, and how their intervals were computed."""
    without = len(report.parts) - len(report.judged)
    yield "categories judged", f"{count(len(report.judged))}{f', {without} could not be' if without else ''}"
    lines = dict.fromkeys(line for _, part in report.judged for line in judged_lines(part.evaluation)[1:])
    yield from lines


def _how(report: CategoriesReport) -> str:
    """Say which rows are judged; rows that a head has seen are never passed over."""
    parts = [part for _, part in report.judged]
    missing = [part for part in report.parts if part.report is None]
    why = f" ({printable(missing[0].why)})" if len(missing) == 1 else ", for the reasons below the table"
    without = f"NOT JUDGED: {named(part.name for part in missing)}{why}; " if missing else ""
    if report.in_sample:
        said = f"IN-SAMPLE: most of the rows of {named(report.in_sample)} made what is judged; judge on other rows"
    elif len(parts) == 1:
        said = f"{named([report.judged[0][0]])}: {printable(parts[0].how)}" if missing else printable(parts[0].how)
    elif parts:
        said = f"each category judged on the rows whose label is known; {_seen(parts)}"
    else:
        return without.removesuffix("; ")
    return f"{without}{said}"


def _seen(parts: Sequence[Report]) -> str:
    seen = [part.seen for part in parts]
    if not all(seen):
        some = "" if not any(seen) else "in some categories "
        return f"{some}which rows made what is judged is not known"
    if any(rows is not None and rows.either for rows in seen):
        return "some of the rows made what is judged, see the notes"
    sure = all(rows is not None and rows.exact for rows in seen)
    return f"none of them{'' if sure else ' that could be checked'} is recognised as one that made the heads"
