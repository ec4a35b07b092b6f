"""A fit or a calibration laid out as a sheet."""

from headeval.core.intervals import Interval
from headeval.core.newton import LogisticFit
from headeval.core.scaling import Scaling
from headeval.drift import Leakage
from headeval.evaluation import Evaluation
from headeval.printable import printable
from headeval.render.class_calibration import class_calibration_section
from headeval.render.classes import about_flagged, class_sections, judged_classes
from headeval.render.drift import leakage_section
from headeval.render.evaluation_sections import chance, evaluation_sections, reliability_section
from headeval.render.numbers import count, exact, interval_text, metric_value, number, scientific
from headeval.render.penalty_path import path_section
from headeval.render.sections import Column, Grid, Section, all_about
from headeval.render.sheet import Sheet, evaluation_notes, judged_lines, provenance_lines, rows_line
from headeval.report import CalibrationSummary, FitSummary

IN_SAMPLE = (
    "in-sample for the calibration: before and after are both on the rows it was fitted on, "
    "so judge it with `headeval report` on other rows"
)

_NOTHING = "there is nothing to correct"


def fit_sheet(summary: FitSummary) -> Sheet:
    """Lay out a fit; its evaluation stands under the words that say which rows it is on."""
    held_out, evaluation = summary.held_out, summary.held_out.evaluation
    # Out of fold the rows judged are the rows of the fit, which the provenance counts already.
    rows = judged_lines(evaluation, held_out.classes) if evaluation is not None else ()
    if held_out.n_folds:
        rows = rows[1:]
    about = about_flagged(held_out.classes)
    return Sheet(
        title="headeval fit",
        provenance=(*provenance_lines(summary.provenance), ("fit", fit_story(summary.story)), *rows),
        how=printable(held_out.how),
        caution=evaluation is None or (held_out.seen is not None and held_out.seen.in_sample is not None),
        sections=(
            *(() if summary.path is None else (path_section(summary.path),)),
            *class_sections(held_out.classes),
            *(() if evaluation is None else all_about(evaluation_sections(evaluation), about)),
            *_leaked(held_out.leakage),
        ),
        notes=tuple(map(printable, summary.notes))
        if evaluation is None
        else evaluation_notes(evaluation, summary.notes, held_out.classes),
    )


def _leaked(leakage: Leakage | None) -> tuple[Section, ...]:
    """Rows of the evaluation that the fit has had as well flatter it."""
    if leakage is None or not (leakage.exact or leakage.near):
        return ()
    return (leakage_section(leakage, "the data of the fit"),)


def fit_story(story: LogisticFit) -> str:
    """Return how a fit ended, in one line.

    Examples
    --------
    >>> from headeval.core.logistic import fit_logistic
    >>> fit_story(fit_logistic([[0.0]], [1], l2=1.0, fit_intercept=False))
    'converged to ‖g‖∞ ≤ 1e-09 by Newton (IRLS)'
    """
    # How far below the tolerance it ended, and in how many steps, another machine's rounding may change.
    if story.converged:
        return f"converged to ‖g‖∞ ≤ {scientific(story.gradient_tolerance)} by {story.method}"
    steps = f"{count(story.steps)} {'step' if story.steps == 1 else 'steps'}"
    return f"NOT CONVERGED after {steps}, ‖g‖∞ {scientific(story.gradient_norm)}: {story.reason.value}"


def calibration_sheet(summary: CalibrationSummary) -> Sheet:
    """Lay out a calibration: what was fitted, the same rows before and after, and the reliability after."""
    lines, classes = provenance_lines(summary.provenance), summary.classes
    about = about_flagged(None if classes is None else classes[1])
    flagged = (_before_and_after(summary), reliability_section(summary.after, "Reliability after calibration"))
    return Sheet(
        title="headeval calibrate",
        provenance=(
            *lines,
            ("scaling", scaling_story(summary.scaling)),
            ("threshold", threshold_story(summary)),
            ("rows judged", rows_line(summary.after) if classes is None else judged_classes(classes[1])),
        ),
        how=IN_SAMPLE,
        caution=True,
        sections=(*(() if classes is None else (class_calibration_section(*classes),)), *all_about(flagged, about)),
        notes=evaluation_notes(summary.after, summary.notes),
    )


