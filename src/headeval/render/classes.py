"""All classes of a classifier with more than two as titled grids of text, beside what is said of the flagged one."""

from collections.abc import Iterable, Mapping

import numpy as np

from headeval.metric import Metric, MetricInfo
from headeval.multiclass import ClassEvaluation, ClassRates
from headeval.printable import printable
from headeval.render.evaluation_sections import chance, convention_bins
from headeval.render.numbers import NOTHING, count, interval_text, level, metric_value, number, percent
from headeval.render.sections import Column, Grid, Section, in_sentence
from headeval.report import FEW_ROWS

MOST_IN_MATRIX = 12
MOST_CONFUSIONS = 12
MOST_CLASSES = 40
MOST_IN_SENTENCE = 8
AXES = "true ↓ / predicted →"
_WIDTH, _INDENT, _GAP = 80, 2, 1
_LONGEST_NAME = 80
_GROUPS = {
    "decision": "every row taken for its likeliest class",
    "ranking": "ranking of all classes",
    "calibration": "calibration of all classes",
}
_DECIDED = {"recall": "recall", "precision": "precision", "f1": "F1"}
_RANKED = {"auc": "AUC", "ap": "AP", "ece": "ECE"}


def rows_of_classes(counts: Mapping[str, int], *, flagged: str = "flagged") -> str:
    """Return how many rows of which class there are, the flagged class, which is the last, first.

    Examples
    --------
    >>> rows_of_classes({"safe": 70, "unsafe": 30}), rows_of_classes({"a": 5, "b": 1200, "c": 3})
    ('100 rows: 30 unsafe (flagged), 70 safe', '1,208 rows: 3 c (flagged), 5 a, 1,200 b')
    """
    *others, last = counts.items()
    parts = [f"{count(last[1])} {in_sentence(last[0])} ({flagged})"]
    parts += [f"{count(rows)} {in_sentence(name)}" for name, rows in others[:MOST_IN_SENTENCE]]
    if len(others) > MOST_IN_SENTENCE:
        rest = others[MOST_IN_SENTENCE:]
        parts.append(f"{count(sum(rows for _, rows in rest))} of {len(rest)} other classes")
    return f"{count(sum(counts.values()))} rows: {', '.join(parts)}"


def about_flagged(classes: ClassEvaluation | None) -> str:
    """Return what the numbers of two classes are about where there are more; empty where there are not."""
    return "" if classes is None else f"{in_sentence(classes.classes[-1])} against the rest"


def judged_classes(classes: ClassEvaluation) -> str:
    """Return how many rows of each class were judged."""
    return rows_of_classes({part.name: part.n for part in classes.per_class}, flagged="flagged, positive")


def class_notes(classes: ClassEvaluation | None) -> tuple[str, ...]:
    """Return what a reader of the numbers of all classes must not miss."""
    if classes is None:
        return ()
    few = [f"{count(part.n)} {in_sentence(part.name)}" for part in classes.per_class if part.n < FEW_ROWS]
    rough = f"what is said of a class with few rows is rough: {_some(few)}"
    return (*classes.notes, *((rough,) if few else ()))


def class_sections(classes: ClassEvaluation | None) -> tuple[Section, ...]:
    """Return the measures of all classes, each class against the rest, and which classes are confused."""
    if classes is None:
        return ()
    return (_measures(classes), _each_class(classes), confusion_section(classes))


def confusion_section(classes: ClassEvaluation) -> Section:
    """Return the confusion matrix; of many classes the largest confusions."""
    if len(classes.classes) > MOST_IN_MATRIX:
        return _largest_confusions(classes)
    lead = "rows by their true class, and by their likeliest class"
    return Section("Confusion matrix", (_matrix(classes),), lead=lead, footnotes=_counted_as_rows(classes))


