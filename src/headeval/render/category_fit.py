"""Heads of several categories as one table: a row a category, each number above its interval."""

from collections.abc import Callable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType

from headeval.category_fit import CategoryFit, CategoryFits, RowsJudged
from headeval.category_report import macro_average
from headeval.core.intervals import Interval
from headeval.evaluation import Evaluation
from headeval.metric import Metric
from headeval.printable import printable
from headeval.render.category_notes import merged_notes
from headeval.render.drift import leakage_section
from headeval.render.left_out_categories import category_name, left_out_sections
from headeval.render.numbers import NOTHING, count, exact, number, percent
from headeval.render.sections import Column, Grid, Section
from headeval.render.sheet import Sheet, evaluation_notes, judged_lines, provenance_lines
from headeval.render.summaries import fit_story
from headeval.render.terminal import SheetView

_TITLES = {"auc": "AUC", "ap": "AP", "ece_positive_class": "ECE pos.", "recall": "recall", "fpr": "FPR"}
_INDENT, _GAP = 2, 2  # of a table on a terminal
_DIGITS = 2


def render_category_fits(summary: CategoryFits) -> RenderableType:
    """Return fitted heads and how they do for the terminal, in a table as wide as the terminal allows."""
    return _CategoryFitView(summary)


class _CategoryFitView:
    """Laid out when it is printed, since only the console knows its width."""

    def __init__(self, summary: CategoryFits) -> None:
        self._summary = summary

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the sheet."""
        yield SheetView(category_fit_sheet(self._summary, width=options.max_width))


def category_fit_sheet(summary: CategoryFits, *, width: int) -> Sheet:
    """Lay out heads of several categories.

    Parameters
    ----------
    width : of the page, in characters.
    """
    judged = [fit.held_out.evaluation for fit in summary.fits if fit.held_out.evaluation is not None]
    stories = dict.fromkeys(fit_story(fit.story) for fit in summary.fits)
    how = printable(summary.how)
    if summary.in_sample:
        how = (
            f"IN-SAMPLE for {', '.join(map(category_name, summary.in_sample))}, whose heads have seen most rows; {how}"
        )
    leaked = summary.leakage
    return Sheet(
        title="headeval fit",
        provenance=(
            *provenance_lines(summary.provenance),
            *(("fit", story) for story in stories),
            *(judged_lines(judged[0])[1:] if judged else ()),
        ),
        how=how,
        caution=not judged or bool(summary.in_sample),
        sections=(
            *((_table(summary, width),) if summary.fits else ()),
            *_fitted_on(summary.fits),
            *((leakage_section(leaked, "the data of the fit"),) if leaked and (leaked.exact or leaked.near) else ()),
            *left_out_sections(summary.left_out),
        ),
        notes=(
            *map(printable, summary.notes),
            *merged_notes((fit.name, _notes(fit)) for fit in summary.fits),
        ),
    )


def _notes(fit: CategoryFit) -> tuple[str, ...]:
    evaluation = fit.held_out.evaluation
    return fit.notes if evaluation is None else evaluation_notes(evaluation, fit.notes)


def _table(summary: CategoryFits, width: int) -> Section:
    """Return the widest of the layouts that the page holds, or the narrowest."""
    grids = [
        _grid(summary.fits, _counts_beside, _bracketed),
        _grid(summary.fits, _counts_beside, _dashed),
        _grid(summary.fits, _counts_below, _dashed),
    ]
    return Section(
        "Categories",
        (next((grid for grid in grids if _width(grid) <= width), grids[-1]),),
        footnotes=_footnotes(summary),
    )


def _grid(
    fits: Sequence[CategoryFit],
    counts: Callable[[CategoryFit | None, Sequence[CategoryFit]], tuple[str, ...]],
    interval: Callable[[Interval], str],
) -> Grid:
    judged = [fit.held_out.evaluation for fit in fits if fit.held_out.evaluation is not None]
    titles = _TITLES if judged else {}
    first, *others = counts(None, fits)
    columns = (Column(first), *(Column(heading, numeric=True) for heading in (*others, *titles.values())))
    rows = [(*counts(fit, fits), *(_cell(fit.held_out.evaluation, key, interval) for key in titles)) for fit in fits]
    if len(judged) > 1:
        means = (_mean(judged, key) for key in titles)
        rows.append((f"macro average\nof {len(judged)} categories", *("" for _ in others), *means))
    return Grid("categories", columns, tuple(rows))


def _counts_beside(fit: CategoryFit | None, _: Sequence[CategoryFit]) -> tuple[str, ...]:
    """Return headings, or the cells of a category: its name, and rows and positives in columns of their own."""
    if fit is None:
        return ("category", "known\nunknown", "positive\nprevalence")
    rows = fit.judged
    shares = f"{count(rows.positives)}\n{_prevalence(rows)}"
    return (category_name(fit.name), f"{count(rows.known)}\n{count(rows.unknown)}", shares)


def _counts_below(fit: CategoryFit | None, _: Sequence[CategoryFit]) -> tuple[str, ...]:
    """Return the same in one column, the rows below the name."""
    if fit is None:
        return ("category\npositive of known\nunknown",)
    rows = fit.judged
    shares = f"{count(rows.positives)} of {count(rows.known)} ({_prevalence(rows)})"
    return (f"{category_name(fit.name)}\n{shares}\n{count(rows.unknown)} unknown",)


def _prevalence(rows: RowsJudged) -> str:
    return number(rows.positives / rows.known, _DIGITS) if rows.known else NOTHING


def _fitted_on(fits: Sequence[CategoryFit]) -> Iterator[Section]:
    """Yield the rows of each fit where others are judged, and its penalty where they differ."""
    others, penalties = any(fit.other is not None for fit in fits), len({fit.l2 for fit in fits}) > 1
    if not (others or penalties):
        return
    headings = (*(("known", "positive", "unknown") if others else ()), *(("l2",) if penalties else ()))
    rows = tuple(
        (
            category_name(fit.name),
            *((count(fit.known), count(fit.positives), count(fit.unknown)) if others else ()),
            *((exact(fit.l2),) if penalties else ()),
        )
        for fit in fits
    )
    columns = (Column("category"), *(Column(heading, numeric=True) for heading in headings))
    title = "Fitted on" if others else "Penalties"
    yield Section(title, (Grid("rows of the fit" if others else "penalty of each fit", columns, rows),))


def _cell(evaluation: Evaluation | None, key: str, interval: Callable[[Interval], str]) -> str:
    metric = None if evaluation is None else _metric(evaluation, key)
    if metric is None or metric.value is None:
        return NOTHING
    value = number(metric.value, _DIGITS)
    return value if metric.interval is None else f"{value}\n{interval(metric.interval)}"


def _metric(evaluation: Evaluation, key: str) -> Metric:
    metric: Metric = getattr(evaluation, key)
    return metric


def _mean(judged: Sequence[Evaluation], key: str) -> str:
    """Return the mean without an interval: the categories share rows, and vary together."""
    average = macro_average([_metric(evaluation, key).value for evaluation in judged])
    if average.value is None:
        return NOTHING
    fewer = "" if average.categories == len(judged) else f"\nof {average.categories}"
    return f"{number(average.value, _DIGITS)}{fewer}"


def _bracketed(interval: Interval) -> str:
    return f"[{number(interval.lower, _DIGITS)}, {number(interval.upper, _DIGITS)}]"


def _dashed(interval: Interval) -> str:
    return f"{number(interval.lower, _DIGITS)}–{number(interval.upper, _DIGITS)}"


def _width(grid: Grid) -> int:
    texts = (tuple(column.heading for column in grid.columns), *grid.rows)
    widths = (max(len(line) for cell in cells for line in cell.split("\n")) for cells in zip(*texts, strict=True))
    return _INDENT + sum(widths) + _GAP * (len(grid.columns) - 1)


def _footnotes(summary: CategoryFits) -> tuple[str, ...]:
    judged = [(fit.name, fit.held_out.evaluation) for fit in summary.fits]
    missing: dict[tuple[str, str], list[str]] = {}
    confidence = None
    for name, evaluation in judged:
        if evaluation is None:
            continue
        confidence = confidence or evaluation.confidence
        for key, title in _TITLES.items():
            metric = _metric(evaluation, key)
            if metric.value is None:
                missing.setdefault((title, metric.reason), []).append(category_name(name))
    if not any(evaluation is not None for _, evaluation in judged):
        own = "" if any(fit.other is not None for fit in summary.fits) else ", the only ones that its head is fitted on"
        return (f"known: rows whose label of the category is known{own}",)
    sure = "" if confidence is None else f", with {percent(confidence)} intervals"
    return (
        f"on the known rows of each category{sure}; recall and FPR at the threshold {exact(summary.threshold)}",
        "prevalence: what a random ranking has as AP; ECE pos.: positive-class ECE, on few rows mostly chance",
        *(
            f"{NOTHING} {title} of {', '.join(names)} undefined: {printable(reason)}"
            for (title, reason), names in missing.items()
        ),
    )
