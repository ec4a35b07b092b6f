"""The calibration of several categories as a sheet: a row a category."""

from collections.abc import Iterable, Iterator

from headeval.category_summaries import CategoryCalibration, CategoryCalibrations
from headeval.core.intervals import Interval
from headeval.core.scaling import Scaling
from headeval.render.category_notes import merged_notes
from headeval.render.left_out_categories import category_name, left_out_sections
from headeval.render.numbers import NOTHING, count, interval_text, metric_value, number, percent
from headeval.render.sections import Column, Grid, Section
from headeval.render.sheet import Sheet, provenance_lines
from headeval.render.summaries import IN_SAMPLE, correction

_COUNTED = ("category", "known", "positive", "unknown")


def category_calibration_sheet(summary: CategoryCalibrations) -> Sheet:
    """Lay out the scalings, what they change on the rows of each category, and which categories were left out."""
    found = summary.categories
    return Sheet(
        title="headeval calibrate",
        provenance=provenance_lines(summary.provenance),
        how=IN_SAMPLE if found else "no category could be calibrated",
        caution=True,
        sections=(
            *((_scalings(summary), _before_and_after(found)) if found else ()),
            *left_out_sections(summary.left_out),
        ),
        notes=merged_notes((category.name, category.summary.notes) for category in found),
    )


def _scalings(summary: CategoryCalibrations) -> Section:
    confidences = {
        interval.confidence for part in summary.categories if (interval := part.summary.scaling.slope_interval)
    }
    return Section(
        "Scaling" if summary.method == "temperature" else "Platt scaling",
        _temperatures(summary.categories) if summary.method == "temperature" else _slopes(summary.categories),
        footnotes=(
            "known: rows whose label of the category is known, the only ones that it is calibrated on",
            *(f"intervals: Wald, at {percent(confidence)}" for confidence in sorted(confidences)),
            *_corrections(summary.categories),
        ),
    )


def _temperatures(categories: tuple[CategoryCalibration, ...]) -> tuple[Grid, ...]:
    headings = (*_COUNTED, "T", "interval")
    rows = ((*_rows(category), *_temperature(category.summary.scaling)) for category in categories)
    return (_grid("temperature of each category", headings, rows),)


def _slopes(categories: tuple[CategoryCalibration, ...]) -> tuple[Grid, ...]:
    """Two numbers with their intervals are too wide to stand beside the counts of rows."""
    headings = ("category", "slope", "interval", "intercept", "interval")
    rows = ((category_name(category.name), *_platt(category.summary.scaling)) for category in categories)
    return (
        _grid("rows of each category", _COUNTED, map(_rows, categories)),
        _grid("slope and intercept of each category", headings, rows),
    )


def _grid(caption: str, headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Grid:
    columns = tuple(Column(heading, numeric=heading != "category") for heading in headings)
    return Grid(caption, columns, tuple(rows))


def _rows(category: CategoryCalibration) -> tuple[str, ...]:
    counts = category.summary.after.counts
    return (category_name(category.name), count(counts.n), count(counts.positives), count(category.unknown))


def _corrections(categories: tuple[CategoryCalibration, ...]) -> Iterator[str]:
    """Say of which categories the logits were too large or too small, and of which the rows cannot tell."""
    names: dict[str, list[str]] = {}
    for category in categories:
        said = correction(category.summary.scaling)
        if said:
            names.setdefault(said, []).append(category_name(category.name))
    yield from (f"{said}: {', '.join(found)}" for said, found in names.items())


def _temperature(scaling: Scaling) -> tuple[str, str]:
    return (number(scaling.temperature), _interval(scaling.temperature_interval))


def _platt(scaling: Scaling) -> tuple[str, ...]:
    return (
        number(scaling.slope),
        _interval(scaling.slope_interval),
        number(scaling.intercept),
        _interval(scaling.intercept_interval),
    )


def _interval(interval: Interval | None) -> str:
    return NOTHING if interval is None else interval_text(interval)


def _before_and_after(categories: tuple[CategoryCalibration, ...]) -> Section:
    headings = ("category", "log loss", "ECE pos.", "threshold", "changed")
    return Section(
        "Before and after, on the rows the calibrations were fitted on",
        (_grid("before and after calibration", headings, map(_change, categories)),),
        footnotes=(
            "ECE pos.: positive-class ECE; changed: decisions that change here, though the threshold moves along",
        ),
    )


def _change(category: CategoryCalibration) -> tuple[str, ...]:
    summary = category.summary
    before, after, scaling = summary.before, summary.after, summary.scaling
    return (
        category_name(category.name),
        f"{number(scaling.log_loss_before)} → {number(scaling.log_loss_after)}",
        f"{metric_value(before.ece_positive_class)} → {metric_value(after.ece_positive_class)}",
        f"{number(before.threshold)} → {number(after.threshold)}",
        count(summary.changes.newly_flagged + summary.changes.no_longer_flagged),
    )
