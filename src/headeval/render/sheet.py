"""What a command shows, laid out once for every format: where it comes from, its sections, notes and verdict."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headeval.evaluation import Evaluation
from headeval.multiclass import ClassEvaluation
from headeval.printable import printable
from headeval.render.claim import claim_section
from headeval.render.classes import about_flagged, class_notes, class_sections, judged_classes
from headeval.render.comparison import comparison_section
from headeval.render.drift import drift_section
from headeval.render.evaluation_sections import evaluation_sections
from headeval.render.numbers import count, exact, metric_value, percent
from headeval.render.requirements import requirements_section, verdict_line
from headeval.render.sections import Section, Tone, all_about, in_cell, in_sentence
from headeval.render.slices import slice_sections
from headeval.report import FEW_ROWS, Report


@dataclass(frozen=True, slots=True)
class Sheet:
    """One page of output, in plain text parts.

    Attributes
    ----------
    provenance : key and value of each line.
    how : which rows the numbers come from.
    caution : whether `how` must not be overlooked, since the numbers flatter.
    requirements : None where none was made; `verdict` is then empty.
    """

    title: str
    provenance: tuple[tuple[str, str], ...]
    how: str
    caution: bool
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()
    requirements: Section | None = None
    verdict: str = ""
    tone: Tone = "good"

    @property
    def heading(self) -> str:
        """The verdict, where there is one, else the title."""
        return f"headeval: {self.verdict[0].lower()}{self.verdict[1:].rstrip('.')}" if self.verdict else self.title


def report_sheet(report: Report) -> Sheet:
    """Lay out a report; `how` is a caution where the rows are in-sample."""
    return Sheet(
        title="headeval report",
        provenance=(*provenance_lines(report.provenance), *judged_lines(report.evaluation, report.classes)),
        how=printable(report.how),
        caution=report.in_sample is not None,
        sections=report_sections(report),
        notes=evaluation_notes(report.evaluation, report.notes, report.classes),
        requirements=requirements_section(report, report.classes),
        verdict=verdict_line(report.verdicts),
        tone="good" if report.passed else "bad",
    )


def report_sections(report: Report) -> tuple[Section, ...]:
    """Return what a report measured, part by part."""
    flagged = (
        *evaluation_sections(report.evaluation),
        *(() if report.claim is None else (claim_section(report.claim),)),
        *(() if report.comparison is None else (comparison_section(report.comparison, report.evaluation),)),
        *slice_sections(report.slices, report.evaluation),
        *(() if report.drift is None else (drift_section(report.drift),)),
    )
    return (*class_sections(report.classes), *all_about(flagged, about_flagged(report.classes)))


def provenance_lines(provenance: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return each key with its value in one line of text."""
    return tuple((in_cell(key).replace("_", " "), printable(_value(value))) for key, value in provenance.items())


def rows_line(evaluation: Evaluation) -> str:
    """Return how many rows of which class were judged."""
    counts, (negative, positive) = evaluation.counts, map(in_sentence, evaluation.classes)
    each = f"{count(counts.positives)} {positive} (positive), {count(counts.negatives)} {negative}"
    return f"{metric_value(evaluation.n, whole=True)}: {each}"


def judged_lines(evaluation: Evaluation, classes: ClassEvaluation | None = None) -> tuple[tuple[str, str], ...]:
    """Return which rows were judged, and how their intervals were computed."""
    rows = ("rows judged", rows_line(evaluation) if classes is None else judged_classes(classes))
    if evaluation.confidence is None:
        return (rows,)
    drawn, how = evaluation.resampling, f"{percent(evaluation.confidence)} confidence"
    if drawn is not None:
        units = "groups" if drawn.grouped else "rows"
        how += f"; bootstrap of {count(drawn.n_resamples)} resamples of {units}, seed {drawn.seed}"
    return (rows, ("intervals", how))


def evaluation_notes(
    evaluation: Evaluation, notes: Iterable[str], classes: ClassEvaluation | None = None
) -> tuple[str, ...]:
    """Return what a reader must not miss, with a warning where either class has few rows."""
    counts = evaluation.counts
    rough = (f"rates on so few rows are rough: {count(counts.positives)} positive, {count(counts.negatives)} negative",)
    few = any(0 < rows < FEW_ROWS for rows in (counts.positives, counts.negatives))
    said = (*notes, *class_notes(classes), *evaluation.notes, *(rough if few else ()))
    return tuple(map(printable, said))


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_value(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_value(item) for item in value)
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return exact(value) if isinstance(value, float) else in_cell(str(value))
