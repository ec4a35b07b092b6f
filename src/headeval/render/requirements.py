"""What was required of a report, and how it came out."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from headeval.printable import printable
from headeval.render.numbers import NOTHING, UNDEFINED, count, exact, interval_text, measured, number
from headeval.render.sections import Column, Grid, Section, Tone
from headeval.requirements import Decision, EachDecision, Verdict

MOST_NAMED = 10

_VERDICTS: dict[Verdict, tuple[str, Tone]] = {
    Verdict.MET: ("met", "good"),
    Verdict.NOT_MET: ("NOT MET", "bad"),
    Verdict.UNDECIDED: ("UNDECIDED", "doubtful"),
}


class Required(Protocol):
    """What was held against requirements: a report, or one of several categories."""

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """One a requirement."""

    @property
    def each(self) -> tuple[EachDecision, ...]:
        """One a requirement that every slice had to meet."""


def requirements_section(report: Required) -> Section | None:
    """Return every requirement with what was held against it and its verdict; None where nothing was required."""
    grids = []
    if report.decisions:
        grids.append(_all_rows(report.decisions))
    if report.each:
        grids.append(_each_slice(report.each))
    if not grids:
        return None
    return Section("Requirements", tuple(grids), footnotes=(*_reasons(report.decisions), *_failing(report.each)))


def verdict_line(verdicts: Sequence[Verdict]) -> str:
    """Return one sentence on all requirements, empty where there is none.

    Examples
    --------
    >>> verdict_line(()), verdict_line((Verdict.MET, Verdict.NOT_MET))
    ('', '1 of 2 requirements not met.')
    """
    total = len(verdicts)
    if total <= 1:
        return f"The requirement is {verdicts[0].value}." if verdicts else ""
    outcomes = Counter(verdicts)
    failed, undecided = outcomes[Verdict.NOT_MET], outcomes[Verdict.UNDECIDED]
    if failed and undecided:
        return f"{failed} of {total} requirements not met, {undecided} undecided."
    if failed or undecided:
        return f"{failed or undecided} of {total} requirements {'not met' if failed else 'undecided'}."
    return f"All {total} requirements met."


def _all_rows(decisions: tuple[Decision, ...]) -> Grid:
    bounded = any(decision.requirement.part != "value" for decision in decisions)
    columns = [Column("requirement"), Column("verdict"), Column("value" if bounded else "measured", numeric=True)]
    if bounded:
        columns.append(Column("of", numeric=True))
    rows = []
    for decision in decisions:
        of = (_of(decision),) if bounded else ()
        rows.append((_asked(decision), _VERDICTS[decision.verdict][0], _value(decision), *of))
    tones = tuple(_VERDICTS[decision.verdict][1] for decision in decisions)
    return Grid("requirements", tuple(columns), tuple(rows), tones=tones)


def _each_slice(each: tuple[EachDecision, ...]) -> Grid:
    headings = ("slices judged", "failing", "skipped")
    columns = (Column("every slice"), Column("verdict"), *(Column(heading, numeric=True) for heading in headings))
    rows = tuple(
        (
            _asked(decision),
            _VERDICTS[decision.verdict][0],
            count(decision.judged),
            count(len(decision.failing)),
            count(len(decision.skipped)),
        )
        for decision in each
    )
    return Grid(
        "requirements of every slice", columns, rows, tones=tuple(_VERDICTS[decision.verdict][1] for decision in each)
    )


def _asked(decision: Decision | EachDecision) -> str:
    wanted = decision.requirement
    return f"{printable(wanted.name)} {wanted.comparison} {exact(wanted.bound)}"


def _value(decision: Decision) -> str:
    if decision.value is None:
        return UNDEFINED
    if decision.requirement.metric == "n":
        return count(decision.value)
    return measured(decision.value, decision.requirement.bound)


def _of(decision: Decision) -> str:
    """Return the metric with the interval whose end was held against the bound."""
    if decision.requirement.part == "value" or decision.measured is None:
        return ""
    interval = NOTHING if decision.interval is None else interval_text(decision.interval)
    return f"{number(decision.measured)} {interval}"


def _reasons(decisions: tuple[Decision, ...]) -> tuple[str, ...]:
    return tuple(f"{_asked(decision)}: {printable(decision.reason)}" for decision in decisions if decision.reason)


def _failing(each: tuple[EachDecision, ...]) -> tuple[str, ...]:
    notes = []
    for decision in each:
        for verdict, words in ((Verdict.NOT_MET, "is not met in"), (Verdict.UNDECIDED, "is undecided in")):
            parts = [part for part in decision.failing if part[2].verdict is verdict]
            names = [f"{printable(column)}={printable(value)} {_value(part)}" for column, value, part in parts]
            if len(names) > MOST_NAMED:
                names[MOST_NAMED:] = [f"{len(names) - MOST_NAMED} more"]
            if names:
                notes.append(f"{_asked(decision)} {words} {', '.join(names)}")
        skipped: dict[str, list[str]] = {}
        for column, value, reason in decision.skipped:
            skipped.setdefault(reason, []).append(f"{printable(column)}={printable(value)}")
        for reason, names in skipped.items():
            if len(names) > MOST_NAMED:
                names[MOST_NAMED:] = [f"{len(names) - MOST_NAMED} more"]
            notes.append(f"{_asked(decision)} is not judged ({printable(reason)}) in {', '.join(names)}")
        if decision.reason:
            notes.append(f"{_asked(decision)}: {printable(decision.reason)}")
    return tuple(notes)
