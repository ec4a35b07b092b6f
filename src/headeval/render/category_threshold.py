"""The thresholds of several categories as a sheet, a row a category, and as JSON."""

from typing import Any

from headeval._version import __version__
from headeval.category_summaries import CategoryThreshold, CategoryThresholds
from headeval.core.thresholds import ConfusionCounts
from headeval.printable import printable
from headeval.render.category_notes import merged_notes
from headeval.render.left_out_categories import category_name, left_out_sections
from headeval.render.numbers import NOTHING, UNDEFINED, count, exact, measured, number, percent, share
from headeval.render.sections import Column, Grid, Section
from headeval.render.sheet import Sheet, provenance_lines
from headeval.render.threshold import threshold_document

FORMAT, VERSION = "headeval-threshold-categories", 1
_ERRORS = {
    "a flagged negative for fpr and specificity": {"fpr", "specificity"},
    "a missed positive for recall": {"recall"},
    "a flagged negative among the flagged for precision": {"precision"},
    "a flagged row for flag_rate": {"flag_rate"},
}


def category_threshold_sheet(summary: CategoryThresholds) -> Sheet:
    """Lay out the thresholds, what is certified of each, and which categories have none."""
    how, caution = _how(summary)
    found = summary.categories
    return Sheet(
        title="headeval threshold",
        provenance=provenance_lines(summary.provenance),
        how=how,
        caution=caution,
        sections=(
            *((_thresholds(summary),) if found else ()),
            *((_evidence(summary),) if summary.certified else ()),
            *left_out_sections(summary.left_out),
        ),
        notes=(
            *map(printable, summary.notes),
            *merged_notes((category.name, category.summary.notes) for category in found),
        ),
    )


def category_threshold_document(summary: CategoryThresholds) -> dict[str, Any]:
    """Return everything that was chosen, as JSON values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "headeval_version": __version__,
        "provenance": dict(summary.provenance),
        "confidence": summary.confidence,
        "certified": summary.certified,
        "confidence_together": summary.together,
        "categories": [_document(category) for category in summary.categories],
        "left_out": [
            {
                "category": part.name,
                "known": part.known,
                "positives": part.positives,
                "unknown": part.unknown,
                "why": part.why,
            }
            for part in summary.left_out
        ],
        "notes": list(summary.notes),
    }


def _document(category: CategoryThreshold) -> dict[str, Any]:
    body = threshold_document(category.summary)
    own = {key: value for key, value in body.items() if key not in {"format", "version", "headeval_version"}}
    return {"category": category.name, "unknown": category.unknown, **own}


def _how(summary: CategoryThresholds) -> tuple[str, bool]:
    if not summary.categories:
        return "no category could be given a threshold", True
    without = [category.name for category in summary.categories if not category.summary.requirements]
    if len(without) == len(summary.categories):
        return "NOTHING IS CERTIFIED: each threshold is chosen on the very rows that measure it", True
    if without:
        names = ", ".join(map(category_name, without))
        return f"NOT CERTIFIED: {names}: chosen on the very rows that measure the threshold", True
    labelled = any(category.summary.after is not None for category in summary.categories)
    return (
        "each category on the rows whose label of it is known" if labelled else "benign traffic, without labels",
        False,
    )


def _thresholds(summary: CategoryThresholds) -> Section:
    headings = ("category", "threshold", "certified", "bound", "recall", "FPR")
    columns = tuple(Column(heading, numeric=heading not in {"category", "certified"}) for heading in headings)
    rows = tuple(row for category in summary.categories for row in _choice(category))
    return Section(
        "Thresholds",
        (Grid("the threshold of each category", columns, rows),),
        footnotes=(*_goals(summary), *_confidence(summary)),
    )


def _goals(summary: CategoryThresholds) -> tuple[str, ...]:
    """Say which of the thresholds that were left was taken, of which categories where that differs."""
    goals: dict[str, list[str]] = {}
    for category in summary.categories:
        goals.setdefault(category.summary.claim.goal, []).append(category_name(category.name))
    if len(goals) == 1:
        return tuple(f"goal: {printable(goal)}" for goal in goals)
    return tuple(f"goal of {', '.join(names)}: {printable(goal)}" for goal, names in goals.items())


def _choice(category: CategoryThreshold) -> list[tuple[str, ...]]:
    """One row a requirement; the first one names the category."""
    summary = category.summary
    after: ConfusionCounts | None = summary.after
    first = (category_name(category.name), f"{number(summary.before_threshold)} → {number(summary.claim.threshold)}")
    rates = (_rate(after.recall), _rate(after.fpr)) if after is not None else (NOTHING, NOTHING)
    if not summary.requirements:
        return [(*first, "nothing", NOTHING, *rates)]
    return [
        (
            *(("", "") if index else first),
            f"{part.requirement.name} {part.requirement.comparison} {exact(part.requirement.bound)}",
            measured(part.bound, part.requirement.bound),
            *(("", "") if index else rates),
        )
        for index, part in enumerate(summary.requirements)
    ]


def _rate(value: float | None) -> str:
    return UNDEFINED if value is None else number(value)


def _confidence(summary: CategoryThresholds) -> tuple[str, ...]:
    """Say what holds of each certificate, and what of all together."""
    certified, confidence = summary.certified, summary.confidence
    if not certified:
        return ()
    several = any(len(category.summary.requirements) > 1 for category in summary.categories)
    what = "all that is certified of a category holds" if several else "each certificate holds"
    alone = (
        f"bound: exact, one-sided, at the errors allowed; {what} with {percent(confidence)} confidence by itself, for "
        "rows like these"
    )
    if certified == 1:
        return (alone,)
    all_of_them = "both" if certified == 2 else f"all {certified}"
    if summary.together <= 0:
        together = f"that {all_of_them} hold together, nothing is said"
    else:
        together = f"{all_of_them} hold together with at least {percent(summary.together)}"
    share_of_each = 1 - (1 - confidence) / certified
    return (
        alone,
        f"{together} (Bonferroni); --confidence {share_of_each:.6g} makes it {percent(confidence)} for {all_of_them}",
    )


def _evidence(summary: CategoryThresholds) -> Section:
    labelled = any(category.summary.after is not None for category in summary.categories)
    counted = ("known", "positive", "unknown") if labelled else ()
    headings = ("category", *counted, "requirement", "errors", "allowed")
    columns = tuple(Column(heading, numeric=heading not in {"category", "requirement"}) for heading in headings)
    rows: list[tuple[str, ...]] = []
    for category in summary.categories:
        first = (category_name(category.name), *(_counts(category) if labelled else ()))
        for index, part in enumerate(category.summary.requirements):
            errors = share(part.errors, part.n), count(part.errors_allowed)
            rows.append((*(("",) * len(first) if index else first), part.requirement.metric, *errors))
    asked = {part.requirement.metric for category in summary.categories for part in category.summary.requirements}
    what = [text for text, metrics in _ERRORS.items() if asked & metrics]
    return Section(
        "What it is certified on",
        (Grid("rows behind the certificates", columns, tuple(rows)),),
        footnotes=(f"an error is {', '.join(what)}",),
    )


def _counts(category: CategoryThreshold) -> tuple[str, str, str]:
    after = category.summary.after
    if after is None:
        return (NOTHING, NOTHING, NOTHING)
    return (count(after.n), count(after.positives), count(category.unknown))