def _measures(classes: ClassEvaluation) -> Section:
    number_of, flagged = len(classes.classes), in_sentence(classes.classes[-1])
    told = f"each row is taken for the likeliest of {number_of} classes: right is the true one, whatever the threshold"
    grids = tuple(_group(classes, group, caption) for group, caption in _GROUPS.items())
    return Section(
        f"All {number_of} classes",
        grids,
        lead=told,
        footnotes=(
            f"top-1 accuracy: of {number_of} classes; accuracy under Decisions: of {flagged} or not, at the threshold",
            f"top-label and class-wise ECE: {convention_bins(classes.reliability)}",
            "if calibrated: the ECE of a perfectly calibrated head on such rows by chance, mean and 95th percentile",
            *_methods(classes),
        ),
    )


def _group(classes: ClassEvaluation, group: str, caption: str) -> Grid:
    columns = [Column("measure"), Column("value", numeric=True)]
    if classes.confidence is not None:
        columns.append(Column(level(classes.confidence), numeric=True))
    rows = tuple(_row(classes, info, metric) for info, metric in classes.metrics() if info.group == group)
    return Grid(caption, (*columns, Column("meaning")), rows, headed=classes.confidence is not None)


def _row(classes: ClassEvaluation, info: MetricInfo, metric: Metric) -> tuple[str, ...]:
    cells = [info.title, metric_value(metric)]
    if classes.confidence is not None:
        cells.append("" if metric.interval is None else interval_text(metric.interval))
    meaning = printable(metric.reason or info.what)
    if info.name == "top_label_ece" and metric.value is not None:
        meaning = f"if calibrated {chance(classes.noise)}; {meaning}"
    return (*cells, meaning)


def _methods(classes: ClassEvaluation) -> tuple[str, ...]:
    """Say how intervals were computed, once for all that share a method."""
    methods: dict[str, list[str]] = {}
    for info, metric in classes.metrics():
        if metric.interval is not None:
            methods.setdefault(metric.interval.method, []).append(info.title)
    if len(methods) == 1:
        return (f"intervals: {next(iter(methods))}",)
    found = "; ".join(f"{', '.join(titles)}: {method}" for method, titles in methods.items())
    return (f"intervals: {found}",) if found else ()


def _each_class(classes: ClassEvaluation) -> Section:
    parts = list(classes.per_class)
    left_out: tuple[str, ...] = ()
    if len(parts) > MOST_CLASSES:
        *others, last = parts
        others.sort(key=lambda part: 2.0 if part.recall.value is None else part.recall.value)
        left_out = (f"the flagged class and the {MOST_CLASSES - 1} of lowest recall; JSON has all {len(parts)}",)
        parts = [*others[: MOST_CLASSES - 1], last]
    flagged = classes.classes[-1]
    decided = _table(parts, flagged, "rows", [count(part.n) for part in parts], _DECIDED)
    ranked = _table(parts, flagged, "predicted", [count(part.predicted) for part in parts], _RANKED)
    sure = "" if classes.confidence is None else f"{percent(classes.confidence)} intervals in brackets; "
    legend = f"{sure}recall: of the rows of the class; precision: of the rows predicted so; AP: average precision"
    return Section(
        "Each class against the rest",
        (decided, ranked),
        lead="predicted is a row's likeliest class, whatever the threshold",
        footnotes=(*left_out, legend, *_undefined(parts)),
    )


def _table(parts: list[ClassRates], flagged: str, counted: str, counts: list[str], names: Mapping[str, str]) -> Grid:
    columns = (Column("class"), *(Column(heading, numeric=True) for heading in (counted, *names.values())))
    rows = tuple(
        (_name(part.name, flagged), rows, *(_with_interval(getattr(part, name)) for name in names))
        for part, rows in zip(parts, counts, strict=True)
    )
    return Grid(f"each class: {', '.join(names.values())}", columns, rows)


def _name(name: str, flagged: str) -> str:
    return f"{printable(name, longest=_LONGEST_NAME)}{' (flagged)' if name == flagged else ''}"


