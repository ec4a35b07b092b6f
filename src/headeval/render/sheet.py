"""What a command shows, laid out once for every format: where it comes from, its sections, notes and verdict."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headeval.evaluation import Evaluation
from headeval.printable import printable
from headeval.render.numbers import NOTHING, UNDEFINED, count, exact, measured, metric_value
from headeval.render.sections import Column, Grid, Section, Tone, evaluation_sections, in_sentence
from headeval.report import Report, Slice
from headeval.requirements import Decision, Verdict

FEW_ROWS = 30
FEW_OF_A_CLASS = 10

_SLICE_METRICS = {
    "prevalence": "prev.",
    "auc": "AUC",
    "ap": "AP",
    "recall": "recall",
    "fpr": "FPR",
    "ece_positive_class": "ECE pos.",
}
_VERDICTS: dict[Verdict, tuple[str, Tone]] = {
    Verdict.MET: ("met", "good"),
    Verdict.NOT_MET: ("NOT MET", "bad"),
    Verdict.UNDECIDED: ("UNDECIDED", "doubtful"),
}


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
        provenance=(*provenance_lines(report.provenance), ("rows judged", rows_line(report.evaluation))),
        how=printable(report.how),
        caution=report.in_sample is not None,
        sections=(*evaluation_sections(report.evaluation), *_slice_sections(report.slices)),
        notes=evaluation_notes(report.evaluation, report.notes),
        requirements=_requirements(report.decisions) if report.decisions else None,
        verdict=verdict_line(report.decisions),
        tone="good" if report.passed else "bad",
    )


def provenance_lines(provenance: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return each key with its value in one line of text."""
    return tuple((printable(key).replace("_", " "), printable(_value(value))) for key, value in provenance.items())


def rows_line(evaluation: Evaluation) -> str:
    """Return how many rows of which class were judged."""
    counts, (negative, positive) = evaluation.counts, map(in_sentence, evaluation.classes)
    each = f"{count(counts.positives)} {positive} (positive), {count(counts.negatives)} {negative}"
    return f"{metric_value(evaluation.n, whole=True)}: {each}"


def evaluation_notes(evaluation: Evaluation, notes: Iterable[str]) -> tuple[str, ...]:
    """Return what a reader must not miss, with a warning where either class has few rows."""
    counts = evaluation.counts
    rough = (f"rates on so few rows are rough: {count(counts.positives)} positive, {count(counts.negatives)} negative",)
    few = any(0 < rows < FEW_ROWS for rows in (counts.positives, counts.negatives))
    return tuple(printable(note) for note in (*notes, *evaluation.notes, *(rough if few else ())))


def verdict_line(decisions: tuple[Decision, ...]) -> str:
    """Return one sentence on all requirements, empty where there is none.

    Examples
    --------
    >>> verdict_line(())
    ''
    """
    total = len(decisions)
    if total <= 1:
        return f"The requirement is {decisions[0].verdict.value}." if decisions else ""
    outcomes = Counter(decision.verdict for decision in decisions)
    failed, undecided = outcomes[Verdict.NOT_MET], outcomes[Verdict.UNDECIDED]
    if failed and undecided:
        return f"{failed} of {total} requirements not met, {undecided} undecided."
    if failed or undecided:
        return f"{failed or undecided} of {total} requirements {'not met' if failed else 'undecided'}."
    return f"All {total} requirements met."


def _requirements(decisions: tuple[Decision, ...]) -> Section:
    rows, tones = [], []
    for decision in decisions:
        wanted, (word, tone) = decision.requirement, _VERDICTS[decision.verdict]
        asked = f"{wanted.metric} {wanted.comparison} {exact(wanted.bound)}"
        rows.append((asked, _measured(decision), word, printable(decision.reason)))
        tones.append(tone)
    columns: tuple[Column, ...] = (Column("requirement"), Column("measured", numeric=True), Column("verdict"))
    if any(row[-1] for row in rows):
        columns = (*columns, Column("reason"))
    cells = tuple(row[: len(columns)] for row in rows)
    return Section("Requirements", (Grid("requirements", columns, cells, tones=tuple(tones)),))


def _measured(decision: Decision) -> str:
    if decision.value is None:
        return UNDEFINED
    if decision.requirement.metric == "n":
        return count(decision.value)
    return measured(decision.value, decision.requirement.bound)


def _slice_sections(slices: tuple[Slice, ...]) -> tuple[Section, ...]:
    """One section a column, in the order the columns come."""
    by_column: dict[str, list[Slice]] = {}
    for part in slices:
        by_column.setdefault(part.column, []).append(part)
    return tuple(_slice_section(column, parts) for column, parts in by_column.items())


def _slice_section(column: str, parts: list[Slice]) -> Section:
    columns = (printable(column), "rows", "pos.", *_SLICE_METRICS.values())
    missing: dict[str, dict[str, None]] = {}
    rows, any_few = [], False
    for part in parts:
        counts, few = part.evaluation.counts, _few(part.evaluation)
        any_few |= few
        cells = [f"{printable(part.value)}{' *' if few else ''}", count(counts.n), count(counts.positives)]
        for name, heading in _SLICE_METRICS.items():
            metric = getattr(part.evaluation, name)
            if metric.value is None:
                missing.setdefault(metric.reason, {})[heading] = None
            cells.append(NOTHING if metric.value is None else metric_value(metric))
        rows.append(tuple(cells))
    footnotes = [f"{NOTHING} undefined ({', '.join(names)}): {reason}" for reason, names in missing.items()]
    if any_few:
        footnotes.append(f"* few rows: fewer than {FEW_ROWS}, or 1 to {FEW_OF_A_CLASS - 1} of a class; rates are rough")
    grid = Grid(
        f"slices by {printable(column)}",
        tuple(Column(heading, numeric=index > 0) for index, heading in enumerate(columns)),
        tuple(rows),
    )
    legend = "prev.: prevalence; AP: average precision; ECE pos.: positive-class ECE, on few rows mostly chance"
    return Section(f"Slices by {printable(column)}", (grid,), footnotes=(legend, *footnotes))


def _few(evaluation: Evaluation) -> bool:
    counts = evaluation.counts
    return counts.n < FEW_ROWS or any(0 < rows < FEW_OF_A_CLASS for rows in (counts.positives, counts.negatives))


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_value(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_value(item) for item in value)
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return exact(value) if isinstance(value, float) else str(value)
