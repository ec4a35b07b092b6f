"""The parts of a report on groups of rows, the one that falls furthest below the whole first."""

from collections.abc import Sequence

from headeval.evaluation import Evaluation
from headeval.metric import Metric
from headeval.render.numbers import NOTHING, UNDEFINED, count, number, percent, signed
from headeval.render.sections import Column, Grid, Section, in_cell
from headeval.report import FEW_OF_A_CLASS, FEW_ROWS, Slice

_AT_THE_THRESHOLD = {"recall": "recall", "fpr": "FPR"}
_OF_THE_SCORES = {"auc": "AUC", "ap": "AP", "ece_positive_class": "ECE pos."}
_TITLES = _AT_THE_THRESHOLD | _OF_THE_SCORES
_WIDTH, _INDENT, _GAP, _LEAST_NAME = 80, 2, 2, 8  # of a table on a terminal


def slice_sections(slices: tuple[Slice, ...], whole: Evaluation) -> tuple[Section, ...]:
    """Return one section a column, in the order the columns come."""
    by_column: dict[str, list[Slice]] = {}
    for part in slices:
        by_column.setdefault(part.column, []).append(part)
    return tuple(_section(column, parts, whole) for column, parts in by_column.items())


def _section(column: str, parts: list[Slice], whole: Evaluation) -> Section:
    name = in_cell(column)
    scored = Grid(
        f"slices by {name}, scores",
        _columns(name, "prev.", *_OF_THE_SCORES.values()),
        tuple((_name(part), *_prevalence(part), *_cells(part, _OF_THE_SCORES)) for part in parts),
    )
    means = ", ".join(f"{title} {_value(getattr(whole, key))}" for key, title in _TITLES.items())
    return Section(
        f"Slices by {name}",
        (*_decided(name, parts), scored),
        lead=f"worst first; all rows: {means}",
        footnotes=_foot(parts, whole),
    )


def _decided(name: str, parts: list[Slice]) -> tuple[Grid, ...]:
    """Return rows and rates at the threshold, in two grids where they leave no room for the names in one."""
    counts = [part.evaluation.counts for part in parts]
    rows = [(count(each.n), count(each.positives)) for each in counts]
    rates, below = [_cells(part, _AT_THE_THRESHOLD) for part in parts], [(below_whole(part),) for part in parts]
    caption = f"slices by {name}, at the threshold"
    headings = (("rows", "pos."), tuple(_AT_THE_THRESHOLD.values()), ("below the whole",))
    one = _grid(caption, name, parts, (headings[0], rows), (headings[1], rates), (headings[2], below))
    if _fits(one):
        return (one,)
    return (
        _grid(f"slices by {name}, rows", name, parts, (headings[0], rows), (headings[2], below)),
        _grid(caption, name, parts, (headings[1], rates)),
    )


def _grid(
    caption: str, name: str, parts: list[Slice], *blocks: tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
) -> Grid:
    """Return a grid of one row a slice; each block is the headings of some columns, and their cells by slice."""
    headings = (heading for heads, _ in blocks for heading in heads)
    rows = ((_name(part), *(cell for _, cells in blocks for cell in cells[i])) for i, part in enumerate(parts))
    return Grid(caption, _columns(name, *headings), tuple(rows))


def _fits(grid: Grid) -> bool:
    """Whether 80 columns hold all numbers, which must not be cut off, and enough of the names."""
    texts = (tuple(column.heading for column in grid.columns), *grid.rows)
    name, *numbers = (max(map(len, cells)) for cells in zip(*texts, strict=True))
    return _INDENT + min(name, _LEAST_NAME) + sum(_GAP + width for width in numbers) <= _WIDTH


def _columns(first: str, *others: str) -> tuple[Column, ...]:
    return (Column(first), *(Column(heading, numeric=True) for heading in others))


def _name(part: Slice) -> str:
    return f"{in_cell(part.value)}{' *' if part.small else ''}"


def _prevalence(part: Slice) -> tuple[str]:
    return (number(part.evaluation.prevalence.value or 0.0, 2),)


def _cells(part: Slice, names: dict[str, str]) -> tuple[str, ...]:
    return tuple(_with_interval(_metric(part, name)) for name in names)


def _metric(part: Slice, name: str) -> Metric:
    counts = part.evaluation.counts
    if name == "ece_positive_class" and not (counts.positives and counts.negatives):
        return Metric(None, "of one class alone it only says how far p is from that class")
    metric: Metric = getattr(part.evaluation, name)
    return metric


def _with_interval(metric: Metric) -> str:
    if metric.value is None:
        return NOTHING
    if metric.interval is None:
        return number(metric.value, 2)
    lower, upper = number(metric.interval.lower, 2), number(metric.interval.upper, 2)
    return f"{number(metric.value, 2)} [{lower}, {upper}]"


def below_whole(part: Slice) -> str:
    """Return how far a slice falls below the whole in its worst metric."""
    if part.shortfall is None:
        return NOTHING
    if part.shortfall <= 0:
        return "no"
    change = part.shortfall if part.worst == "fpr" else -part.shortfall
    return f"{_TITLES[part.worst]} {signed(change, 2)}{' !' if part.below else ''}"


def _value(metric: Metric) -> str:
    return UNDEFINED if metric.value is None else number(metric.value, 2)


def _foot(parts: list[Slice], whole: Evaluation) -> tuple[str, ...]:
    missing: dict[str, dict[str, None]] = {}
    for part in parts:
        for name, title in _TITLES.items():
            metric = _metric(part, name)
            if metric.value is None:
                missing.setdefault(metric.reason, {})[title] = None
    notes = [f"{NOTHING} undefined ({', '.join(names)}): {reason}" for reason, names in missing.items()]
    if whole.confidence is not None and any(part.below for part in parts):
        notes.append(
            f"! the whole interval of the slice lies on the bad side of all rows' value; {_by_chance(parts, whole)}"
        )
    if any(part.small for part in parts):
        notes.append(f"* few rows: fewer than {FEW_ROWS}, or 1 to {FEW_OF_A_CLASS - 1} of a class; sorted last")
    sure = "" if whole.confidence is None else f"{percent(whole.confidence)} intervals in brackets; "
    legend = f"{sure}prev.: prevalence; AP: average precision; ECE pos.: positive-class ECE, on few rows mostly chance"
    return (legend, *notes)


def _by_chance(parts: list[Slice], whole: Evaluation) -> str:
    """Return how many of such marks chance alone would make, were all slices like the whole."""
    held = sum(
        getattr(part.evaluation, name).interval is not None for part in parts for name in ("auc", "recall", "fpr")
    )
    expected = held * (1 - (whole.confidence or 0.0)) / 2
    return f"by chance about {number(expected, 1)} of {count(held)} intervals would"