def _with_interval(metric: Metric) -> str:
    if metric.value is None:
        return NOTHING
    if metric.interval is None:
        return number(metric.value, 2)
    return f"{number(metric.value, 2)} [{number(metric.interval.lower, 2)}, {number(metric.interval.upper, 2)}]"


def _undefined(parts: Iterable[ClassRates]) -> tuple[str, ...]:
    """Say why numbers are missing, once for all classes and measures that share the reason."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for part in parts:
        for name, title in (_DECIDED | _RANKED).items():
            metric: Metric = getattr(part, name)
            if metric.value is None:
                reasons.setdefault(metric.reason, {}).setdefault(title, []).append(in_sentence(part.name))
    return tuple(f"{NOTHING} undefined ({_of_which(which)}): {printable(why)}" for why, which in reasons.items())


def _of_which(missing: Mapping[str, list[str]]) -> str:
    """Return which measures of which classes, those of the same classes together."""
    together: dict[str, list[str]] = {}
    for title, names in missing.items():
        together.setdefault(_some(names), []).append(title)
    return "; ".join(f"{', '.join(titles)} of {names}" for names, titles in together.items())


def _some(texts: list[str], most: int = 6) -> str:
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def _matrix(classes: ClassEvaluation) -> Grid:
    names = [printable(name, longest=_LONGEST_NAME) for name in classes.classes]
    table = classes.confusion
    body = [[*map(count, row), count(sum(row))] for row in table.tolist()]
    foot = [*map(count, table.sum(axis=0).tolist()), count(int(table.sum()))]
    headings, firsts = names, names
    if not _fits([AXES, *names], [*headings, "all"], [*body, foot]):
        # Headings that would be cut off say less than numbers which the rows explain.
        headings = [str(index + 1) for index in range(len(names))]
        firsts = [f"{index} {name}" for index, name in zip(headings, names, strict=True)]
    columns = (Column(AXES), *(Column(heading, numeric=True) for heading in (*headings, "all")))
    rows = (*((first, *cells) for first, cells in zip(firsts, body, strict=True)), ("all", *foot))
    return Grid("rows by true and predicted class", columns, rows)


def _fits(firsts: list[str], headings: list[str], body: list[list[str]]) -> bool:
    """Whether 80 columns hold the matrix with the names of the classes above it."""
    widths = [max(map(len, cells)) for cells in zip(headings, *body, strict=True)]
    return _INDENT + max(map(len, firsts)) + sum(_GAP + width for width in widths) <= _WIDTH


def _largest_confusions(classes: ClassEvaluation) -> Section:
    table = classes.confusion.copy()
    np.fill_diagonal(table, 0)
    order = np.argsort(-table, axis=None, kind="stable")[:MOST_CONFUSIONS]
    pairs = [(int(true), int(taken)) for true, taken in zip(*np.unravel_index(order, table.shape), strict=True)]
    totals = classes.confusion.sum(axis=1)
    rows = tuple(
        (
            printable(classes.classes[true], longest=_LONGEST_NAME),
            printable(classes.classes[taken], longest=_LONGEST_NAME),
            count(int(table[true, taken])),
            number(float(table[true, taken] / totals[true]), 2),
        )
        for true, taken in pairs
        if table[true, taken]
    )
    columns = (Column("true"), Column("predicted"), Column("rows", numeric=True), Column("of the true", numeric=True))
    wrong, n = int(table.sum()), int(classes.confusion.sum())
    lead = f"{count(wrong)} of {count(n)} rows have another class as their likeliest"
    most = f"the largest of {count(int(np.count_nonzero(table)))} confusions; JSON has the whole matrix"
    return Section(
        "Confusions",
        (Grid("largest confusions", columns, rows),) if rows else (),
        lead=lead,
        footnotes=(*((most,) if rows else ()), *_counted_as_rows(classes)),
    )


def _counted_as_rows(classes: ClassEvaluation) -> tuple[str, ...]:
    return ("the counts are rows, while measures are weighted",) if classes.weighted else ()