def scaling_story(scaling: Scaling) -> str:
    """Return the map of the logits, in words.

    Examples
    --------
    >>> scaling_story(Scaling("temperature", 0.5, 0.0, 0.4, 0.3, Interval(0.4, 0.625, 0.95, "Wald")))
    'temperature T = 2.0000 [1.6000, 2.5000]: the logits were overconfident'
    """
    said = correction(scaling)
    if scaling.method == "temperature":
        temperature = 1.0 if said == _NOTHING else scaling.temperature
        return f"temperature T = {_with_interval(temperature, scaling.temperature_interval)}: {said}"
    slope = _with_interval(scaling.slope, scaling.slope_interval)
    intercept = _with_interval(scaling.intercept, scaling.intercept_interval)
    return f"platt: slope {slope}, intercept {intercept}" + (f": {said}" if said else "")


def correction(scaling: Scaling) -> str:
    """Return what it corrects, as far as the rows tell; of Platt's, whose scores may be no logits, only the sure."""
    if scaling.method == "temperature" and abs(scaling.temperature - 1) < 5e-5:  # what four decimals cannot tell from 1
        return _NOTHING
    if scaling.as_they_are:
        return "the logits fit as they are, as far as these rows tell"
    if scaling.method == "temperature":
        return f"the logits were {'overconfident' if scaling.slope < 1 else 'underconfident'}"
    interval = scaling.slope_interval
    if interval is None or interval.lower <= 1 <= interval.upper:
        return ""
    return f"the logits were {'overconfident' if scaling.slope < 1 else 'underconfident'}"


def _with_interval(value: float, interval: Interval | None) -> str:
    return number(value) + (f" {interval_text(interval)}" if interval else "")


def threshold_story(summary: CalibrationSummary) -> str:
    """Return what became of the threshold, in words."""
    before, after = exact(summary.before.threshold), exact(summary.after.threshold)
    if summary.changes.newly_flagged or summary.changes.no_longer_flagged:
        return before if before == after else f"{before} → {after}"
    # Of more than two classes the order of other rows may change, and with it decisions.
    decisions = "the decisions" if summary.classes is None else "the decisions on these rows"
    return (
        f"{before} stays, and so do {decisions}" if before == after else f"{before} → {after}, so that {decisions} stay"
    )


def _before_and_after(summary: CalibrationSummary) -> Section:
    before, after = summary.before, summary.after
    newly_flagged, no_longer = summary.changes.newly_flagged, summary.changes.no_longer_flagged
    columns = (Column("measure"), Column("before", numeric=True), Column("after", numeric=True))
    rows = (
        *_both(before, after, ("log_loss", "brier")),
        *_errors(before, after),
        *_both(before, after, ("auc", "ap")),
        ("threshold", number(before.threshold), number(after.threshold)),
        *_both(before, after, ("accuracy", "recall", "fpr"), " at the threshold"),
    )
    changed = (
        f"decisions changed: {count(newly_flagged + no_longer)} "
        f"({count(newly_flagged)} newly flagged, {count(no_longer)} no longer)"
    )
    levels = ", ".join(
        f"{table.convention} {chance(noise)}" for table, noise in zip(after.calibration, after.noise, strict=True)
    )
    by_chance = f"ECE of a perfectly calibrated head on such rows by chance, mean and 95th percentile: {levels}"
    return Section(
        "Before and after, on the rows the calibration was fitted on",
        (Grid("before and after calibration", columns, rows),),
        footnotes=(changed, by_chance, *_reasons(before, after)),
    )


def _both(
    before: Evaluation, after: Evaluation, names: tuple[str, ...], suffix: str = ""
) -> list[tuple[str, str, str]]:
    old = {info.name: metric_value(metric) for info, metric in before.metrics()}
    return [
        (f"{info.title}{suffix}", old[info.name], metric_value(metric))
        for info, metric in after.metrics()
        if info.name in names
    ]


def _errors(before: Evaluation, after: Evaluation) -> list[tuple[str, str, str]]:
    pairs = list(zip(before.calibration, after.calibration, strict=True))
    return [(f"ECE {old.convention}", number(old.ece), number(new.ece)) for old, new in pairs] + [
        (f"MCE {old.convention}", number(old.mce), number(new.mce)) for old, new in pairs
    ]


def _reasons(before: Evaluation, after: Evaluation) -> list[str]:
    """Say why a number is missing or infinite, and on which side."""
    return [
        f"{info.title} {side}: {metric.reason}"
        for side, evaluation in (("before", before), ("after", after))
        for info, metric in evaluation.metrics()
        if _shown(info.name) and metric.reason
    ]


def _shown(name: str) -> bool:
    return name in {"log_loss", "brier", "auc", "ap", "accuracy", "recall", "fpr"}
