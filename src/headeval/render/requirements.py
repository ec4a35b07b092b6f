"""What was required of a report, and how it came out."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from headeval.multiclass import ClassEvaluation
from headeval.printable import printable
from headeval.render.numbers import NOTHING, UNDEFINED, count, exact, interval_text, measured, number
from headeval.render.sections import Column, Grid, Section, Tone, in_cell, in_sentence
from headeval.requirement_parsing import Requirement
from headeval.requirements import Decision, EachDecision, Verdict

MOST_NAMED = 10
_MOST_CLASSES = 3

# What a metric is with a class before it: of each row's likeliest class, or of a class against the rest.
_LIKELIEST = {
    "recall": "of the rows of {of}, those whose likeliest class it is",
    "precision": "of the rows for which {of} is likeliest, those of it",
    "f1": "harmonic mean of precision and recall of {of} as the likeliest class",
}
_AGAINST_REST = {
    "ece": "mean gap between P({of}) and its share, in the bins of the class-wise ECE",
    **dict.fromkeys(("prevalence", "auc", "ap"), "{of} against the rest"),
}

_OF_THE_CONVENTION = ("ece", "ece_corrected", "mce")

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


def requirements_section(
    report: Required, classes: ClassEvaluation | None = None, *, convention: str | None = None
) -> Section | None:
    """Return every requirement with what was held against it and its verdict; None where nothing was required.

    Parameters
    ----------
    classes : of a classifier of more than two.
    convention : of the metric `ece` of categories, of each of which a table shows the positive-class ECE.
    """
    grids = []
    if report.decisions:
        grids.append(_all_rows(report.decisions))
    if report.each:
        grids.append(_each_slice(report.each))
    if not grids:
        return None
    meant = meant_of_classes([decision.requirement for decision in report.decisions], classes)
    every = [decision.requirement for decision in report.decisions] + [each.requirement for each in report.each]
    notes = (*_reasons(report.decisions), *_failing(report.each), *meant, *_other_convention(every, convention))
    return Section("Requirements", tuple(grids), footnotes=notes)


def meant_of_classes(requirements: Sequence[Requirement], classes: ClassEvaluation | None) -> tuple[str, ...]:
    """Say what each metric of a class is, and what it is with no class before it; printable.

    The same name means two things there: a class is judged by each row's likeliest class, the flagged one by the
    threshold.
    """
    if classes is None:
        return ()
    asked: dict[str, dict[str, None]] = {}
    for requirement in requirements:
        if requirement.of:
            asked.setdefault(requirement.metric, {})[requirement.of] = None
    return tuple(_meant(metric, list(of), classes.classes[-1]) for metric, of in asked.items())


def _meant(metric: str, of: Sequence[str], flagged: str) -> str:
    names = _few([f"{in_sentence(name)}:{metric}" for name in of])
    told = (_LIKELIEST | _AGAINST_REST)[metric].format(of=in_sentence(of[0]) if len(of) == 1 else "the class")
    own = list(of) == [flagged]
    if metric in _LIKELIEST:
        plain = "flagged at the threshold" if own else f"of {in_sentence(flagged)}, flagged at the threshold"
    elif metric == "ece":
        plain = f"of {in_sentence(flagged)}, as --ece-convention says"
    else:
        plain = "the same number" if own else in_sentence(flagged)
    return f"{names}: {told}; without a prefix: {plain}"


def _other_convention(requirements: Sequence[Requirement], convention: str | None) -> tuple[str, ...]:
    """Say that what is required of a category is not the ECE of the table, where that is so."""
    asked = dict.fromkeys(
        f"{in_sentence(requirement.of)}:{requirement.metric}"
        for requirement in requirements
        if requirement.metric in _OF_THE_CONVENTION
    )
    if not asked or convention in {None, "positive-class"}:
        return ()
    return (f"{_few(list(asked))}: {convention}; the table shows the positive-class ECE, which is ece_positive_class",)


def _few(names: list[str]) -> str:
    more = [f"{len(names) - _MOST_CLASSES} more"] if len(names) > _MOST_CLASSES else []
    return ", ".join([*names[:_MOST_CLASSES], *more])


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
    return f"{in_cell(wanted.name)} {wanted.comparison} {exact(wanted.bound)}"


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
            names = [f"{in_cell(column)}={in_cell(value)} {_value(part)}" for column, value, part in parts]
            if len(names) > MOST_NAMED:
                names[MOST_NAMED:] = [f"{len(names) - MOST_NAMED} more"]
            if names:
                notes.append(f"{_asked(decision)} {words} {', '.join(names)}")
        skipped: dict[str, list[str]] = {}
        for column, value, reason in decision.skipped:
            skipped.setdefault(reason, []).append(f"{in_cell(column)}={in_cell(value)}")
        for reason, names in skipped.items():
            if len(names) > MOST_NAMED:
                names[MOST_NAMED:] = [f"{len(names) - MOST_NAMED} more"]
            notes.append(f"{_asked(decision)} is not judged ({printable(reason)}) in {', '.join(names)}")
        if decision.reason:
            notes.append(f"{_asked(decision)}: {printable(decision.reason)}")
    return tuple(notes)
